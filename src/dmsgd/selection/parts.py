"""Covering sets of features that are not in memory: of files in blocks, and on a Dask cluster.

In the first of two rounds (GreeDi) each block chooses items that cover itself, in one pass; in the
second, items are chosen among these to cover a sample of all items. Blocks are the parts, so that
the set depends on where they begin and end, and not on who works on them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any, final

import numpy as np

from dmsgd.features import Features, as_features
from dmsgd.features.products import sampled_pairs, stack
from dmsgd.inputs.arrays import FloatArray, IntArray, Matrix
from dmsgd.runtime.memory import reserve, total_memory
from dmsgd.selection.cover import covering_set
from dmsgd.selection.coverage import Draws
from dmsgd.selection.pool import Pool, RowPool, distances_to, scale_beside, scale_within
from dmsgd.selection.result import LONGEST, describe
from dmsgd.selection.rules import Rules

#: The last round covers a sample of so many items, or so many for each that is chosen.
SAMPLE, EACH = 2**16, 256
#: The sample takes at most this share of the memory, and so do the candidates of the last round.
SHARE = 1 / 16
#: Where a share of demand is to be covered, parts cover this share of the rest as well, so that
#: what they choose is enough for a sample, too.
MARGIN = 0.1


def pool_of_blocks(
    F: Any, other: Features | None, known: IntArray, k: int | None, workers: int
) -> Pool:
    """Return a pool in parts; in memory if the sample of the last round would be all of it."""
    few = _in_memory(F.take(sampled_pairs(F.n)[0]))
    width = 2 * few.matrix.nnz / few.n + 1 if few.sparse_rows else F.d
    most = int(SHARE * total_memory() / 8 / width)
    size = min(max(SAMPLE, EACH * (k or 0)), most)
    if F.n <= size:
        return RowPool(F.to_memory(), other, workers)
    square = RowPool(few if other is None else other).median
    return PartsPool(F, other, known, square, size, most, width, workers)


@final
class PartsPool(Pool):
    """Rows in blocks, and what is to be covered: these, or others, which are in memory.

    points: the rows of known items, None if there are none.
    size:   of the sample that the last round covers.
    most:   candidates of the last round.
    width:  numbers of a row.
    """

    def __init__(
        self,
        F: Any,
        other: Features | None,
        known: IntArray,
        square: float,
        size: int,
        most: int,
        width: float,
        workers: int,
    ) -> None:
        """Store rows; square is the median squared distance."""
        self.F, self.workers, self.size, self.most, self.width = F, workers, size, most, width
        self.other = None if other is None else other.to_memory()
        self.same, self.n, self.N = other is None, F.n, F.n if other is None else other.n
        self.square = self.median = square
        self.points = F.take(known) if known.size else None

    def scale(self, known: IntArray) -> float:
        """Return m where these candidates are chosen already: at most the median to the nearest."""
        if self.other is not None:
            work = partial(_nearest, points=self.other.take(sampled_pairs(self.N)[0]), axis=0)
            near = np.min(list(self.F.map_blocks(work, "nearest")), axis=0)
            return scale_within(self.median, near)
        if not known.size:
            return self.median
        work = partial(_nearest, points=self.points)
        return scale_beside(self, np.concatenate(list(self.F.map_blocks(work, "nearest"))))

    def each(
        self, chosen: IntArray, work: Callable[..., Any], demand: FloatArray
    ) -> Iterator[tuple[slice, Any]]:
        """Yield some items at a time, and work(squares, demand of these items)."""
        points, bounds = self.F.take(chosen), self.F.bounds.tolist()
        if self.other is not None:
            yield from _each(self.other.matrix, demand, points, work)
            return
        arguments = [(demand[first:last],) for first, last in pairwise(bounds)]
        work = partial(_each, points=points, work=work)
        for block, found in enumerate(self.F.map_blocks(work, "covered", arguments)):
            for part, result in found:
                yield slice(bounds[block] + part.start, bounds[block] + part.stop), result

    def compared(self, items: IntArray, free: IntArray, known: IntArray) -> tuple[Any, ...]:
        """Return a pool of these in memory, of free candidates only some, and their numbers."""
        size = min(LONGEST, self.most, free.size)
        free = np.random.default_rng(0).choice(free, size, replace=False)
        numbers = np.unique(np.concatenate([free, known, items if self.same else known]))
        held = RowPool(_in_memory(self.F.take(numbers)), self.other)
        free, known = (np.searchsorted(numbers, some) for some in (free, known))
        return held, np.searchsorted(numbers, items) if self.same else items, free, known


@final
@dataclass(frozen=True, eq=False)
class Question:
    """What every part is asked, beside its rules.

    square: m of the similarity.
    points: rows that are chosen already, None if there are none.
    other:  what is to be covered, with this demand; None for the part itself.
    weigh:  whether it is asked for how much demand the chosen items stand.
    last:   whether the answer is the set.
    """

    square: float
    points: Matrix | None
    other: Features | None = None
    demand: FloatArray | None = None
    weigh: bool = False
    last: bool = False


@final
@dataclass(frozen=True, eq=False)
class Candidates:
    """Items, their rows, the demand that each stands for, and whether they meet `Rules.until`."""

    numbers: IntArray
    rows: Matrix
    weights: FloatArray
    met: bool = False

    def take(self, places: IntArray, weights: FloatArray, met: bool = False) -> Candidates:
        """Return some of them, which stand for more."""
        return Candidates(self.numbers[places], self.rows[places], weights, met)

    def choose(self, worth: FloatArray, rules: Rules, asked: Question, workers: int) -> Candidates:
        """Return a covering set, best first; worth and rules are of these candidates."""
        demand = self.weights if asked.demand is None else asked.demand
        if not (self.numbers.size and demand.any()):
            return self.take(np.empty(0, dtype=np.int64), np.empty(0), self.met)
        count, more = self.numbers.size, 0 if asked.points is None else asked.points.shape[0]
        F = _in_memory(stack([self.rows, asked.points]) if more else self.rows)
        pool = RowPool(F, asked.other, workers=workers, square=asked.square)
        pool.is_part, known, nothing = not asked.last, np.arange(count, F.n), np.zeros(more)
        worth = np.append(worth, nothing)
        demand = np.append(demand, nothing) if asked.demand is None else demand
        rules = rules.of(np.append(np.arange(count), np.full(more, -1)))
        plain = rules.costs is None and rules.until == np.inf and not asked.last
        if plain and rules.k == rules.open.sum():  # the last round may need each of them
            items = np.flatnonzero(rules.open & (worth > 0))
        else:
            items, rules = covering_set(pool, worth, demand, known, rules)
        weights = np.zeros(items.size)
        if asked.weigh and items.size:
            weights = describe(pool, demand, known, items, items, None).stands_for
        return self.take(items, weights, rules.met)


def covering_parts(
    pool: PartsPool, worth: FloatArray, demand: FloatArray, known: IntArray, rules: Rules
) -> tuple[IntArray, Rules]:
    """Return what `covering_set` does, for a pool in parts, by two rounds.

    The rules hold in every part as for the set: a part chooses at most k items, no more of a group
    than at_most, as many as at_least or all that it has, and spends the budget. Known items cover
    in every part. Candidates that take too much memory are a part, too: it covers the demand that
    they stand for.

    If rows are in random order, (1 - 1/e) / 2 of the most possible is expected to be covered
    (Barbosa et al. 2015), up to the errors of samples: the last one, and each block as one of all.
    """
    bounds = pool.F.bounds.tolist()
    count = int(np.minimum(np.diff(bounds), rules.k).sum())
    numbers = 3 * pool.width * (pool.size + min(count, pool.most)) + 4 * pool.N
    reserve(int(numbers), "a covering set", "ask for fewer items")
    sampled, weights = np.arange(pool.N), demand
    if pool.size < pool.N:
        sampled, repeats = Draws(demand).between(0, pool.size)
        weights = repeats.astype(float)
    other = None if pool.other is None else _in_memory(pool.other.take(sampled))
    asked = Question(
        pool.square, pool.points, other, None if other is None else weights,
        weigh=pool.same and count > pool.most,
    )  # fmt: skip
    sampled = sampled if pool.same else np.empty(0, dtype=np.int64)
    arguments = [
        (
            None if (worth[first:last] == 1).all() else worth[first:last],
            rules.of(np.arange(first, last), MARGIN),
            sampled[slice(*np.searchsorted(sampled, (first, last)))] - first,
        )
        for first, last in pairwise(bounds)
    ]

    chosen, few, work = list[Candidates](), list[Matrix](), partial(_choose_of_block, asked=asked)
    for block, found in enumerate(pool.F.map_in_turn(work, "cover", arguments, pool.workers)):
        part, sample = found
        chosen.append(replace(part, numbers=part.numbers + bounds[block]))
        few.append(sample)
        if len(chosen) > 1 and sum(part.numbers.size for part in chosen) > pool.most:
            chosen = [_choose_of_all(chosen, worth, rules, asked, pool.workers)]
    covered = (_in_memory(stack(few)), weights) if pool.same else (pool.other, demand)
    asked = replace(asked, other=covered[0], demand=covered[1], weigh=False, last=True)
    found = _choose_of_all(chosen, worth, rules, asked, pool.workers)
    rules.take(*found.numbers.tolist())
    if found.met:
        rules.end()
    if not (pool.same and rules.until == np.inf and rules.more()):
        return found.numbers, rules
    # All of the sample is covered: the rest covers other candidates.
    points = found.rows if pool.points is None else stack([pool.points, found.rows])
    asked = replace(asked, points=points, other=None, demand=None)
    chosen = [replace(part, weights=worth[part.numbers]) for part in chosen]
    more = _choose_of_all(chosen, worth, rules, asked, pool.workers)
    rules.take(*more.numbers.tolist())
    return np.append(found.numbers, more.numbers), rules


def _choose_of_block(
    rows: Matrix,
    worth: FloatArray | None,
    rules: Rules,
    sampled: IntArray,
    workers: int,
    asked: Question,
) -> tuple[Candidates, Matrix]:
    """Return what a block chooses, and the rows of it that are in the sample."""
    worth = np.ones(rows.shape[0]) if worth is None else worth
    everything = Candidates(np.arange(rows.shape[0]), rows, worth, not worth.any())
    return everything.choose(worth, rules, asked, workers), rows[sampled]


def _choose_of_all(
    parts: list[Candidates], worth: FloatArray, rules: Rules, asked: Question, workers: int
) -> Candidates:
    """Return what is chosen of the candidates of all parts; worth and rules are of all items."""
    numbers, weights = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("numbers", "weights")
    )
    order, rows = np.argsort(numbers), stack([part.rows for part in parts])
    met = all(part.met for part in parts)
    union = Candidates(numbers[order], rows[order], weights[order], met)
    allowed = rules.of(union.numbers, 0.0 if asked.last else MARGIN)
    if asked.last:  # places of groups without enough candidates stay free
        allowed.k = min(allowed.k, rules.k - rules.count - rules.lacks() + allowed.lacks())
    return union.choose(worth[union.numbers], allowed, asked, workers)


def _nearest(rows: Matrix, points: Matrix, axis: int = 1) -> FloatArray:
    """Return the squared distance of each row to the nearest point; with axis=0 of each point."""
    found = [squares.min(axis) for _, squares in distances_to(points, rows)]
    return np.concatenate(found) if axis else np.asarray(np.min(found, axis=0))


def _each(
    rows: Matrix, demand: FloatArray, points: Matrix, work: Callable[..., Any]
) -> list[tuple[slice, Any]]:
    """Return some rows at a time, and work(squares of distances to the points, their demand)."""
    return [(some, work(squares, demand[some])) for some, squares in distances_to(points, rows)]


def _in_memory(rows: Matrix) -> Features:
    return as_features(rows, allow_tiny=True).to_memory()
