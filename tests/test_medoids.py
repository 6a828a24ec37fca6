"""Medoids: each is the best of its k-means cell by enumeration, best first; what is given stays."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import dmsgd
from dmsgd.features import as_features
from dmsgd.selection.medoids import best_of_cells
from dmsgd.selection.pool import RowPool

RNG = np.random.default_rng(0)
X = np.concatenate([RNG.normal(size=(120, 3)) * size + 4 * at for at, size in enumerate((1, 2, 1))])
Q = RNG.random(len(X))


def squares(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    return ((A[:, None] - B) ** 2).sum(2)


def by_hand(begin: np.ndarray, q: np.ndarray, m: float, closed: list[int], fixed: int) -> set[int]:
    """Return the best of each cell of k-means, with loops."""
    centres = X[begin].copy()
    for _ in range(30):
        own = squares(X, centres).argmin(1)
        for cell in range(fixed, len(centres)):
            if q[own == cell].sum():
                centres[cell] = np.average(X[own == cell], axis=0, weights=q[own == cell])
    own, found = squares(X, centres).argmin(1), set()
    for cell in range(fixed, len(centres)):
        sums = {
            i: q[i] * sum(q[j] * np.exp(-4 * ((X[i] - X[j]) ** 2).sum() / m)
                          for j in np.flatnonzero(own == cell))
            for i in np.flatnonzero(own == cell) if i not in closed
        }  # fmt: skip
        found.add(int(max(sums, key=sums.get)))
    return found


@pytest.mark.parametrize("k", [1, 4, 15])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("given", [[], [5, 300]])
def test_medoids_are_the_best_of_each_cell(k: int, weighted: bool, given: list[int]) -> None:
    q, barred = Q if weighted else np.ones(len(X)), [*range(40), *given]
    first = dmsgd.select(X, k, quality=q, given=given, exclude=barred, details=True)
    found = dmsgd.select(X, k, quality=q, given=given, exclude=barred, how="medoids")
    begin = np.array([*given, *first.items], dtype=int)
    assert set(found.tolist()) == by_hand(begin, q, first.scale, barred, len(given))


def test_medoids_come_best_first_and_cover_more_than_greedy_sets() -> None:
    greedy = dmsgd.select(X, 12, details=True)
    found = dmsgd.select(X, 12, how="medoids")
    S = np.exp(squares(X, X) / -greedy.scale)
    covered, left = np.zeros(len(X)), found.tolist()
    for item in found:
        gains = {i: np.maximum(S[i] - covered, 0).sum() for i in left}
        assert gains[item] == pytest.approx(max(gains.values()))
        covered = np.maximum(covered, S[item])
        left.remove(item)
    assert covered.mean() > greedy.coverage[-1]


def test_an_empty_cell_keeps_its_item_and_no_other_cell_takes_it() -> None:
    rows = np.array([[0.0], [0.1], [0.2], [5.0]])
    pool = RowPool(as_features(rows), square=1.0)
    own, q, free = np.array([0, 0, 0, 2]), np.ones(4), np.ones(4, dtype=bool)
    found = best_of_cells(pool, q, free, np.array([0, 1, 3]), own)
    assert found.tolist() == [0, 1, 3]  # 1 would be the best of the first cell


def test_sparse_rows_and_workers_have_the_same_medoids() -> None:
    expected = dmsgd.select(X, 9, how="medoids").tolist()
    assert dmsgd.select(sparse.csr_array(X), 9, how="medoids").tolist() == expected
    assert dmsgd.select(X, 9, how="medoids", workers=2).tolist() == expected
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    cosine = dmsgd.select(X, 9, how="medoids", metric="cosine")
    assert cosine.tolist() == dmsgd.select(unit, 9, how="medoids").tolist()


def test_copies_are_chosen_only_if_nothing_else_is_left() -> None:
    rows = np.repeat(X[:4], 5, axis=0)
    assert len(np.unique(rows[dmsgd.select(rows, 4, how="medoids")], axis=0)) == 4
    with pytest.warns(match="only 4 of 7 items"):
        assert len(set(dmsgd.select(rows, 7, how="medoids").tolist())) == 7
