"""Features and labels from files: .npy, .npz (NumPy or SciPy sparse), .csv, .parquet, .txt.

`file:NAME` names one array of an .npz archive or one column of a table. A column of a CSV file
without a header is named by its number, from 1.
"""

from __future__ import annotations

import csv
import re
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import numpy.typing as npt

from dmsgd.arrays import FloatArray, Matrix, as_labels, as_matrix

TABLES = (".csv", ".parquet")
FEATURE_FILES = (".npy", ".npz", *TABLES)
LABEL_FILES = (*FEATURE_FILES, ".txt")


def load_features(path: str | Path, drop: str | None = None) -> Matrix:
    """Return the features in the file at `path`: a finite (n, d) float64 array, or CSR.

    .npy files of float64 stay on disk as a memory map. `drop` is the column of a table that is not
    a feature (the labels).
    """
    file, name = _existing(path, FEATURE_FILES)
    kind = file.suffix.lower()
    value: Any
    if kind in TABLES:
        if name is not None:
            raise ValueError(f"{path}: features are all columns of a table; give the file alone")
        if drop is not None:
            _column(file, column_names(file), drop)
        value = _csv_numbers(file, drop) if kind == ".csv" else _parquet_numbers(file, drop)
    elif drop is not None:
        raise ValueError(f"{path} has no columns to drop {drop!r} from; only tables do")
    else:
        value = _npy(file) if kind == ".npy" else _npz(file, name, ("X", "features", "x"))
    if value.ndim == 1:
        raise ValueError(
            f"{path} has shape {value.shape}, features need (items, features); "
            f"save a single feature as X.reshape(-1, 1)"
        )
    return as_matrix(value, str(path))


def load_labels(path: str | Path, n: int | None = None) -> npt.NDArray[Any]:
    """Return the labels in the file at `path`, a 1-D array: whole numbers or text.

    `n`, the number of items, tells a header from a label when a CSV file holds text: a first line
    that occurs nowhere else is the header if there is one line too many.
    """
    file, name = _existing(path, LABEL_FILES)
    kind = file.suffix.lower()
    value: Any
    if kind == ".txt":
        with _text(file) as text:
            value = _typed(file, text.read().rstrip().splitlines())
    elif kind in TABLES:
        value = _csv_labels(file, name, n) if kind == ".csv" else _parquet_labels(file, name)
    else:
        value = _npy(file) if kind == ".npy" else _npz(file, name, ("y", "labels", "label"))
    return as_labels(value, name=str(path))


def column_names(path: str | Path) -> list[str]:
    """Return the names of the columns of a table, and none for other kinds of file."""
    if Path(path).suffix.lower() not in TABLES:
        return []
    file, _ = _existing(path, TABLES)
    if file.suffix.lower() == ".csv":
        return _layout(file).names
    return list(_parquet(file).schema_arrow.names)


def _existing(path: str | Path, suffixes: tuple[str, ...]) -> tuple[Path, str | None]:
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
    if file.is_dir():
        raise IsADirectoryError(f"{file} is a folder; give a file")
    if file.is_file() and file.stat().st_size == 0:
        raise ValueError(f"{file} is empty (0 bytes); write it again")
    return file, name


@contextmanager
def _readable(file: Path, kind: str) -> Iterator[None]:
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


def _npy(file: Path) -> npt.NDArray[Any]:
    with _readable(file, "NumPy"):
        array = np.load(file, mmap_mode="r", allow_pickle=False)
    if not isinstance(array, np.ndarray):
        array.close()
        raise ValueError(f"{file} is an archive of arrays; rename it to {file.stem}.npz")
    return array


def _npz(file: Path, name: str | None, usual: tuple[str, ...]) -> Any:
    with open(file, "rb") as stream:  # np.load(path) leaves a broken archive open
        with _readable(file, "NumPy"):
            archive = np.load(stream, allow_pickle=False)
        if isinstance(archive, np.ndarray):
            raise ValueError(f"{file} is a single array; rename it to {file.stem}.npy")
        held = list(archive.files)
        if name is None and {"format", "shape", "data"} <= set(held):
            return _sparse(file)
        if name is None:
            found = held if len(held) == 1 else [n for n in usual if n in held]
            name = found[0] if found else None
        if name not in held:
            raise ValueError(
                f"{file} holds the arrays {', '.join(held) or '(none)'}; "
                f"select one as {file.name}:NAME"
            )
        with _readable(file, "NumPy"):
            return archive[name]


def _sparse(file: Path) -> Any:
    from scipy import sparse

    with _readable(file, "SciPy sparse"):
        matrix = sparse.csr_array(sparse.load_npz(file))
        matrix.check_format(full_check=True)  # compiled code follows the indices unchecked
    return matrix


@dataclass(frozen=True)
class _Layout:
    names: list[str]
    delimiter: str
    skip: int  # lines up to the end of the header


def _layout(file: Path) -> _Layout:
    """Return the columns of a CSV file; commas, or semicolons or tabs if there is no comma."""
    with _text(file) as text:
        line = text.readline()
        delimiter = "," if "," in line else ";" if ";" in line else "\t" if "\t" in line else ","
        text.seek(0)
        reader = csv.reader(text, delimiter=delimiter)
        filled = (row for row in reader if row)
        first = next(filled, [])
        skip = reader.line_num
        second = next(filled, [])
    if not first:
        raise ValueError(f"{file} holds blank lines only; write it again")
    if not _is_header(first, second):
        return _Layout([str(j + 1) for j in range(len(first))], delimiter, 0)
    names = [cell.strip() for cell in first]
    if "" in names:
        raise ValueError(
            f"{file}: column {names.index('') + 1} has no name; name it, or leave it out (pandas: "
            f"to_csv(..., index=False))"
        )
    return _Layout(names, delimiter, skip)


def _is_header(first: list[str], second: list[str]) -> bool:
    numeric = [_is_number(cell) for cell in first]
    numbered = [str(j) for j in range(len(first))]
    if not any(numeric) or (len(first) > 2 and first == numbered):  # pandas numbers columns so
        return True
    pairs = zip(first, numeric, second, strict=False)
    return any(cell.strip() and not number and _is_number(below) for cell, number, below in pairs)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


@contextmanager
def _text(file: Path) -> Iterator[TextIO]:
    with open(file, encoding="utf-8-sig", newline="") as text:
        try:
            yield text
        except UnicodeDecodeError:
            raise ValueError(f"{file} is not UTF-8 text; convert it, or save .npy") from None
        except csv.Error as error:
            raise ValueError(f"{file} is not a CSV file ({error})") from None


def _csv_rows(file: Path, layout: _Layout) -> Iterator[tuple[int, list[str]]]:
    """Yield (line number, cells) of each row below the header."""
    with _text(file) as text:
        reader = csv.reader(text, delimiter=layout.delimiter)
        for row in reader:
            if not row or reader.line_num <= layout.skip:
                continue
            if len(row) != len(layout.names):
                raise ValueError(
                    f"{file}: line {reader.line_num} has {len(row)} cells, the first line "
                    f"{len(layout.names)}; every line needs the same number"
                )
            yield reader.line_num, row


def _csv_numbers(file: Path, drop: str | None) -> FloatArray:
    layout = _layout(file)
    used = [j for j, name in enumerate(layout.names) if name != drop]
    if not used:
        raise ValueError(f"{file} has no column of features besides {drop!r}")
    if next(_csv_rows(file, layout), None) is None:
        raise ValueError(f"{file} has a header ({', '.join(layout.names)}) but no rows")
    try:
        with _text(file) as text:
            return np.loadtxt(
                text,
                delimiter=layout.delimiter,
                comments=None,
                quotechar='"',
                skiprows=layout.skip,
                usecols=None if drop is None else used,
                ndmin=2,
            )
    except ValueError as error:
        _explain(file, layout, used)
        raise ValueError(f"{file}: {error}") from None


def _explain(file: Path, layout: _Layout, used: list[int]) -> None:
    """Raise an error about the first cell that is not a number."""
    for line, row in _csv_rows(file, layout):
        for j in used:
            if not row[j].strip():
                raise ValueError(
                    f"{file}: column {layout.names[j]!r} is empty in line {line}; fill or drop it"
                )
            if not _is_number(row[j]):
                raise ValueError(
                    _not_numeric(file, layout.names[j], f"line {line} has {row[j][:40]!r}")
                )


def _not_numeric(file: Path, name: str, why: str) -> str:
    return (
        f"{file}: column {name!r} is not numeric ({why}); "
        f"if it is the class of the items, use --labels {name}, otherwise encode or remove it"
    )


def _csv_labels(file: Path, name: str | None, n: int | None) -> npt.NDArray[Any]:
    layout = _layout(file)
    if name is not None or len(layout.names) > 1:
        column = _column(file, layout.names, name)
        return _typed(file, [row[column] for _, row in _csv_rows(file, layout)])
    cells = [row[0] for _, row in _csv_rows(file, _Layout(layout.names, layout.delimiter, 0))]
    first, rest = cells[0], cells[1:]
    if not _is_number(first) and rest:
        above_numbers = all(map(_is_number, rest))
        one_too_many = n is not None and len(rest) == n and first not in rest
        cells = rest if above_numbers or one_too_many else cells
    return _typed(file, cells)


def _column(file: Path, names: list[str], name: str | None) -> int:
    if name not in names:
        raise ValueError(
            f"{file} has the columns {', '.join(names[:10])}{', ...' if len(names) > 10 else ''}"
            f"{'' if name is None else f' and no column {name!r}'}; select one as {file.name}:NAME"
        )
    return names.index(name)


def _typed(file: Path, cells: list[str]) -> npt.NDArray[Any]:
    """Return the cells as integers if all are written as such, otherwise as text."""
    text = np.char.strip(np.array(cells, dtype=np.str_))
    missing = np.flatnonzero(np.isin(text, ["", "nan", "NaN"]))
    if missing.size:
        raise ValueError(
            f"{file} has {missing.size} missing labels (the first is number {missing[0] + 1}); "
            f"drop or fill them"
        )
    try:
        whole = text.astype(np.int64)
    except (ValueError, OverflowError):
        return text
    return whole if np.array_equal(whole.astype(np.str_), text) else text  # "07" is not "7"


def _parquet(file: Path) -> Any:
    try:
        from pyarrow import parquet
    except ImportError:
        raise ImportError(
            f"{file}: reading Parquet needs pyarrow; pip install 'dmsgd[parquet]'"
        ) from None
    with _readable(file, "Parquet"):
        return parquet.ParquetFile(file)


def _parquet_numbers(file: Path, drop: str | None) -> FloatArray:
    source = _parquet(file)
    import pyarrow as pa

    # pandas stores a row index that is not 0..n-1 as a column of this name; it is no feature.
    used = [f for f in source.schema_arrow if f.name != drop and "__index_level_" not in f.name]
    if not used:
        raise ValueError(f"{file} has no column of features")
    for field in used:
        kind = field.type
        if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or kind == pa.bool_()):
            raise ValueError(_not_numeric(file, field.name, f"it holds {kind}"))
    with _readable(file, "Parquet"):
        table = source.read(columns=[field.name for field in used])
    numbers = np.empty((table.num_rows, len(used)))
    for j, field in enumerate(used):
        numbers[:, j] = table[field.name].cast(pa.float64()).to_numpy()
    return numbers


def _parquet_labels(file: Path, name: str | None) -> npt.NDArray[Any]:
    source = _parquet(file)
    import pyarrow as pa

    names = list(source.schema_arrow.names)
    j = _column(file, names, names[0] if name is None and len(names) == 1 else name)
    with _readable(file, "Parquet"):
        column = source.read(columns=[names[j]])[names[j]]
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)  # to_numpy makes a category of nulls
    if column.null_count:
        raise ValueError(f"{file} has {column.null_count} missing labels; drop or fill them")
    values = column.to_numpy()
    return np.array(values.tolist()) if values.dtype == object else np.asarray(values)
