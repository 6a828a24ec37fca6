"""Checks and conversions of arrays that users pass: float64, CSR, or int64 item numbers.

Accepted as a matrix: NumPy arrays of any real dtype (memory maps included), SciPy sparse matrices,
pandas and polars frames, Arrow tables, torch CPU tensors, lists of lists, and columns of such rows.
No framework is imported here: their objects are known by their methods.
"""

from __future__ import annotations

import numbers
import sys
from typing import Any

import numpy as np
import numpy.typing as npt

from dmsgd.inputs.messages import counted, few, kind_of
from dmsgd.inputs.scalars import as_fraction
from dmsgd.runtime.memory import reserve

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.int64]
#: A dense (n, d) array or its CSR equivalent.
Matrix = Any
#: Sums of squares below this leave too little room for small eigenvalues above 1e-308.
VANISHING = 1e-250
#: Sums of squares above this leave no room for the squared distances between rows, and their sums.
OVERFLOWING = 1e306
#: Numbers below this lose digits, or vanish, when they are divided.
TINY = 1e-290
#: Rows of a Hugging Face column that are read at a time, as Python objects.
ROWS_READ = 10_000
#: NumPy may read for ever from an object that has entries but none of these, as a torch Dataset.
READABLE = ("__iter__", "__array__", "__array_interface__", "to_numpy", "detach")


def to_numpy(value: Any, name: str) -> npt.NDArray[Any]:
    """Return `value` as a NumPy array, without a copy where the source allows it."""
    masked = isinstance(value, np.ndarray) and hasattr(value, "mask")
    if masked and (count := int(np.sum(value.mask))):
        raise ValueError(f"{name} is masked at {counted(count, 'entry')}; fill or drop them")
    if isinstance(value, type):
        raise TypeError(f"{name} is {kind_of(value)}; pass an array")
    if hasattr(value, "__getitem__") and not any(hasattr(value, each) for each in READABLE):
        raise TypeError(
            f"{name} is a {type(value).__name__}, which is not an array; pass an array, or as "
            f"labels of a data set dmsgd.torch.labels(dataset)"
        )
    try:
        if hasattr(value, "detach") and hasattr(value, "device"):  # a tensor
            tensor = value.detach().cpu().resolve_neg()
            short = tensor.is_floating_point() and tensor.element_size() < 4
            return np.asarray((tensor.float() if short else tensor).numpy())  # no bfloat16 in NumPy
        module = type(value).__module__.partition(".")[0]
        if module == "datasets" and hasattr(value, "column_name") and len(value):
            starts = range(0, len(value), ROWS_READ)  # np.asarray reads one row at a time
            return np.concatenate([to_numpy(value[i : i + ROWS_READ], name) for i in starts])
        if hasattr(value, "to_numpy") and module != "pyarrow":  # pandas, polars
            value = value.to_numpy()
        return np.asarray(value)
    except Exception as error:  # of any framework: its message names what it does not support
        if isinstance(value, list | tuple):
            raise ValueError(f"{name} is not a rectangular array of numbers: {error}") from None
        kind = type(value).__name__
        raise TypeError(f"{name} is a {kind} that cannot be read as an array: {error}") from None


def is_sparse(value: Any) -> bool:
    """Return whether this is a sparse matrix or array of SciPy.

    `scipy.sparse` is not imported here: whoever passes one has loaded it, and the import would
    double the time from `import dmsgd` to a first small result.
    """
    loaded = getattr(sys.modules.get("scipy.sparse"), "issparse", None)
    return loaded is not None and bool(loaded(value))


def is_tensor(value: Any) -> bool:
    """Return whether a matrix is a tensor on a GPU: no array, and no sparse matrix."""
    return not (isinstance(value, np.ndarray) or is_sparse(value))


def on_host(array: Any) -> npt.NDArray[Any]:
    """Return an array, or a tensor on a GPU, as an array."""
    return np.asarray(array.cpu().numpy() if hasattr(array, "cpu") else array)


def as_array(product: Any) -> FloatArray:
    """Return a matrix, sparse or not, or a tensor on a GPU, as an array."""
    return on_host(product.toarray() if hasattr(product, "toarray") else product)


def as_matrix(
    value: Any, name: str = "X", *, allow_tiny: bool = False, columns: str = "features"
) -> Matrix:
    """Return `value` as a finite, non-empty, 2-D float64 array or canonical CSR array.

    allow_tiny: accept values whose squares vanish, as in a part of a matrix.
    columns:    what the columns are, for messages.
    """
    if value is None:
        raise TypeError(f"{name} is None; pass an array (items, {columns})")
    if is_sparse(value):
        check_shape(value.shape, name, columns)
        matrix = _as_csr(value, name)
        entries = matrix.data
    else:
        raw = _stacked(to_numpy(value, name), name)
        if raw.ndim == 0 and raw.dtype == object:
            kind = type(value).__name__
            raise TypeError(f"{name} is a {kind}; pass an (n, d) array, frame, tensor or path")
        entries = matrix = np.ascontiguousarray(as_floats(raw, name)).reshape(raw.shape)
        check_shape(matrix.shape, name, columns)
    squares = _finite_squares(entries, name)
    if not allow_tiny and squares < VANISHING and entries.any():
        check_vanishing(squares, name)
    return matrix


def _stacked(raw: npt.NDArray[Any], name: str) -> npt.NDArray[Any]:
    """Return a column of rows, such as embeddings in a table, as a matrix, beside other columns."""
    if raw.dtype != object or not any(isinstance(each, np.ndarray | list) for each in raw.flat):
        return raw
    check_missing(raw, name)
    if raw.ndim == 2:
        return np.column_stack([_stacked(column, name) for column in raw.T])
    rows = [to_numpy(each, name) for each in raw.flat]
    if len(shapes := {row.shape for row in rows}) > 1:
        lengths = few(sorted({row.size for row in rows}))
        raise ValueError(f"{name} holds rows of different lengths ({lengths}); make them equal")
    check_shape((len(rows), *shapes.pop()), name)
    return np.stack(rows)


def check_shape(shape: tuple[int, ...], name: str, columns: str = "features") -> None:
    """Raise if this is not the shape of a matrix that has rows and columns."""
    if len(shape) != 2:
        advice = f"; it needs one column for each of the {columns}"
        if columns == "features":
            single = "; a single feature is X.reshape(-1, 1)" if len(shape) == 1 else ""
            advice = "; images become rows by X.reshape(len(X), -1)" if len(shape) > 2 else single
        wanted = f"two dimensions (items, {columns})"
        raise ValueError(f"{name} must have {wanted}, got shape {shape}{advice}")
    if 0 in shape:
        raise ValueError(f"{name} is empty: shape {shape}")


def _as_csr(value: Any, name: str) -> Matrix:
    """Return a sparse matrix as CSR in float64: sorted, no entry twice, indices of 32 bits.

    All indices are checked, because compiled code, SciPy's too, follows them unchecked.
    """
    from scipy import sparse

    _check_dtype(value.dtype, name)
    reserve(value.shape[0], f"a row index of {value.shape[0]:,} rows", "use a part of the data")
    try:
        if value.format in ("csc", "bsr"):
            value = (sparse.csc_array if value.format == "csc" else sparse.bsr_array)(value)
            value.check_format(full_check=True)
        elif value.format == "coo":
            places = value.row, value.col
            value = sparse.coo_array((value.data, places), shape=value.shape)  # checks them
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
    """Return real numbers of any dtype as float64, without a copy if they are that already."""
    if raw.dtype == object:
        check_missing(raw, name)
    else:
        _check_dtype(raw.dtype, name)
    for kind in set(map(type, raw.flat)) if raw.dtype == object else ():
        if issubclass(kind, str | bytes | np.generic):
            _check_dtype(np.dtype(kind), name)
        elif issubclass(kind, np.ndarray) or not hasattr(kind, "__float__"):
            raise TypeError(f"{name} holds objects that are not numbers, such as a {kind.__name__}")
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray(raw, dtype=np.float64)
    except OverflowError:
        raise ValueError(f"{name} has numbers beyond 1e308; rescale it") from None
    except (TypeError, ValueError):
        raise TypeError(f"{name} holds objects that are not numbers") from None


def _check_dtype(dtype: np.dtype[Any], name: str) -> None:
    if dtype.kind in "UST":
        raise TypeError(f"{name} holds text; encode it as numbers first (OneHotEncoder, tf-idf)")
    if dtype.kind not in "fiub":
        raise TypeError(f"{name} must hold real numbers, got dtype {dtype}")


def check_missing(values: npt.NDArray[Any], name: str) -> None:
    """Raise if an entry is None, NaN, NaT or pandas' NA."""
    if values.dtype == object:
        count = sum(map(_is_missing, values.flat))
    else:
        count = int(np.isnan(values).sum()) if values.dtype.kind in "fmM" else 0
    if count:
        raise ValueError(f"{name} has {counted(count, 'missing entry')}; drop or fill them")


def _is_missing(entry: Any) -> bool:
    missing = entry is None or type(entry).__name__ in ("NAType", "NaTType")
    compares = isinstance(entry, numbers.Number | np.datetime64 | np.timedelta64)
    return missing or (compares and bool(entry != entry))


def _finite_squares(values: FloatArray, name: str) -> float:
    """Return the sum of squares of `values`, none of which may be infinite or missing."""
    flat = values.reshape(-1)
    with np.errstate(over="ignore", invalid="ignore"):
        if (squares := float(np.dot(flat, flat))) <= OVERFLOWING:  # one pass without a temporary
            return squares
    bad = ~np.isfinite(values)
    if bad.any():
        where = tuple(int(i) for i in np.argwhere(bad)[0])
        count = counted(int(bad.sum()), "NaN or infinite value")
        raise ValueError(f"{name} has {count} (the first at {where}); remove or impute them")
    raise ValueError(f"{name} has values so large that their squares overflow; rescale it")


def check_nonzero(any_entry: bool) -> None:
    """Raise if all features are zero."""
    if not any_entry:
        raise ValueError("all features are zero, so no batch has a positive determinant")


def check_vanishing(squares: float, name: str) -> None:
    """Raise if the sum of squares of a nonzero matrix is too small for float64."""
    if squares < VANISHING:
        raise ValueError(f"{name} has values so small that their squares vanish; rescale it")


def as_numbers(value: Any, name: str, n: int | None = None, of: str = "item") -> FloatArray:
    """Return one finite real number per item (or per `of`) as a new array, shape (n,)."""
    given = to_numpy(value, name)
    if given.ndim != 1 or given.size == 0 or given.size != (n or given.size):
        needed = f"one number per {of}" + ("" if n is None else f", shape ({n},)")
        raise ValueError(f"{name} must have {needed}, got {describe(value, given)}")
    types = set(map(type, given.flat)) if given.dtype == object else ()
    if given.dtype.kind == "b" or any(issubclass(kind, bool | np.bool_) for kind in types):
        raise TypeError(f"{name} holds booleans; if 0 and 1 are meant, pass numbers")
    found = np.array(as_floats(given, name))
    bad = np.flatnonzero(~np.isfinite(found))
    if bad.size:
        where = f"{of} {bad[0]} ({counted(bad.size, f'such {of}')})"
        raise ValueError(f"{name} must be finite, but is {found[bad[0]]:g} for {where}")
    return found


def as_quality(value: Any, n: int, diversity: float = 0.5) -> FloatArray:
    """Return q^((1-diversity)/diversity) for one number >= 0 per item; the largest is 1.

    With diversity=0.5 that is q itself; with 1 all items are equally good. The scale of q does not
    matter for sets of a given size.
    """
    q = as_numbers(value, "quality", n)
    if (least := q.min()) < 0:
        raise ValueError(
            f"quality must not be negative, but item {int(q.argmin())} has {least:g}; for "
            f"scores of any sign give their exponentials"
        )
    if not (most := q.max()):
        raise ValueError("quality is zero for all items; give one at least more than 0")
    diversity = as_fraction(diversity, "diversity")
    if diversity == 0:
        raise ValueError("diversity must be more than 0: at 0 the best k items are np.argsort(-q)")
    q /= most
    return q if diversity == 0.5 else np.asarray(q ** ((1 - diversity) / diversity))


def describe(value: Any, array: npt.NDArray[Any]) -> str:
    """Return what was given, a type or a shape, for messages about wrong shapes."""
    return f"a {type(value).__name__}" if array.ndim == 0 else f"shape {array.shape}"


def as_items(value: Any, n: int, name: str, ndim: int | None = None) -> IntArray:
    """Return `value` as int64 item numbers in [0, n), with `ndim` dimensions if given."""
    items = to_numpy(value, name)
    if items.dtype == object and not {bool, np.bool_} & set(map(type, items.flat)):
        items = np.asarray(items.tolist())
    if items.dtype.kind not in "iu" and (items.size or items.dtype == object):
        raise TypeError(f"{name} must hold item numbers (integers), got dtype {items.dtype}")
    if ndim is not None and items.ndim != ndim:
        raise ValueError(f"{name} must be a {ndim}-D list of items, got {describe(value, items)}")
    if items.size and (items.min() < 0 or items.max() >= n):
        raise ValueError(f"{name} must lie in 0..{n - 1}, got {items.min()}..{items.max()}")
    return items.astype(np.int64)


def as_given(value: Any, n: int, k: int | None = None) -> IntArray:
    """Return the distinct items of `value`, sorted, k at most."""
    items = np.sort(as_items(value, n, "items", 1))
    twice = items[1:][items[1:] == items[:-1]]
    if twice.size:
        raise ValueError(f"items must be distinct, but {twice[0]} is given more than once")
    if k is not None and items.size > k:
        many = counted(items.size, "given item")
        raise ValueError(f"{many} do not fit into batches of k={k}; increase k or give fewer")
    return items


def as_pairs(i: Any, j: Any, n: int) -> tuple[IntArray, IntArray]:
    """Return item numbers i and j, broadcast against each other."""
    i, j = as_items(i, n, "i"), as_items(j, n, "j")
    try:
        i, j = np.broadcast_arrays(i, j)
    except ValueError:
        shapes = f"{i.shape} and {j.shape}; all pairs of two lists are i[:, None], j"
        raise ValueError(f"i and j must have shapes that fit each other, got {shapes}") from None
    return i, j


def random_rows(n: int, most: int, rng: np.random.Generator) -> IntArray:
    """Return the item numbers 0..n-1, or `most` of them drawn at random, sorted."""
    return np.arange(n) if n <= most else np.sort(rng.choice(n, most, replace=False))


def evenly_spaced(n: int, most: int) -> IntArray:
    """Return the item numbers 0..n-1, or `most` of them, evenly spaced."""
    return np.arange(n) if n <= most else np.linspace(0, n - 1, most).astype(np.int64)
