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
    """Raise unless `output` can be written without losing anything that was not named.

    inputs: files, or file:NAME.
    """
    from dmsgd.files.paths import refuse_impossible, split

    refuse_impossible(output)
    folder = Path(os.path.realpath(output)).parent  # where a link leads to
    if output.suffix.lower() not in suffixes:
        raise ValueError(f"{output}: the output must end in {' or '.join(suffixes)}")
    if not folder.is_dir():
        named = folder if output.is_symlink() else output.parent
        raise FileNotFoundError(f"there is no folder {named}; create it first")
    if not os.access(folder, os.W_OK):
        raise PermissionError(f"the folder {folder} cannot be written to")
    if output.is_dir():
        raise IsADirectoryError(f"{output} is a folder; give a file")
    if not output.exists():
        return
    if not output.is_file():
        raise ValueError(f"{output} is a device or a pipe; give a file")
    files = [split(name)[0] for name in inputs if name]
    if any(file.exists() and output.samefile(file) for file in files):
        raise ValueError(f"{output} is an input of this command; write to another file")
    if not force:
        raise FileExistsError(f"{output} exists; use --force to replace it, or another name")


@contextmanager
def replacing(path: Path, force: bool) -> Iterator[IO[bytes]]:
    """Yield a new file that becomes `path` if all goes well and vanishes if not.

    Without `force` it takes the place of no file, not even of one that has come meanwhile.
    """
    target = Path(os.path.realpath(path))  # a link stays a link
    start = target.name[:40]  # the whole may be as long as names can be
    hidden = target.with_name(f".{start}.{secrets.token_hex(4)}.tmp")
    try:
        with open(hidden, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if not force:
            _refuse_to_replace(path, hidden, target)
        os.replace(hidden, target)
    except OSError as error:
        if error.errno is None:  # it says by itself what is wrong
            raise
        why = f"cannot write {path}: {os.strerror(error.errno)}; what was there is as it was"
        raise OSError(error.errno, why) from error
    finally:
        hidden.unlink(missing_ok=True)


def _refuse_to_replace(path: Path, hidden: Path, target: Path) -> None:
    """Give `hidden` the name `target` as well, or raise if that is another file's by now."""
    try:
        os.link(hidden, target)
    except OSError:  # it is there, or the file system has no links: then a look must do
        if os.path.lexists(target):
            raise FileExistsError(
                f"{path} was written by another program meanwhile, and is left as it is; use "
                f"--force to replace it, or another name"
            ) from None
