"""Eigendecompositions, of symmetric matrices and of F Fᵀ from Gram matrices in rounds.

The same code runs on NumPy arrays and on tensors: what they spell differently is dispatched on
their type (`eigh`, `qr`, `solve_triangular`, `empty`, `like`), by dmsgd.spectra.cuda for tensors.
Eigenvalues are NumPy arrays everywhere.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import singledispatch
from typing import Any

import numpy as np

from dmsgd.inputs.arrays import FloatArray, on_host
from dmsgd.runtime.progress import EIGH, run_interruptible
from dmsgd.spectra.rounding import DEPENDENT, GRAM_LIMIT, Rounding

#: Eigenvalues above this fraction of the largest come out of the Gram matrix accurate to 1e-12.
ACCURATE_LIMIT = 1e-3
#: Numbers of V that are squared at a time.
SLICE = 2**22


@singledispatch
def eigh(symmetric: Any) -> tuple[FloatArray, Any]:
    """Return eigenvalues, largest first, as a NumPy array, and eigenvectors; overwrites the matrix.

    By divide and conquer, in five times the memory of the matrix.
    """
    np.negative(symmetric, out=symmetric)  # so that vectors come in order, not reversed
    values, vectors = _interruptible(np.linalg.eigh, symmetric)
    return -values, vectors


@singledispatch
def qr(A: Any) -> tuple[Any, Any]:
    """Return the economic QR decomposition."""
    Q, R = np.linalg.qr(A)
    return Q, R


@singledispatch
def solve_triangular(B: Any, lower: FloatArray) -> Any:
    """Return lower^-1 B for a lower triangular matrix, a NumPy array; B may be overwritten."""
    from scipy import linalg

    return linalg.solve_triangular(lower, B, lower=True, overwrite_b=True, check_finite=False)


@singledispatch
def empty(where: Any, shape: tuple[int, int]) -> Any:
    """Return an uninitialised float64 matrix of the kind of `where`."""
    return np.empty(shape)


@singledispatch
def like(where: Any, array: Any) -> Any:
    """Return a NumPy array as what `where` is: itself, or a tensor on its device."""
    return array


def eigenvalues(symmetric: FloatArray) -> FloatArray:
    """Return the eigenvalues that rounding can tell from zero."""
    values = _interruptible(np.linalg.eigvalsh, symmetric)
    return np.asarray(values[values > Rounding(1.0, values.size).cutoff * values[-1]])


def _interruptible(solve: Callable[[FloatArray], Any], symmetric: FloatArray) -> Any:
    """Return solve(symmetric); np.linalg releases the GIL, which scipy.linalg does not."""
    n = len(symmetric)
    what = f"the eigendecomposition of {n:,} rows and columns"
    return run_interruptible(lambda: solve(symmetric), EIGH * n**3, what)


def settle(values: FloatArray, vectors: Any, rounding: Rounding) -> None:
    """Replace the vectors of equal eigenvalues by the canonical basis of their span, in place.

    Which basis LAPACK finds is rounding and differs between processors; draws would too. Equal
    values become exactly equal, so that sorting keeps the order of the basis. O(n m²) for m.
    """
    for group in rounding.equal_groups(values):
        vectors[:, group] = canonical_basis(vectors[:, group])
        values[group] = values[group].mean()


def canonical_basis(basis: Any) -> Any:
    """Return the orthonormal basis of the same span that does not depend on the one given.

    It is the Gram-Schmidt basis of the projections of fixed random vectors G onto the span; but
    coordinate vectors, as of labels, stay coordinate vectors.
    """
    n, m = basis.shape
    nonzero = on_host(basis != 0)
    if (nonzero.sum(axis=0) == 1).all():
        return abs(basis[:, like(basis, np.argsort(nonzero.argmax(axis=0)))])

    def find() -> Any:
        G = np.random.Philox(key=0).random_raw(n * m).reshape(n, m) * 2.0**-63 - 1.0
        Q, R = qr(basis.T @ like(basis, G))
        return basis @ (Q * ((R.diagonal() > 0) * 2.0 - 1.0))

    what = f"the basis of {m:,} equal eigenvalues"
    return run_interruptible(find, 2.0 * (n + m) * m**2, what)


def right_singular_vectors(F: Any) -> tuple[FloatArray, Any]:
    """Return the squared singular values of features F above rounding, and their right vectors.

    FᵀF = U Λ Uᵀ has the squared singular values of F, but eigenvalues below 1e-6 of the largest
    drown in rounding, and so do their directions. Each round takes what the rounds before could not
    resolve, the span of the columns S of U, and squares it alone, so that three more decades of
    singular values come out. Before that S is turned so that F S is orthogonal to what is resolved:
    with W the resolved columns, S <- S - W Λ_W^-1 Wᵀ FᵀF S, whose last term was hidden by rounding
    in FᵀF. It ends where all is resolved, or where only rounding in F S itself is left.

    O(n d² + d³) per round, one or two passes over features in blocks. There is one round unless
    the condition number of F is above 1000.
    """
    values, U = eigh(F.gram())
    size = len(values)
    least = Rounding(0.5, size).cutoff * float(values[0])
    done = 0
    while True:
        top = float(values[done])
        well = done + int((values[done:] > max(GRAM_LIMIT * top, least)).sum())
        settle(values[done:well], U[:, done:well], Rounding(1.0, size))
        if well in (done, size):
            return values[:well], U[:, :well]
        done = well
        W, S = U[:, :done], U[:, done:]
        squared, length = F.gram_times(S)
        if length <= least:
            return values[:done], W
        hidden = W.T @ squared / like(U, values[:done, None])
        turned = S - W @ hidden
        gram = F.gram_of(turned)
        if float(gram.trace()) <= least:
            return values[:done], W
        W += (hidden @ S.T).T  # the same turn for both keeps them orthogonal; laid out as W is
        values[done:], R = eigh(gram)
        U[:, done:] = turned @ R


def correct_left_vectors(V: Any, values: FloatArray) -> FloatArray:
    """Correct V = F U Λ^(-1/2) in place for the rounding of the Gram matrix; return eigenvalues."""
    if values.min() >= ACCURATE_LIMIT * values.max():
        return values
    step = max(1, SLICE // V.shape[1])
    parts = (V[first : first + step] for first in range(0, V.shape[0], step))
    squares = sum(on_host((part * part).sum(0)) for part in parts)
    small = values < GRAM_LIMIT * values.max()
    _, group = np.unique(values, return_inverse=True)  # equal eigenvalues stay equal
    mean = (np.bincount(group, squares) / np.bincount(group))[group]
    values = np.where(small, values, values * mean)  # |F u|² is more accurate than the Gram
    V /= like(V, np.sqrt(squares))
    if small.any():  # rounding in F U is small beside large eigenvalues only: subtract their part
        large, tiny = like(V, np.flatnonzero(~small)), like(V, np.flatnonzero(small))
        well, rest = V[:, large], V[:, tiny]
        rest -= well @ (well.T @ rest)
        turned, _ = qr(rest)
        turned[~rest.any(1)] = 0.0  # exact zeros; QR leaves rounding noise here
        V[:, tiny] = turned
    return values


def principal(C: FloatArray, count: int) -> FloatArray:
    """Return the first principal directions of rows with mean 0, shape (d, count).

    From the inner products of columns or of rows, whichever are fewer: O(n d min(n, d)).
    """
    if C.shape[0] >= C.shape[1]:
        return leading(C.T @ C, count)
    directions = C.T @ leading(C @ C.T, count)
    lengths = np.linalg.norm(directions, axis=0)
    return np.asarray(directions / np.where(lengths > 0, lengths, 1.0))


def leading(products: FloatArray, count: int) -> FloatArray:
    """Return the eigenvectors of a symmetric matrix with the largest eigenvalues, those first."""
    from scipy import linalg

    last = [len(products) - count, len(products) - 1]
    _, vectors = linalg.eigh(products, subset_by_index=last, check_finite=False)
    return np.asarray(vectors[:, ::-1])


def log_det_of_rows(A: FloatArray, rounded: bool, whole: Any = None) -> float:
    """Return log det(A Aᵀ) for columns of any sizes, -inf where rows are dependent.

    With columns of A sorted and rows pivoted, the error in each column is relative to that column,
    and not to the largest (Cox and Higham 1998). Rows are dependent where one has no more than
    1e-14 left of its length or, if A itself is not `rounded`, of the columns that are left; or of
    `whole`, if that is given.
    """
    from scipy import linalg

    sizes = np.abs(A).max(axis=0)
    order = np.argsort(-sizes, kind="stable")
    R, rows = linalg.qr(A[:, order].T, mode="r", pivoting=True, check_finite=False)
    left = np.abs(R.diagonal())
    if whole is None:
        whole = np.linalg.norm(A[rows], axis=1) if rounded else sizes[order[: left.size]]
    return -np.inf if (left <= DEPENDENT * whole).any() else 2 * float(np.log(left).sum())
