"""Randomly pivoted partial Cholesky: the strongest cheap low-rank factor of a kernel.

Plain (Chen, Epperly, Tropp, Webber 2022): draw a pivot from the diagonal of the residual
L - F Fᵀ, add its residual column to F, repeat. Every step streams all of F for one column.

Blocked, with the same law (Epperly, Tropp, Webber 2024): draw a block of proposals from the
present diagonal, accept each with the probability by which the pivots accepted before it have
shrunk its own entry, and add all accepted columns by matrix products.
"""

from __future__ import annotations

from typing import Any, Protocol, final

import numpy as np
from scipy import linalg

from dmsgd.features import as_features
from dmsgd.inputs.arrays import FloatArray, IntArray
from dmsgd.inputs.memory import reserve
from dmsgd.inputs.progress import Progress, announce
from dmsgd.inputs.scalars import Seed, as_count, as_positive, as_share, seed_key
from dmsgd.kernels import Kernel, as_kernel
from dmsgd.spectra.factor import of_factor
from dmsgd.spectra.spectrum import Spectrum

#: Proposals at a time.
BLOCK = 128

#: Rank reached when neither rank nor tol is given.
DEFAULT_RANK = 1000


def pivoted_cholesky(
    kernel: Kernel,
    rank: int | None = None,
    tol: float | None = None,
    seed: Seed = 0,
    *,
    oversampling: float = 1.5,
    block: int = BLOCK,
) -> Spectrum:
    """Return the spectrum of L̂ <= L, of at most `rank`, with its relative trace error.

    rank:         the factor gets `oversampling` times as many columns, of whose span the best
                  `rank` directions are kept: about the error of the best L̂ of that rank.
    tol:          stop as soon as the factor leaves out at most this share of trace(L).

    For p columns: N·p kernel entries, O(N p²) operations, one (N, p) factor; L is never formed.
    Draws are exact for L̂, and `trace_error` says how far that is from L.

    >>> import dmsgd
    >>> kernel = dmsgd.RBF(np.random.default_rng(0).normal(size=(300, 2)))
    >>> pivoted_cholesky(kernel, tol=0.01).trace_error < 0.01
    True
    """
    as_kernel(kernel, "pivoted_cholesky")
    if rank is None and tol is None:
        rank = DEFAULT_RANK
    rank = kernel.n if rank is None else min(as_count(rank, "rank"), kernel.n)
    share = 0.0 if tol is None else as_share(tol, "tol")
    if as_positive(oversampling, "oversampling") < 1:
        raise ValueError(f"oversampling must be at least 1, got {oversampling}")
    most = int(min(np.ceil(oversampling * rank), kernel.n))
    key, block = seed_key(seed), as_count(block, "block")
    F, _, _ = factor(kernel, most, share, key, block)
    method = (
        f"pivoted_cholesky(rank={rank}, tol={share.hex()}, columns={most}, block={block}, "
        f"seed={key})"
    )
    return of_factor(kernel, as_features(F, allow_tiny=True), "pivoted Cholesky", method, rank)


def factor(
    kernel: Kernel, rank: int, tol: float, key: int, block: int = BLOCK
) -> tuple[Any, IntArray, float]:
    """Return F, shape (n, at most rank), its pivots, and the share of the trace it leaves out."""
    rng = np.random.default_rng(key)
    diagonal = kernel.diag()
    residual, trace = diagonal.copy(), diagonal.sum()
    # Below this the residual is rounding, and a pivot would add noise.
    noise = 10 * kernel.n * np.finfo(float).eps * trace
    advice = "lower rank (or oversampling), or set a tol with a lower rank"
    what, count = f"a factor of {kernel.n} items x {rank}", kernel.n * (rank + 3 * block)
    reserve(count, what, advice)
    announce(kernel.n * float(rank) ** 2, count, what, advice)
    F, tell = _kept(kernel, rank), Progress(what)
    done, chosen = 0, np.empty(rank, np.int64)
    while done < rank and residual.sum() > max(tol * trace, noise):
        chance = residual / residual.sum()
        proposals = rng.choice(kernel.n, size=min(block, rank - done), p=chance)
        rows = F.rows(proposals)
        H = kernel.block(proposals, proposals) - rows @ rows.T
        kept, triangle = _accept(H, residual[proposals], rng)
        pivots = proposals[kept]
        residual -= F.add(pivots, triangle)
        chosen[done : done + pivots.size] = pivots
        done += pivots.size
        residual[pivots] = 0.0
        np.maximum(residual, 0.0, out=residual)
        tell((done / rank) ** 2)  # later columns take longer
    left = float(residual.sum() / trace)
    return F.whole(), chosen[:done], left


class Columns(Protocol):
    """The columns of the factor that are known, in memory or on a card."""

    def rows(self, items: IntArray) -> FloatArray:
        """Return these rows, in memory."""

    def add(self, pivots: IntArray, triangle: FloatArray) -> FloatArray:
        """Add the columns of L at the pivots, less what is known of them, times triangle^-ᵀ.

        Return the sums of squares of their rows, shape (n,), in memory.
        """

    def whole(self) -> Any:
        """Return all columns."""


@final
class ColumnsInMemory:
    """The columns of the factor, in an array."""

    def __init__(self, kernel: Kernel, rank: int) -> None:
        self.kernel, self.F, self.done = kernel, np.empty((kernel.n, rank)), 0

    def rows(self, items: IntArray) -> FloatArray:
        """Return these rows."""
        return self.F[items, : self.done]

    def add(self, pivots: IntArray, triangle: FloatArray) -> FloatArray:
        """Add columns; return the squares of their rows."""
        columns = self.kernel.columns(pivots)
        columns -= self.F[:, : self.done] @ self.rows(pivots).T
        new = linalg.solve_triangular(triangle, columns.T, lower=True, check_finite=False).T
        self.F[:, self.done : self.done + pivots.size] = new
        self.done += pivots.size
        return np.asarray(np.einsum("ij,ij->i", new, new))

    def whole(self) -> FloatArray:
        """Return all columns."""
        return np.ascontiguousarray(self.F[:, : self.done])


def _kept(kernel: Kernel, rank: int) -> Columns:
    """Return where the columns of a kernel's factor are kept: where its features are."""
    if kernel.on_device(np.zeros(1, dtype=np.int64)) is None:
        return ColumnsInMemory(kernel, rank)
    from dmsgd.spectra.device_vectors import ColumnsThere

    return ColumnsThere(kernel, rank)


def _accept(
    H: FloatArray, bounds: FloatArray, rng: np.random.Generator
) -> tuple[IntArray, FloatArray]:
    """Return which proposals are accepted, in order, and the Cholesky factor of their block of H.

    Proposal i is accepted with probability (its diagonal entry now) / (its entry when proposed).
    The first always is, and none is twice: what rounding leaves of it is no more than noise.
    """
    size = H.shape[0]
    columns = np.zeros((size, size))
    now = H.diagonal().copy()
    kept: list[int] = []
    thresholds = rng.random(size=(size,)) * bounds
    thresholds[0] = 0.0
    for i in range(size):
        if now[i] <= thresholds[i]:
            continue
        column = (H[:, i] - columns[:, : len(kept)] @ columns[i, : len(kept)]) / np.sqrt(now[i])
        columns[:, len(kept)] = column
        now -= column**2
        kept.append(i)
    return np.array(kept), columns[kept][:, : len(kept)]
