"""Checks and conversions of arrays that users pass in; behind them all is float64 and int64.

Accepted as a matrix: NumPy arrays of any real dtype (memory maps included), SciPy sparse matrices,
pandas and polars frames, torch CPU tensors, lists of lists. No framework is imported here: theirs
are recognised by the methods they have.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from dmsgd.inputs.messages import counted

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
#: Sums of squares below this leave too little room for small eigenvalues above 1e-308.
VANISHING = 1e-250
#: Below this, what is left of a number when it is divided among many loses digits, or vanishes.
TINY = 1e-290
#: A dense (n, d) array or its CSR equivalent.
Matrix = Any


def to_numpy(value: Any, name: str) -> npt.NDArray[Any]:
    """Return `value` as a NumPy array, without a copy where the source allows it."""
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        count = int(np.ma.getmaskarray(value).sum())
        raise ValueError(
            f"{name} is masked at {counted(count, 'entry')}, without a value; fill them "
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
    if tensor.device.type not in ("cpu", "cuda"):
        raise TypeError(f"{name} is a tensor on {tensor.device}; pass {name}.cpu()")
    if repr(tensor.layout) != "torch.strided":
        raise TypeError(f"{name} is a {tensor.layout} tensor; pass {name}.to_dense()")


def _of_tensor(tensor: Any) -> npt.NDArray[Any]:
    tensor = tensor.detach().cpu().resolve_neg()
    short = tensor.is_floating_point() and tensor.element_size() < 4  # some NumPy does not know
    return np.asarray((tensor.float() if short else tensor).numpy())


def on_host(batches: Any) -> IntArray:
    """Return draws as an array, wherever they were made."""
    return np.asarray(batches.cpu().numpy() if hasattr(batches, "cpu") else batches)


def sum_of_squares(values: FloatArray) -> float:
    """Return Σ x²: one pass without a temporary."""
    flat = values.reshape(-1)
    return float(np.dot(flat, flat))


def as_matrix(
    value: Any,
    name: str = "X",
    *,
    allow_tiny: bool = False,
    squares_of: Callable[[FloatArray], float] = sum_of_squares,
) -> Matrix:
    """Return `value` as a finite, non-empty, 2-D float64 array or canonical CSR array.

    allow_tiny: do not refuse values whose squares vanish, as in a part of a matrix.
    squares_of: `sum_of_squares`, or what finds more in the same pass over the numbers.
    """
    if value is None:
        raise TypeError(f"{name} is None; pass an (n, d) array of features")
    if sparse.issparse(value):
        _refuse_wrong_shape(value.shape, name)
        matrix = _as_csr(value, name)
        numbers_in = matrix.data
    else:
        raw = to_numpy(value, name)
        if raw.ndim == 0 and raw.dtype == object:
            raise TypeError(
                f"{name} is a {type(value).__name__}; pass an (n, d) array, a frame, a tensor or "
                f"the path of a file"
            )
        numbers_in = matrix = np.ascontiguousarray(as_floats(raw, name)).reshape(raw.shape)
        _refuse_wrong_shape(matrix.shape, name)
    squares = _finite_squares(numbers_in, name, squares_of)
    if not allow_tiny and squares < VANISHING and numbers_in.any():
        check_vanishing(squares, name)
    return matrix


def _refuse_wrong_shape(shape: tuple[int, ...], name: str) -> None:
    if len(shape) != 2:
        raise ValueError(
            f"{name} must have two dimensions (items, features), got shape {shape}"
            + (f"; a single feature is {name}.reshape(-1, 1)" if len(shape) == 1 else "")
            + ("; images become rows by X.reshape(len(X), -1)" if len(shape) > 2 else "")
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
        with np.errstate(over="ignore", invalid="ignore"):
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


def as_floats(raw: npt.NDArray[Any], name: str) -> FloatArray:
    """Return real numbers of any dtype as float64, without a copy where they are that."""
    if raw.dtype == object:
        _refuse_wrong_objects(raw, name)
    else:
        _refuse_wrong_dtype(raw.dtype, name)
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray(raw, dtype=np.float64)
    except OverflowError:
        raise ValueError(f"{name} has numbers beyond 1e308; rescale it") from None
    except (TypeError, ValueError):
        raise TypeError(f"{name} holds objects that are not numbers") from None


def _refuse_wrong_objects(raw: npt.NDArray[Any], name: str) -> None:
    check_missing(raw, name)
    for kind in set(map(type, raw.flat)):
        if issubclass(kind, str | bytes):
            raise TypeError(_TEXT.format(name=name))
        if issubclass(kind, np.generic):
            _refuse_wrong_dtype(np.dtype(kind), name)
        elif issubclass(kind, np.ndarray) or not hasattr(kind, "__float__"):
            raise TypeError(f"{name} holds objects that are not numbers, such as a {kind.__name__}")


_TEXT = "{name} holds text; encode it as numbers first (one_hot, tf-idf, ...)"


def _refuse_wrong_dtype(dtype: np.dtype[Any], name: str) -> None:
    if dtype.kind in "UST":
        raise TypeError(_TEXT.format(name=name))
    if dtype.kind not in "fiub":
        raise TypeError(f"{name} must hold real numbers, got dtype {dtype}")


def _missing(values: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Return which entries are None, NaN, NaT or pandas' NA."""
    if values.dtype.kind == "f":
        return np.asarray(np.isnan(values))
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


def check_missing(values: npt.NDArray[Any], name: str) -> None:
    """Raise if any of these has no value: NaN, None and their like."""
    missing = _missing(values)
    if missing.any():
        raise ValueError(
            f"{name} has {counted(int(missing.sum()), 'missing entry')}; drop or fill them"
        )


def _finite_squares(
    values: FloatArray, name: str, squares_of: Callable[[FloatArray], float]
) -> float:
    """Return the sum of squares of `values`, none of which may be infinite or missing."""
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(squares := squares_of(values)):  # only a suspicious one is looked into
            return squares
    bad = ~np.isfinite(values)
    if bad.any():
        where = tuple(int(i) for i in np.argwhere(bad)[0])
        raise ValueError(
            f"{name} has {counted(int(bad.sum()), 'NaN or infinite value')} (the first at "
            f"{where}); remove or impute them"
        )
    raise ValueError(f"{name} has values so large that their squares overflow; rescale it")


def check_nonzero(any_entry: bool) -> None:
    """Raise if features have no entry that is not zero."""
    if not any_entry:
        raise ValueError("all features are zero, so no batch has a positive determinant")


def check_vanishing(squares: float, name: str) -> None:
    """Raise if the sum of squares of a matrix that is not zero is where precision ends."""
    if squares < VANISHING:
        raise ValueError(
            f"{name} has values so small that their squares vanish; rescale it (multiply by a "
            f"constant: no batch changes its probability)"
        )


def as_numbers(value: Any, name: str, n: int | None = None, of: str = "item") -> FloatArray:
    """Return `value`, one finite real number per item, as an array of its own, shape (n,).

    `of`: what there is a number of each of, in words.
    """
    given = to_numpy(value, name)
    if given.ndim != 1 or given.size == 0 or given.size != (n or given.size):
        needed = "" if n is None else f", shape ({n},)"
        raise ValueError(
            f"{name} must have one number per {of}{needed}, got {what_is(value, given)}"
        )
    if given.dtype.kind == "b" or (given.dtype == object and _any_bool(given)):
        raise TypeError(
            f"{name} holds booleans; if 0 and 1 are meant, pass them as numbers (astype(float))"
        )
    found = np.array(as_floats(given, name))
    bad = np.flatnonzero(~np.isfinite(found))
    if bad.size:
        raise ValueError(
            f"{name} must be finite, but is {found[bad[0]]:g} for {of} {bad[0]} "
            f"({counted(bad.size, f'such {of}')})"
        )
    return found


def _any_bool(values: npt.NDArray[Any]) -> bool:
    return any(issubclass(kind, bool | np.bool_) for kind in set(map(type, values.flat)))


def what_is(value: Any, array: npt.NDArray[Any]) -> str:
    """Return in words what was given where an array of some shape was needed."""
    return f"a {type(value).__name__}" if array.ndim == 0 else f"shape {array.shape}"


def as_items(value: Any, n: int, name: str, ndim: int | None = None) -> IntArray:
    """Return `value` as int64 item numbers in [0, n), with `ndim` dimensions if given."""
    items = to_numpy(value, name)
    if items.dtype == object and items.ndim and all(map(_is_integer, items.flat)):
        beyond = [entry for entry in items.flat if not 0 <= entry < n]
        if beyond:
            raise ValueError(f"{name} must lie in 0..{n - 1}, got {beyond[0]}")
    elif items.dtype.kind not in "iu" and (items.size or items.dtype == object):
        raise TypeError(f"{name} must hold item numbers (integers), got dtype {items.dtype}")
    if ndim is not None and items.ndim != ndim:
        raise ValueError(f"{name} must be a {ndim}-D list of items, got {what_is(value, items)}")
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


def as_array(product: Any) -> FloatArray:
    """Return the product of two matrices, sparse or not, as an array."""
    return np.asarray(product.toarray() if hasattr(product, "toarray") else product)
