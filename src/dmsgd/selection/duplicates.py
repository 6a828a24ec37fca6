"""`near_duplicates`: which items are almost the same, and one of each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, final, get_args

import numpy as np

from dmsgd.errors import warn_kernel
from dmsgd.features import Features, as_features
from dmsgd.features.maps import Normalize, row_lengths
from dmsgd.features.products import median_square
from dmsgd.inputs.arrays import BoolArray, FloatArray, IntArray, Matrix, evenly_spaced
from dmsgd.inputs.fingerprint import row_hashes
from dmsgd.inputs.messages import counted
from dmsgd.inputs.scalars import as_choice, as_fraction, as_positive
from dmsgd.runtime.memory import memory_limit
from dmsgd.selection.pairs import PROJECTED, Rows, Search, first_of_groups

#: Items that are searched at most, however long that may take.
MOST = 2**24
Metric = Literal["cosine", "euclidean"]


@final
class Pair(NamedTuple):
    """Two items, the smaller number first, and their similarity."""

    first: int
    second: int
    similarity: float


@final
@dataclass(frozen=True, eq=False, repr=False)
class NearDuplicates:
    """The near-duplicates among n items.

    pairs:          (p, 2) items that are near-duplicates, each pair once, the smaller number first,
                    sorted. An item with the same row as an earlier one is in one pair only, with
                    the first item of that row. After about a million pairs, only those that join
                    two groups are added.
    similarities:   (p,) of these pairs.
    representative: (n,) the first item of each item's group; itself if it has no near-duplicate.
                    A group is all that chains of near-duplicates connect, so that two of its items
                    may be less similar than `above`.
    searched:       items that were compared with each other: n, unless these are too many at once.
    closest:        the most similar of `pairs`. If there are none, the most similar pair that was
                    seen (another one below `above` may be closer), or None if none was.
    above, metric:  as given.
    """

    pairs: IntArray
    similarities: FloatArray
    representative: IntArray
    searched: int
    closest: Pair | None
    above: float
    metric: Metric

    def keep(self) -> IntArray:
        """Return the numbers of the items to keep, the first of each group, sorted."""
        return np.flatnonzero(self.representative == np.arange(self.representative.size))

    def __repr__(self) -> str:
        n, count = self.representative.size, int(np.unique(self.pairs).size)
        text = f"{count:,}" if count else "none"
        text += f" of {counted(n, 'item')} {'have' if count else 'has'}"
        similarity = "cosine" if self.metric == "cosine" else "similarity"
        text += f" a near-duplicate ({similarity} above {self.above:.10g})"
        if not count and self.closest is not None:
            first, second, value = self.closest
            text += f"; the closest pair seen is {first} and {second} ({value:.3f})"
        return text if self.searched == n else f"{text}; {self.searched:,} items were searched"


def near_duplicates(X: Any, above: float = 0.995, *, metric: Metric = "cosine") -> NearDuplicates:
    """Return the pairs of items that are almost the same, and their groups.

    X:       (n, d) features in any form that `diversify` takes, dense or sparse.
    above:   the similarity that near-duplicates have at least, above 0 and at most 1.
    metric:  "cosine": similarity is the cosine of two rows as given. Rows of zeros are
             near-duplicates of each other only. "euclidean": it is exp(-d² / m) as in `select`,
             where d is the distance of two rows and m the median squared distance among 40 items.

    The result is exact for all pairs, up to rounding in float64. The time grows with n², but few
    pairs are compared: 60,000 images take seconds. A search of more than a minute is announced;
    pass a part of the rows if it takes too long. The memory grows with n: of rows that do not fit,
    a part is searched, evenly spaced, with a warning. See also `select`.

    >>> X = [[1.0, 0.0], [0.0, 1.0], [2.0, 0.0], [0.01, 1.0], [1.0, 1.0]]
    >>> found = near_duplicates(X)
    >>> found
    4 of 5 items have a near-duplicate (cosine above 0.995)
    >>> found.pairs.tolist(), found.representative.tolist()
    ([[0, 2], [1, 3]], [0, 1, 0, 1, 4])
    >>> found.keep()  # one of each group
    array([0, 1, 4])
    """
    as_choice(metric, "metric", get_args(Metric))
    above = as_positive(as_fraction(above, "above"), "above")
    F = as_features(X, allow_tiny=metric == "cosine")
    most = MOST if F.sparse_rows else min(MOST, F.readable_rows(memory_limit() // (16 * F.d)))
    found = duplicates_among(F, above, metric, most)
    if found.searched < F.n:
        warn_kernel(
            f"{found.searched:,} of {F.n:,} items, evenly spaced, were searched for "
            f"near-duplicates: more are too many at once"
        )
    return found


def duplicates_among(F: Features, above: float, metric: Metric, most: int) -> NearDuplicates:
    """Return the near-duplicates among at most so many items, evenly spaced."""
    scale, similarity = _similarity(F, metric)
    limit, items = _farthest(similarity, above), evenly_spaced(F.n, max(2, most))
    X = F.to_memory().matrix if items.size == F.n else F.take(items)
    pairs, squares, groups, nearest = _find(X, scale, limit)
    representative, closest = np.arange(F.n), None
    representative[items] = items[groups]
    if nearest is not None:
        one, other, square = nearest
        closest = Pair(int(items[one]), int(items[other]), float(similarity(square)))
    return NearDuplicates(
        items[pairs], similarity(squares), representative, items.size, closest, above, metric
    )


def _similarity(F: Features, metric: Metric) -> tuple[float | None, Callable[[Any], Any]]:
    """Return a factor for rows, None for length 1, and the similarity as a function of d².

    The factor is a power of 2, which rounds no number, and makes m of exp(-d² / m) about 1.
    """
    if metric == "cosine":
        return None, lambda squares: 1 - squares / 2
    square = median_square(F)
    scale = 2.0 ** -round(np.log2(square) / 2)
    return scale, lambda squares: np.exp(squares / -(square * scale * scale))


def _farthest(similarity: Callable[[Any], Any], above: float) -> float:
    """Return the largest squared distance at which the similarity is at least `above`."""
    low, high = 0.0, 1.0
    while similarity(high) >= above:
        high *= 2
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if similarity(middle) >= above else (low, middle)
    return low


def _find(
    X: Matrix, scale: float | None, limit: float
) -> tuple[IntArray, FloatArray, IntArray, tuple[int, int, float] | None]:
    """Return the pairs of rows, times `scale` or of length 1, with |u - v|² <= limit.

    Also returned are their squared distances, the first row of each row's group, and the closest
    pair. Equal rows are one row in the search. Where rows have length 1, those of zeros are
    left out.
    """
    n = X.shape[0]
    X, factors, empty = _units(X) if scale is None else (X, np.full(n, scale), np.zeros(n, bool))
    rows = Rows(X, factors)
    first, closest = _first_copies(rows), None
    first[empty] = np.argmax(empty)
    copies, distinct = (np.flatnonzero(each) for each in (first != np.arange(n), ~empty))
    distinct = np.setdiff1d(distinct, copies, assume_unique=True)
    pairs, squares = np.column_stack([first[copies], copies]), np.zeros(copies.size)
    if distinct.size > 1:
        search = Search(rows, distinct, limit)
        search.run()
        pairs, closest = np.concatenate([pairs, *search.pairs]), search.closest
        squares = np.concatenate([squares, *search.squares])
    order = np.lexsort(pairs.T[::-1])
    pairs, squares = pairs[order], squares[order]
    if squares.size:
        best = int(np.argmin(squares))
        closest = *pairs[best].tolist(), float(squares[best])
    return pairs, squares, first_of_groups(pairs, np.arange(n)), closest


def _units(X: Matrix) -> tuple[Matrix, FloatArray, BoolArray]:
    """Return X, the factors that make the length of its rows 1, and which rows are zero."""
    lengths, stretch = row_lengths(X)
    empty = lengths == 0
    with np.errstate(over="ignore"):
        factors = stretch / np.where(empty, 1.0, lengths)
    if np.isinf(factors).any():  # the shortest rows need more than one factor
        return Normalize()(X), np.ones(X.shape[0]), empty
    return X, factors, empty


def _first_copies(rows: Rows) -> IntArray:
    """Return for each row the first one that equals it."""
    step = rows.at_a_time(PROJECTED)
    parts = (rows.X[at : at + step] + 0.0 for at in range(0, rows.X.shape[0], step))  # no -0.0
    hashes = np.concatenate([row_hashes(part) for part in parts])
    _, index, inverse = np.unique(hashes, return_index=True, return_inverse=True)
    first = index[inverse.ravel()]
    copies = np.flatnonzero(first != np.arange(first.size))
    differ = copies[rows.squares(copies, first[copies]) > 0]  # rows that have a hash in common
    first[differ] = differ
    return first
