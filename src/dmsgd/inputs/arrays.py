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

from dmsgd.inputs.texts import counted

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
#: Sums of squares below this leave too little room for small eigenvalues above 1e-308.
VANISHING = 1e-250
#: Below this, what is left of a number when it is divided among many loses digits, or vanishes.
TINY = 1e-290
#: A dense (n, d) array or its CSR equivalent.
Matrix = Any


def as_dense(value: Any, name: str) -> npt.NDArray[Any]:
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
    part: bool = False,
    squares_of: Callable[[FloatArray], float] = sum_of_squares,
) -> Matrix:
    """Return `value` as a finite, non-empty, 2-D float64 array or canonical CSR array.

    part:       it is a part of a matrix, which may be small beside the rest.
    squares_of: `sum_of_squares`, or what finds more in the same pass over the numbers.
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
        numbers_in = matrix = np.ascontiguousarray(as_floats(raw, name)).reshape(raw.shape)
        _refuse_wrong_shape(matrix.shape, name)
    squares = _finite_squares(numbers_in, name, squares_of)
    if not part and squares < VANISHING and numbers_in.any():
        refuse_vanishing(squares, name)
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
    refuse_missing(raw, name)
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


def refuse_missing(values: npt.NDArray[Any], name: str) -> None:
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
