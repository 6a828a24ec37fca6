"""Groups, costs, coverage, duplicates of `select`: against brute force; and what it returns."""

import itertools
import warnings

import numpy as np
import pytest
from scipy import sparse

import dmsgd
from dmsgd.features.products import sampled_pairs
from dmsgd.selection.rules import Quotas, Rules
from test_selecting import compile_from, matrix


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def allowed(chosen, k, o, n, S):
    """Return which items every rule admits after those that are chosen: the rules, written out."""
    ok = np.ones(n, dtype=bool)
    ok[[*chosen, *o.get("given", ()), *o.get("exclude", ())]] = False
    if "costs" in o:
        ok &= o["costs"][chosen].sum() + o["costs"] <= o["budget"] + 1e-9
    if "groups" in o:
        groups, left = o["groups"], k - len(chosen)
        have = {g: sum(groups[i] == g for i in chosen) for g in set(groups)}
        known = {g: sum(groups[i] == g for i in o.get("given", ())) for g in set(groups)}
        need = {g: max(0, o.get("at_least", {}).get(g, 0) - have[g]) for g in have}
        for g in have:
            full = have[g] + known[g] >= o.get("at_most", {}).get(g, n)
            if full or (sum(need.values()) >= left and not need[g]):
                ok &= groups != g
    if "duplicates" in o:
        there = [*chosen, *o.get("given", ())]
        ok &= ~(S[there] > o["duplicates"]).any(0) if there else True
    return ok


def check(X, k, o, S, by_cost=False):
    """Each step of `select` has the largest value of all items that the rules admit."""
    n, chosen = len(X), []
    q = o.get("quality", np.ones(n))
    found = dmsgd.select(X, k, **o)
    covered = S[list(o.get("given", ()))].max(0, initial=0.0)
    price = o["costs"] if by_cost else 1.0
    for item in found.tolist():
        gains = np.maximum(S - covered, 0) @ q
        values = np.where(allowed(chosen, k or n, o, n, S), q * gains / price, -1.0)
        if values.max() < 1e-5:
            return found  # what is left is rounding: the scale is reduced from here on
        assert values[item] >= values.max() * (1 - 1e-5)
        chosen.append(item)
        covered = np.maximum(covered, S[item])
    return found


@pytest.mark.parametrize("small", [True, False])
def test_all_wishes_against_brute_force(rng, monkeypatch, small):
    if not small:
        compile_from(monkeypatch, 0)
        monkeypatch.setattr("dmsgd.selection.pool.KEPT", 0)
    for case in range(60):
        n, d = int(rng.integers(20, 41)), int(rng.integers(2, 20))  # all are in the sample of 40
        X, k, o = rng.normal(size=(n, d)), int(rng.integers(1, 12)), {}
        S = matrix(X)
        if case % 2:
            o["quality"] = rng.uniform(0.1, 1, size=n)
        if rng.random() < 0.3:
            o["exclude"] = rng.choice(n // 4, 4, replace=False) * 4 + 3
        if rng.random() < 0.5:
            o["groups"] = np.arange(n) % 4
            o["at_most"] = {g: int(rng.integers(3, 8)) for g in range(4)}
            if k >= 3:
                o["at_least"] = {0: 1, 1: 2}
        if rng.random() < 0.3:
            o["duplicates"] = 0.7
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", dmsgd.KernelWarning)
            found = check(X, k, o, S)
        if "groups" in o:
            counts = np.bincount(o["groups"][found], minlength=4)
            assert all(counts[g] <= o["at_most"][g] for g in range(4))
            if "duplicates" not in o:
                assert all(counts[g] >= least for g, least in o.get("at_least", {}).items())


def test_given_items_count_towards_at_most(rng):
    X, groups = rng.normal(size=(40, 3)), np.repeat(["a", "b"], 20)
    found = dmsgd.select(X, 6, groups=groups, at_most=5, given=[0, 1, 2])
    assert (groups[found] == "a").sum() <= 2
    found = dmsgd.select(X, 6, groups=groups, at_most={"a": 1})
    assert (groups[found] == "a").sum() <= 1


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_costs_of_any_size(rng):
    X, costs = rng.normal(size=(9, 2)), np.geomspace(1e-320, 1e300, 9)
    found = dmsgd.select(X, costs=costs, budget=1e300)
    assert sorted(found.tolist()) == list(range(9))
    assert dmsgd.select(X, costs=costs, budget=2e-320).tolist() == [0]


def test_a_budget_takes_the_better_of_two_greedy_sets(rng):
    for _ in range(20):
        X, costs = rng.normal(size=(12, 2)), rng.uniform(0.5, 2, 12)
        S = matrix(X)
        options = {"costs": costs, "budget": 4.0}
        chosen = dmsgd.select(X, details=True, **options)
        assert chosen.spent == pytest.approx(costs[chosen.items].sum())
        assert chosen.spent <= 4.0
        best = max(
            S[list(s)].max(0).sum()
            for size in range(1, 8)
            for s in itertools.combinations(range(12), size)
            if costs[list(s)].sum() <= 4.0
        )
        value = S[chosen.items].max(0).sum()
        assert value >= (1 - 1 / np.e) / 2 * best
        steps = []
        for price in (np.ones(12), costs):
            covered, items = np.zeros(12), []
            while True:
                values = np.maximum(S - covered, 0).sum(1) / price
                values[items] = -1
                values[costs[items].sum() + costs > 4.0] = -1
                if values.max() < 1e-6:
                    break
                items.append(int(values.argmax()))
                covered = np.maximum(covered, S[items[-1]])
            steps.append(covered.sum())
        assert value == pytest.approx(max(steps), rel=1e-5)
    assert len(dmsgd.select(X, 2, **options)) == 2


def greedy(S, costs, budget, k, price):
    """Return what a greedy set covers, by gain over price(money left, places left); its items."""
    covered, items, left = np.zeros(S.shape[1]), [], budget
    while len(items) < k:
        values = np.maximum(S - covered, 0).sum(1) / price(left, k - len(items))
        values[items] = -1
        values[costs > left + 1e-9] = -1
        if values.max() < 1e-6:
            break
        items.append(int(values.argmax()))
        left -= costs[items[-1]]
        covered = np.maximum(covered, S[items[-1]])
    return covered.sum(), items


@pytest.mark.parametrize("small", [True, False])
def test_places_and_a_budget_take_the_best_of_three_greedy_sets(rng, monkeypatch, small):
    if not small:
        compile_from(monkeypatch, 0)
        monkeypatch.setattr("dmsgd.selection.pool.KEPT", 0)
    thirds = 0
    for _ in range(40):
        n, k = 40, int(rng.integers(2, 9))
        X, costs = rng.normal(size=(n, 3)), np.exp(rng.normal(size=n))
        S, budget = matrix(X), float(k * rng.uniform(0.2, 1.5))
        ways = [
            lambda left, places: 1.0,
            lambda left, places, costs=costs: costs,
            lambda left, places, costs=costs: np.maximum(costs, left / places),
        ]
        tried = [greedy(S, costs, budget, k, price) for price in ways]
        ends = [len(items) for _, items in tried]
        tried = tried if ends[0] < k == ends[1] else tried[:2]
        chosen = dmsgd.select(X, k, costs=costs, budget=budget, details=True)
        assert len(chosen) <= k
        assert chosen.spent <= budget * (1 + 1e-9)
        best = max(value for value, _ in tried)
        assert S[chosen.items].max(0).sum() == pytest.approx(best, rel=1e-5)
        again = dmsgd.select(X, k, costs=costs, budget=budget)
        assert again.tolist() == chosen.items.tolist()
        thirds += best > 1.0001 * max(value for value, _ in tried[:2])
    assert thirds >= 5  # the third set is the best of them


def test_places_and_a_budget_beside_groups_given_items_and_quality(rng):
    n, k, budget = 60, 8, 8.0
    X, costs, groups = rng.normal(size=(n, 3)), np.exp(rng.normal(size=n)), np.arange(n) % 3
    options = {"groups": groups, "at_most": 4, "given": [0, 1], "quality": rng.random(n)}
    found = dmsgd.select(X, k, costs=costs, budget=budget, details=True, **options)
    assert len(found) == k
    assert found.spent <= budget
    assert np.bincount(groups[np.append(found.items, [0, 1])]).max() <= 4
    dear = np.flatnonzero(costs > budget / k)  # the plain way: a cut by cost
    cut = dmsgd.select(X, k, exclude=dear, details=True, **options)
    assert found.coverage[-1] > 0.99 * cut.coverage[-1]


def test_until_ends_the_set(rng):
    X = rng.normal(size=(200, 3))
    for share in (0.5, 0.8, 0.95):
        found = dmsgd.select(X, until=share, details=True)
        assert found.coverage[-1] >= share * (1 - 1e-6)
        assert found.coverage[-2] < share
        assert dmsgd.select(X, 200, until=share).tolist() == found.items.tolist()
    assert dmsgd.select(X, 3, until=0.99).size == 3
    assert dmsgd.select(X, until=0.2, given=np.arange(100)).size == 0
    begun = dmsgd.select(X, 1, given=[1, 2, 3], details=True).coverage[0]
    assert dmsgd.select(X, until=0.9 * begun, given=[1, 2, 3]).size == 0
    copies = np.repeat(X[:10], 3, axis=0)
    assert dmsgd.select(copies, until=1.0).size == 10


@pytest.mark.parametrize("form", ["small", "large", "sparse", "cosine", "cover", "quality"])
def test_rounds_with_one_scale_choose_what_one_call_chooses(rng, monkeypatch, form):
    X, options = rng.normal(size=(700, 6)) + np.repeat(rng.normal(size=(7, 6)) * 2, 100, axis=0), {}
    if form == "large":  # candidates are found by a sample
        monkeypatch.setattr("dmsgd.selection.coverage.WHOLE", 100)
        compile_from(monkeypatch, 0)
    elif form == "sparse":
        X = sparse.csr_array(np.where(abs(X) > 2, X, 0.0))
    elif form == "cosine":
        options["metric"] = "cosine"
    elif form == "cover":
        options["cover"] = X[:300] + 0.5
    elif form == "quality":
        options["quality"] = rng.uniform(0.1, 1.0, 700)
    whole = dmsgd.select(X, 30, details=True, **options)
    assert dmsgd.select(X, 30, m=whole.m, **options).tolist() == whole.items.tolist()
    first = whole.head(12)
    more = {"given": first.items, "m": whole.m, "details": True, **options}
    rest = dmsgd.select(X, 18, **more)
    assert rest.m == whole.m
    assert rest.coverage == pytest.approx(whole.coverage[12:], rel=1e-6)
    if form != "large":
        assert rest.items.tolist() == whole.items[12:].tolist()
        until = dmsgd.select(X, until=whole.coverage[-1] * (1 - 1e-5), **more)
        assert until.items.tolist() == rest.items.tolist()


@pytest.mark.parametrize("factor", [1e-4, 0.1, 30.0])
def test_scale_is_that_of_the_similarity(rng, factor):
    X = rng.normal(size=(40, 3))
    own = dmsgd.select(X, 1, details=True).m
    m, D = own * factor, ((X[:, None] - X) ** 2).sum(-1)
    S = np.exp(-D / m)
    for options in ({}, {"given": [1, 2]}, {"quality": rng.uniform(0.1, 1, 40)}):
        check(X, 12, {"m": m, **options}, S)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dmsgd.KernelWarning)  # few are so far apart
        apart = dmsgd.select(X, 40, m=m, duplicates=0.5)
    assert (D[apart][:, apart] + 9 * own * np.eye(apart.size)).min() >= own * np.log(2)
    found = dmsgd.select(X, 12, m=m, how="medoids", details=True)
    assert found.m == m
    assert found.coverage[-1] == pytest.approx(S[found.items].max(0).mean())


def test_m_that_rounding_hides_is_refused(rng):
    near = rng.normal(size=(4, 5))[np.arange(400) % 4] + 1e-4 * rng.normal(size=(400, 5))
    far = rng.normal(size=(300, 5)) + 1e4
    for X, options in (
        (near, {"m": 1e-7}),
        (near[:, :3], {"m": 5e-324}),
        (near, {"m": 1e-7, "how": "medoids"}),
        (sparse.csr_array(far), {"cover": far[:200]}),
        (sparse.csr_array(near + 9), {"m": 1e-6, "cover": near[:50]}),
    ):
        with pytest.raises(ValueError, match="rows are too far from"):
            dmsgd.select(X, 3, **options)
    assert dmsgd.select(far, 3, m=3.0).size == 3  # dense rows are centred
    outlier, many = rng.normal(size=(30, 4)), rng.normal(size=(2000, 8))
    outlier[7] += 5e4
    plain = dmsgd.select(many, 3, given=range(30), details=True).m
    many[sampled_pairs(2000)[0][3]] += 2e5
    assert dmsgd.select(many, 3, given=range(30), details=True).m == pytest.approx(plain, rel=0.01)
    alike = sparse.csr_array(np.tile([2000.0, 0.0, 3000.0], (30, 1)))
    for rows in (near, alike, outlier, many):
        for given in (range(4), ()):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", dmsgd.KernelWarning)
                found = dmsgd.select(rows, 5, given=given, details=True)
                again = dmsgd.select(rows, 2, given=found.items, m=found.m, details=True)
                dmsgd.select(rows, 2, given=found.items, m=float(f"{found.m:.6g}"))
            assert again.m == found.m


def test_items_of_quality_0_are_not_chosen_to_cover_others(rng):
    X, q = rng.normal(size=(200, 6)), (np.arange(200) < 20) * 1.0
    with pytest.warns(dmsgd.KernelWarning, match="until"):
        found = dmsgd.select(X, until=0.9, quality=q, cover=X[:100] + 0.3)
    assert found.max() < 20


def test_until_and_at_least_hold_together(rng):
    X, groups = rng.normal(size=(60, 3)), np.where(np.arange(60) < 5, "rare", "usual")
    for more in ({"k": 10}, {"costs": np.ones(60), "budget": 20}):
        found = dmsgd.select(X, groups=groups, at_least={"rare": 3}, until=0.2, **more)
        assert (groups[found] == "rare").sum() == 3
        assert len(found) < 8
    few = dmsgd.select(X, 10, groups=groups, at_least={"rare": 1}, until=0.5, details=True)
    assert few.coverage[-2] < 0.5 or groups[few.items[-1]] == "rare"


def test_until_that_is_not_reached_warns(rng):
    X = rng.normal(size=(60, 3))
    with pytest.warns(dmsgd.KernelWarning, match=r"until=0\.9"):
        dmsgd.select(X, until=0.9, groups=np.arange(60) % 2, at_most=2)
    # The best by quality adds nothing where another is needed.
    far = [[0.0], [100.0], [0.1]]
    found = dmsgd.select(far, until=0.9, quality=[1, 1e-7, 1], cover=[[0.0], [100.0], [100.1]])
    assert found.tolist() == [2, 1]


@pytest.mark.parametrize(
    ("X", "wishes", "size"),
    [
        ([[0.0], [1.0], [2.0], [30.0]], {"until": 0.5, "duplicates": 0.1}, 1),
        ([[0.0], [1.0], [10.0]], {"until": 1.0, "given": [0]}, 2),
        ([[0.0], [0.1], [0.2], [9.0]], {"until": 0.4, "given": [1], "duplicates": 0.01}, 0),
        (
            [[0.0], [1.0], [2.0]],
            {"until": 0.1, "groups": "abb", "at_most": 1, "exclude": [0, 1]},
            1,
        ),
    ],
)
def test_until_that_is_reached_with_the_last_item_does_not_warn(X, wishes, size):
    wishes |= {"groups": list(wishes["groups"])} if "groups" in wishes else {}
    found = dmsgd.select(X, **wishes, details=True)
    assert len(found) == size
    assert found.coverage[-1] >= wishes["until"]


def test_a_group_in_a_small_place_is_spread_once_until_is_met(rng):
    X = 10 * rng.normal(size=(400, 2))
    X[300:340] = X[300] + 3e-3 * rng.normal(size=(40, 2))
    groups = np.where((np.arange(400) >= 300) & (np.arange(400) < 340), "a", "b")
    found = dmsgd.select(X, 40, groups=groups, at_least={"a": 5}, until=0.5)
    assert (groups[found] == "a").sum() == 5


@pytest.mark.parametrize("more", [{"k": 2}, {"costs": [1, 1, 1], "budget": 2}])
def test_duplicates_that_prevent_a_set_warn(more):
    wishes = {"groups": list("aab"), "at_least": 1, "duplicates": 0.9, **more}
    with pytest.warns(dmsgd.KernelWarning, match="duplicates"):
        assert dmsgd.select([[0.0]] * 3, **wishes).tolist() == [0]


def test_a_group_is_named_once_and_costs_are_rounded(rng):
    X = rng.normal(size=(4, 2))
    with pytest.raises(ValueError, match="twice"):
        dmsgd.select(X, 2, groups=[1, 1, 2, 2], at_most={1: 0, "1": 2})
    rules = {"groups": ["a"] * 4, "at_least": 2, "costs": [0.1, 0.2, 9, 9], "budget": 0.3}
    assert sorted(dmsgd.select(X, **rules)) == [0, 1]
    with pytest.raises(ValueError, match="excluded"):
        dmsgd.select(X, until=0.5, exclude=range(4))


def test_similarities_to_other_items_tell_no_duplicates(rng):
    S = rng.random((3, 4))
    with pytest.raises(ValueError, match="duplicates"):
        dmsgd.select(S, 2, metric="precomputed", duplicates=0.9)


def test_what_lies_far_from_all_candidates_is_covered_by_the_nearest(rng):
    X = 100 * rng.normal(size=(50, 3))
    for wish in ({"k": 1}, {"until": 0.3}, {"costs": np.ones(50), "budget": 1}):
        assert dmsgd.select(X, cover=X[20:21] + 30, **wish).tolist() == [20]
    rows = np.repeat(X[[3, 7]] + 300, 5, axis=0) + rng.normal(size=(10, 3))
    near = [int(((X - row) ** 2).sum(1).argmin()) for row in rows[::5]]
    assert set(dmsgd.select(X, len(set(near)), cover=rows).tolist()) == set(near)


@pytest.mark.parametrize("how", ["cover", "greedy", "medoids"])
def test_places_are_filled_by_quality_however_small(how):
    X, quality = np.arange(6.0)[:, None], [0.001, 0.01, 0.02, 0.03, 0.5, 1]
    with pytest.warns(dmsgd.KernelWarning, match="quality"):
        found = dmsgd.select(X, 4, quality=quality, diversity=0.005, how=how)
    assert found.tolist() == [5, 4, 3, 2]


def test_empty_texts_are_told_of(rng):
    X = rng.normal(size=(50, 9))
    unit = np.vstack([X / np.linalg.norm(X, axis=1)[:, None], np.zeros((2, 9))])
    for rows in (unit, sparse.csr_array(unit)):
        with pytest.warns(dmsgd.KernelWarning, match="row 50"):
            dmsgd.select(rows, 3)
    dmsgd.select(np.vstack([X, np.zeros((2, 9))]), 3)
    dmsgd.select(unit, 3, exclude=[50, 51])


def test_items_that_are_far_from_all_chosen_ones_stand_with_the_nearest(rng):
    X = np.vstack([rng.normal(size=(900, 3)), rng.normal(size=(90, 3)) + 1000])
    found = dmsgd.select(X, 3, details=True)
    distances = ((X[:, None] - X[found.items]) ** 2).sum(-1)
    assert found.nearest.tolist() == distances.argmin(1).tolist()
    assert found.stands_for.sum() == 990
    assert dmsgd.select(X, until=1e-9, given=[0], details=True).stands_for.size == 0


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_near_duplicates_are_not_chosen(rng, metric):
    X = np.repeat(rng.normal(size=(30, 6)), 3, axis=0) + 1e-3 * rng.normal(size=(90, 6))
    with pytest.warns(dmsgd.KernelWarning, match="only 30 of 50"):
        found = dmsgd.select(X, 50, duplicates=0.995, metric=metric)
    assert sorted(found // 3) == list(range(30))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        some = dmsgd.select(X, 20, duplicates=0.995, metric=metric, given=[0, 4])
    assert len(set(some // 3) | {0, 1}) == 22


def test_the_cosine_is_that_of_unit_rows(rng):
    X = rng.normal(size=(100, 5)) * rng.uniform(0.1, 9, size=(100, 1))
    unit = X / np.linalg.norm(X, axis=1)[:, None]
    assert dmsgd.select(X, 20, metric="cosine").tolist() == dmsgd.select(unit, 20).tolist()
    sparse_rows = dmsgd.select(sparse.csr_array(X), 20, metric="cosine")
    assert sparse_rows.tolist() == dmsgd.select(unit, 20).tolist()
    X[3] = 0
    with pytest.raises(ValueError, match="row 3"):
        dmsgd.select(X, 5, metric="cosine")


def test_a_selection_says_what_it_covers(rng):
    X, q, given = rng.normal(size=(300, 4)), rng.uniform(size=300), [5, 80]
    found = dmsgd.select(X, 20, quality=q, given=given, details=True)
    assert isinstance(found, dmsgd.Selection)
    assert found.items.tolist() == dmsgd.select(X, 20, quality=q, given=given).tolist()
    S = np.exp(-((X[:, None] - X[None]) ** 2).sum(-1) / found.m)
    everyone = [*given, *found.items]
    assert found.similarity == pytest.approx(S[everyone].max(0), abs=1e-9)
    assert found.nearest.tolist() == S[everyone].argmax(0).tolist()
    for k in (0, 7, 20):
        assert found.coverage[k] == pytest.approx(q @ S[everyone[: k + 2]].max(0) / q.sum())
    assert found.coverage[0] + found.gains.sum() == pytest.approx(found.coverage[-1])
    total = q / q.max()
    assert found.stands_for.sum() == pytest.approx(total[found.nearest >= 2].sum())
    head = found.head(7)
    assert head.items.tolist() == found.items[:7].tolist()
    assert head.coverage == pytest.approx(found.coverage[:8])
    assert head.nearest.max() == 8
    assert "20 items cover" in repr(found)
    assert "random" in repr(found)


def test_random_items_that_cover_as_much_are_counted(rng):
    X = np.repeat(rng.normal(size=(10, 3)) * 9, 40, axis=0) + 0.01 * rng.normal(size=(400, 3))
    found = dmsgd.select(X, 10, details=True)
    assert 20 < found.like_random < 80  # 29 on average until each of ten groups is met
    everything = dmsgd.select(X, 400, details=True)
    assert everything.like_random == 400 or everything.like_random == 0


def test_gains_are_0_once_all_is_covered():
    X = np.repeat(np.linspace(0, 1, 300), 2)[:, None]
    found = dmsgd.select(X, 290, details=True)
    assert len(set(X[found.items, 0])) == 290
    assert found.gains[-1] < 1e-5
    assert (found.gains >= 0).all()


def test_rules_admit_what_can_be_completed(rng):
    """Items are open if, and only if, a set exists that has them and keeps all rules."""
    for _ in range(60):
        n, k = 8, int(rng.integers(2, 7))
        codes, costs = rng.integers(3, size=n), rng.uniform(0.5, 3, n)
        budget, most, least = rng.uniform(3, 12), rng.integers(1, 5, 3), rng.integers(0, 3, 3)
        least = np.minimum(least, np.minimum(most, np.bincount(codes, minlength=3)))
        kept = [
            set(items)
            for size in range(1, k + 1)
            for items in itertools.combinations(range(n), size)
            if costs[list(items)].sum() <= budget
            and (np.bincount(codes[list(items)], minlength=3) <= most).all()
            and (np.bincount(codes[list(items)], minlength=3) >= least).all()
        ]
        if not kept:
            continue
        rules, chosen = Rules(np.ones(n, bool), k, costs, budget, Quotas(codes, most, least)), set()
        while rules.more():
            possible = set().union(*(each for each in kept if each > chosen)) - chosen
            assert set(np.flatnonzero(rules.open)) == possible
            item = int(rng.choice(np.flatnonzero(rules.open)))
            rules.take(item)
            chosen.add(item)
        assert chosen in kept


@pytest.mark.parametrize("k", [None, 12])
def test_a_budget_keeps_what_groups_must_have(rng, k):
    X, costs, groups = rng.normal(size=(300, 4)), np.exp(rng.normal(size=300)), np.arange(300) % 9
    costs[groups == 0] += 3
    options = {"costs": costs, "budget": 6.0, "groups": groups}
    plain = dmsgd.select(X, k, at_most=3, **options)
    assert np.bincount(groups[plain], minlength=9).min() == 0
    for quality in (None, rng.uniform(size=300)):
        found = dmsgd.select(X, k, at_most=3, at_least=1, quality=quality, **options)
        counts = np.bincount(groups[found], minlength=9)
        assert counts.min() >= 1
        assert counts.max() <= 3
        assert costs[found].sum() <= 6.0
        assert found.size <= (k or 300)


WRONG = [
    ({}, "how many"),
    ({"k": 3, "how": "greedy", "until": 0.5}, "how='cover'"),
    ({"k": 3, "how": "greedy", "details": True}, "how='cover'"),
    ({"k": 3, "how": "greedy", "metric": "precomputed"}, "KDPP"),
    ({"budget": 4.0}, "costs"),
    ({"k": 3, "costs": np.ones(20)}, "budget"),
    ({"k": 3, "groups": np.zeros(20)}, "at_most"),
    ({"k": 3, "at_most": 2}, "groups"),
    ({"k": 3, "groups": np.arange(20) % 2, "at_least": 2}, "k=3"),
    ({"k": 9, "groups": np.arange(20) % 2, "at_most": 4}, "at most 8"),
    ({"k": 9, "groups": np.arange(20) // 18, "at_least": {1: 3}}, "at most 2"),
    ({"k": 9, "groups": np.arange(20) % 2, "at_most": {7: 1}}, "no item has"),
    ({"until": 0.5, "groups": np.arange(20) % 2, "at_least": 1}, "give k"),
    ({"costs": np.full(20, 2.0), "budget": 7.0, "groups": np.arange(20) % 2, "at_least": 2}, "8"),
    ({"costs": np.arange(20.0), "budget": 3.0}, "item 0"),
    ({"costs": np.full(20, 2.0), "budget": 1.0}, "cheapest"),
    ({"k": 3, "cover": np.ones((4, 3))}, "columns"),
    ({"k": 3, "cover": (np.ones((4, 2)), -np.ones(4))}, "weights"),
    ({"k": 3, "until": 0.0}, "until"),
    ({"k": 3, "duplicates": 0.0}, "duplicates"),
    ({"k": 3, "m": 0.0}, "m must be positive"),
    ({"k": 3, "m": np.inf}, "m must be positive"),
    ({"k": 3, "m": 1.0, "how": "greedy"}, "how='cover'"),
    ({"k": 3, "m": 1.0, "metric": "precomputed"}, "similarities"),
    ({"k": 3, "metric": "manhattan"}, "metric"),
]


@pytest.mark.parametrize(("options", "word"), WRONG)
def test_what_has_no_meaning_is_refused(rng, options, word):
    with pytest.raises(ValueError, match=word):
        dmsgd.select(rng.normal(size=(20, 2)), **options)


def test_distances_are_no_similarities(rng):
    S = rng.random((9, 9))
    S[2, 5] = -1
    with pytest.raises(ValueError, match=r"X\[2, 5\]"):
        dmsgd.select(S, 3, metric="precomputed")
    with pytest.raises(ValueError, match="zero"):
        dmsgd.select(np.zeros((9, 9)), 3, metric="precomputed")
    with pytest.raises(ValueError, match="columns of X"):
        dmsgd.select(abs(S), 3, metric="precomputed", cover=S)


def test_items_have_many_names(rng):
    pandas = pytest.importorskip("pandas")
    X = rng.normal(size=(12, 2))
    expected = dmsgd.select(X, 3, given=[1, 4], exclude=[2]).tolist()
    mask = np.isin(np.arange(12), [1, 4])
    for given in ([4, 1, 1], {1, 4}, mask, mask.tolist(), np.array([1, 4]), (1, 4)):
        assert dmsgd.select(X, 3, given=given, exclude={2}).tolist() == expected
    assert dmsgd.select(X, 3, given=None, exclude=None).tolist() == dmsgd.select(X, 3).tolist()
    frame = pandas.DataFrame(X, index=list("abcdefghijkl"))
    assert dmsgd.select(frame, 3, given=["b", "e"], exclude=["c"]).tolist() == expected
    numbered = pandas.DataFrame(X, index=np.arange(100, 112))
    assert dmsgd.select(numbered, 3, given=[101, 104], exclude=[102]).tolist() == expected
    assert dmsgd.select(numbered, 3, given=[1, 4], exclude=[2]).tolist() == expected
    with pytest.raises(ValueError, match="index"):
        dmsgd.select(numbered, 3, given=[1, 104])
    reverse = pandas.DataFrame(X[::-1], index=np.arange(12)[::-1])
    with pytest.raises(ValueError, match="labels"):
        dmsgd.select(reverse, 3, given=[1, 4])
    labels = dmsgd.select(reverse, 3, given=reverse.index[[10, 7]], exclude=pandas.Index([2]))
    assert reverse.index[labels].tolist() == expected
    part = pandas.DataFrame(X, index=[3, 1, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29])
    for given in ([3, 5], np.array([3, 5]), np.array([3, 5], dtype=object)):
        with pytest.raises(ValueError, match="labels"):
            dmsgd.select(part, 3, given=given)
    assert (
        dmsgd.select(part, 3, given=[20, 22]).tolist() == dmsgd.select(X, 3, given=[2, 4]).tolist()
    )
    with pytest.raises(ValueError, match="does not have"):
        dmsgd.select(part, 3, given=[-1, 3])
    with pytest.raises(ValueError, match="mask"):
        dmsgd.select(X, 3, given=mask[:5])
    with pytest.raises(ValueError, match="repeated"):
        dmsgd.select(pandas.DataFrame(X, index=[7] * 12), 3, given=[7])


def test_weights_of_cover_are_matched_by_index(rng):
    pandas = pytest.importorskip("pandas")
    X, rows = rng.normal(size=(40, 3)), rng.normal(size=(30, 3))
    weights = pandas.Series(rng.random(30) ** 4, index=[f"r{i}" for i in range(30)])
    expected = dmsgd.select(X, 5, cover=(rows, weights.to_numpy())).tolist()
    frame, shuffled = pandas.DataFrame(rows, index=weights.index), weights.sample(frac=1.0)
    assert dmsgd.select(X, 5, cover=(frame, shuffled)).tolist() == expected
    with pytest.raises(ValueError, match="in cover and"):
        dmsgd.select(X, 5, cover=(frame, weights.rename(lambda label: label + "x")))
    with pytest.raises(ValueError, match="sort_index"):
        dmsgd.select(X, 5, cover=(rows, weights.reset_index(drop=True).sample(frac=1.0)))


@pytest.mark.parametrize("name", ["given", "exclude"])
def test_masks_that_are_series_are_matched_by_index(rng, name):
    pandas = pytest.importorskip("pandas")
    X, mask = rng.normal(size=(30, 3)), rng.random(30) < 0.4
    frame = pandas.DataFrame(X, index=[f"r{i}" for i in range(30)])
    series = pandas.Series(mask, index=frame.index)
    expected = dmsgd.select(X, 5, **{name: mask}).tolist()
    shuffled = series.sample(frac=1.0, random_state=0)
    assert dmsgd.select(frame, 5, **{name: shuffled}).tolist() == expected
    with pytest.raises(ValueError, match="index"):
        dmsgd.select(frame, 5, **{name: series.rename(lambda label: label + "x")})
    with pytest.raises(ValueError, match="sort_index"):
        dmsgd.select(X, 5, **{name: shuffled.set_axis(np.argsort(shuffled.index))})


@pytest.mark.parametrize("budget", [np.nan, np.inf, -1.0, 0.0, "3", True])
def test_a_budget_is_a_positive_number(rng, budget):
    with pytest.raises((ValueError, TypeError), match="budget must be"):
        dmsgd.select(rng.normal(size=(9, 2)), costs=np.ones(9), budget=budget)


@pytest.mark.parametrize("name", ["quality", "groups", "costs"])
def test_series_are_matched_by_index(rng, name):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(rng.normal(size=(30, 3)), index=[f"r{i}" for i in range(30)])
    values = pandas.Series(rng.integers(1, 4, size=30), index=frame.index)
    more = {"quality": {"k": 5}, "groups": {"k": 5, "at_most": 2}, "costs": {"budget": 9.0}}[name]
    expected = dmsgd.select(frame.to_numpy(), **{name: values.to_numpy()}, **more)
    shuffled = values.sample(frac=1.0, random_state=0)
    assert dmsgd.select(frame, **{name: shuffled}, **more).tolist() == expected.tolist()
    with pytest.raises(ValueError, match="index"):
        dmsgd.select(frame, **{name: values.rename(lambda label: label + "x")}, **more)


def test_places_bound_the_largest_set_that_the_rules_allow(rng):
    """The announced time is of so many items: a budget without k is not one of all items."""
    for _ in range(20):
        n = 7
        codes, costs = rng.integers(0, 3, n), rng.integers(1, 6, n).astype(float)
        most, budget = rng.integers(1, 4, 3), float(rng.integers(5, 12))
        quotas = Quotas(codes, most, np.zeros(3, dtype=np.int64))
        found = Rules(np.ones(n, dtype=bool), n, costs, budget, quotas).places()
        sets = [Y for k in range(n + 1) for Y in itertools.combinations(range(n), k)]
        fits = [len(Y) for Y in sets if costs[list(Y)].sum() <= budget]
        kept = [len(Y) for Y in sets if (np.bincount(codes[list(Y)], minlength=3) <= most).all()]
        assert found == min(max(fits), max(kept))
