"""What all readers of files share: finding the file, and saying what is wrong with it."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from dmsgd.errors import InputError
from dmsgd.inputs.messages import few, visible

#: Characters that are shown of a path that no file can have.
SHOWN = 80
#: Which array of several is taken for the features.
USUAL_NAMES = ("X", "features", "x")


def refuse_impossible(path: str | Path) -> None:
    """Raise if no file can have this path: it is too long, or has a null character."""
    try:
        os.lstat(path)
    except OSError as error:
        if error.errno != errno.ENAMETOOLONG:
            return
        why = f"it is too long ({len(os.fsencode(path)):,} bytes)"
    except ValueError as error:
        why = str(error)
    else:
        return
    raise ValueError(f"no file can have the path {visible(path, SHOWN)}: {why}; use another")


def split(path: str | Path) -> tuple[Path, str | None]:
    """Return the file and the NAME of `file` or `file:NAME`; a file of the whole name is one."""
    file, name = Path(path), None
    pattern = r"(.+?\.(?:npz|csv|tsv|parquet|zarr)):(.+)"
    parts = re.fullmatch(pattern, str(path), re.IGNORECASE | re.DOTALL)
    if parts and not os.path.exists(file):
        file, name = Path(parts[1]), parts[2]
    refuse_impossible(file)
    return file, name


def existing(path: str | Path, suffixes: tuple[str, ...]) -> tuple[Path, str | None]:
    """Return the file and the NAME of `file` or `file:NAME`, refusing what cannot be read."""
    file, name = split(path)
    if file.suffix.lower() not in suffixes:
        raise ValueError(
            f"{file}: cannot read files ending in {file.suffix!r}; use {', '.join(suffixes)}"
        )
    if not file.exists():
        raise FileNotFoundError(f"there is no file {file}")
    if file.is_dir() and file.suffix.lower() != ".zarr":
        raise IsADirectoryError(f"{file} is a folder; give a file")
    if not (file.is_dir() or file.is_file()):
        raise ValueError(f"{file} is a device or a pipe; give a file")
    if file.is_file() and file.stat().st_size == 0:
        raise ValueError(f"{file} is empty (0 bytes); write it again")
    return file, name


@contextmanager
def readable(file: Path, kind: str) -> Iterator[None]:
    """Turn whatever a reader raises about broken content into one message that names the file.

    What is wrong with the disk or the memory rather than with the content goes on as it is.
    """
    try:
        yield
    except (MemoryError, ImportError):
        raise
    except Exception as error:
        of_content = (None, errno.EINVAL)  # a place in the file that cannot be
        if isinstance(error, OSError) and error.errno not in of_content:
            raise
        if "pickle" in str(error) or "Python objects" in str(error):
            raise ValueError(
                f"{file} is not a NumPy file, or holds Python objects, which are not loaded "
                f"because they can run code; save numbers: np.save(path, X.astype(float))"
            ) from None
        told = " ".join(str(error).split())[:200] or type(error).__name__
        raise ValueError(
            f"{file} is damaged, cut short or not a {kind} file ({told}); write it again"
        ) from None


def chosen(file: Path, held: Sequence[str], name: str | None, usual: tuple[str, ...]) -> str:
    """Return which of the arrays that a file holds is meant: `name`, the only one, a usual one."""
    if name is None:
        found = list(held) if len(held) == 1 else [each for each in usual if each in held]
        name = found[0] if found else None
    if name is None or name not in held:
        raise ValueError(
            f"{file} holds the arrays {', '.join(held) or '(none)'}; select one as {file.name}:NAME"
        )
    return name


def not_numeric(file: Path, name: str, why: str) -> InputError:
    """Return the error about a column that is not numeric."""
    return InputError(
        f"{file}: column {name!r} is not numeric ({why}): encode it as numbers, drop it, or use it "
        f"as labels",
        labels=name,
        drop=name,
    )


def column_number(file: Path, names: list[str], name: str | None) -> int:
    """Return where the column `name` is, refusing one that is not there or not the only one."""
    refuse_unknown(file, names, name)
    if names.count(str(name)) > 1:
        raise ValueError(f"{file} has {names.count(str(name))} columns {name!r}; name them apart")
    return names.index(str(name))


def kept(file: Path, names: list[str], drop: Collection[str]) -> list[int]:
    """Return where the columns are that are not to `drop`, refusing to drop what is not there."""
    out, known = set(drop), set(names)
    unknown = [name for name in drop if name not in known]
    if unknown:
        refuse_unknown(file, names, unknown[0])
    return [j for j, name in enumerate(names) if name not in out]


def refuse_unknown(file: Path, names: list[str], name: str | None) -> None:
    """Raise if no column has this name."""
    if name not in names:
        raise ValueError(
            f"{file} has the columns {few(names)}"
            f"{'' if name is None else f' and no column {name!r}'}; select one as {file.name}:NAME"
        )
