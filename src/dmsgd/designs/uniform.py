"""Plain SGD's batches: simple random samples without replacement."""

from __future__ import annotations

from typing import final

import numpy as np

from dmsgd.designs.repulsive import Repulsive
from dmsgd.inputs.arrays import FloatArray, IntArray
from dmsgd.inputs.fingerprint import digest
from dmsgd.inputs.memory import reserve
from dmsgd.inputs.scalars import as_batch_size, as_count
from dmsgd.polynomials import log_binomial
from dmsgd.samplers.parallel import draw_in_parallel


@final
class Uniform(Repulsive):
    """Every batch of k out of n items is equally likely; the k-DPP of the identity kernel.

    O(k) a draw.

    >>> Uniform(4, 2).inclusion()
    array([0.5, 0.5, 0.5, 0.5])
    """

    def __init__(self, n: int, k: int) -> None:
        self.n = as_count(n, "n")
        self.k = as_batch_size(k, self.n)

    def _draw(self, key: int, start: int, size: int, workers: int) -> IntArray:
        from dmsgd.compiled.simple import draw_uniform

        def rows(first: int, out: IntArray) -> int:
            return int(draw_uniform(self.n, np.uint64(key), np.uint64(first), out))

        return draw_in_parallel(rows, start, size, self.k, workers)

    def inclusion(self) -> FloatArray:
        """Return k/n for every item."""
        reserve(self.n, f"the probabilities of {self.n:,} items", f"each of them is {self.k}/n")
        return np.full(self.n, self.k / self.n)

    def _joint(self, i: IntArray, j: IntArray) -> FloatArray:
        return np.full(i.size, self.k * (self.k - 1) / (self.n * max(self.n - 1, 1)))

    def _log_prob(self, batches: IntArray) -> FloatArray:
        return np.full(batches.shape[0], -log_binomial(self.n, self.k))

    def fingerprint(self) -> str:
        """Return the hash of n and k."""
        return digest("Uniform", self.n, self.k)

    def __repr__(self) -> str:
        return f"Uniform(n={self.n}, k={self.k})"
