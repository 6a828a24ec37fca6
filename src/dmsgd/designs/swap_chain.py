"""The k-DPP by a Markov chain of swaps, for kernels that are too large to be diagonalised.

An exchange chain (Li, Jegelka, Sra 2016, arXiv 1603.06052; Anari, Oveis Gharan, Rezaei 2016, arXiv
1602.05242): from a set Y of k items, pick i in Y and j among all n items uniformly; if j is not in
Y, move to Y' = Y - i + j with probability min(1, det(L_Y') / det(L_Y)). Its stationary distribution
is exactly the k-DPP; docs/results/approximations.md has the error by steps.
"""

from __future__ import annotations

from typing import Any, final

import numpy as np

from dmsgd.designs.contract import Design
from dmsgd.errors import RankError
from dmsgd.inputs.arrays import IntArray, on_host
from dmsgd.inputs.fingerprint import digest
from dmsgd.inputs.messages import counted
from dmsgd.inputs.scalars import as_count, as_part
from dmsgd.kernels import Kernel
from dmsgd.kernels.feature_kernels import Quality
from dmsgd.kernels.pivoted_cholesky import BLOCK, factor
from dmsgd.kernels.precomputed import kernel_of
from dmsgd.runtime.progress import Progress
from dmsgd.runtime.threads import parallel_map
from dmsgd.spectra.decompose import like

#: Steps per block of kernel entries: at least this many, or k.
LEAST_STEPS = 128


@final
class SwapChain(Design):
    """Batches of k items with nearly the distribution of the k-DPP, from entries of the kernel.

    L:       The kernel: an (n, n) array or a Kernel, as for `KDPP`.
    burn_in: The steps from a chain's first set, by a randomly pivoted Cholesky, to its first batch.
             The default is 10 n, so that each item has been proposed about ten times.
    thin:    The steps from one batch to the next. The default is 10 k: ten proposals to replace
             each item.
    chain_length: The batches made by one chain. Batch t belongs to chain t // chain_length, which
             has its own first set and its own random numbers: chains run on threads.

    A step takes about 4k kernel entries and O(k²) operations, and the start of a chain n k entries
    and O(n k²). KDPP(L, k) is exact and faster wherever its set-up, O(n³) or O(n d²), is
    affordable. There is no `inclusion`: count draws (`np.bincount`). How well chains mix, ArviZ
    tells from log det(L_Y) of their batches (docs/kernels.md).

    Raises `RankError` if fewer than k items are independent. See also `KDPP`,
    `dmsgd.kernels.nystrom`.

    >>> from dmsgd.kernels import Linear
    >>> SwapChain(Linear(np.eye(9)), k=2).sample(100, seed=0).shape
    (100, 2)
    """

    #: Of the chain that was drawn from last: key, first batch, number of the last batch, the batch.
    _latest: tuple[int, int, int, IntArray] | None = None

    def __init__(
        self,
        L: Any,
        k: int,
        burn_in: int | None = None,
        thin: int | None = None,
        chain_length: int = 100,
    ) -> None:
        self.kernel = kernel_of(L)
        self.n = self.kernel.n
        self.k = as_part(k, "k", self.n)
        self.burn_in = 10 * self.n if burn_in is None else as_count(burn_in, "burn_in", least=0)
        self.thin = 10 * self.k if thin is None else as_count(thin, "thin")
        self.chain_length = as_count(chain_length, "chain_length")
        self._known = first_set(self.kernel, self.k, 0)
        if self._known.size < self.k:  # some may be too small beside others to be pivots
            factors = np.where((sizes := self.kernel.diag()) > 0, sizes, np.inf) ** -0.5
            self._known = first_set(Quality(self.kernel, factors), self.k, 0)
        if self._known.size < self.k:
            found = f"the kernel has {counted(self._known.size, 'independent item')}"
            raise RankError(self.k, self._known.size, found)

    def _draw(self, key: int, start: int, size: int, workers: int) -> IntArray:
        """Return the batches, those of several chains on threads.

        The factor is computed anew for each batch, so that a chain that goes on from its latest
        batch equals one from its first set.
        """
        out, stop = np.empty((size, self.k), dtype=np.int64), start + size
        if not size:  # a check of the range, which needs no chain
            return out

        def work(begin: int) -> None:
            first, end, Y = begin, min(stop, begin + self.chain_length), np.empty(0, np.int64)
            if (latest := self._latest) and latest[:2] == (key, begin) and latest[2] < start:
                first, Y = latest[2] + 1, latest[3]
            for t in range(first, end):
                Y = self._next(key, begin, t, Y)
                if t >= start:
                    out[t - start] = Y
            if end == stop:
                self._latest = (key, begin, stop - 1, Y)

        first = start - start % self.chain_length
        parallel_map(work, range(first, stop, self.chain_length), workers)
        return out

    def _next(self, key: int, begin: int, t: int, Y: IntArray) -> IntArray:
        """Return batch t, from batch t - 1 of the chain that begins at batch `begin`.

        The steps towards it use random numbers of (key, t) only.
        """
        from dmsgd.compiled.philox import fill_uniform

        order = np.empty(2 * self.k)
        block, steps = fill_uniform(key, t, 0, order), self.thin
        if t == begin:
            drawn, steps = first_set(self.kernel, self.k, [key, begin]), self.burn_in
            Y = drawn if drawn.size == self.k else self._known
        return advance(self.kernel, Y, key, t, block, steps)[np.argsort(order[: self.k])]

    def fingerprint(self) -> str:
        lengths = self.burn_in, self.thin, self.chain_length
        return digest("SwapChain", 2, self.k, *lengths, self.kernel.fingerprint())

    def provenance(self) -> dict[str, str]:
        of = {"kernel": repr(self.kernel), "data": self.kernel.fingerprint()}
        return super().provenance() | of | {"sampler": "swap chain"}

    def __repr__(self) -> str:
        lengths = f"burn_in={self.burn_in}, thin={self.thin}, chain_length={self.chain_length}"
        return f"SwapChain(k={self.k}, {self.kernel!r}, {lengths})"


def first_set(kernel: Kernel, k: int, key: Any) -> IntArray:
    """Return k items of positive determinant, the pivots of a randomly pivoted Cholesky factor.

    Fewer where the next one depends on them. n k kernel entries, O(n k²), an (n, k) array.
    """
    from dmsgd.compiled.swap import DEPENDENT

    F, items = factor(kernel, k, 0.0, key, block=min(k, BLOCK))
    left = on_host(F[like(F, items)]).diagonal() ** 2
    dependent = np.flatnonzero(left <= DEPENDENT * kernel.diag()[items])
    return items[: dependent[0]] if dependent.size else items


def advance(kernel: Kernel, Y: IntArray, key: int, draw: int, block: int, steps: int) -> IntArray:
    """Make steps from the set Y, and return the set that they end with.

    The random numbers are those of (key, draw) from number 2 * block on. Each piece of steps takes
    the block of the kernel of the set and of all that is proposed next.
    """
    from dmsgd.compiled.philox import fill_uniform
    from dmsgd.compiled.swap import walk

    most = 2 * (max(Y.size, LEAST_STEPS) // 2)  # even, as random numbers come in pairs
    tell = Progress(f"{steps:,} steps of a chain")
    for done in range(0, steps, most):
        uniforms = np.empty(3 * min(most, steps - done))
        block = fill_uniform(key, draw, block, uniforms)
        items = (uniforms[1::3] * kernel.n).astype(np.int64)
        known, where = np.unique(np.concatenate([Y, items]), return_inverse=True)
        local, proposals = where[: Y.size].copy(), where[Y.size :].copy()
        L = np.ascontiguousarray(kernel.block(known, known), dtype=np.float64)
        R = np.ascontiguousarray(np.linalg.cholesky(L[np.ix_(local, local)]).T)
        walk(L, local, R, uniforms, proposals)
        Y = known[local]
        tell((done + items.size) / steps)
    return Y
