"""The options that commands share, in the same words, and the files behind them."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from dmsgd.diagnostics import Settings


class KernelOption(str, Enum):
    """The kernels that `--kernel` takes."""

    linear = "linear"
    rbf = "rbf"


class TargetOption(str, Enum):
    """The targets that `--target` takes."""

    uniform = "uniform"
    balanced = "balanced"
    density = "density"


FEATURES = typer.Argument(
    metavar="FEATURES",
    help="Items as rows: .npy, .npz (or file.npz:NAME; SciPy sparse too), .csv, .tsv, .parquet, "
    ".zarr (or store.zarr:NAME), or a folder of sparse .npz files.",
)
LABELS = typer.Option(
    help="Class of each item: a file (.npy, .npz, .csv, .tsv, .txt, .parquet, .zarr), or a column "
    "of FEATURES, which is then no feature."
)

Features = Annotated[str, FEATURES]
Columns = Annotated[
    str | None,
    typer.Option(
        metavar="NAME,NAME",
        help="Columns of a table that are features.  [default: all but --labels]",
    ),
]
Drop = Annotated[
    str | None,
    typer.Option(metavar="NAME,NAME", help="Columns of a table that are no features, such as ids."),
]
BatchSize = Annotated[int, typer.Option("-k", help="Items in a batch.")]
Labels = Annotated[str | None, LABELS]
Weight = Annotated[
    float,
    typer.Option("-w", help="Weight of the labels: 0 only reports them, 1 looks at nothing else."),
]
Kernel = Annotated[KernelOption, typer.Option(help="Similarity of items.")]
Scale = Annotated[
    float | None,
    typer.Option(help="Length scale of --kernel rbf.  [default: the median distance]"),
]
Rho = Annotated[float | None, typer.Option(help="Anneal the features first: x to the power rho.")]
Standardize = Annotated[
    bool,
    typer.Option(
        "--standardize",
        help="Scale columns to mean 0 and standard deviation 1: for columns in different units.",
    ),
]
Normalize = Annotated[
    bool,
    typer.Option("--normalize", help="Scale rows to length 1: for embeddings, counts and images."),
]
Target = Annotated[
    TargetOption | None,
    typer.Option(
        help="How often items are seen: all alike, all classes alike, or more where they are "
        "sparse.  [default: as the kernel gives it]"
    ),
]
Seed = Annotated[int, typer.Option(help="The same seed gives the same result.")]
Force = Annotated[bool, typer.Option("--force", help="Replace an existing output.")]


def as_settings(
    labels: str | None,
    w: float,
    kernel: KernelOption,
    scale: float | None,
    rho: float | None,
    standardize: bool,
    normalize: bool,
    target: TargetOption | None,
) -> Settings:
    """Return what these options say of a design: the same in every command."""
    from dmsgd.diagnostics import Settings

    if w > 0 and labels is None:
        raise ValueError(f"-w {w:g} mixes in labels; give them with --labels, or leave -w out")
    if target is TargetOption.balanced and labels is None:
        raise ValueError("--target balanced gives classes equal shares; give them with --labels")
    return Settings(
        w=w,
        kernel=kernel.value,
        standardize=standardize,
        normalize=normalize,
        scale=scale,
        rho=rho,
        target=None if target is None else target.value,
    )


def load(
    features: str, labels: str | None, columns: str | None = None, drop: str | None = None
) -> tuple[Any, Any]:
    """Return X and y; labels that name a column of the features are taken out of them."""
    from dmsgd.commands.loading import LABEL_FILES, load_features, load_labels
    from dmsgd.files.tables import column_names
    from dmsgd.inputs.labels import as_labels

    names, out = column_names(features), dropped(features, labels, columns, drop)
    if labels is None:
        return load_features(features, out), None
    if labels in names:
        return load_features(features, out), load_labels(f"{features}:{labels}")
    if names and not any(suffix in labels.lower() for suffix in LABEL_FILES):
        raise ValueError(
            f"{features} has no column {labels!r} for --labels; it has {', '.join(names[:10])}"
            + (", ..." if len(names) > 10 else "")
        )
    X = load_features(features, out)
    return X, as_labels(load_labels(labels, n=X.shape[0]), X.shape[0])


def dropped(
    features: str, labels: str | None, columns: str | None, drop: str | None
) -> tuple[str, ...]:
    """Return the columns of a table that are no features, by these options."""
    from dmsgd.files.tables import TABLES, column_names

    names = column_names(features)
    for option, text in (("--columns", columns), ("--drop", drop)):
        if text is not None and not text.strip(" ,"):
            raise ValueError(f"{option} names no column; write names between commas, as a,b")
    asked = {"--columns": _named(columns, names), "--drop": _named(drop, names)}
    for option, given in asked.items():
        if given and not names:
            raise ValueError(
                f"{option} is for tables ({', '.join(TABLES)}); {features} has no named columns"
            )
        for each in given:
            if each not in names:
                few = ", ".join(names[:10]) + ", ..." * (len(names) > 10)
                raise ValueError(f"{features} has no column {each!r} for {option}; it has {few}")
    if asked["--columns"] and asked["--drop"]:
        raise ValueError("--columns says what is a feature, --drop what is none; give one of them")
    kept = asked["--columns"] or [name for name in names if name not in asked["--drop"]]
    return tuple(name for name in names if name not in kept or name == labels)


def _named(text: str | None, names: list[str]) -> list[str]:
    """Return the names in `text`, between commas; one that has commas itself stands alone."""
    if text is None or text in names:
        return [] if text is None else [text]
    return [each.strip() for each in text.split(",") if each.strip()]


def refuse_output(
    output: Path, suffixes: tuple[str, ...], inputs: list[str | None], force: bool
) -> None:
    """Raise unless `output` can be written without losing anything that was not named."""
    if output.suffix.lower() not in suffixes:
        raise ValueError(f"{output}: the output must end in {' or '.join(suffixes)}")
    if not output.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {output.parent}; create it first")
    if not os.access(output.parent, os.W_OK):
        raise PermissionError(f"the folder {output.parent.resolve()} cannot be written to")
    if output.is_dir():
        raise IsADirectoryError(f"{output} is a folder; give a file")
    if not output.exists():
        return
    if any(Path(name).exists() and output.samefile(name) for name in inputs if name):
        raise ValueError(f"{output} is an input of this command; write to another file")
    if not force:
        raise FileExistsError(f"{output} exists; use --force to replace it, or another name")


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """Yield a new file that takes the place of `path` if all goes well and vanishes if not."""
    target = Path(os.path.realpath(path))  # a link stays a link
    hidden = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
    try:
        with open(hidden, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(hidden, target)
    finally:
        hidden.unlink(missing_ok=True)
