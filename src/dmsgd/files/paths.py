"""Paths of files: `file:NAME`, which files can be read, and one error for damaged files."""

from __future__ import annotations

import csv
import errno
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from dmsgd.errors import InputError
from dmsgd.inputs.messages import few, visible

#: Suffixes of tables.
TABLES = (".csv", ".tsv", ".parquet", ".jsonl")
#: Arrays that are taken for features, or labels, where a file holds several.
FEATURE_NAMES = ("X", "features", "x")
LABEL_NAMES = ("y", "labels", "label")
#: Characters that messages show of an impossible path.
SHOWN = 80


def check_path(path: str | Path) -> None:
    """Raise if no file can have this path: it is too long, or has a null character."""
    try:
        os.lstat(path)
    except (OSError, ValueError) as error:
        if isinstance(error, ValueError) or error.errno == errno.ENAMETOOLONG:
            why = getattr(error, "strerror", error)
            shown = visible(path, SHOWN)
            raise ValueError(f"no file can have the path {shown}: {why}; use another") from None


def split_path(path: str | Path) -> tuple[Path, str | None]:
    """Return the file and the NAME of `file` or `file:NAME`; an existing file has no NAME."""
    file, name = Path(path), None
    suffixes = "|".join(map(re.escape, (".npz", *TABLES, ".zarr")))
    parts = re.fullmatch(f"(.+?(?:{suffixes})):(.+)", str(path), re.IGNORECASE | re.DOTALL)
    if parts and not os.path.exists(file):
        file, name = Path(parts[1]), parts[2]
    check_path(file)
    return file, name


def find_file(
    path: str | Path, suffixes: tuple[str, ...], folders: bool = False
) -> tuple[Path, str | None]:
    """Return the file and the NAME of `file` or `file:NAME`, or raise if it cannot be read.

    folders: accept a folder, too, unless it is named like a file.
    """
    file, name = split_path(path)
    suffix = file.suffix.lower()
    if folders and file.is_dir() and suffix not in suffixes:
        return file, name
    if suffix not in suffixes and (suffix or not folders):
        known = ", ".join(suffixes)
        raise ValueError(f"{file}: cannot read files ending in {file.suffix!r}; use {known}")
    if not file.exists():
        raise FileNotFoundError(f"there is no file {file}")
    if file.is_dir() and suffix != ".zarr":
        raise IsADirectoryError(f"{file} is a folder; give a file")
    if not (file.is_dir() or (file.is_file() and suffix)):
        raise ValueError(f"{file} is a device or a pipe, or has no suffix; give a file")
    if file.is_file() and file.stat().st_size == 0:
        raise ValueError(f"{file} is empty (0 bytes); write it again")
    return file, name


@contextmanager
def open_text(file: Path) -> Iterator[TextIO]:
    """Open a UTF-8 text file; errors about its content name the file."""
    with open(file, encoding="utf-8-sig", newline="") as text:
        try:
            yield text
        except UnicodeDecodeError:
            raise ValueError(f"{file} is not UTF-8 text; convert it, or save .npy") from None
        except csv.Error as error:
            raise ValueError(f"{file} is not a CSV file ({error}); save .parquet") from None


@contextmanager
def readable(file: Path, kind: str) -> Iterator[None]:
    """Turn what a library raises about broken content into one ValueError that names the file.

    Disk errors, `InputError`, memory errors that name the file, and errors of Python itself are
    raised unchanged.
    """
    try:
        yield
    except (ImportError, InputError, SystemError):
        raise
    except MemoryError as error:
        if str(file) in str(error):
            raise
        raise MemoryError(f"{file} needs too much memory ({error}); use a part of it") from None
    except Exception as error:
        of_content = (None, errno.EINVAL)  # EINVAL: an impossible position in the file
        if isinstance(error, OSError) and error.errno not in of_content:
            raise
        if "pickle" in str(error) or "Python objects" in str(error):
            what = "is not a NumPy file, or holds Python objects, which can run code"
            raise ValueError(f"{file} {what}; save numbers: np.save(path, numbers)") from None
        told = " ".join(str(error).split())[:200] or type(error).__name__
        what = f"damaged, cut short or not a {kind} file ({told})"
        raise ValueError(f"{file} is {what}; write it again") from None


def choose_array(
    file: Path, names: Sequence[str], name: str | None, defaults: Sequence[str]
) -> str:
    """Return which of a file's arrays is meant: `name`, the only one, or a default."""
    if name is None:
        found = list(names) if len(names) == 1 else [each for each in defaults if each in names]
        name = found[0] if found else None
    if name is None or name not in names:
        held = few(names) or "(none)"
        raise ValueError(f"{file} holds the arrays {held}; select one as {file.name}:NAME")
    return name
