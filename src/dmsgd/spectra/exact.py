"""The exact eigendecomposition of a kernel, by the cheapest route that is accurate.

For L = F Fᵀ with an (n, d) factor F:

- diagonal: the columns of a sparse F do not overlap (strata, identity): nothing to diagonalise.
- dual:     d < n. FᵀF = U Λ Uᵀ is d x d, and V = F U Λ^(-1/2); L itself is never formed.
- primal:   d >= n. L is n x n and V comes from it directly.

Forming a product squares the condition number. Where that hides a part of the spectrum, it is found
in more rounds (`dmsgd.spectra.rounds`), and the route says so ("dual+rounds", "primal+rounds").
Kernels without a factor are formed and diagonalised ("primal").
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from scipy import linalg, sparse

from dmsgd.features import Features
from dmsgd.features.interface import InMemory
from dmsgd.inputs.arrays import FloatArray, Matrix
from dmsgd.inputs.memory import reserve
from dmsgd.inputs.progress import EIGH, announce
from dmsgd.inputs.scalars import as_share
from dmsgd.kernels import Kernel, as_kernel
from dmsgd.samplers.computed_rows import ComputedRows, ComputedSparseRows
from dmsgd.spectra import on_demand
from dmsgd.spectra.eigen import eigh, noise
from dmsgd.spectra.on_demand import VectorsOnDemand
from dmsgd.spectra.rounds import SQUARED_LIMIT, right_vectors
from dmsgd.spectra.spectrum import Rounding, Spectrum, changed, truncated
from dmsgd.spectra.ties import settle_ties
from dmsgd.spectra.vectors import VectorsInBlocks

#: What needs no eigendecomposition of as many features or items (docs/large.md has the errors).
SHORTER = (
    "without it dmsgd.AcceptReject(dmsgd.Linear(X), k) is as exact, and raises at once where items "
    "repel each other too much for it; dmsgd.SwapChain(dmsgd.Linear(X), k) is approximate, and "
    "dmsgd.cells(X, k) keeps similar items apart with every item equally likely. X is what the "
    "kernel has: dmsgd.normalize(X), dmsgd.concat(X, y, w). Fewer features (PCA) are another kernel"
)

#: Eigenvalues above this fraction of the largest are right to 1e-12 as they come from the Gram.
NORMED_LIMIT = 1e-3


def exact(kernel: Kernel, tol: float = 0.0) -> Spectrum:
    """Return the spectrum of `kernel`: all eigenvalues that rounding can tell from zero.

    tol: leave out eigenvalues up to `tol` times the largest, too. The result is then another
         kernel's, and its `trace_error` says by how much.

    Rounding hides eigenvalues below about 1e-14 of the largest in a kernel given by its entries,
    and below 1e-28 in one given by features. O(n d min(n, d)) for linear kernels, O(n³) and n²
    memory otherwise.

    >>> from dmsgd import Linear
    >>> exact(Linear([[1.0, 0.0], [0.0, 2.0], [1.0, 0.0]])).values
    array([4., 2.])
    """
    as_kernel(kernel, "exact")
    tol = as_share(tol, "tol")
    factor = kernel.factor()
    spectrum = _of_entries(kernel, tol) if factor is None else of_features(factor, tol)
    return changed(
        spectrum,
        kernel=repr(kernel),
        data=kernel.fingerprint(),
        method=f"exact(tol={tol.hex()})",
    )


def _of_entries(kernel: Kernel, tol: float) -> Spectrum:
    if kernel.on_device(np.zeros(1, dtype=np.int64)) is not None:
        from dmsgd.spectra.device import of_entries_there

        return of_entries_there(kernel, tol)
    # The matrix, its eigenvectors, and what LAPACK needs beside them.
    advice = "use pivoted_cholesky(kernel, rank) or nystrom(kernel, landmarks) instead of exact"
    reserve(5 * kernel.n**2, f"the full matrix of {kernel!r} with its eigenvectors", advice)
    what = f"the eigendecomposition of {kernel!r}"
    announce(EIGH * kernel.n**3, 5 * kernel.n**2, what, advice)
    everything = np.arange(kernel.n)
    return of_matrix(kernel.block(everything, everything), tol)


def of_matrix(L: FloatArray, tol: float = 0.0) -> Spectrum:
    """Return the spectrum of a full kernel matrix, which is overwritten."""
    empty = L.diagonal() == 0
    values, vectors = eigh(L)
    vectors[empty] = 0.0  # but for rounding they are
    least = noise(values.size)
    rank = int(np.count_nonzero(values > least * values[0]))
    values, vectors = values[:rank], vectors[:, :rank]
    settle_ties(values, vectors, least * values[0])
    return truncated(values, vectors, "primal", Rounding(1.0, L.shape[0] - rank, least), tol)


def of_features(
    F: Features, tol: float = 0.0, overwrite: bool = False, advice: str = SHORTER
) -> Spectrum:
    """Return the spectrum of F Fᵀ; with `overwrite` in the memory of F, if F is an array.

    advice: what to do where that takes too much memory or time.
    """
    if (there := F.device()) is not None:
        from dmsgd.spectra.device import of_features_there

        return of_features_there(there, tol)
    if F.disjoint():
        return _diagonal(F.whole().matrix, tol)
    if F.d >= F.n:
        reserve(5 * F.n**2, f"the {F.n} x {F.n} matrix F Fᵀ with its eigenvectors", advice)
        what = f"the eigendecomposition of {F.n:,} items"
        announce(EIGH * F.n**3, 5 * F.n**2, what, advice)
        values, U = right_vectors(F.whole().transposed())
        U[F.row_squares() == 0] = 0.0  # but for rounding they are
        return truncated(values, U, _route("primal", values), _rounding(F, values), tol)
    reserve(5 * F.d**2, f"the Gram matrix of {F.d} features", advice)
    blocks, direct = F.passes(), F.direct()
    entries_only = F.sparse() is not None or (blocks is not None and blocks.sparse_rows)
    products = EIGH * F.d**3 + (0.0 if entries_only else 2.0 * F.n * F.d**2)
    what = f"the eigendecomposition of {F.n:,} items x {F.d:,} features"
    announce(products, 5 * F.d**2, what, advice)
    texts = F.sparse() if F.n * F.d > on_demand.KEPT else None
    if F.resident and texts is None:
        reserve(F.n * F.d + 3 * F.d**2, f"the eigenvectors of {F.n} items", advice)
    values, U = right_vectors(F)
    rounding, route = _rounding(F, values), _route("dual", values)
    vectors: Any
    if texts is not None:
        made = partial(ComputedSparseRows.of, (kept := texts.owned()).matrix)
        vectors = VectorsOnDemand(kept, _columns(values, U), made)
    elif blocks is None:
        values, vectors = _left_vectors(F.whole(), values, U, overwrite)
    elif direct is not None:
        vectors = VectorsOnDemand(
            blocks, _columns(values, U), partial(ComputedRows, blocks, direct)
        )
    else:  # as large as F: made again whenever a block is read
        vectors = VectorsInBlocks(blocks, U / np.sqrt(values), precise=route != "dual")
    return truncated(values, vectors, route, rounding, tol)


def _columns(values: FloatArray, U: FloatArray) -> FloatArray:
    """Return the columns of U Λ^(-1/2), one after the other."""
    return np.ascontiguousarray((U / np.sqrt(values)).T)


def _route(name: str, values: FloatArray) -> str:
    return f"{name}+rounds" if values.min() < SQUARED_LIMIT * values.max() else name


def _rounding(F: Features, values: FloatArray) -> Rounding:
    size = min(F.n, F.d)
    return Rounding(0.5, size - values.size, noise(size) ** 2)


def _diagonal(F: Matrix, tol: float) -> Spectrum:
    squares = F.multiply(F).sum(axis=0)
    used = np.flatnonzero(squares > 0)
    what = f"the eigenvectors of {F.shape[0]} items in {used.size} strata"
    reserve(F.shape[0] * used.size, what, "Uniform and Stratified draw the same without them")
    V = F[:, used] @ sparse.diags_array(1 / np.sqrt(squares[used]))
    return truncated(squares[used], V.toarray(), "diagonal", Rounding(), tol)


def _left_vectors(
    F: InMemory, values: FloatArray, U: FloatArray, overwrite: bool
) -> tuple[FloatArray, FloatArray]:
    """Return eigenvalues and V = F U Λ^(-1/2), in the memory of F if `overwrite`."""
    scratch = F.dense() if overwrite and U.shape[0] == U.shape[1] else None
    basis = U / np.sqrt(values)
    V = F.times(basis) if scratch is None else _multiplied_in_place(scratch, basis)
    small = values < SQUARED_LIMIT * values.max()
    if values.min() < NORMED_LIMIT * values.max():
        squares = np.einsum("ij,ij->j", V, V)  # |F u|² knows the eigenvalue better than the Gram
        values = np.where(small, values, values * squares)
        V /= np.sqrt(squares)
    if small.any():  # rounding in F U is small beside large eigenvalues only: take those out
        well, rest = V[:, ~small], V[:, small]
        rest -= well @ (well.T @ rest)
        turned = linalg.qr(rest, mode="economic", check_finite=False)[0]
        turned[~rest.any(axis=1)] = 0.0  # but for rounding they are
        V[:, small] = turned
    return values, V


def _multiplied_in_place(F: FloatArray, square: FloatArray) -> FloatArray:
    """Return F @ square in the memory of F."""
    step = max(1, 2**24 // F.shape[1])
    for first in range(0, F.shape[0], step):
        F[first : first + step] = F[first : first + step] @ square
    return F
