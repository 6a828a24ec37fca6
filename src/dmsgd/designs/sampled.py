"""Designs that are known by their draws alone: no probability has a closed form."""

from __future__ import annotations

from typing import Any

import numpy as np

from dmsgd.designs.design import Design
from dmsgd.inputs.arrays import FloatArray
from dmsgd.inputs.scalars import Seed, as_count, seed_key
from dmsgd.inputs.threads import thread_count

#: Draws counted at a time.
PIECE = 1000

#: What there is in place of closed forms.
WAYS_OUT = {
    "inclusion": "estimate_inclusion(draws, seed) counts draws",
    "joint": "count pairs in sample(draws, seed)",
    "log_prob": "only its draws are known",
}


class Sampled(Design):
    """A design whose inclusion probabilities can only be estimated from draws."""

    def estimate_inclusion(self, draws: int, seed: Seed = None, *, workers: int = 1) -> FloatArray:
        """Return how often each item is in a batch among draws 0..draws, shape (n,); sums to k.

        With independent draws the standard error is sqrt(b (1 - b) / draws). An item that has not
        been seen gets 0, which is no proof that it never is.
        """
        draws, key, threads = as_count(draws, "draws"), seed_key(seed), thread_count(workers)
        counts = np.zeros(self.n, dtype=np.int64)
        for first in range(0, draws, PIECE):
            batches = self._draw(key, first, min(PIECE, draws - first), threads)
            counts += np.bincount(batches.ravel(), minlength=self.n)
        return counts / draws

    def __getattr__(self, name: str) -> Any:
        """Say why a closed form is missing, and what there is instead."""
        if name in WAYS_OUT:
            raise AttributeError(
                f"{type(self).__name__} has no closed form for {name}: {WAYS_OUT[name]}; for such "
                f"use KDPP(exact(kernel), k), or KDPP(pivoted_cholesky(kernel), k) when n is large"
            )
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
