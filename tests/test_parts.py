"""`select` of features in blocks and on Dask: two rounds, held to brute force, with every wish."""

import _thread
import threading
import warnings
from itertools import pairwise

import numpy as np
import pytest

import dmsgd
from dmsgd.features import as_features
from dmsgd.features.blocks import in_blocks
from dmsgd.selection import parts
from dmsgd.selection.coverage import Draws
from dmsgd.selection.parts import pool_of_blocks
from dmsgd.selection.pool import RowPool
from test_features import dask_sparse, memory_map, npy, parquet, sparse_folder, zarr_file

N, D, ROWS = 330, 5, 60


@pytest.fixture
def rng():
    return np.random.default_rng(3)


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Files are in blocks of 60 rows, and the last round has a sample of 100."""
    monkeypatch.setattr("dmsgd.runtime.memory.LARGE", 0)
    monkeypatch.setattr("dmsgd.features.readers.BLOCK_BYTES", ROWS * D * 8)
    monkeypatch.setattr(parts, "SAMPLE", 100)
    monkeypatch.setattr(parts, "EACH", 1)


def points(rng, n=N):
    """Return groups of points, in order, so that blocks differ."""
    return rng.normal(size=(n, D)) + np.repeat(rng.normal(size=(6, D)) * 2, -(-n // 6), axis=0)[:n]


def similarities(X, Y, square):
    return np.exp(-((X[:, None] - Y[None]) ** 2).sum(-1) / square)


def greedy(S, worth, demand, k, covered=0.0, closed=()):
    """Return the greedy set of rows of S, by brute force."""
    items, covered = [], np.zeros(S.shape[1]) + covered
    for _ in range(k):
        values = worth * (np.maximum(S - covered, 0) @ demand)
        values[[*closed, *items]] = -1.0
        if values.max() < 1e-6:
            break
        items.append(int(values.argmax()))
        covered = np.maximum(covered, S[items[-1]])
    return items


def two_rounds(X, bounds, k, square, q, given=(), closed=()):
    """Return the set of k items that two rounds choose, written out."""
    begun, union = similarities(X, X[list(given)], square).max(1, initial=0.0), []
    for first, last in pairwise(bounds):
        S = similarities(X[first:last], X[first:last], square)
        own = [item - first for item in (*given, *closed) if first <= item < last]
        part = slice(first, last)
        union += sorted(first + i for i in greedy(S, q[part], q[part], k, begun[part], own))
    numbers, counts = Draws(q).between(0, 100)
    S = similarities(X[union], X[numbers], square)
    return [union[item] for item in greedy(S, q[union], counts, k, begun[numbers])]


def coverage(X, items, square, q=None):
    return np.average(similarities(X, X[items], square).max(1), weights=q)


def dask_array(X, folder):
    return pytest.importorskip("dask.array").from_array(X, chunks=((50, 0, 1, 130, 149), (2, 3)))


KINDS = {
    "npy": npy,
    "memory map": memory_map,
    "zarr": zarr_file,
    "parquet": parquet,
    "large array": lambda X, folder: in_blocks(X),
    "dask": dask_array,
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("wishes", ["none", "quality", "given"])
def test_the_set_is_that_of_two_rounds(rng, tmp_path, kind, wishes):
    X, q, options = points(rng), np.ones(N), {}
    if wishes != "none":
        q = options["quality"] = rng.uniform(0.1, 1, size=N)
        q /= q.max()
    if wishes == "given":
        options |= {"given": [3, 70, 71, 200], "exclude": range(100, 110)}
    F = as_features(KINDS[kind](X, tmp_path))
    assert F.bounds.size > 3
    found = dmsgd.select(F, 9, details=True, **options)
    square = dmsgd.select(X, 9, details=True, **options).m
    assert found.m == pytest.approx(square)
    both = options.get("given", ()), options.get("exclude", ())
    assert found.items.tolist() == two_rounds(X, F.bounds.tolist(), 9, square, q, *both)
    assert dmsgd.select(F, 9, workers=2, **options).tolist() == found.items.tolist()
    assert dmsgd.select(F, 4, **options).tolist() == two_rounds(
        X, F.bounds.tolist(), 4, square, q, *both
    )


def test_equal_parts_give_equal_sets(rng, tmp_path):
    da = pytest.importorskip("dask.array")
    X, q = points(rng), rng.uniform(size=N)
    file = as_features(npy(X, tmp_path))
    array = as_features(da.from_array(X, chunks=(tuple(np.diff(file.bounds)), (2, D - 2))))
    options = {"quality": q, "given": [5, 100], "groups": np.arange(N) % 7, "at_most": 3}
    one, other = (dmsgd.select(F, 15, details=True, **options) for F in (file, array))
    assert one.items.tolist() == other.items.tolist()
    assert one.coverage == pytest.approx(other.coverage, rel=1e-12)


@pytest.mark.parametrize("form", [sparse_folder, dask_sparse])
def test_sparse_blocks_give_the_set_of_dense_ones(rng, tmp_path, form, monkeypatch):
    monkeypatch.setattr("test_features.N", N)
    monkeypatch.setattr("test_features.D", D)
    monkeypatch.setattr("dmsgd.features.readers.BLOCK_BYTES", 5000)
    X = np.where(rng.random((N, D)) < 0.5, points(rng), 0.0)
    X[~X.any(1)] = 1.0
    F, q = as_features(form(X, tmp_path)), rng.uniform(size=N)
    assert F.sparse_rows
    unit = X / np.linalg.norm(X, axis=1)[:, None]
    for options, metric in (({}, "euclidean"), ({"quality": q, "given": [3, 9]}, "cosine")):
        dense = in_blocks(X if metric == "euclidean" else unit)
        dense.bounds = F.bounds
        one = dmsgd.select(F, 12, metric=metric, details=True, **options)
        other = dmsgd.select(dense, 12, details=True, **options)
        assert one.items.tolist() == other.items.tolist()
        assert one.coverage == pytest.approx(other.coverage)


def test_few_items_are_read_whole(rng, tmp_path, monkeypatch):
    X = points(rng)
    F = as_features(npy(X, tmp_path))
    two = dmsgd.select(F, 20, details=True)
    monkeypatch.setattr(parts, "SAMPLE", N)
    one, direct = dmsgd.select(F, 20), dmsgd.select(X, 20)
    assert one.tolist() == direct.tolist()
    assert two.items.tolist() != direct.tolist()
    aim, random = (
        coverage(X, direct, two.m),
        [rng.choice(N, 20, replace=False) for _ in "abcde"],
    )
    least = np.mean([coverage(X, items, two.m) for items in random])
    assert two.coverage[-1] > least + 0.8 * (aim - least)


def test_groups_in_one_part_survive(rng, tmp_path):
    X = points(rng)
    groups = np.where(np.isin(np.arange(N), [61, 63, 65, 311]), "rare", "common")
    groups[::2] = "even"
    F = as_features(npy(X, tmp_path))
    least = {"rare": 2, "common": 3}
    found = dmsgd.select(F, 12, groups=groups, at_least=least, at_most={"even": 4})
    counts = {name: int((groups[found] == name).sum()) for name in ("rare", "common", "even")}
    assert counts["rare"] >= 2
    assert counts["common"] >= 3
    assert counts["even"] <= 4
    assert found.size == 12
    some = dmsgd.select(F, 7, groups=groups, at_most=5, given=[0, 2, 4, 6])
    assert (groups[some] == "even").sum() <= 1


@pytest.mark.parametrize("why", ["quality", "copies", "cover"])
def test_groups_whose_items_add_nothing_keep_their_places(rng, tmp_path, why):
    X, groups, more = points(rng), np.where(np.arange(N) < 4, "rare", "usual"), {}
    if why == "quality":
        more["quality"] = (groups == "usual").astype(float)
    elif why == "copies":
        X[:4], more["given"] = X[300], [300]
    else:
        X[:4], more["cover"] = X[:4] + 1e4, rng.normal(size=(7, D))
    for F in (X, as_features(npy(X, tmp_path))):
        with pytest.warns(dmsgd.KernelWarning, match="quality"):
            found = dmsgd.select(F, 3, groups=groups, at_least={"rare": 1}, **more)
        assert groups[found].tolist() == ["usual", "usual", "rare"]


def test_until_and_at_least_hold_together(rng, tmp_path):
    X, groups = points(rng), np.where(np.arange(N) < 9, "rare", "usual")
    F = as_features(npy(X, tmp_path))
    found = dmsgd.select(F, 40, groups=groups, at_least={"rare": 5}, until=0.4)
    assert (groups[found] == "rare").sum() == 5
    assert found.size < 20
    with pytest.warns(dmsgd.KernelWarning, match="until"):
        dmsgd.select(F, groups=groups, at_most=2, until=0.9)


def test_what_lies_far_from_all_blocks_is_covered_by_the_nearest(rng, tmp_path):
    X = points(rng)
    rows = np.repeat(X[[3, 200]] + 300, 5, axis=0) + rng.normal(size=(10, D))
    F, expected = as_features(npy(X, tmp_path)), dmsgd.select(X, 1, cover=rows, details=True)
    found = dmsgd.select(F, 1, cover=rows, details=True)
    assert found.items.tolist() == expected.items.tolist()
    assert found.m == pytest.approx(expected.m)


def test_rows_in_memory_stay_there_for_the_cosine(rng):
    pandas = pytest.importorskip("pandas")
    X = points(rng)
    unit = pandas.DataFrame(X / np.linalg.norm(X, axis=1, keepdims=True))
    found = dmsgd.select(pandas.DataFrame(X), 9, metric="cosine", details=True)
    assert isinstance(found._pool, RowPool)
    assert found.items.tolist() == dmsgd.select(unit, 9).tolist()


def test_a_scale_that_is_given_is_kept(rng, tmp_path):
    X = points(rng)
    F, Y = as_features(npy(X, tmp_path)), X[:40] + 0.5
    for options in ({"given": [3, 200]}, {"cover": Y}, {"until": 0.5}):
        found = dmsgd.select(F, 9, m=2.5, details=True, **options)
        assert found.m == 2.5
    expected = two_rounds(X, F.bounds.tolist(), 9, 2.5, np.ones(N), [3, 200])
    assert dmsgd.select(F, 9, m=2.5, given=[3, 200]).tolist() == expected


def test_a_budget_is_kept(rng, tmp_path):
    X, costs = points(rng), rng.uniform(0.5, 2, size=N)
    F = as_features(npy(X, tmp_path))
    found = dmsgd.select(F, costs=costs, budget=9.0, details=True)
    assert found.spent == pytest.approx(costs[found.items].sum())
    assert 8 < found.spent <= 9
    direct = dmsgd.select(X, costs=costs, budget=9.0, details=True)
    assert found.coverage[-1] > 0.95 * direct.coverage[-1]
    assert dmsgd.select(F, 3, costs=costs, budget=9.0).size == 3


def test_until_ends_the_set(rng, tmp_path):
    X = points(rng)
    F = as_features(npy(X, tmp_path))
    for share in (0.5, 0.7, 0.9):
        found, direct = (dmsgd.select(each, until=share, details=True) for each in (F, X))
        assert found.coverage[-1] > share - 0.04  # of a sample of 100
        assert found.coverage[-2] < share + 0.04
        assert len(found) <= 1.5 * len(direct) + 2
    assert len(dmsgd.select(F, 3, until=0.9)) == 3
    assert len(dmsgd.select(F, until=0.3, given=np.arange(0, N, 2))) == 0


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_near_duplicates_are_not_chosen(rng, tmp_path, metric):
    X = np.tile(points(rng, 30), (11, 1)) + 1e-3 * rng.normal(size=(N, D))  # copies in other parts
    F = as_features(npy(X, tmp_path))
    with pytest.warns(dmsgd.KernelWarning, match="of 50"):
        found = dmsgd.select(F, 50, duplicates=0.995, metric=metric)
    assert len(set(found % 30)) == len(found) >= 25
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        some = dmsgd.select(F, 15, duplicates=0.995, metric=metric, given=[0, 31])
    assert len({*(some % 30), 0, 1}) == 17


@pytest.mark.parametrize("many", [False, True])
def test_another_set_is_covered(rng, tmp_path, many):
    X, Y = points(rng), rng.normal(size=(150 if many else 80, D)) + 1
    w, q = rng.uniform(0.1, 1, size=len(Y)), rng.uniform(0.1, 1, size=N)
    F = as_features(npy(X, tmp_path))
    found = dmsgd.select(F, 8, cover=(Y, w), quality=q, details=True)
    S = similarities(X, Y, found.m)
    assert found.coverage[-1] == pytest.approx(S[found.items].max(0) @ w / w.sum())
    numbers, counts = Draws(w / w.max()).between(0, 100) if many else (np.arange(80), w)
    union = []
    for first, last in pairwise(F.bounds.tolist()):
        some = greedy(S[first:last][:, numbers], q[first:last], counts, 8)
        union += sorted(first + item for item in some)
    last = greedy(S[union], q[union], w, 8)
    assert found.items.tolist() == [union[item] for item in last]
    assert "8 items cover" in repr(found)


def test_details_are_of_all_items(rng, tmp_path):
    X, q, given = points(rng), rng.uniform(size=N), [5, 80]
    for F in (as_features(npy(X, tmp_path)), as_features(dask_array(X, tmp_path))):
        found = dmsgd.select(F, 10, quality=q, given=given, details=True)
        S = similarities(X, X, found.m)
        everyone = [*given, *found.items]
        assert found.similarity == pytest.approx(S[everyone].max(0), abs=1e-9)
        assert found.nearest.tolist() == S[everyone].argmax(0).tolist()
        for k in (0, 4, 10):
            assert found.coverage[k] == pytest.approx(q @ S[everyone[: k + 2]].max(0) / q.sum())
        assert found.stands_for.sum() == pytest.approx((q / q.max())[found.nearest >= 2].sum())
        assert found.head(4).coverage == pytest.approx(found.coverage[:5])
        free = np.setdiff1d(np.arange(N), given)
        more = [rng.permutation(free)[: found.like_random] for _ in range(20)]
        mean = np.mean([coverage(X, [*given, *items], found.m, q) for items in more])
        assert mean == pytest.approx(found.coverage[-1], abs=0.03)


@pytest.mark.parametrize("wishes", [{}, {"quality": True}, {"groups": True}, {"cover": True}])
def test_candidates_that_are_too_many_are_a_part(rng, tmp_path, monkeypatch, wishes):
    X = points(rng)
    options = {"quality": rng.uniform(size=N)} if "quality" in wishes else {}
    if "groups" in wishes:
        options |= {"groups": np.arange(N) // 30, "at_least": {0: 2, 10: 2}, "at_most": 3}
    if "cover" in wishes:
        options["cover"] = rng.normal(size=(70, D))
    F = as_features(npy(X, tmp_path))
    free = dmsgd.select(F, 10, details=True, **options)
    seen = []

    def counted(parts_of_it, *rest):
        seen.append(sum(part.numbers.size for part in parts_of_it))
        return choose(parts_of_it, *rest)

    choose, whole = parts._choose_of_all, parts.PartsPool
    monkeypatch.setattr(parts, "_choose_of_all", counted)
    monkeypatch.setattr(parts, "PartsPool", lambda *all_: whole(*all_[:5], 25, *all_[6:]))
    found = dmsgd.select(F, 10, details=True, **options)
    assert max(seen) <= 35
    assert len(seen) > 1
    assert found.coverage[-1] > 0.93 * free.coverage[-1]
    if "groups" in wishes:
        counts = np.bincount(options["groups"][found.items], minlength=11)
        assert counts[[0, 10]].min() >= 2
        assert counts.max() <= 3


def test_parts_that_have_nothing_to_choose(rng, tmp_path):
    X = points(rng)
    X[:60], X[60:120] = 0.0, X[120]
    q = np.where(np.arange(N) < 240, 1.0, 0.0)
    F = as_features(npy(X, tmp_path))
    barred = np.arange(125, 180)
    found = dmsgd.select(F, 30, quality=q, exclude=barred)
    assert found.max() < 240
    assert not np.isin(found, barred).any()
    assert len(set(map(tuple, X[found]))) == 30
    with pytest.warns(dmsgd.KernelWarning, match="distinct"):
        found = dmsgd.select(F, 100, quality=q, exclude=barred)
    assert len(set(found.tolist())) == 100


def test_a_file_that_changes_between_passes_is_refused(rng, tmp_path):
    F = as_features(npy(points(rng), tmp_path))
    dmsgd.select(F, 3)
    np.save(tmp_path / "x.npy", points(rng))
    with pytest.raises(ValueError, match="changed"):
        dmsgd.select(F, 3)


def test_it_takes_little_memory(rng, tmp_path, monkeypatch):
    monkeypatch.undo()
    X = rng.normal(size=(40_000, 16))
    np.save(tmp_path / "x.npy", X)
    monkeypatch.setenv("DMSGD_MEMORY", "4.5MB")  # all rows take 4.9
    for given in (tmp_path / "x.npy", np.load(tmp_path / "x.npy", mmap_mode="r")):
        found = dmsgd.select(given, 5, details=True)
        assert found.coverage[-1] > 0.2
        with pytest.raises(MemoryError, match="DMSGD_MEMORY"):
            dmsgd.select(given, 5, how="greedy")
    assert isinstance(pool_of_blocks(as_features(given), None, found.items, 5, 1), parts.PartsPool)


def test_an_interrupt_is_heard_at_once(rng, tmp_path, monkeypatch):
    monkeypatch.setattr("dmsgd.features.readers.BLOCK_BYTES", 2**22)
    X = rng.normal(size=(40_000, 40))
    F = as_features(npy(X, tmp_path))
    assert F.bounds.size > 3
    dmsgd.select(F, 2)  # compiles
    timer = threading.Timer(0.7, _thread.interrupt_main)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        dmsgd.select(F, 2000)  # a minute of work
    timer.join()
