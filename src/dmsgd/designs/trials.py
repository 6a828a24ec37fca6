"""The exact k-DPP without its spectrum: batches are proposed without repulsion, and few are kept.

Hadamard's inequality says that det(L_Y) <= Π_{i∈Y} L_ii. So a set drawn with probability
proportional to Π L_ii, as `Weighted` batches are, and kept with probability det(L_Y) / Π L_ii, has
exactly the law of the k-DPP. Of the proposals a share e_k(λ) / e_k(L_11, ..., L_nn) is kept: nearly
all where items hardly repel each other, and none to speak of where they do.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import final

import numpy as np
from scipy.linalg import lapack

from dmsgd.designs.sampled import Sampled
from dmsgd.errors import RankError
from dmsgd.inputs.arrays import FloatArray, IntArray
from dmsgd.inputs.fingerprint import digest
from dmsgd.inputs.scalars import as_batch_size
from dmsgd.kernels import Kernel, as_kernel
from dmsgd.samplers.parallel import draw_in_parallel
from dmsgd.targets.conditional_poisson import ConditionalPoisson

#: Proposals that tell how many a draw will take; proposals that are made at a time.
TRIED, TOGETHER = 400, 16
#: More proposals for a draw than this are refused, and so many times as many are not made.
MOST, PATIENCE = 20_000, 100
#: A part of a batch has a larger chance than the batch, and what fails there is not looked at
#: further; smaller parts than this save nothing.
SMALL = 8
#: The number of the draw whose random numbers decide, which no proposal has.
DECISIONS = np.uint64(2**64 - 1)


@final
class Trials(Sampled):
    """Batches of k items with exactly the law of the k-DPP, without an eigendecomposition.

    For kernels that are too large to be diagonalised and whose items hardly repel each other at
    this k, as texts do at k = 64. How many proposals a draw takes grows like exp(k²), and is found
    out first (`proposals`): where they are more than 20,000 it is an error that says so.

    Cost: k² kernel entries and O(k³) operations a proposal; set-up is the diagonal of the kernel.
    KDPP(exact(kernel), k) is as exact and faster wherever its set-up is affordable. There is no
    `inclusion`, `joint` or `log_prob`, which need the spectrum: `estimate_inclusion` counts.

    >>> import dmsgd
    >>> Trials(dmsgd.RBF(np.arange(900.0)[:, None], scale=1.0), k=8).sample(100, seed=0).shape
    (100, 8)
    """

    def __init__(self, kernel: Kernel, k: int) -> None:
        self.kernel = as_kernel(kernel, "Trials")
        self.n = kernel.n
        self.k = as_batch_size(k, self.n)
        self._diagonal = kernel.diag()
        there = int(np.count_nonzero(self._diagonal))
        if there < self.k:
            raise RankError(self.k, there, "all other items have length 0")
        #: How many proposals a draw is expected to take, from 400 of them.
        self.proposals = 1 / max(self._kept_share(), 1e-300)
        if self.proposals > MOST:
            raise ValueError(
                f"items repel each other too much for Trials at k={self.k}: a draw would take more "
                f"than {MOST:,} proposals; lower k, or use SwapChain(kernel, k), which is right in "
                f"the limit, or KDPP(exact(kernel), k)"
            )

    @cached_property
    def _propose(self) -> Callable[[int, int, IntArray], int]:
        from dmsgd.samplers.conditional_poisson import conditional_poisson_sampler

        middle = np.partition(self._diagonal, -self.k)[-self.k]  # so that about k odds are above 1
        with np.errstate(over="ignore"):  # infinite odds: in every batch
            return conditional_poisson_sampler(
                ConditionalPoisson(self._diagonal / middle, self.k).odds, self.k
            )

    def _kept_share(self) -> float:
        tried = np.empty((TRIED, self.k), dtype=np.int64)
        self._propose(0, 0, tried)
        return float(np.mean([self._chance(Y) for Y in tried]))

    def _chance(self, Y: IntArray) -> float:
        """Return det(L_Y) / Π L_ii."""
        lengths = np.sqrt(self._diagonal[Y])
        L: FloatArray = self.kernel.block(Y, Y) / np.outer(lengths, lengths)
        triangle, failed = lapack.dpotrf(L, lower=1, overwrite_a=1)
        return 0.0 if failed else float(np.prod(triangle.diagonal() ** 2))

    def _draw(self, key: int, start: int, size: int, workers: int) -> IntArray:
        failure = (
            f"none of {PATIENCE * MOST:,} proposals was kept; items repel each other too much for "
            f"Trials, use SwapChain(kernel, k)"
        )

        def draw(first: int, out: IntArray) -> int:
            for row, batch in enumerate(out):
                found = self._first_kept(key, first + row)
                if found is None:
                    return row
                batch[:] = found
            return len(out)

        return draw_in_parallel(draw, start, size, self.k, workers, failure)

    def _first_kept(self, key: int, t: int) -> IntArray | None:
        """Return draw t: the first proposal that is kept of a stream that (key, t) alone has."""
        from dmsgd.compiled.philox import fill_uniform

        stream = int(np.random.SeedSequence([key, t]).generate_state(1, np.uint64)[0])
        proposals, uniforms = np.empty((TOGETHER, self.k), dtype=np.int64), np.empty(TOGETHER)
        block, sizes = 0, [size for size in (self.k // 4, self.k // 2) if size >= SMALL] + [self.k]
        for first in range(0, PATIENCE * MOST, TOGETHER):
            self._propose(stream, first, proposals)
            block = fill_uniform(np.uint64(stream), DECISIONS, block, uniforms)
            for Y, uniform in zip(proposals, uniforms, strict=True):
                if all(uniform < self._chance(Y[:size]) for size in sizes):
                    return Y
        return None

    def fingerprint(self) -> str:
        """Return the hash of the kernel and k."""
        return digest("Trials", self.k, self.kernel.fingerprint())

    def provenance(self) -> dict[str, str]:
        """Return where draws come from, in words: design, kernel, its fingerprint, sampler."""
        origin = {"kernel": repr(self.kernel), "data": self.kernel.fingerprint()}
        return {"design": repr(self), **origin, "sampler": "trials"}

    def __repr__(self) -> str:
        return f"Trials(k={self.k}, {self.kernel!r})"
