"""`Weighted`: batches with given inclusion probabilities and no repulsion."""

from __future__ import annotations

from functools import cached_property, partial
from typing import Any, final

import numpy as np

from dmsgd.designs.contract import ClosedForm, inclusion_of
from dmsgd.inputs.arrays import FloatArray, IntArray, as_numbers
from dmsgd.inputs.fingerprint import digest
from dmsgd.inputs.messages import counted
from dmsgd.inputs.scalars import as_part
from dmsgd.runtime.threads import draw_in_parallel
from dmsgd.samplers.conditional_poisson import with_inclusion

#: Relative tolerance on the sum of b over items with b < 1.
ROUNDING = 1e-6
#: From here on b counts as 1: the item is in every batch.
ALWAYS = 1 - 1e-13


@final
class Weighted(ClosedForm):
    """Batches of k items that contain item i with probability b_i, without repulsion.

    b:       The inclusion probabilities, shape (n,), which sum to k. An item with b = 0 is never
             drawn, and one with b = 1 is in every batch.
    weights: Numbers that b is proportional to, none below 0, instead of b. An item whose b would
             be above 1 is in every batch, and the others share the rest of it.

    Of all distributions with these b it has the largest entropy (conditional Poisson sampling).
    Drawing one item after the other in proportion to weights without replacement (NumPy's choice,
    torch's WeightedRandomSampler) gives another b. Set-up takes O(n), and a batch O(k log k).

    Raises ValueError if b exceeds 1 or does not sum to k, or if fewer than k weights are positive.
    See also `KDPP` and `dmsgd.targets.prescribe` for repulsion, `Stratified`, `unbiased_weights`.

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
        name, scale = ("weights", capped_shares) if b is None else ("b", _from_inclusion)
        given = as_numbers(weights if b is None else b, name)
        if (least := given.min()) < 0:
            raise ValueError(f"{name} must be at least 0, not {least:g} for item {given.argmin()}")
        self.n = int(given.size)
        self.k = as_part(k, "k", self.n)
        #: What the fingerprint hashes: the numbers given, before any rounding.
        self._given = digest(name, given)
        self._matched = ""
        self._b = scale(given, self.k)
        del given
        self._distribution = with_inclusion(self._b, self.k)

    @classmethod
    def like(cls, design: Any) -> Weighted:
        """Return the frequency-matched control: the b of `design`, without its repulsion.

        design: any with `inclusion`, or a schedule. Its gain over uniform batches comes from
        sampling frequency and from repulsion; the control has only the frequency.
        """
        weighted = cls(inclusion_of(design), getattr(design, "k", None))
        weighted._given, weighted._matched = digest("like", design.fingerprint()), repr(design)
        return weighted

    @cached_property
    def _sampler(self) -> Any:
        from dmsgd.compiled.conditional_poisson import conditional_poisson_sampler

        return conditional_poisson_sampler(self._distribution.odds, self.k)

    def _draw(self, key: int, start: int, size: int, workers: int) -> IntArray:
        return draw_in_parallel(partial(self._sampler, key), start, size, self.k, workers)

    def inclusion(self) -> FloatArray:
        return self._b.copy()

    def second_moment(self, Y: FloatArray) -> float:
        return self._distribution.second_moment(Y)

    def _joint(self, i: IntArray, j: IntArray) -> FloatArray:
        return self._distribution.joint(i, j)

    def _log_prob(self, batches: IntArray) -> FloatArray:
        return self._distribution.log_prob(batches)

    def fingerprint(self) -> str:
        return digest("Weighted", self.k, self._given)

    def provenance(self) -> dict[str, str]:
        return super().provenance() | {"sampler": "conditional Poisson"}

    def __repr__(self) -> str:
        matched = f", b of {self._matched}" if self._matched else ""
        return f"Weighted(n={self.n}, k={self.k}{matched})"


def _from_inclusion(b: FloatArray, k: int) -> FloatArray:
    """Return b, scaled so that it sums to k exactly."""
    if (most := b.max()) > 1 + ROUNDING:
        raise ValueError(
            f"b is {most:g} for item {b.argmax()}, but an item is in a batch at most once; pass "
            f"them as weights= to scale them"
        )
    always = b >= ALWAYS
    left = k - int(np.count_nonzero(always))
    if left < 0 or abs(b.sum(where=~always) - left) > ROUNDING * max(left, 1):
        raise ValueError(
            f"b sums to {b.sum():.12g} and must sum to {k}; pass them as weights= to scale them"
        )
    b[always] = 1.0
    b[~always] = capped_shares(b[~always], left)
    return b


def capped_shares(weights: FloatArray, k: int) -> FloatArray:
    """Return b_i = min(1, c weights_i) with Σ b_i = k; items below 1 share the rest."""
    if (positive := int(np.count_nonzero(weights))) < k:
        what = f"weights are positive for {counted(positive, 'item')}, fewer than k={k}"
        raise ValueError(f"{what}; lower k")
    b, full = np.ones(weights.size), np.zeros(weights.size, bool)
    while not full.all():
        others = weights[~full] / (weights.max(where=~full, initial=0.0) or 1.0)
        b[~full] = others * ((k - np.count_nonzero(full)) / (others.sum() or 1.0))
        if b.max(where=~full, initial=0.0) < ALWAYS:
            break
        full = b >= ALWAYS
        b[full] = 1.0
    return b
