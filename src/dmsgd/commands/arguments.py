"""The options that commands share, in the same words, and the outputs they write."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from typing import IO, Annotated

import typer


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
