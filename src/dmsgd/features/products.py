"""Products of rows, for arrays, CSR arrays and tensors alike.

Of sparse rows nothing is made that has a number for every row and column.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, reduce
from itertools import pairwise
from operator import iadd
from typing import Any

import numpy as np

from dmsgd.errors import InputError
from dmsgd.inputs.arrays import (
    FloatArray,
    IntArray,
    Matrix,
    as_array,
    is_sparse,
    is_tensor,
    on_host,
    random_rows,
)
from dmsgd.inputs.fingerprint import canonical
from dmsgd.runtime.pieces import in_pieces, slices
from dmsgd.runtime.progress import Progress, run_interruptible
from dmsgd.runtime.threads import parallel_map, thread_count
from dmsgd.samplers.factored_rows import SparseRows, tiles
from dmsgd.spectra.decompose import like
from dmsgd.spectra.rounding import EPS

#: Multiplications of dense matrices in the time of one with an entry of a sparse matrix.
SPARSE = 20
#: Numbers of a product with sparse rows that are held at a time.
PRODUCT = 2**21
#: Multiplications of large dense products at a time, about a second, so that Ctrl-C works.
AT_A_TIME = 2.0**33
#: Distances that are computed at a time.
DISTANCES = 2**20
#: Products of entries that `add_sparse_gram` adds in one go, a second or two, so that Ctrl-C works;
#: rows, if these are fewer; columns that are transposed, and sparse rows made dense, in one go.
WORK, PIECE, SQUARE = 2**31, 2**14, 256
#: More rows than this with fewer than one entry in so many are not made dense for a product.
FEW_ROWS, THIN = 16, 50
#: Numbers that are converted at a time.
FEW = 2**15
#: Entries of rows in float32 are at most so large, so that their squares are no float32 inf.
FARTHEST = 1e12
#: Fewer entries than this are added on one core.
SHARED = 2**17
#: Entries by which the cores' shares are found.
COUNTED = 2**20
#: Items between which the median distance is taken; squared distances up to this share of the
#: largest are rounding.
SAMPLE, ROUNDING = 40, 1e-12
#: Squared lengths of sparse rows, in units of squared distances, that products in float64 bear.
FAR = 1e12


def product(A: Matrix, B: Matrix) -> Any:
    """Return A B, as an array or a tensor."""
    (n, d), columns = A.shape, B.shape[1]
    what = f"a product of {n:,} x {d:,} and {columns:,} columns"
    if is_sparse(A) or is_sparse(B):
        products = 0.0 if is_sparse(B) else SPARSE * A.nnz * float(columns)
        return as_array(run_interruptible(lambda: A @ B, products, what))
    return by_rows(lambda rows: rows @ B, A, columns, d * columns, what)


def by_rows(
    make: Callable[[Matrix], FloatArray], X: Matrix, columns: int, products: float, what: str
) -> FloatArray:
    """Return make(X), shape (n, columns), of about a second's worth of the rows at a time.

    Of a tensor, which is itself a part of the rows, all are made at once.

    products: multiplications for a row.
    """
    n, step = X.shape[0], max(1, int(AT_A_TIME / max(products, 1)))
    if step >= n or is_tensor(X):
        tell = Progress(what)
        made = make(X)
        tell(1.0)
        return made
    out = np.empty((n, columns))
    for some in in_pieces(n, step, what):
        out[some] = make(X[some])
    return out


def gram(X: Matrix) -> FloatArray:
    """Return XᵀX of an array or a CSR array."""
    n, d = X.shape
    if is_sparse(X):
        return mirrored(add_sparse_gram(np.zeros((d, d)), X.tocsr()))
    pieces = in_pieces(n, max(1, int(AT_A_TIME / d**2)), f"the Gram matrix of {n:,} items x {d:,}")
    return on_host(reduce(iadd, (X[some].T @ X[some] for some in pieces)))


def gram_of(X: Matrix, S: Any) -> Any:
    """Return (X S)ᵀ(X S)."""
    products = (part @ S for part in _parts(X, S.shape[1]))
    return reduce(iadd, (C.T @ C for C in products))


def gram_times(X: Matrix, S: Any) -> tuple[Any, float]:
    """Return XᵀX S and |X S|²."""
    total: Any = 0.0
    length = 0.0
    for part in _parts(X, S.shape[1]):
        C = part @ S
        total += part.T @ C
        length += float(row_norms2(C).sum())
    return total, length


def _parts(X: Matrix, width: int) -> Iterator[Matrix]:
    """Yield parts of sparse rows whose products with `width` columns are small; arrays whole."""
    n = max(1, X.shape[0])
    step = max(1, PRODUCT // width) if is_sparse(X) else n
    for some in slices(n, step):
        yield X[some]


def row_norms2(X: Matrix) -> Any:
    """Return |x_i|² for each row, shape (n,)."""
    if is_sparse(X):
        return np.asarray(X.multiply(X).sum(axis=1)).ravel()
    return np.einsum("ij,ij->i", X, X) if isinstance(X, np.ndarray) else (X * X).sum(1)


def column_masses(X: Matrix, B: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the sums of (X B)² down the columns, and along the rows with weights."""
    if not is_sparse(X):
        squares = (X @ B) ** 2
        return squares.sum(axis=0), squares @ weights
    rows = SparseRows.of(X)
    masses, weighted = np.empty(B.shape[1]), np.zeros(rows.n)
    for tile in tiles(B.shape[1]):
        masses[tile] = rows.tile_sums(B[:, tile].T, weights[tile], weighted)[:, -1]
    return masses, weighted


def scale_rows(X: Matrix, factors: FloatArray) -> Matrix:
    """Return X with row i times factors[i]; sparse stays sparse."""
    if is_sparse(X):
        from scipy import sparse

        return sparse.csr_array(sparse.diags_array(factors) @ X)
    return X * like(X, factors[:, None])


def stack(parts: Sequence[Matrix]) -> Matrix:
    """Return the rows of all parts, as a CSR array if any is sparse."""
    if any(is_sparse(part) for part in parts):
        from scipy import sparse

        return sparse.csr_array(sparse.vstack(parts, format="csr"))
    return np.concatenate(parts)


def float32_rows(X: Matrix, centre: Any, factor: float) -> tuple[Matrix, Any]:
    """Return (X - centre) times `factor` in float32, and the squared lengths of its rows.

    No number in it is above FARTHEST. Sparse rows are not centred.
    """
    if is_sparse(X):
        scaled = X * factor
        np.clip(scaled.data, -FARTHEST, FARTHEST, out=scaled.data)
        rows = scaled.astype(np.float32)
        return rows, row_norms2(rows)
    rows, squares = np.empty(X.shape, np.float32), np.empty(len(X), np.float32)
    step = max(1, FEW // X.shape[1])
    with np.errstate(over="ignore"):
        for part in slices(len(X), step):  # in parts, as large arrays take long to allocate
            some = X[part] - centre
            some *= factor
            rows[part] = some
            squares[part] = row_norms2(rows[part])
            if not squares[part].max() <= FARTHEST**2:  # which is rare
                rows[part] = np.clip(some, -FARTHEST, FARTHEST)
                squares[part] = row_norms2(rows[part])
    return rows, squares


def multiply(A: Matrix, B: Matrix, out: Any) -> None:
    """Write A Bᵀ into the array `out`."""
    if is_sparse(A):
        rows, d = A.shape
        thin = rows > FEW_ROWS and THIN * A.nnz < rows * d
        for part in slices(rows, SQUARE):
            some = A[part]
            out[part] = (some @ B.T).toarray() if thin else (B @ some.toarray().T).T
    else:
        np.matmul(A, B.T, out=out)


def squared_distances(A: Matrix, B: Matrix) -> Any:
    """Return |a - b|² for the rows a of A and b of B; 0 where it is no more than rounding."""
    if not (is_sparse(A) or is_sparse(B)) and len(B):
        centre = B.mean(0)  # distances are the same, and rounding is smaller
        A, B = (A - centre,) * 2 if A is B else (A - centre, B - centre)  # A Aᵀ is half the work
    D, here, there = product(A, B.T), row_norms2(A), row_norms2(B)
    noise = EPS * (8 + A.shape[1] ** 0.5)
    step = max(1, DISTANCES // max(1, len(there)))
    for some in slices(D.shape[0], step):
        part = D[some]
        sizes = here[some, None] + there[None, :]
        part *= -2.0
        part += sizes
        part[part <= noise * sizes] = 0.0  # duplicates stay duplicates
    return D


def median_square(F: Any) -> float:
    """Return the median squared distance of 40 items, the m of `select`; 1 if all are alike.

    Raises InputError for sparse rows that rounding does not tell apart, as they are not centred.

    F: `Features`.
    """
    items, pairs = sampled_pairs(F.n)
    rows = F.take(items)
    if is_sparse(rows):
        beside = rows - rows[np.zeros(items.size, dtype=np.int64)]  # distances are the same
        found = np.asarray(squared_distances(beside, beside))
    else:  # the same in half the time: what is rounding is left out below
        beside = rows - rows.mean(0)
        found = beside @ beside.T
        lengths = found.diagonal()
        found = lengths[:, None] + lengths - 2 * found
    square = median_above_rounding(found.ravel()[pairs])
    if is_sparse(rows) and 0 < square * FAR < (length := float(np.median(row_norms2(rows)))):
        raise InputError(
            f"sparse rows are {(length / square) ** 0.5:,.0f} times as far from zero as from each "
            f"other, which rounding does not bear; subtract the means of their largest columns, or "
            f"pass dense rows"
        )
    return square or 1.0


def median_above_rounding(squares: FloatArray) -> float:
    """Return the median of the squared distances that are not rounding; 0 if there are none."""
    squares = squares[squares > ROUNDING * squares.max(initial=0.0)]
    return float(np.median(squares)) if squares.size else 0.0


@lru_cache(16)
def sampled_pairs(n: int) -> tuple[IntArray, IntArray]:
    """Return SAMPLE of n items, or all, and the places of their pairs in a matrix of all."""
    items = random_rows(n, SAMPLE, np.random.default_rng(0))
    one, other = np.triu_indices(items.size, 1)
    return items, one * items.size + other


def similarity(A: Matrix, B: Matrix, scale: float) -> Any:
    """Return exp(-|a - b|² / (2 scale²)) for the rows a of A and b of B."""
    L = squared_distances(A, B)
    with np.errstate(over="ignore"):  # infinitely many scales apart: exp gives 0
        L *= -0.5 / scale**2
    return np.exp(L, out=L) if isinstance(L, np.ndarray) else L.exp_()


def add_sparse_gram(total: FloatArray, X: Matrix) -> FloatArray:
    """Add XᵀX of a CSR array on and above the diagonal of `total`, and return that.

    One entry times another at a time, whose bits depend neither on how rows are cut into parts nor
    on the cores, which share the rows of the result.
    """
    from dmsgd.compiled.computed_rows import add_gram

    X = canonical(X)
    (n, d), entries = X.shape, SparseRows.of(X)
    if n == 0:
        return total
    alone = threading.current_thread() is not threading.main_thread() or X.nnz < SHARED
    cores = 1 if alone else thread_count(-1)
    work = np.diff(X.indptr).astype(float) ** 2
    pieces = _equal_parts(work, max(-(-n // PIECE), int(work.sum() / WORK) + 1))
    used = np.bincount(X.indices[:COUNTED], minlength=d)  # a column meets those behind it
    shares = _equal_parts(used * used[::-1].cumsum()[::-1], cores)
    tell = Progress(f"the Gram matrix of {n:,} items x {d:,} features")
    for rows in pieces:

        def add(share: tuple[int, int], rows: tuple[int, int] = rows) -> None:
            add_gram(*entries, *rows, *share, d, total)

        parallel_map(add, shares, cores)
        tell(rows[1] / n)
    return total


def mirrored(total: FloatArray) -> FloatArray:
    """Write what is above the diagonal below it, too, and return the matrix."""
    for first in range(0, len(total), SQUARE):  # in parts that stay in the cache
        last = first + SQUARE
        square = np.triu(total[first:last, first:last])
        total[first:last, first:last] = square + np.triu(square, 1).T
        total[last:, first:last] = total[first:last, last:].T
    return total


def _equal_parts(work: Any, parts: int) -> list[tuple[int, int]]:
    """Return the bounds of parts of about as much work."""
    sums = np.cumsum(work)
    inner = np.searchsorted(sums, sums[-1] * np.arange(1, parts) / parts)
    return list(pairwise(sorted({0, *inner.tolist(), len(work)})))
