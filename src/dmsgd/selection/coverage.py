"""What is covered by chosen items, and which candidate would add most.

Coverage of all items is exact. What every candidate would add is estimated on a sample of the
items: when a candidate is chosen, the change of coverage in the sample is pushed to all
candidates, so that no estimate is stale. The best few are decided on all items. If their estimates
turn out to be too high on average, as the best of many noisy ones are, the sample grows.
"""

from __future__ import annotations

from typing import Any, final

import numpy as np

from dmsgd.inputs.arrays import FloatArray, IntArray
from dmsgd.selection.similarity import Kept, Similarity

#: Up to this many items the sample is all of them. Of more it begins with START and grows by a
#: quarter, but by ADDED at least.
WHOLE, START, ADDED = 2**13, 2**11, 2**9
#: Candidates that are decided on all items, until no estimate exceeds the best of them.
DECIDED = (8, 16, 32, 64)
#: The sample grows when the estimates of decided candidates exceed their gains by this share, on
#: average over the last steps; a step counts 0.8 times as much as the next.
TOLERANCE, FADING = 0.25, 0.8
#: Relative differences up to this are ties, which go to the larger worth, then the lower number.
TIED = 1e-6


@final
class Coverage:
    """Coverage of N items, and what each of n candidates would add to it.

    worth:   (n,) factors of gains, and demand, (N,) weights of items; the largest are 1.
    covered: (N,) similarity of each item to the nearest one that is there already.
    """

    def __init__(
        self, similarity: Similarity, worth: FloatArray, demand: FloatArray, covered: Any
    ) -> None:
        vector, n = similarity.vector, similarity.n
        self.similarity, self.xp = similarity, similarity.xp
        self._demanded, self.total = demand, float(demand.sum())
        self.worth, self.demand = vector(worth, np.float64), vector(demand, np.float32)
        self.covered = vector(covered, np.float32)
        self.estimates = vector(np.zeros(n), np.float64)
        self.bounds = vector(np.full(n, np.inf), np.float64)  # gains as they were decided last
        self.counts = vector(np.zeros(demand.size), np.float32)  # how often items are in the sample
        self._last: tuple[int, Any] = -1, None
        self.whole = demand.size <= WHOLE
        self.size = 0
        self._excess = self._decided = 0.0  # of estimates over gains, and gains
        self._grow()

    @property
    def amount(self) -> float:
        """The demand that is covered."""
        return self.similarity.total(self.demand * self.covered)

    def best(self, open_: Any, price: Any = None) -> tuple[int, float]:
        """Return the candidate with the largest worth x gain / price, and its gain.

        open_: mask of those that may be chosen; price: (n,), None if all have the same.
        """
        if self._excess > TOLERANCE * self._decided:
            self._grow()
        similarity, own = self.similarity, self.worth if price is None else self.worth / price
        estimates = self._expected_gains()
        scores = own * self.xp.minimum(estimates, self.bounds)
        scores[~open_] = -np.inf
        top = similarity.largest(scores, DECIDED[-1] + 1)
        top = top[scores[top] > -np.inf]
        worth, gains = similarity.host(own[top]), np.empty(0)
        expected = np.append(similarity.host(scores[top]), -np.inf)
        new = similarity.host(estimates[top] < self.bounds[top])  # nothing else bounded them
        for last in DECIDED:
            some = top[gains.size : last]
            found = similarity.gained(some, None, self.covered, 1.0, self.demand)
            self.bounds[some] = found
            gains = np.append(gains, similarity.host(found))
            largest = float((worth[: gains.size] * gains).max())
            if expected[gains.size] <= largest:
                break
        if not self.whole:
            new, guesses = new[: gains.size], similarity.host(estimates[top[: gains.size]])
            self._excess = FADING * self._excess + float((guesses - gains)[new].sum())
            self._decided = FADING * self._decided + float(gains[new].sum())
        tied = np.flatnonzero(worth[: gains.size] * gains >= (1 - TIED) * largest)
        return self._first(top[tied], open_), float(gains[tied].max())

    def _expected_gains(self) -> Any:
        """Return what each candidate would add, as the sample tells."""
        if self.whole:
            return self.estimates
        factor = self.total / self.size
        gains = self.estimates * factor
        if self.similarity.symmetric:  # each counts itself once
            gains += (self.demand - factor * self.counts) * (1 - self.covered)
        return gains

    def _first(self, tied: Any, open_: Any) -> int:
        """Return the candidate of largest worth, then lowest number, of these and their copies."""

        def first(some: Any) -> int:
            worth = self.worth[some]
            return int(some[worth == worth.max()].min())

        item = first(tied)
        if self.similarity.symmetric:
            copies = (self._row(item) >= 1 - TIED) & open_
            item = first(self.similarity.places(copies))
        return item

    def _row(self, item: int) -> Any:
        """Return the similarities of a candidate to all items; the last ones are kept."""
        if item != self._last[0]:
            self._last = item, self.similarity.row(item)
        return self._last[1]

    def take(self, item: int) -> None:
        """Choose a candidate: what it covers lowers the estimates of all others."""
        S = self._row(item)
        changed = self.similarity.places((self.covered < S) & (self.counts > 0))
        low, high, weights = self.covered[changed], S[changed], self.counts[changed]
        self.estimates -= self.similarity.gained(None, changed, low, high, weights)
        self.covered = self.xp.maximum(self.covered, S)

    def _grow(self) -> None:
        """Add items to the sample, drawn by demand."""
        N, vector = self._demanded.size, self.similarity.vector
        last = self.size + max(ADDED, self.size // 4) if self.size else START
        self.whole = self.whole or last >= N
        self._excess = self._decided = 0.0
        if self.whole:
            self.estimates[:] = 0.0
            self.counts, self.size, items, weights = self.demand, N, None, self.demand
            low = self.covered
        else:
            if not self.size:
                self._draws = Draws(self._demanded)
            numbers, repeats = self._draws.between(self.size, last)
            items, weights = vector(numbers, np.int64), vector(repeats, np.float32)
            low = self.covered[items]
            self.counts[items] += weights
            self.size = last
        self.estimates += self.similarity.gained(None, items, low, 1.0, weights)


@final
class SmallCoverage:
    """What `Coverage` is, for so few items that all gains are computed anew at every step.

    amount: the demand that is covered.
    """

    def __init__(
        self, similarity: Kept, worth: FloatArray, demand: FloatArray, covered: FloatArray
    ) -> None:
        self.similarity, self.worth, self.demand = similarity, worth, demand
        S = similarity.T if similarity.symmetric else similarity.T.T
        self._after = np.maximum(S, covered)  # coverage if a candidate is chosen
        self.amount = float(demand @ covered)

    def best(self, open_: Any, price: Any = None) -> tuple[int, float]:
        """Return the candidate with the largest worth x gain / price, and its gain."""
        gains = self._after @ self.demand
        gains -= self.amount
        values = gains * (self.worth if price is None else self.worth / price)
        values[~open_] = -np.inf
        item = int(values.argmax())
        top = float(values[item])
        tied = (values >= top - TIED * abs(top)).nonzero()[0]
        if tied.size > 1:
            item = int(tied[self.worth[tied].argmax()])
        return item, float(gains[item])

    def take(self, item: int) -> None:
        """Choose a candidate."""
        covered = self._after[item].copy()
        self.amount = float(self.demand @ covered)
        np.maximum(self._after, covered, out=self._after)


@final
class Draws:
    """Items by their demand, evenly over a fixed random order, so that any prefix is a sample."""

    def __init__(self, demand: FloatArray) -> None:
        self.order = np.random.default_rng(0).permutation(demand.size)
        self.sums = np.cumsum(demand[self.order]) / demand.sum()

    def between(self, first: int, last: int) -> tuple[IntArray, IntArray]:
        """Return draws first to last: item numbers in ascending order, and how often each is."""
        places = np.searchsorted(self.sums, van_der_corput(first, last), side="right")
        drawn = self.order[np.minimum(places, self.order.size - 1)]
        return np.unique(drawn, return_counts=True)


def van_der_corput(first: int, last: int) -> FloatArray:
    """Return numbers first to last of a sequence whose every prefix is spread evenly over [0, 1).

    Number i is i with its 32 bits in reverse order, as a fraction.
    """
    bits = np.unpackbits(np.arange(first, last, dtype=">u4").view(np.uint8))
    return np.asarray(bits.reshape(-1, 32) @ 0.5 ** np.arange(32, 0, -1))
