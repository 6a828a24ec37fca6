"""Medoids: k-means with loops chooses the same cells and items; best first; what is given stays."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import dmsgd
from dmsgd.selection import medoids as module
from dmsgd.selection import pool
from dmsgd.selection.medoids import ROUNDS, shortened

RNG = np.random.default_rng(0)
X = np.concatenate([RNG.normal(size=(120, 3)) * size + 4 * at for at, size in enumerate((1, 2, 1))])
Q = RNG.random(len(X))


def squares(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    return ((A[:, None] - B) ** 2).sum(2)


def by_hand(q: np.ndarray, k: int, given: list[int], barred: list[int]) -> set[int]:
    """Return the medoids, with loops; the covering set is that of `select`."""
    Z = X - X.mean(0)
    lengths = np.sqrt((Z**2).sum(1))
    for row, length in enumerate(lengths):
        Z[row] *= min(1, np.median(lengths) / length)
    wishes: dict[str, Any] = {"quality": q, "given": given, "exclude": barred}
    centres = Z[[*given, *dmsgd.select(Z, k, **wishes)]]
    m = dmsgd.select(X, k, **wishes, details=True).m
    for _ in range(ROUNDS):
        own = squares(Z, centres).argmin(1)
        for cell in range(len(given), len(centres)):
            if q[own == cell].sum():
                centres[cell] = np.average(Z[own == cell], axis=0, weights=q[own == cell])
    found = set()
    for cell in range(len(given), len(centres)):
        inside = np.flatnonzero(own == cell)
        sums = {
            i: q[i] * q[inside] @ np.exp(-4 * squares(X[[i]], X[inside])[0] / m)
            for i in inside.tolist() if i not in barred
        }  # fmt: skip
        found.add(max(sums, key=sums.__getitem__))
    return found


@pytest.mark.parametrize("k", [1, 4, 15])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("given", [[], [5, 300]])
def test_medoids_are_the_best_of_each_cell(k: int, weighted: bool, given: list[int]) -> None:
    q, barred = Q if weighted else np.ones(len(X)), [*range(40), *given]
    found = dmsgd.select(X, k, quality=q, given=given, exclude=barred, how="medoids")
    assert set(found.tolist()) == by_hand(q, k, given, barred)


@pytest.mark.parametrize("given", [[], [5, 300]])
def test_medoids_come_best_first(given: list[int]) -> None:
    found = dmsgd.select(X, 12, quality=Q, given=given, how="medoids", details=True)
    assert (
        found.items.tolist() == dmsgd.select(X, 12, quality=Q, given=given, how="medoids").tolist()
    )
    S = np.exp(squares(X, X) / -found.m)
    covered, left = S[given].max(0, initial=0.0), found.items.tolist()
    for item, gain in zip(found.items.tolist(), found.gains, strict=True):
        gains = {i: Q @ np.maximum(S[i] - covered, 0) for i in left}
        assert Q[item] * gains[item] == pytest.approx(max(Q[i] * gains[i] for i in left))
        assert gain == pytest.approx(gains[item] / Q.sum(), abs=1e-6)
        covered = np.maximum(covered, S[item])
        left.remove(item)


def test_they_cover_about_as_much_as_a_covering_set() -> None:
    ours, theirs = (dmsgd.select(X, 12, how=how, details=True) for how in ("medoids", "cover"))
    assert ours.m == theirs.m
    assert ours.coverage[-1] > 0.97 * theirs.coverage[-1]


def test_rows_are_no_longer_than_the_median_of_those_that_are_not_zero() -> None:
    rows = np.array([[3.0, 4.0], [0.0, 0.0], [0.6, 0.8], [0.0, 2.0], [0.0, 0.0]])
    expected = np.array([[0.6, 0.8], [0.0, 0.0], [0.3, 0.4], [0.0, 1.0], [0.0, 0.0]])
    np.testing.assert_allclose(shortened(sparse.csr_array(rows)).toarray(), expected)
    Z = X - X.mean(0)
    lengths = np.linalg.norm(Z, axis=1)
    short = shortened(X)
    assert np.linalg.norm(short, axis=1).max() == pytest.approx(1)
    inside = lengths <= np.median(lengths)
    np.testing.assert_allclose(short[inside], Z[inside] / np.median(lengths))
    assert not shortened(np.ones((3, 2))).any()


@pytest.mark.parametrize("size", [1, 700, 10**6])
def test_items_do_not_depend_on_blocks_or_threads(
    size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = dmsgd.select(X, 9, quality=Q, how="medoids").tolist()
    assert dmsgd.select(X, 9, quality=Q, how="medoids", workers=2).tolist() == expected
    for each in (module, pool):
        monkeypatch.setattr(each, "AT_A_TIME", size)
    assert dmsgd.select(X, 9, quality=Q, how="medoids").tolist() == expected


def test_large_cells_are_compared_with_a_part_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = dmsgd.select(X, 3, how="medoids")
    monkeypatch.setattr(module, "MOST", 40)
    S = np.exp(squares(X, X) / -dmsgd.select(X, 3, details=True).m)
    assert (S[np.ix_(dmsgd.select(X, 3, how="medoids"), expected)].max(1) > 0.9).all()


def test_sparse_rows_and_unit_rows() -> None:
    rows = X - X.mean(0)  # sparse ones are not centred
    expected = dmsgd.select(rows, 9, how="medoids").tolist()
    assert dmsgd.select(sparse.csr_array(rows), 9, how="medoids").tolist() == expected
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    cosine = dmsgd.select(X, 9, how="medoids", metric="cosine")
    assert cosine.tolist() == dmsgd.select(unit, 9, how="medoids").tolist()


@pytest.mark.parametrize("factor", [1e-100, 1e-12, 1e12, 1e140])
def test_units_do_not_matter(factor: float) -> None:
    expected = dmsgd.select(X, 9, quality=Q, how="medoids").tolist()
    assert dmsgd.select(factor * X, 9, quality=Q, how="medoids").tolist() == expected
    assert dmsgd.select(X, 9, quality=factor * Q, how="medoids").tolist() == expected


def test_one_row_far_away_changes_nothing_but_its_own_cell() -> None:
    rows = np.append(X, [[1e9, 0.0, 0.0]], axis=0)
    found = dmsgd.select(rows, 12, how="medoids", exclude=[len(X)])
    assert found.size == np.unique(found).size == 12


def test_copies_are_chosen_only_if_nothing_else_is_left() -> None:
    rows = np.repeat(X[:4], 5, axis=0)
    assert len(np.unique(rows[dmsgd.select(rows, 4, how="medoids")], axis=0)) == 4
    with pytest.warns(match="only 4 of 7 items"):
        found = dmsgd.select(rows, 7, how="medoids", details=True)
    assert len(set(found.items.tolist())) == 7
    np.testing.assert_allclose(found.gains[4:], 0, atol=1e-12)
    with pytest.warns(match="only 1 of 3 items"):
        assert len(set(dmsgd.select(np.ones((5, 2)), 3, how="medoids").tolist())) == 3


def test_rows_that_are_shortened_to_the_same_are_still_distinct() -> None:
    rows = np.append(np.arange(-8.0, 9.0), np.zeros(3))[:, None]  # half of them become -1 and 1
    found = dmsgd.select(rows, 17, how="medoids")
    assert sorted(rows[found, 0].tolist()) == list(range(-8, 9))


def test_items_of_quality_0_and_excluded_ones_are_left_out() -> None:
    q = np.where(np.arange(len(X)) < 30, 1.0, 0.0)
    found = dmsgd.select(X, 9, quality=q, exclude=range(10), how="medoids")
    assert set(found.tolist()) <= set(range(10, 30))
    with pytest.warns(match="quality above 0"):
        assert dmsgd.select(X, 21, quality=q, exclude=range(10), how="medoids").size == 21
    with pytest.raises(ValueError, match="ask for at most 5"):
        dmsgd.select(X, 9, exclude=range(len(X) - 5), how="medoids")


@pytest.mark.parametrize(
    "wish",
    [{"until": 0.9}, {"duplicates": 0.9}, {"cover": X[:9]}, {"groups": Q > 0.5, "at_most": 9}],
)
def test_other_wishes_need_a_covering_set(wish: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="needs how='cover'"):
        dmsgd.select(X, 9, how="medoids", **wish)


def test_similarities_and_no_k_are_refused() -> None:
    with pytest.raises(ValueError, match="rows of features"):
        dmsgd.select(np.eye(9), 3, how="medoids", metric="precomputed")
    with pytest.raises(ValueError, match="how many"):
        dmsgd.select(X, how="medoids")


def test_nothing_is_left_where_free_items_have_quality_0() -> None:
    q = np.where(np.arange(len(X)) < 30, 1.0, 0.0)
    for given in ([], [3]):
        with pytest.warns(match="quality above 0"):
            found = dmsgd.select(X, 5, quality=q, given=given, exclude=range(30), how="medoids")
        assert found.tolist() == [30, 31, 32, 33, 34]


def test_the_copy_of_shortened_rows_is_announced_and_the_only_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = RNG.normal(size=(20_000, 50))
    tracemalloc.start()
    shortened(rows)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1.3 * rows.nbytes
    monkeypatch.setenv("DMSGD_MEMORY", "8MB")
    with pytest.raises(MemoryError, match="shortened"):
        dmsgd.select(rows, 2, how="medoids")


def test_a_dask_array_is_read_into_memory() -> None:
    array = pytest.importorskip("dask.array")
    found = dmsgd.select(array.from_array(X, chunks=(100, 3)), 9, how="medoids")
    assert found.tolist() == dmsgd.select(X, 9, how="medoids").tolist()
