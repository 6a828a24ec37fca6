"""`Selection`: a chosen set, what each item adds and stands for, and how random sets compare."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import final

import numpy as np

from dmsgd.features import Features
from dmsgd.inputs.arrays import FloatArray, IntArray
from dmsgd.inputs.messages import counted
from dmsgd.inputs.scalars import as_count
from dmsgd.selection.pool import Pool, RowPool, in_memory

#: Random orders that a set is compared with, the candidates of one, and the items of which the
#: coverage is measured, at most.
ORDERS, LONGEST, MEASURED = 5, 20_000, 2000
#: Candidates of an order that are looked at in one go.
AT_ONCE = 64


@final
@dataclass(frozen=True, eq=False, repr=False)
class Selection:
    """Chosen items, best first, and what they cover.

    items:      (k,) item numbers.
    gains:      (k,) share of the demand that each added; at one scale, so that it is 0 for items
                that were chosen at a smaller one, when all was covered as far as rounding shows.
    coverage:   (k + 1,) share of the demand that is covered by the given items and the first 0 to k
                chosen ones: the mean similarity to the nearest of them, weighted by quality.
    nearest:    (N,) for each item to be covered, the place of the nearest one among the given, in
                ascending order, and then the chosen items.
    similarity: (N,) its similarity to that one.
    stands_for: (k,) the weight of the items whose nearest it is, the largest weight of an item
                being 1. These are cluster weights and not unbiased ones, for which see
                `dmsgd.unbiased_weights`.
    m:          that of the similarity exp(-d² / m), which `select` takes for another round; 1
                where similarities were given, for which it takes none.
    spent:      what the items cost together, None if there were no costs.

    >>> import dmsgd
    >>> X = [[0.0, 0.0], [0.0, 0.1], [5.0, 5.0], [5.0, 5.1], [9.0, 0.0]]
    >>> chosen = dmsgd.select(X, k=2, details=True)
    >>> chosen.items, chosen.stands_for
    (array([2, 0]), array([3., 2.]))
    >>> chosen.coverage.round(2)
    array([0.  , 0.63, 0.89])
    """

    items: IntArray
    gains: FloatArray
    coverage: FloatArray
    nearest: IntArray
    similarity: FloatArray
    stands_for: FloatArray
    m: float
    spent: float | None
    _pool: Pool = field(repr=False)
    _demand: FloatArray = field(repr=False)
    _known: IntArray = field(repr=False)
    _free: IntArray = field(repr=False)
    _costs: FloatArray | None = field(repr=False)

    def __len__(self) -> int:
        return self.items.size

    def head(self, k: int) -> Selection:
        """Return the first k items, with what these alone cover and stand for."""
        items = self.items[: as_count(k, "k")]
        return describe(self._pool, self._demand, self._known, items, self._free, self._costs)

    @cached_property
    def like_random(self) -> int:
        """How many items at random cover as much, on average; 0 if none do up to 20,000."""
        return self._random[1]

    @property
    def random_curves(self) -> FloatArray:
        """(5, m) what the given items and 1 to m random ones cover, in five random orders.

        On average the last ones cover as much as this set, unless 20,000 do not. Of many items a
        sample is measured, and the curves are scaled so that both ends agree with `coverage`.
        """
        return self._random[0]

    @cached_property
    def _random(self) -> tuple[FloatArray, int]:
        """What random free items cover beside the known ones, and how many cover as much."""
        pool, rng, demand = self._pool, np.random.default_rng(0), self._demand
        drawn = pool.N > MEASURED
        p, weights = demand / demand.sum(), np.ones(MEASURED) if drawn else demand
        items = rng.choice(pool.N, MEASURED, p=p) if drawn else np.arange(pool.N)
        aim, total = float(weights @ self.similarity[items]), float(weights.sum())
        held, items, free, known = pool.compared(items, self._free, self._known)
        orders = [rng.permutation(free)[:LONGEST] for _ in range(ORDERS)]

        def similar(candidates: IntArray) -> FloatArray:
            return np.asarray(np.exp(held.squares(items, candidates) / -pool.square))

        begun = similar(known).max(1, initial=0.0)
        covered, size, parts = [begun] * ORDERS, 0, []
        for first in range(0, orders[0].size, AT_ONCE):
            curves = np.empty((ORDERS, orders[0][first : first + AT_ONCE].size))
            for which, order in enumerate(orders):
                S = np.maximum(similar(order[first : first + AT_ONCE]), covered[which][:, None])
                S = np.maximum.accumulate(S, axis=1)
                covered[which] = S[:, -1]
                curves[which] = weights @ S
            parts.append(curves)
            mean = curves.mean(axis=0)
            if not self.items.size:
                break
            if not size and mean[-1] >= aim:
                size = first + 1 + int(np.argmax(mean >= aim))
            if size and first + AT_ONCE >= self.items.size:
                break
        low, high = float(weights @ begun) / total, aim / total
        factor = float(np.ptp(self.coverage[[0, -1]])) / (high - low) if high > low else 1.0
        return self.coverage[0] + factor * (np.hstack(parts) / total - low), size

    def __repr__(self) -> str:
        what = f"{counted(self.items.size, 'item')} cover{'s' * (self.items.size == 1)}"
        share = f"{self.coverage[-1]:.3g} of the demand"
        size = self.like_random
        as_well = f", as well as {size:,} random ones" if size else ""
        paid = "" if self.spent is None else f", and cost {self.spent:g}"
        return f"Selection({what} {share}{as_well}{paid})"


def describe(
    pool: Pool,
    demand: FloatArray,
    known: IntArray,
    items: IntArray,
    free: IntArray,
    costs: FloatArray | None,
) -> Selection:
    """Return what a set of items covers, beside known ones, by one pass over all items."""
    everyone, total = np.concatenate([known, items]), float(demand.sum())
    nearest, similar = np.zeros(pool.N, dtype=np.int64), np.zeros(pool.N)
    curve = np.zeros(items.size + 1)
    work = partial(_covered, square=pool.square, known=known.size)
    for part, found in pool.each(everyone, work, demand) if everyone.size else ():
        nearest[part], similar[part], more = found
        curve += more
    counts = np.bincount(nearest, demand, minlength=everyone.size)
    stands_for: FloatArray = counts[known.size : everyone.size].astype(float)
    curve /= total
    return Selection(
        items, np.diff(curve), curve, nearest, similar, stands_for, pool.square,
        None if costs is None else float(costs[items].sum()),
        pool, demand, known, free, costs,
    )  # fmt: skip


def _covered(
    squares: FloatArray, demand: FloatArray, square: float, known: int
) -> tuple[IntArray, FloatArray, FloatArray]:
    """Return the nearest candidate of each item, its similarity, and the demand covered in steps.

    squares: of the distances of items to candidates, of which the first so many are known.
    """
    S = np.exp(squares / -square)
    nearest = squares.argmin(1)  # similarities of far items may all be 0
    similar = S[np.arange(len(S)), nearest]
    if known:
        S[:, known - 1] = S[:, :known].max(1)
        S = S[:, known - 1 :]
    else:
        S = np.hstack([np.zeros((len(S), 1)), S])
    return nearest, similar, demand @ np.maximum.accumulate(S, axis=1)


def selection_of(F: Features, items: IntArray, known: IntArray, free: IntArray) -> Selection:
    """Return what a set of items covers, however it was chosen."""
    pool = RowPool(in_memory(F))
    pool.square = pool.scale(known)
    return describe(pool, np.ones(F.n), known, items, free, None)
