"""The exact k-DPP without its spectrum, by rejection.

By Hadamard's inequality det(L_Y) <= Π_{i∈Y} L_ii. So a set drawn with probability proportional to
Π L_ii and accepted with probability det(L_Y) / Π L_ii has exactly the distribution of the k-DPP. A
share e_k(λ) / e_k(L_11, ..., L_nn) of the proposals is accepted.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, final

import numpy as np
from scipy.linalg import lapack

from dmsgd.designs.contract import Design
from dmsgd.errors import RankError, SamplingError
from dmsgd.inputs.arrays import FloatArray, IntArray
from dmsgd.inputs.fingerprint import digest
from dmsgd.inputs.messages import counted
from dmsgd.inputs.scalars import as_batch_size
from dmsgd.kernels.precomputed import kernel_of
from dmsgd.samplers.conditional_poisson import ConditionalPoisson
from dmsgd.samplers.parallel import draw_in_parallel

#: Proposals that estimate the acceptance rate; proposals made at a time.
TRIED, TOGETHER = 400, 16
#: Most proposals expected per batch; a batch that needs PATIENCE times as many is an error.
MAX_PROPOSALS, PATIENCE = 2_000, 100
#: The batch number whose random numbers decide about acceptance; no proposal has it.
DECISIONS = 2**64 - 1


@final
class AcceptReject(Design):
    """Batches of k items with exactly the distribution of the k-DPP, without eigenvectors.

    L: The kernel: an (n, n) array or a Kernel, as for `KDPP`.

    It is for kernels that are too large to be diagonalised and whose items hardly repel each other
    at this k, such as texts at k = 64. The expected number of proposals per batch (`proposals`)
    grows like exp(k²). A proposal takes k² kernel entries and O(k³) operations. KDPP(L, k) is
    as exact and faster wherever its set-up is affordable. There is no `inclusion`; use
    `dmsgd.diagnostics.estimate_inclusion`.

    Raises ValueError if a batch takes more than 2,000 proposals, and `RankError` if fewer than k
    items have features. See also `KDPP`, `SwapChain`.

    >>> from dmsgd.kernels import RBF
    >>> AcceptReject(RBF(np.arange(900.0)[:, None], scale=1.0), k=8).sample(100, seed=0).shape
    (100, 8)
    """

    def __init__(self, L: Any, k: int) -> None:
        self.kernel = kernel_of(L)
        self.n = self.kernel.n
        self.k = as_batch_size(k, self.n)
        self._diagonal = self.kernel.diag()
        there = int(np.count_nonzero(self._diagonal))
        if there < self.k:
            found = f"{counted(there, 'item')} above length 0 in all"
            raise RankError(self.k, there, found)
        tried = np.empty((TRIED, self.k), dtype=np.int64)
        self._propose(0, 0, tried)
        accepted = np.mean([self._acceptance_probability(Y) for Y in tried])
        #: Expected number of proposals per batch, estimated from 400 of them.
        self.proposals = 1 / max(float(accepted), 1e-300)
        if self.proposals > MAX_PROPOSALS:
            raise ValueError(
                f"items repel each other too much for AcceptReject at k={self.k}: a batch takes "
                f"more than {MAX_PROPOSALS:,} proposals; lower k, or use KDPP(kernel, k), or "
                f"SwapChain(kernel, k), which is approximate"
            )

    @cached_property
    def _propose(self) -> Callable[[int, int, IntArray], int]:
        from dmsgd.compiled.conditional_poisson import conditional_poisson_sampler

        middle = np.partition(self._diagonal, -self.k)[-self.k]  # so that about k odds are above 1
        with np.errstate(over="ignore"):  # infinite odds: in every batch
            odds = ConditionalPoisson(self._diagonal / middle, self.k).odds
            return conditional_poisson_sampler(odds, self.k)

    def _acceptance_probability(self, Y: IntArray) -> float:
        """Return det(L_Y) / Π L_ii."""
        lengths = np.sqrt(self._diagonal[Y])
        L: FloatArray = self.kernel.block(Y, Y) / np.outer(lengths, lengths)
        triangle, failed = lapack.dpotrf(L, lower=1, overwrite_a=1)
        return 0.0 if failed else float(np.prod(triangle.diagonal() ** 2))

    def _draw(self, key: int, start: int, size: int, workers: int) -> IntArray:
        def draw(first: int, out: IntArray) -> int:
            for t, batch in enumerate(out, start=first):
                batch[:] = self._first_accepted(key, t)
            return len(out)

        return draw_in_parallel(draw, start, size, self.k, workers)

    def _first_accepted(self, key: int, t: int) -> IntArray:
        """Return batch t: the first accepted proposal of the stream of (key, t)."""
        from dmsgd.compiled.philox import fill_uniform

        stream = int(np.random.SeedSequence([key, t]).generate_state(1, np.uint64)[0])
        proposals, uniforms = np.empty((TOGETHER, self.k), dtype=np.int64), np.empty(TOGETHER)
        block = 0
        for first in range(0, PATIENCE * MAX_PROPOSALS, TOGETHER):
            self._propose(stream, first, proposals)
            block = fill_uniform(stream, DECISIONS, block, uniforms)
            for Y, uniform in zip(proposals, uniforms, strict=True):
                if uniform < self._acceptance_probability(Y):
                    return Y
        raise SamplingError(
            f"draw {t} was not completed: none of {PATIENCE * MAX_PROPOSALS:,} proposals was "
            f"accepted; items repel each other too much, use SwapChain(kernel, k)"
        )

    def fingerprint(self) -> str:
        return digest("Trials", self.k, self.kernel.fingerprint())

    def provenance(self) -> dict[str, str]:
        return self._origin(repr(self.kernel), self.kernel.fingerprint(), "accept-reject")

    def __repr__(self) -> str:
        return f"AcceptReject(k={self.k}, {self.kernel!r})"
