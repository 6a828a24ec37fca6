"""Designs that are known by their draws alone: no probability has a closed form."""

from __future__ import annotations

from typing import NoReturn

import numpy as np

from dmsgd.designs.design import Design
from dmsgd.inputs.arrays import FloatArray, IntArray, as_count
from dmsgd.inputs.seeding import Seed, key_of
from dmsgd.inputs.threads import thread_count

#: Draws counted at a time.
PIECE = 1000


class Sampled(Design):
    """A design whose inclusion probabilities can only be estimated from draws."""

    def estimate_inclusion(self, draws: int, seed: Seed = None, *, workers: int = 1) -> FloatArray:
        """Return how often each item is in a batch among draws 0..draws, shape (n,); sums to k.

        With independent draws the standard error is sqrt(b (1 - b) / draws). An item that has not
        been seen gets 0, which is no proof that it never is.
        """
        draws, key, threads = as_count(draws, "draws"), key_of(seed), thread_count(workers)
        counts = np.zeros(self.n, dtype=np.int64)
        for first in range(0, draws, PIECE):
            batches = self._draw(key, first, min(PIECE, draws - first), threads)
            counts += np.bincount(batches.ravel(), minlength=self.n)
        return counts / draws

    def inclusion(self) -> FloatArray:
        """Raise: there is no closed form."""
        self._refuse("inclusion probabilities have", "estimate_inclusion(draws, seed) counts draws")

    def _joint(self, i: IntArray, j: IntArray) -> FloatArray:
        self._refuse("joint probabilities have", "count pairs in sample(draws, seed)")

    def _log_prob(self, batches: IntArray) -> FloatArray:
        self._refuse("the probability of a batch has", "only its draws are known")

    def _refuse(self, what: str, way_out: str) -> NoReturn:
        raise NotImplementedError(
            f"{what} no closed form under {type(self).__name__}: {way_out}; for closed forms use "
            f"KDPP(exact(kernel), k), or KDPP(pivoted_cholesky(kernel), k) when n is large"
        )
