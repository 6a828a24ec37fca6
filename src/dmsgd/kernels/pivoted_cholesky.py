"""Randomly pivoted partial Cholesky: the strongest cheap low-rank factor of a kernel.

Plain (Chen, Epperly, Tropp, Webber 2022): draw a pivot from the diagonal of the residual
L - F Fᵀ, add its residual column to F, repeat. Every step reads all of F for one column.

Blocked, with the same distribution (Epperly, Tropp, Webber 2024): draw a block of proposals from
the present diagonal, accept each with the probability by which the pivots accepted before it have
shrunk its own entry, and add all accepted columns by matrix products.
"""

from __future__ import annotations

from typing import Any, final

import numpy as np

from dmsgd.features import Features, as_features
from dmsgd.features.products import row_norms2
from dmsgd.inputs.arrays import FloatArray, IntArray, check_nonzero, on_host
from dmsgd.inputs.scalars import Seed, as_count, as_positive, as_share, seed_key
from dmsgd.kernels.contract import Kernel, as_kernel, recorded
from dmsgd.runtime.progress import Progress, plan_work
from dmsgd.spectra.decompose import empty, like, solve_triangular
from dmsgd.spectra.eigenpairs import Spectrum, truncate
from dmsgd.spectra.rounding import Rounding, lost_by_factor

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
) -> Spectrum:
    """Return an approximate spectrum of a kernel L: that of L̂ <= L, of at most `rank`.

    rank: The largest rank of L̂. The factor gets `oversampling` times as many columns, and the best
          `rank` directions of their span are kept, with about the error of the best L̂ of that
          rank. The default is 1,000 if there is no tol.
    tol:  The factor stops growing when it leaves out at most this share of trace(L).

    A factor of p columns takes n p kernel entries, O(n p²) operations and n p numbers; L is never
    formed. Draws are exact for L̂, and `trace_error` is the share of the trace of L that it leaves
    out.
    See also `nystrom`, `exact`.

    >>> import dmsgd
    >>> kernel = dmsgd.kernels.RBF(np.random.default_rng(0).normal(size=(300, 2)))
    >>> pivoted_cholesky(kernel, tol=0.01).trace_error < 0.01
    True
    """
    as_kernel(kernel, "pivoted_cholesky")
    rank = (DEFAULT_RANK if tol is None else kernel.n) if rank is None else as_count(rank, "rank")
    rank = min(rank, kernel.n)
    share = 0.0 if tol is None else as_share(tol, "tol")
    if as_positive(oversampling, "oversampling") < 1:
        raise ValueError(f"oversampling must be at least 1, got {oversampling}")
    most = int(min(np.ceil(oversampling * rank), kernel.n))
    key = seed_key(seed)
    F = as_features(factor(kernel, most, share, key)[0], allow_tiny=True)
    options = f"rank={rank}, tol={share.hex()}, columns={most}, block={BLOCK}, seed={key}"
    return low_rank_spectrum(kernel, F, "pivoted Cholesky", f"pivoted_cholesky({options})", rank)


def factor(
    kernel: Kernel, rank: int, tol: float, key: int, block: int = BLOCK
) -> tuple[Any, IntArray]:
    """Return F, shape (n, at most rank), an array or tensor as the columns are, and its pivots."""
    growing = PartialCholesky(kernel, rank, key, block)
    while growing.grow(tol):
        pass
    F = growing.F
    return (np.ascontiguousarray(F) if isinstance(F, np.ndarray) else F), growing.pivots


@final
class PartialCholesky:
    """A factor F with F Fᵀ <= L that grows by a block of columns at a time.

    columns:  how many there is room for; the columns of a narrower factor are the first of a wider
              one, unless it was widened.
    eligible: how many of the items, from the first on, may be pivots; by default all.
    pivots:   the item of each column.
    """

    def __init__(
        self, kernel: Kernel, columns: int, key: int, block: int = BLOCK, eligible: Any = None
    ) -> None:
        self.kernel, self.block, self.eligible = kernel, block, slice(eligible)
        self.pivots: IntArray = np.empty(0, np.int64)
        self._rng, self._residual = np.random.default_rng(key), kernel.diag().copy()
        check_nonzero(bool(self._residual[self.eligible].any()))
        self._trace = float(self._residual[self.eligible].sum())
        self._room: Any = np.empty((kernel.n, 0))
        self.widen(columns)

    @property
    def F(self) -> Any:
        """The factor, shape (n, len(pivots)), an array or tensor as the columns are."""
        return self._room[:, : self.pivots.size]

    def widen(self, columns: int) -> None:
        """Make room for this many columns."""
        n, what = self.kernel.n, f"a factor of {self.kernel.n} items x {columns}"
        advice = "a lower rank, or a smaller k, takes less"
        plan_work(n * float(columns) ** 2, n * (columns + 3 * self.block), what, advice)
        self.columns, self._report = columns, Progress(what)

    def grow(self, tol: float = 0.0) -> bool:
        """Add a block of columns; False if there is no room, or no more than `tol` is left."""
        done, residual = self.pivots.size, self._residual
        left = float(residual[self.eligible].sum())
        # Where the residual is rounding, a pivot would add noise.
        least = max(tol * self._trace, lost_by_factor(done, self._trace))
        if done == self.columns or left <= least:
            return False
        chance = residual[self.eligible] / left
        proposals = self._rng.choice(chance.size, size=self.block, p=chance)
        rows = on_host(self.F[like(self.F, proposals)])
        H = self.kernel.block(proposals, proposals) - rows @ rows.T
        kept, triangle = _accept(H, residual[proposals], self._rng)
        fit = slice(self.columns - done)
        pivots = proposals[kept[fit]]
        new = self.kernel.columns(pivots)
        if self._room.shape[1] < self.columns:
            wider = empty(new, (self.kernel.n, self.columns))
            wider[:, :done] = like(new, self.F)
            self._room = wider
        new -= self.F @ self.F[like(self.F, pivots)].T
        new = solve_triangular(new.T, triangle[fit, fit]).T
        self._room[:, done : done + pivots.size] = new
        self.pivots = np.append(self.pivots, pivots)
        residual -= on_host(row_norms2(new))
        residual[pivots] = 0.0
        np.maximum(residual, 0.0, out=residual)
        self._report((self.pivots.size / self.columns) ** 2)  # later columns take longer
        return True


def _accept(
    H: FloatArray, bounds: FloatArray, rng: np.random.Generator
) -> tuple[IntArray, FloatArray]:
    """Return which proposals are accepted, in order, and the Cholesky factor of their block of H.

    Proposal i is accepted with probability (its diagonal entry now) / (its entry when proposed).
    The first always is, and none is accepted twice: its entry is then rounding noise.
    """
    size, columns, now = len(H), np.zeros_like(H), H.diagonal().copy()
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


def low_rank_spectrum(
    kernel: Kernel, F: Features, route: str, method: str, rank: int | None = None
) -> Spectrum:
    """Return the spectrum of the best approximation of F Fᵀ <= L of at most `rank`.

    It records the kernel, the method and the trace error. An array F is overwritten.
    """
    whole = F.spectrum(overwrite=True, advice="a lower rank, or fewer landmarks, take less")
    trace = float(kernel.diag().sum())
    lost = lost_by_factor(F.d, trace) if F.d < kernel.n else 0.0  # all columns leave nothing out
    hidden = lost / float(whole.values[0])
    cut = truncate(whole.values, whole.vectors, route, Rounding(1.0, F.d, hidden=hidden))
    values = cut.values[:rank]
    vectors = cut.eigenvectors.select(np.arange(values.size))
    error = max(trace - float(values.sum()), 0.0) / trace
    return recorded(cut, kernel, method, values=values, vectors=vectors, trace_error=error)
