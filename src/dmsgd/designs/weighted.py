"""`Weighted`: batches with given inclusion probabilities and no repulsion."""

from __future__ import annotations

from functools import cached_property
from typing import Any, final

import numpy as np

from dmsgd.designs.design import ClosedForm, inclusion_of
from dmsgd.inputs.arrays import TINY, FloatArray, IntArray, as_numbers
from dmsgd.inputs.fingerprint import digest
from dmsgd.inputs.messages import counted
from dmsgd.inputs.scalars import as_batch_size
from dmsgd.samplers.parallel import draw_in_parallel
from dmsgd.targets.conditional_poisson import ConditionalPoisson, with_inclusion
from dmsgd.targets.named import capped_shares

#: Relative tolerance on the sum of b over items with b < 1.
ROUNDING = 1e-6
#: From here on b counts as 1: the item is in every batch.
ALWAYS = 1 - 1e-13


@final
class Weighted(ClosedForm):
    """Batches of k items in which item i is with probability b_i, as random as they can be.

    Of all distributions with these inclusion probabilities it has the largest entropy (conditional
    Poisson sampling). Items do not repel each other: they only share the k places.

    b:       inclusion probabilities, shape (n,), that sum to k; 0 is never drawn, 1 always.
    weights: instead of b, any numbers >= 0 that b is proportional to. An item for which that gives
             more than 1 is in every batch, and the others share the remaining places.

    Set-up O(n), O(k log k) per batch; 28 bytes per item. Drawing k times in proportion to weights
    without replacement (NumPy's choice, torch's WeightedRandomSampler) gives another b.

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
        #: What the fingerprint hashes: the numbers given, before any rounding.
        self._given = digest("b" if weights is None else "weights", given)
        self._origin = ""
        self._b = _from_weights(given, self.k) if b is None else _from_inclusion(given, self.k)
        del given
        self._odds = with_inclusion(self._b, self.k).odds

    @classmethod
    def like(cls, design: Any) -> Weighted:
        """Return the frequency-matched control: the b of `design`, without its repulsion.

        What a design gains over uniform batches comes from how often items are drawn and from
        repulsion; this design has the first alone. design: any with `inclusion`, or a schedule.

        >>> import dmsgd
        >>> design = dmsgd.diversify([[1.0, 0.0], [1.0, 0.1], [0.0, 3.0]], k=2)
        >>> bool(abs(Weighted.like(design).inclusion() - design.inclusion()).max() < 1e-9)
        True
        """
        weighted = cls(inclusion_of(design), getattr(design, "k", None))
        weighted._given, weighted._origin = digest("like", design.fingerprint()), repr(design)
        return weighted

    @cached_property
    def _distribution(self) -> ConditionalPoisson:
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

    def second_moment(self, Y: FloatArray) -> float:
        """Return E|Σ_{i in batch} y_i|² for the rows y_i of Y, shape (n, p). O(n p)."""
        return self._distribution.second_moment(Y)

    def _joint(self, i: IntArray, j: IntArray) -> FloatArray:
        return self._distribution.joint(i, j)

    def _log_prob(self, batches: IntArray) -> FloatArray:
        return self._distribution.log_prob(batches)

    def fingerprint(self) -> str:
        """Return the hash of the numbers given and k."""
        return digest("Weighted", self.k, self._given)

    def provenance(self) -> dict[str, str]:
        """Return where batches come from, in words: design, kernel, its fingerprint, sampler."""
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


def _from_inclusion(b: FloatArray, k: int) -> FloatArray:
    """Return b, scaled so that it sums to k exactly."""
    above = np.flatnonzero(b > 1 + ROUNDING)
    if above.size:
        raise ValueError(
            f"b is {b[above[0]]:g} for item {above[0]} ({counted(above.size, 'such item')}), but "
            f"an item is in a batch at most once; pass them as weights= to scale them to k={k}"
        )
    always = b >= ALWAYS
    places = k - int(np.count_nonzero(always))
    if places < 0 or abs(b.sum(where=~always) - places) > ROUNDING * max(places, 1):
        raise ValueError(
            f"b sums to {b.sum():.12g}, but the probabilities of k={k} items sum to {k}; pass them "
            f"as weights= to have them scaled"
        )
    while True:  # scaling may bring more items to 1
        b *= (k - np.count_nonzero(always)) / max(float(b.sum(where=~always)), 1e-300)
        b[always] = 1.0
        before, always = always, b >= ALWAYS
        if np.count_nonzero(always) == np.count_nonzero(before):
            return b


def _from_weights(weights: FloatArray, k: int) -> FloatArray:
    """Return b in proportion to the weights, at most 1."""
    positive = int(np.count_nonzero(weights))
    if positive < k:
        raise ValueError(
            f"weights are positive for {counted(positive, 'item')}, fewer than k={k}; lower k or "
            f"give more items a weight"
        )
    scaled = weights / weights.max()
    large = scaled > TINY
    places = k - int(np.count_nonzero(large))
    if places <= 0:
        return _from_inclusion(capped_shares(scaled, k), k)
    # All items of large weight are in every batch, and the others share the remaining places.
    b: FloatArray = large.astype(np.float64)
    b[~large] = _from_weights(weights[~large], places)
    return b
