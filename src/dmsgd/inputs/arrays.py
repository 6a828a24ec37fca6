"""Checks and conversions of what users pass in; everything behind them sees float64 and int64.

Accepted as a matrix: NumPy arrays of any real dtype (memory maps included), SciPy sparse matrices,
pandas and polars frames, torch CPU tensors, lists of lists. No framework is imported here: theirs
are recognised by the methods they have.
"""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
#: Sums of squares below this leave too little room for small eigenvalues above 1e-308.
VANISHING = 1e-250
#: A dense (n, d) array or its CSR equivalent.
Matrix = Any


def as_dense(value: Any, name: str) -> npt.NDArray[Any]:
    """Return `value` as a NumPy array, without a copy where the source allows it."""
    if hasattr(value, "detach") and hasattr(value, "device"):  # a torch tensor
        if value.device.type != "cpu":
            raise TypeError(f"{name} is a tensor on {value.device}; pass {name}.cpu()")
        if value.layout.__repr__() != "torch.strided":
            raise TypeError(f"{name} is a {value.layout} tensor; pass {name}.to_dense()")
        value = value.detach()
        value = value.float() if value.dtype.__repr__() == "torch.bfloat16" else value
        return np.asarray(value.numpy())
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        count = int(np.ma.getmaskarray(value).sum())
        raise ValueError(
            f"{name} is masked at {count} entries, which have no value; fill them "
            f"({name}.filled(...)) or leave those items out"
        )
    if hasattr(value, "to_numpy"):  # pandas, polars
        return np.asarray(value.to_numpy())
    try:
        return np.asarray(value)
    except ValueError as error:
        raise ValueError(f"{name} is not a rectangular array of numbers: {error}") from None


def as_matrix(value: Any, name: str = "X", *, part: bool = False) -> Matrix:
    """Return `value` as a finite, non-empty, 2-D float64 array or CSR array.

    `part`: it is a part of a matrix, which may be small beside the rest.
    """
    if value is None:
        raise TypeError(f"{name} is None; pass an (n, d) array of features")
    if sparse.issparse(value):
        _refuse_wrong_dtype(value.dtype, name)
        matrix = sparse.csr_array(value, dtype=np.float64)
        try:
            matrix.check_format(full_check=True)  # compiled code follows the indices unchecked
        except ValueError as error:
            raise ValueError(f"{name} is a damaged sparse matrix: {error}") from None
        numbers_in = matrix.data
    else:
        raw = as_dense(value, name)
        if raw.dtype == object:
            raw = _numbers_of_objects(raw, name)
        _refuse_wrong_dtype(raw.dtype, name)
        matrix = np.ascontiguousarray(raw, dtype=np.float64)
        if raw.ndim == 0:
            matrix = matrix.reshape(())
        numbers_in = matrix
    if matrix.ndim != 2:
        raise ValueError(
            f"{name} must have two dimensions (items, features), got shape {matrix.shape}"
            + (f"; a single feature is {name}.reshape(-1, 1)" if matrix.ndim == 1 else "")
        )
    if 0 in matrix.shape:
        raise ValueError(f"{name} is empty: shape {matrix.shape}")
    squares = _finite_squares(numbers_in, name)
    if not part and squares < VANISHING and numbers_in.any():
        refuse_vanishing(squares, name)
    return matrix


def _numbers_of_objects(raw: npt.NDArray[Any], name: str) -> npt.NDArray[Any]:
    if any(isinstance(entry, str | bytes) for entry in raw.flat):
        raise TypeError(f"{name} holds text; encode it as numbers first (one_hot, tf-idf, ...)")
    try:
        return raw.astype(np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"{name} holds objects that are not numbers") from None


def _refuse_wrong_dtype(dtype: np.dtype[Any], name: str) -> None:
    if dtype.kind in "US":
        raise TypeError(f"{name} holds text; encode it as numbers first (one_hot, tf-idf, ...)")
    if dtype.kind not in "fiub":
        raise TypeError(f"{name} must hold real numbers, got dtype {dtype}")


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


def as_labels(value: Any, n: int | None = None, name: str = "labels") -> npt.NDArray[Any]:
    """Return `value` as a 1-D array of labels, of length `n` if given."""
    if sparse.issparse(value):
        raise TypeError(f"{name} must be a 1-D array of classes, got a sparse matrix")
    labels = as_dense(value, name)
    if labels.ndim != 1:
        raise ValueError(
            f"{name} must be a 1-D array with one class per item, got shape {labels.shape}"
        )
    if labels.size == 0:
        raise ValueError(f"{name} is empty")
    if n is not None and labels.size != n:
        raise ValueError(f"{name} has {labels.size} entries for {n} items; it needs one per item")
    missing = (
        ~np.isfinite(labels)
        if labels.dtype.kind == "f"
        else np.array([entry is None or entry != entry for entry in labels.flat])
        if labels.dtype == object
        else np.zeros(1, dtype=bool)
    )
    if missing.any():
        raise ValueError(f"{name} has {int(missing.sum())} missing entries; drop or fill them")
    return labels


def as_count(value: Any, name: str, least: int = 1) -> int:
    """Return `value` as an int that is at least `least`."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Integral):
        raise TypeError(f"{name} must be an integer, got {value!r}")
    if value < least:
        raise ValueError(f"{name} must be at least {least}, got {value}")
    return int(value)


def as_batch_size(value: Any, n: int) -> int:
    """Return `value` as a batch size k with 1 <= k <= n."""
    k = as_count(value, "k")
    if k > n:
        raise ValueError(f"k={k} exceeds the number of items, {n}; lower k to at most {n}")
    return k


def as_fraction(value: Any, name: str) -> float:
    """Return `value` as a float in [0, 1]."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be a number in [0, 1], got {value!r}")
    if not 0.0 <= float(value) <= 1.0:
        raise ValueError(f"{name} must lie in [0, 1], got {value}")
    return float(value)


def as_positive(value: Any, name: str) -> float:
    """Return `value` as a finite float above zero."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be a positive number, got {value!r}")
    if not 0.0 < float(value) < np.inf:
        raise ValueError(f"{name} must be positive and finite, got {value}")
    return float(value)


def as_items(value: Any, n: int, name: str) -> IntArray:
    """Return `value` as int64 item numbers in [0, n)."""
    items = as_dense(value, name)
    if items.dtype.kind not in "iu" and items.size:
        raise TypeError(f"{name} must hold item numbers (integers), got dtype {items.dtype}")
    items = items.astype(np.int64)
    if items.size and (items.min() < 0 or items.max() >= n):
        raise ValueError(f"{name} must lie in 0..{n - 1}, got {items.min()}..{items.max()}")
    return items
