"""What all readers of files share: finding the file, and saying what is wrong with it."""

from __future__ import annotations

import re
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def existing(path: str | Path, suffixes: tuple[str, ...]) -> tuple[Path, str | None]:
    """Return the file and the NAME of `file` or `file:NAME`, refusing what cannot be read."""
    file, name = Path(path), None
    parts = re.fullmatch(r"(.+?\.(?:npz|csv|parquet)):(.+)", str(path), re.IGNORECASE)
    if parts and not file.exists():
        file, name = Path(parts[1]), parts[2]
    if file.suffix.lower() not in suffixes:
        raise ValueError(
            f"{file}: cannot read files ending in {file.suffix!r}; use {', '.join(suffixes)}"
        )
    if not file.exists():
        raise FileNotFoundError(f"there is no file {file}")
    if file.is_dir() and file.suffix.lower() != ".zarr":
        raise IsADirectoryError(f"{file} is a folder; give a file")
    if file.is_file() and file.stat().st_size == 0:
        raise ValueError(f"{file} is empty (0 bytes); write it again")
    return file, name


@contextmanager
def readable(file: Path, kind: str) -> Iterator[None]:
    """Turn what a reader raises about broken content into one message that names the file."""
    try:
        yield
    except (ValueError, EOFError, KeyError, zipfile.BadZipFile, zlib.error) as error:
        if "pickle" in str(error) or "Python objects" in str(error):
            raise ValueError(
                f"{file} is not a NumPy file, or holds Python objects, which are not loaded "
                f"because they can run code; save numbers: np.save(path, X.astype(float))"
            ) from None
        raise ValueError(
            f"{file} is damaged, cut short or not a {kind} file ({error}); write it again"
        ) from None


def not_numeric(file: Path, name: str, why: str) -> str:
    """Return the message about a column that is not numeric."""
    return (
        f"{file}: column {name!r} is not numeric ({why}); "
        f"if it is the class of the items, use --labels {name}, otherwise encode or remove it"
    )


def column_number(file: Path, names: list[str], name: str | None) -> int:
    """Return where the column `name` is, refusing one that is not there."""
    if name not in names:
        raise ValueError(
            f"{file} has the columns {', '.join(names[:10])}{', ...' if len(names) > 10 else ''}"
            f"{'' if name is None else f' and no column {name!r}'}; select one as {file.name}:NAME"
        )
    return names.index(name)
