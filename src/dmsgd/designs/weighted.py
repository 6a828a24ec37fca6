"""Who is seen, and nothing else: batches with given inclusion probabilities and no repulsion."""

from __future__ import annotations

from functools import cached_property
from typing import Any, final

import numpy as np

from dmsgd.designs.design import ClosedForm
from dmsgd.inputs.arrays import TINY, FloatArray, IntArray, as_numbers
from dmsgd.inputs.fingerprint import digest
from dmsgd.inputs.messages import counted
from dmsgd.inputs.scalars import as_batch_size
from dmsgd.samplers.parallel import draw_in_parallel
from dmsgd.targets.conditional_poisson import ConditionalPoisson, with_inclusion
from dmsgd.targets.named import capped_shares

#: Those that are not sure may sum to the places left for them but for this share of these.
ROUNDING = 1e-6
#: What is this close to 1 is 1: an item that is in every batch.
SURE = 1 - 1e-13


@final
class Weighted(ClosedForm):
    """Batches of k items in which item i is with probability b_i, as random as they can be.

    Of all laws with these inclusion probabilities it has the largest entropy (conditional Poisson
    sampling); it is the k-DPP of a diagonal kernel, whose entries are found for b. Items do not
    repel each other: they only share the k places.

    b:       inclusion probabilities, shape (n,), that sum to k; 0 is never drawn, 1 always.
    weights: instead of b, any numbers >= 0 that b is to be proportional to. Where that asks for
             more than one of an item, it is in every batch, and the others share what is left.

    Set-up O(n), a draw O(k log k) with k look-ups; 28 bytes an item. Drawing k times in proportion
    to weights without replacement (NumPy's choice, torch's WeightedRandomSampler) gives another b.

    >>> Weighted([0.5, 0.5, 0.25, 0.75], k=2).inclusion()
    array([0.5 , 0.5 , 0.25, 0.75])
    >>> Weighted(weights=[8.0, 1.0, 1.0, 2.0], k=2).inclusion()
    array([1.  , 0.25, 0.25, 0.5 ])
    """

    def __init__(self, b: Any = None, k: int | None = None, *, weights: Any = None) -> None:
        if (b is None) == (weights is None):
            raise TypeError("Weighted needs b (inclusion probabilities) or weights, and not both")
        if k is None:
            raise TypeError("Weighted needs k, the batch size")
        given = _numbers(weights, "weights") if b is None else _numbers(b, "b")
        self.n = int(given.size)
        self.k = as_batch_size(k, self.n)
        #: What the hash is made of: what was asked for, and not what rounding made of it.
        self._asked = digest("b" if weights is None else "weights", given)
        self._origin = ""
        self._b = _of_weights(given, self.k) if b is None else _of_b(given, self.k)
        del given
        self._odds = with_inclusion(self._b, self.k).odds

    @classmethod
    def like(cls, design: ClosedForm) -> Weighted:
        """Return batches with the inclusion probabilities of `design` and without its repulsion."""
        if not isinstance(design, ClosedForm):
            raise TypeError(
                f"design must have inclusion probabilities in closed form, got "
                f"{type(design).__name__}; Weighted(b, k) takes any b"
            )
        weighted = cls(design.inclusion(), design.k)
        weighted._asked, weighted._origin = digest("like", design.fingerprint()), repr(design)
        return weighted

    @cached_property
    def _law(self) -> ConditionalPoisson:
        return ConditionalPoisson(self._odds, self.k)

    @cached_property
    def _rows(self) -> Any:
        from dmsgd.samplers.conditional_poisson import conditional_poisson_sampler

        return conditional_poisson_sampler(self._odds, self.k)

    def _draw(self, key: int, start: int, size: int, workers: int) -> IntArray:
        rows = self._rows
        return draw_in_parallel(
            lambda first, out: rows(key, first, out), start, size, self.k, workers
        )

    def inclusion(self) -> FloatArray:
        """Return b, shape (n,)."""
        return self._b.copy()

    def _second_moment(self, Y: FloatArray) -> float:
        """Return E|Σ_{i in batch} y_i|² for the rows y_i of Y, shape (n, p). O(n p)."""
        return self._law.second_moment(Y)

    def _joint(self, i: IntArray, j: IntArray) -> FloatArray:
        return self._law.joint(i, j)

    def _log_prob(self, batches: IntArray) -> FloatArray:
        return self._law.log_prob(batches)

    def without_repulsion(self) -> Weighted:
        """Return this design: it has none."""
        return self

    def fingerprint(self) -> str:
        """Return the hash of what b was asked for, and k."""
        return digest("Weighted", self.k, self._asked)

    def provenance(self) -> dict[str, str]:
        """Return where draws come from, in words: design, kernel, its fingerprint, sampler."""
        return {**super().provenance(), "sampler": "conditional Poisson"}

    def __repr__(self) -> str:
        origin = f", b of {self._origin}" if self._origin else ""
        return f"Weighted(n={self.n}, k={self.k}{origin})"


def _numbers(value: Any, name: str) -> FloatArray:
    numbers = as_numbers(value, name)
    bad = np.flatnonzero(numbers < 0)
    if bad.size:
        raise ValueError(
            f"{name} must be finite and at least 0, but is {numbers[bad[0]]:g} for item {bad[0]} "
            f"({counted(bad.size, 'such item')})"
        )
    return numbers


def _of_b(b: FloatArray, k: int) -> FloatArray:
    """Return b with rounding taken out of its sum."""
    above = np.flatnonzero(b > 1 + ROUNDING)
    if above.size:
        raise ValueError(
            f"b is {b[above[0]]:g} for item {above[0]} ({counted(above.size, 'such item')}), but "
            f"an item is in a batch at most once; pass them as weights= to scale them to k={k}"
        )
    sure = b >= SURE
    places = k - int(np.count_nonzero(sure))
    if places < 0 or abs(b.sum(where=~sure) - places) > ROUNDING * max(places, 1):
        raise ValueError(
            f"b sums to {b.sum():.12g}, but the probabilities of k={k} items sum to {k}; pass them "
            f"as weights= to have them scaled"
        )
    while True:  # what is scaled may become sure
        b *= (k - np.count_nonzero(sure)) / max(float(b.sum(where=~sure)), 1e-300)
        b[sure] = 1.0
        before, sure = sure, b >= SURE
        if np.count_nonzero(sure) == np.count_nonzero(before):
            return b


def _of_weights(weights: FloatArray, k: int) -> FloatArray:
    positive = int(np.count_nonzero(weights))
    if positive < k:
        raise ValueError(
            f"weights are positive for {counted(positive, 'item')}, fewer than k={k}; lower k or "
            f"give more items a weight"
        )
    scaled = weights / weights.max()
    seen = scaled > TINY
    places = k - int(np.count_nonzero(seen))
    if places <= 0:
        return _of_b(capped_shares(scaled, k), k)
    # All that are seen are in every batch, and the others share the rest.
    b: FloatArray = seen.astype(np.float64)
    b[~seen] = _of_weights(weights[~seen], places)
    return b
