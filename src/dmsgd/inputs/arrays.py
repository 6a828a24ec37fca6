"""Checks and conversions of what users pass in; everything behind them sees float64 and int64.

Accepted as a matrix: NumPy arrays of any real dtype (memory maps included), SciPy sparse matrices,
pandas and polars frames, torch CPU tensors, lists of lists. No framework is imported here: theirs
are recognised by the methods they have.
"""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from decimal import Decimal
from operator import eq
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
#: Sums of squares below this leave too little room for small eigenvalues above 1e-308.
VANISHING = 1e-250
#: Numbers with a fraction may be labels up to this many different ones; more are measurements.
FRACTIONS = 20
#: What missing labels become when a column is cast to text; no class has such a name.
MISSING_WORDS = ("nan", "NaN", "NaT", "<NA>")
#: Counts are numbers of 64 bits.
MOST = 2**63 - 1
#: A dense (n, d) array or its CSR equivalent.
Matrix = Any


def as_dense(value: Any, name: str) -> npt.NDArray[Any]:
    """Return `value` as a NumPy array, without a copy where the source allows it."""
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        count = int(np.ma.getmaskarray(value).sum())
        raise ValueError(
            f"{name} is masked at {count} entries, which have no value; fill them "
            f"({name}.filled(...)) or leave those items out"
        )
    is_tensor = (
        hasattr(value, "detach") and hasattr(value, "device") and not isinstance(value, type)
    )
    if is_tensor:
        _refuse_elsewhere(value, name)
    try:
        if is_tensor:
            return _of_tensor(value)
        if hasattr(value, "to_numpy") and not isinstance(value, type):  # pandas, polars
            value = value.to_numpy()
        return np.asarray(value)
    except Exception as error:  # whatever it is, it says what it does not do
        if isinstance(value, list | tuple):
            raise ValueError(f"{name} is not a rectangular array of numbers: {error}") from None
        raise TypeError(
            f"{name} is a {type(value).__name__} that does not become an array: {error}"
        ) from None


def _refuse_elsewhere(tensor: Any, name: str) -> None:
    if tensor.device.type != "cpu":
        raise TypeError(f"{name} is a tensor on {tensor.device}; pass {name}.cpu()")
    if repr(tensor.layout) != "torch.strided":
        raise TypeError(f"{name} is a {tensor.layout} tensor; pass {name}.to_dense()")


def _of_tensor(tensor: Any) -> npt.NDArray[Any]:
    tensor = tensor.detach().resolve_neg()
    short = tensor.is_floating_point() and tensor.element_size() < 4  # some NumPy does not know
    return np.asarray((tensor.float() if short else tensor).numpy())


def as_matrix(value: Any, name: str = "X", *, part: bool = False) -> Matrix:
    """Return `value` as a finite, non-empty, 2-D float64 array or canonical CSR array.

    `part`: it is a part of a matrix, which may be small beside the rest.
    """
    if value is None:
        raise TypeError(f"{name} is None; pass an (n, d) array of features")
    if sparse.issparse(value):
        _refuse_wrong_shape(value.shape, name)
        matrix = _as_csr(value, name)
        numbers_in = matrix.data
    else:
        raw = as_dense(value, name)
        if raw.ndim == 0 and raw.dtype == object:
            raise TypeError(
                f"{name} is a {type(value).__name__}; pass an (n, d) array, a frame, a tensor or "
                f"the path of a file"
            )
        numbers_in = matrix = np.ascontiguousarray(_as_floats(raw, name)).reshape(raw.shape)
        _refuse_wrong_shape(matrix.shape, name)
    squares = _finite_squares(numbers_in, name)
    if not part and squares < VANISHING and numbers_in.any():
        refuse_vanishing(squares, name)
    return matrix


def _refuse_wrong_shape(shape: tuple[int, ...], name: str) -> None:
    if len(shape) != 2:
        raise ValueError(
            f"{name} must have two dimensions (items, features), got shape {shape}"
            + (f"; a single feature is {name}.reshape(-1, 1)" if len(shape) == 1 else "")
        )
    if 0 in shape:
        raise ValueError(f"{name} is empty: shape {shape}")


def _as_csr(value: Any, name: str) -> Matrix:
    """Return a sparse matrix as CSR in float64: sorted, no entry twice, indices of 32 bits.

    Compiled code follows indices unchecked, that of SciPy which converts them too.
    """
    _refuse_wrong_dtype(value.dtype, name)
    try:
        if value.format in ("csc", "bsr"):
            value = (sparse.csc_array if value.format == "csc" else sparse.bsr_array)(value)
            value.check_format(full_check=True)
        elif value.format == "coo":
            for places, size in zip((value.row, value.col), value.shape, strict=True):
                if places.size and (places.min() < 0 or places.max() >= size):
                    raise ValueError(f"an index lies outside of 0..{size - 1}")
        with np.errstate(over="ignore"):
            matrix = sparse.csr_array(value, dtype=np.float64)
        matrix.check_format(full_check=True)
    except (ValueError, TypeError, IndexError) as error:
        raise ValueError(f"{name} is a damaged sparse matrix: {error}") from None
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    if matrix.indices.dtype != np.int32 and max(*matrix.shape, matrix.nnz) < 2**31:
        parts = matrix.data, matrix.indices.astype(np.int32), matrix.indptr.astype(np.int32)
        matrix = sparse.csr_array(parts, shape=matrix.shape)
        matrix.has_canonical_format = True
    return matrix


def _as_floats(raw: npt.NDArray[Any], name: str) -> FloatArray:
    """Return real numbers of any dtype as float64, without a copy where they are that."""
    if raw.dtype == object:
        _refuse_wrong_objects(raw, name)
    else:
        _refuse_wrong_dtype(raw.dtype, name)
    try:
        with np.errstate(over="ignore"):
            return np.asarray(raw, dtype=np.float64)
    except OverflowError:
        raise ValueError(f"{name} has numbers beyond 1e308; rescale it") from None
    except (TypeError, ValueError):
        raise TypeError(f"{name} holds objects that are not numbers") from None


def _refuse_wrong_objects(raw: npt.NDArray[Any], name: str) -> None:
    _refuse_missing(_missing(raw), name)
    for kind in set(map(type, raw.flat)):
        if issubclass(kind, str | bytes):
            raise TypeError(_TEXT.format(name=name))
        if issubclass(kind, np.generic):
            _refuse_wrong_dtype(np.dtype(kind), name)
        elif issubclass(kind, np.ndarray) or not hasattr(kind, "__float__"):
            raise TypeError(f"{name} holds objects that are not numbers, such as a {kind.__name__}")


_TEXT = "{name} holds text; encode it as numbers first (one_hot, tf-idf, ...)"


def _refuse_wrong_dtype(dtype: np.dtype[Any], name: str) -> None:
    if dtype.kind in "USTa":
        raise TypeError(_TEXT.format(name=name))
    if dtype.kind not in "fiub":
        raise TypeError(f"{name} must hold real numbers, got dtype {dtype}")


def _missing(values: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Return which entries are None, NaN, NaT or pandas' NA."""
    if values.dtype.kind == "f":
        return np.asarray(~np.isfinite(values))
    if values.dtype.kind in "mM":
        return np.asarray(np.isnat(values))
    if values.dtype != object:
        return np.zeros(values.shape, dtype=bool)
    return np.array([_is_missing(entry) for entry in values.flat], dtype=bool)


def _is_missing(entry: Any) -> bool:
    if entry is None or type(entry).__name__ in ("NAType", "NaTType"):
        return True
    compares = isinstance(entry, numbers.Number | np.datetime64 | np.timedelta64)
    return compares and bool(entry != entry)


def _refuse_missing(missing: npt.NDArray[np.bool_], name: str) -> None:
    if missing.any():
        raise ValueError(f"{name} has {int(missing.sum())} missing entries; drop or fill them")


def _finite_squares(values: FloatArray, name: str) -> float:
    """Return the sum of squares of `values`, none of which may be infinite or missing."""
    # The sum of squares is one pass without a temporary; only a suspicious one is looked into.
    flat = values.reshape(-1)
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(squares := np.dot(flat, flat)):
            return float(squares)
    bad = ~np.isfinite(values)
    if bad.any():
        where = tuple(int(i) for i in np.argwhere(bad)[0])
        raise ValueError(
            f"{name} has {int(bad.sum())} NaN or infinite values (the first at {where}); "
            f"remove or impute them"
        )
    raise ValueError(f"{name} has values so large that their squares overflow; rescale it")


def refuse_zero(any_entry: bool) -> None:
    """Raise if features have no entry that is not zero."""
    if not any_entry:
        raise ValueError("all features are zero, so no batch has a positive determinant")


def refuse_vanishing(squares: float, name: str) -> None:
    """Raise if the sum of squares of a matrix that is not zero is where precision ends."""
    if squares < VANISHING:
        raise ValueError(
            f"{name} has values so small that their squares vanish; rescale it (multiply by a "
            f"constant: no batch changes its probability)"
        )


def as_numbers(value: Any, name: str, n: int | None = None) -> FloatArray:
    """Return `value`, one finite real number per item, as an array of its own, shape (n,)."""
    given = as_dense(value, name)
    if given.ndim != 1 or given.size == 0 or given.size != (n or given.size):
        needed = "" if n is None else f", shape ({n},)"
        raise ValueError(f"{name} must have one number per item{needed}, got {_what(value, given)}")
    if given.dtype.kind == "b" or (given.dtype == object and _any_bool(given)):
        raise TypeError(
            f"{name} holds booleans; if 0 and 1 are meant, pass them as numbers (astype(float))"
        )
    found = np.array(_as_floats(given, name))
    bad = np.flatnonzero(~np.isfinite(found))
    if bad.size:
        raise ValueError(
            f"{name} must be finite, but is {found[bad[0]]:g} for item {bad[0]} ({bad.size} such "
            f"items)"
        )
    return found


def _any_bool(values: npt.NDArray[Any]) -> bool:
    return any(issubclass(kind, bool | np.bool_) for kind in set(map(type, values.flat)))


def _what(value: Any, array: npt.NDArray[Any]) -> str:
    """Return in words what was given where an array of some shape was needed."""
    return f"a {type(value).__name__}" if array.ndim == 0 else f"shape {array.shape}"


def as_labels(value: Any, n: int | None = None, name: str = "labels") -> npt.NDArray[Any]:
    """Return `value` as a 1-D array of classes, of length `n` if given (see `as_classes`)."""
    names, codes = as_classes(value, n, name)
    return names[codes]


def as_classes(
    value: Any, n: int | None = None, name: str = "labels"
) -> tuple[npt.NDArray[Any], IntArray]:
    """Return the classes in order, and the number of each item's class, for `n` items if given.

    Labels are all text, all numbers, all booleans or all of one other kind that has an order, as
    dates have; none is missing. Numbers with a fraction are classes only where there are few.
    """
    labels = _one_kind(value, name)
    if labels.ndim != 1:
        raise ValueError(
            f"{name} must be a 1-D array with one class per item, got {_what(value, labels)}"
        )
    if labels.size == 0:
        raise ValueError(f"{name} is empty")
    if n is not None and labels.size != n:
        raise ValueError(f"{name} has {labels.size} entries for {n} items; it needs one per item")
    try:
        names, codes = np.unique(labels, return_inverse=True)
    except TypeError:
        raise TypeError(
            f"{name} holds {type(labels[0]).__name__} objects, which have no order; pass text or "
            f"numbers"
        ) from None
    _refuse_no_classes(names, codes, name)
    return names, codes.astype(np.int64)


def _one_kind(value: Any, name: str) -> npt.NDArray[Any]:
    """Return labels that are comparable with each other, and none of which is missing."""
    if sparse.issparse(value):
        raise TypeError(f"{name} must be a 1-D array of classes, got a sparse matrix")
    plain = isinstance(value, list | tuple)  # NumPy would make text of what is beside text
    labels = np.fromiter(value, dtype=object, count=len(value)) if plain else as_dense(value, name)
    _refuse_missing(_missing(labels), name)
    if labels.dtype.kind in "cV":
        raise TypeError(f"{name} must be text or numbers, got dtype {labels.dtype}")
    if labels.dtype != object or labels.ndim != 1:
        return labels
    examples = {_kind_of(type(entry)): entry for entry in labels.flat}
    if len(examples) > 1:
        kinds = " and ".join(sorted(examples))
        shown = ", ".join(repr(examples[kind]) for kind in sorted(examples))
        raise TypeError(
            f"{name} mixes {kinds} ({shown}); make them one kind, for example text: "
            f"[str(label) for label in {name}]"
        )
    for entry in examples.values():
        if isinstance(entry, list | tuple | np.ndarray):
            raise ValueError(
                f"{name} must be a 1-D array with one class per item, got a list of lists"
            )
        if type(entry).__hash__ is None or isinstance(entry, complex | np.complexfloating):
            raise TypeError(f"{name} must be text or numbers, got {type(entry).__name__} objects")
    native = np.asarray(labels.tolist())
    same = native.shape == labels.shape and all(map(eq, native.tolist(), labels.tolist()))
    return native if same else labels


def _kind_of(kind: type) -> str:
    if issubclass(kind, bool | np.bool_):
        return "booleans"
    if issubclass(kind, numbers.Real | Decimal):
        return "numbers"
    return "text" if issubclass(kind, str) else kind.__name__.removesuffix("_")


def _refuse_no_classes(names: npt.NDArray[Any], codes: IntArray, name: str) -> None:
    if names.dtype.kind in "UO":
        words = [code for code, entry in enumerate(names.tolist()) if entry in MISSING_WORDS]
        if words:
            raise ValueError(
                f"{name} has {int(np.isin(codes, words).sum())} missing entries that became the "
                f"text {names[words[0]]!s}; drop or fill them"
            )
    if names.dtype.kind == "f" and names.size > FRACTIONS and (names % 1).any():
        raise ValueError(
            f"{name} has {names.size:,} different numbers with fractions, which are measurements "
            f"and no classes; cut them into bins (np.digitize, pd.cut), or pass them as text if "
            f"each is a class of its own"
        )


def as_flag(value: Any, name: str) -> bool:
    """Return `value`, True or False."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False, got {value!r}")
    return bool(value)


def as_choice(value: Any, name: str, choices: Sequence[str], more: str = "") -> str:
    """Return `value`, one of these words; `more` says what else the argument may be."""
    if not isinstance(value, str) or value not in choices:
        words = ", ".join(map(repr, choices))
        if not more:  # the last of them ends the list
            words = " or ".join(words.rsplit(", ", 1))
        raise (ValueError if isinstance(value, str) else TypeError)(
            f"unknown {name} {value!r}; use {words}{more}"
        )
    return value


def as_count(value: Any, name: str, least: int = 1) -> int:
    """Return `value` as an int that is at least `least` and has 64 bits."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Integral):
        raise TypeError(f"{name} must be an integer, got {value!r}")
    count = int(value)
    if count < least:
        raise ValueError(f"{name} must be at least {least}, got {count}")
    if count > MOST:
        raise ValueError(f"{name} must be below 2^63, got {count}")
    return count


def as_batch_size(value: Any, n: int) -> int:
    """Return `value` as a batch size k with 1 <= k <= n."""
    k = as_count(value, "k")
    if k > n:
        raise ValueError(f"k={k} exceeds the number of items, {n}; lower k to at most {n}")
    return k


def as_fraction(value: Any, name: str) -> float:
    """Return `value` as a float in [0, 1]."""
    if not 0.0 <= (number := _as_real(value, name, "a number in [0, 1]")) <= 1.0:
        raise ValueError(f"{name} must lie in [0, 1], got {value}")
    return number


def as_share(value: Any, name: str) -> float:
    """Return `value` as a float in [0, 1): the share of something that is not all of it."""
    if (share := as_fraction(value, name)) == 1:
        raise ValueError(f"{name} must be below 1, which would leave nothing, got {value}")
    return share


def as_positive(value: Any, name: str) -> float:
    """Return `value` as a finite float above zero."""
    if not 0.0 < (number := _as_real(value, name, "a positive number")) < np.inf:
        raise ValueError(f"{name} must be positive and finite, got {value}")
    return number


def _as_real(value: Any, name: str, needed: str) -> float:
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be {needed}, got {value!r}")
    try:
        return float(value)
    except OverflowError:
        return float("inf") * (1 if value >= 0 else -1)  # type: ignore[operator]


def as_items(value: Any, n: int, name: str, ndim: int | None = None) -> IntArray:
    """Return `value` as int64 item numbers in [0, n), with `ndim` dimensions if given."""
    items = as_dense(value, name)
    if items.dtype == object and items.ndim and all(map(_is_integer, items.flat)):
        beyond = [entry for entry in items.flat if not 0 <= entry < n]
        if beyond:
            raise ValueError(f"{name} must lie in 0..{n - 1}, got {beyond[0]}")
    elif items.dtype.kind not in "iu" and (items.size or items.dtype == object):
        raise TypeError(f"{name} must hold item numbers (integers), got dtype {items.dtype}")
    if ndim is not None and items.ndim != ndim:
        raise ValueError(f"{name} must be a {ndim}-D list of items, got {_what(value, items)}")
    if items.size and (items.min() < 0 or items.max() >= n):
        raise ValueError(f"{name} must lie in 0..{n - 1}, got {items.min()}..{items.max()}")
    return items.astype(np.int64)


def as_pairs(i: Any, j: Any, n: int) -> tuple[IntArray, IntArray]:
    """Return item numbers i and j, broadcast against each other."""
    i, j = as_items(i, n, "i"), as_items(j, n, "j")
    try:
        i, j = np.broadcast_arrays(i, j)
    except ValueError:
        raise ValueError(
            f"i and j must have shapes that fit each other, got {i.shape} and {j.shape}; all pairs "
            f"of two lists are i[:, None], j"
        ) from None
    return i, j


def _is_integer(entry: Any) -> bool:
    return isinstance(entry, numbers.Integral) and not isinstance(entry, bool)
