"""Arms of experiments/labelling choose what scikit-activeml does, or what loops over items find.

Its claims, tables and figures are made of made-up values; its tutorial tells what is stored.
"""

from __future__ import annotations

import os
import re
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

import dmsgd
from experiments import labelling, slices
from experiments.core.journal import Journal
from experiments.core.table import as_table
from experiments.labelling import NEXT, arms, cases, coverage, curate, first
from experiments.labelling.ranks import Ranks, ranks_of
from experiments.labelling.rounds import Round, run, softmax, task
from experiments.labelling.tables import needed
from experiments.models import few_labels

ROOT = Path(__file__).parent.parent
RNG = np.random.default_rng(0)
#: Six clusters of different sizes, far apart; the columns of W are classes.
SIZES = (26, 31, 37, 44, 52, 60)
X = np.concatenate([12 * np.eye(6)[at] + RNG.normal(size=(n, 6)) for at, n in enumerate(SIZES)])
X = X[RNG.permutation(len(X))]
W = RNG.normal(size=(6, 4)) / 6
N, LABELLED = len(X), np.arange(3)


class Known:
    """A model with the weights W, as arms see it."""

    inputs, scores = X, X @ W

    @staticmethod
    def scores_of(rows: np.ndarray) -> np.ndarray:
        return rows @ W

    def held_out(self, train: np.ndarray, rest: np.ndarray) -> np.ndarray:
        return X[rest] @ W


class Numbers(np.random.RandomState):
    """The generator of scikit-activeml, with the methods of the one of arms."""

    def random(self, size: Any = None, dtype: Any = None) -> Any:
        return self.random_sample(size)

    def integers(self, high: int) -> int:
        return 7


def now(k: int, rng: Any = None, labelled: np.ndarray = LABELLED) -> Round:
    y = np.arange(labelled.size) % 4
    rng = np.random.default_rng(1) if rng is None else rng
    return Round(X, softmax(X @ W), labelled, k, rng, Known(), y)


@pytest.fixture(scope="module")
def pool() -> Any:
    return pytest.importorskip("skactiveml.pool", reason="scikit-activeml is not installed")


def seeded(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Let strategies draw the numbers of this seed, not of one that is made from it."""
    monkeypatch.setattr("skactiveml.base.check_random_state", lambda *_: Numbers(seed))


def known_classifier() -> Any:
    from skactiveml.base import SkactivemlClassifier

    class Fixed(SkactivemlClassifier):
        def fit(self, X, y, sample_weight=None):
            return self

        def predict_proba(self, rows):
            return softmax(rows[:, :6] @ W)

        def predict(self, rows):
            return (rows[:, :6] @ W).argmax(1)

    return Fixed(classes=[0, 1, 2, 3])


def unlabelled(labelled: np.ndarray = LABELLED) -> np.ndarray:
    y = np.full(N, np.nan)
    y[labelled] = np.arange(labelled.size) % 4
    return y


def means(number: int = 7) -> dict[str, Any]:
    return {"n_init": 1, "max_iter": 50, "random_state": number}


@pytest.mark.parametrize("seed", range(5))
def test_falcun_draws_as_scikit_activeml_does(pool, monkeypatch, seed: int) -> None:
    seeded(monkeypatch, seed)
    expected = pool.Falcun().query(X, unlabelled(), known_classifier(), fit_clf=False, batch_size=6)
    assert arms.falcun(now(6, Numbers(seed))).tolist() == list(expected)


@pytest.mark.parametrize("seed", range(5))
def test_badge_draws_by_the_distance_of_gradients(pool, seed: int) -> None:
    """scikit-activeml begins alike; then it counts 0 as a chosen gradient, other than the paper."""
    rows, P = np.c_[X, np.ones(N)], softmax(X @ W)
    gradients = ((P - np.eye(4)[P.argmax(1)])[:, :, None] * rows[:, None]).reshape(N, -1)[3:]
    chosen = pool.Badge().query(rows, unlabelled(), known_classifier(), fit_clf=False)
    chosen, drawn = [int(chosen[0]) - 3], Numbers(seed)
    while len(chosen) < 6:
        D = ((gradients[:, None] - gradients[chosen]) ** 2).sum(2).min(1)
        chosen.append(int(drawn.choice(N - 3, p=D / D.sum())))
    assert arms.badge(now(6, Numbers(seed))).tolist() == [item + 3 for item in chosen]


def test_clue_is_that_of_scikit_activeml(pool) -> None:
    strategy = pool.Clue(cluster_algo_dict=means(), method="entropy", random_state=0)
    expected = strategy.query(X, unlabelled(), known_classifier(), fit_estimator=False,
                              batch_size=9)  # fmt: skip
    assert arms.clue(now(9, Numbers(0))).tolist() == expected.tolist()


@pytest.mark.parametrize("seed", range(3))
def test_drop_query_is_that_of_scikit_activeml(pool, monkeypatch, seed: int) -> None:
    seeded(monkeypatch, seed)
    strategy = pool.DropQuery(cluster_algo_dict=means(), n_dropout_samples=3)
    expected = strategy.query(X, unlabelled(), known_classifier(), fit_clf=False, batch_size=6)
    assert set(arms.drop_query(now(6, Numbers(seed)))) == set(expected)


@pytest.mark.parametrize("labelled", [np.arange(0), LABELLED])
def test_max_herding_is_that_of_scikit_activeml(pool, labelled: np.ndarray) -> None:
    strategy = pool.MaxHerding(metric="rbf", metric_dict={"gamma": 1.0}, normalize_samples=True,
                               random_state=0)  # fmt: skip
    expected = strategy.query(X, unlabelled(labelled), batch_size=20)
    assert coverage.max_herding(now(20, labelled=labelled)).tolist() == expected.tolist()


def test_typiclust_is_that_of_scikit_activeml(pool) -> None:
    labelled = np.empty(0, dtype=np.int64)
    strategy = pool.TypiClust(cluster_algo_dict={"n_init": 5}, k=coverage.NEIGHBOURS,
                              random_state=0)  # fmt: skip
    expected = strategy.query(coverage.unit(X), unlabelled(labelled), batch_size=6)
    assert coverage.typiclust(now(6, labelled=labelled)).tolist() == expected.tolist()
    again = now(3, labelled=np.array(expected[:3]))
    found = strategy.query(coverage.unit(X), unlabelled(again.labelled), batch_size=3)
    assert coverage.typiclust(again).tolist() == found.tolist()


def test_prob_cover_has_the_balls_of_scikit_activeml(pool) -> None:
    strategy = pool.ProbCover(n_classes=4, deltas=coverage.RADII, alpha=coverage.PURE,
                              cluster_algo_dict={"n_init": 1}, random_state=7)  # fmt: skip
    seen = now(8, Numbers(0))
    found = coverage.prob_cover(seen)
    strategy.query(coverage.unit(X), unlabelled(), batch_size=8)
    balls = strategy.distances_ <= strategy.delta_max_
    assert (balls == seen.kept["balls"]).mean() > 0.9999
    covered = balls[LABELLED].any(0)
    for item in found:
        counts = balls[:, ~covered].sum(1)
        assert counts[item] == counts[3:].max()
        covered |= balls[item]


def test_uherding_adds_most_of_the_uncertainty_at_each_step() -> None:
    seen = now(8, labelled=np.arange(30))
    seen.kept["temperature"] = 2.0
    D = ((coverage.unit(X)[:, None] - coverage.unit(X)) ** 2).sum(2)
    S = np.exp(-D / D[:30, :30][np.triu_indices(30, 1)].min())
    u = dmsgd.uncertainty(softmax(X @ W / 2))
    covered = S[:30].max(0)
    for item in coverage.uherding(seen):
        gains = np.maximum(S - covered, 0)[:, 30:] @ u[30:]
        assert gains[item] == pytest.approx(gains[30:].max(), rel=1e-4)
        covered = np.maximum(covered, S[item])


def test_the_temperature_has_the_least_calibration_error() -> None:
    seen = now(1, labelled=np.arange(200))
    truth = np.array([np.random.default_rng(i).choice(4, p=softmax(X[[i]] @ W / 3)[0])
                      for i in range(200)])  # fmt: skip
    hot = Round(X, seen.P, seen.labelled, 1, seen.rng, Known(), truth)
    assert 1.5 < coverage.temperature(hot) < 10  # the scores are three times too large


def test_average_ranks_have_nemenyis_critical_difference() -> None:
    """Demšar 2006: 2.569 sqrt(4 · 5 / (6 · 14)) for 4 arms on 14 sets."""
    levels = np.random.default_rng(0).normal([0.0, 4.0, 4.0, 8.0], size=(14, 4))
    levels[:, 2] = levels[:, 1] + 1e-12  # a tie
    found = ranks_of(["a", "b", "c", "d"], levels)
    assert found.critical == pytest.approx(2.569 * np.sqrt(20 / 84), abs=1e-3)
    assert (found.arms[0], found.arms[-1]) == ("d", "a")
    assert found.means.sum() == pytest.approx(10)
    assert found.means[1] == found.means[2]
    assert found.p < 1e-6


def test_bars_join_the_longest_rows_of_arms_that_do_not_differ() -> None:
    means = np.array([1.0, 2.0, 2.5, 3.5, 6.0])
    assert Ranks(tuple("abcde"), means, 1.5, 0.0).alike == [(0, 2), (1, 3)]
    assert Ranks(tuple("abcde"), means, 9.0, 0.0).alike == [(0, 4)]
    assert Ranks(tuple("abcde"), means, 0.1, 0.0).alike == []


def test_labels_that_are_needed_lie_between_rounds() -> None:
    rows = [("labelling/a", "x", seed, step, "accuracy", value + seed)
            for seed in (-1, 1)
            for step, value in ((10, 50.0), (20, 70.0), (30, 60.0))]  # fmt: skip
    found = [needed(as_table(rows), "labelling/a", "x", goal) for goal in (40.0, 65.0, 71.0)]
    assert found == [10, 17.5, np.inf]


@pytest.mark.parametrize("arm", [*NEXT, "Refine"])
def test_every_arm_chooses_k_items_without_a_label(arm: str) -> None:
    chosen = (NEXT | labelling.REFINE)[arm](now(12))
    assert len(set(chosen.tolist())) == 12
    assert min(chosen) >= 3


@pytest.mark.parametrize("arm", first.FIRST)
def test_every_first_set_has_k_different_items(arm: str) -> None:
    start = task(0, "digits", 1, 300, 100)
    items = first.FIRST[arm](start, 20, np.random.default_rng(0))
    assert len(set(np.asarray(items).tolist())) == 20


def test_select_is_facility_location_where_all_is_equally_uncertain() -> None:
    seen = Round(X, np.full((N, 4), 0.25), LABELLED, 12, np.random.default_rng(1), Known())
    scale = dmsgd.select(X, 12, given=LABELLED, details=True).m
    S = np.exp(((X[:, None] - X) ** 2).sum(2) / -scale)
    weights = (np.arange(N) >= 3).astype(float)
    expected = coverage.greedy_cover(S, weights, S[:3].max(0), seen.free, 12, seen.rng)
    assert arms.by_select(seen).tolist() == expected.tolist()


def test_greedy_cover_adds_most_at_each_step() -> None:
    S, weights = np.exp(((X[:, None] - X) ** 2).sum(2) / -20), RNG.uniform(size=N)
    covered = S[:3].max(0)
    for item in coverage.greedy_cover(S, weights, covered, np.arange(3, N), 12, RNG):
        gains = np.maximum(S - covered, 0) @ weights
        assert gains[item] == pytest.approx(gains.max(), rel=1e-5)
        covered = np.maximum(covered, S[item])


@pytest.fixture(scope="module")
def kept() -> Any:
    return curate.redundant(0, "digits", 1000, 300)


def test_a_redundant_pool_has_uneven_classes_copies_and_near_copies(kept) -> None:
    counts = np.bincount(kept.y)
    assert counts.max() > 30 * counts.min()
    same = len(kept.y) - len(np.unique(kept.X, axis=0))
    assert same == pytest.approx(0.03 / 1.13 * len(kept.y), abs=1)
    alike = len(kept.y) - dmsgd.near_duplicates(kept.X, curate.ALIKE).keep().size
    assert alike - same > 0.08 * len(kept.y)


@pytest.mark.parametrize("arm", curate.KEEP)
def test_every_way_to_keep_keeps_k_different_items(arm: str, kept) -> None:
    items = curate.KEEP[arm](kept, 60, np.random.default_rng(0)).tolist()
    assert len(set(items)) == 60
    counts = np.bincount(kept.y[items], minlength=10)
    asked = curate.quotas(kept, 60)
    assert 40 < sum(asked.values()) <= 60
    assert ("quotas" in arm) == all(counts[c] >= count for c, count in asked.items())
    if "duplicates" in arm:
        assert dmsgd.near_duplicates(kept.X[items], metric="cosine").pairs.size == 0


def test_what_is_kept_is_covered(kept) -> None:
    chosen = kept.X[::7]
    D = ((kept.X[:, None].astype(float) - chosen) ** 2).sum(2)
    assert curate.nearest_squares(kept.X, chosen) == pytest.approx(D.min(1), abs=1e-3)
    rows = list(curate.run_keep(kept, curate.KEEP["random"], 0, 1.0, (10, 100)))
    found = {(step, measure): value for step, measure, value in rows}
    assert 50 < found[10, "coverage"] < 99.9
    assert found[100, "coverage"] == pytest.approx(100)
    assert found[100, "accuracy"] > found[10, "accuracy"]


def test_rounds_label_k_more_each_time() -> None:
    rows = list(run(task(0, "digits", 10, 300, 100), NEXT["margin"], 0, 1.0, 2))
    assert [step for step, measure, _ in rows if measure == "accuracy"] == [10, 20, 30]
    assert len({case.name for case in cases()}) == len(cases())


def test_a_slice_runs_what_its_patterns_name_until_its_time_is_over(tmp_path) -> None:
    path = tmp_path / "labelling.journal"
    common = ["labelling", "--out", str(tmp_path), "--only", "all, wine"]
    assert slices.main([*common, "--time-limit", "0"]) == 0
    assert len(Journal(path, slices.about("labelling", labelling))) == 0
    slices.main([*common, "--only", "labelling/wine, k=10: (margin|random)"])
    journal = Journal(path, slices.about("labelling", labelling))
    done = {(job.case, job.arm) for job in journal._found}
    expected = {("labelling/wine, k=10", arm) for arm in ("margin", "random")}
    assert done == expected | {("labelling/all, wine", "all")}


@pytest.mark.parametrize("units", [0, 6])
def test_models_have_the_least_loss(units: int) -> None:
    X = np.random.default_rng(0).normal(size=(200, 5))
    y = (X[:, 0] > 0).astype(int) + (X[:, 1] > 0)
    layers = few_labels.fit(X, y, 3, units, 0)
    P = few_labels.probabilities(layers, X)
    assert P.sum(1) == pytest.approx(np.ones(200))
    assert (P.argmax(1) == y).mean() > 0.7
    if not units:
        from sklearn.linear_model import LogisticRegression

        expected = LogisticRegression(C=1.0).fit(X, y).predict_proba(X)
        assert np.abs(P - expected).max() < 0.01


def test_claims_tables_and_figures_name_what_is_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = Figure.savefig
    monkeypatch.setattr(Figure, "savefig", lambda self, path, dpi: whole(self, path, dpi=25))
    rng = np.random.default_rng(0)
    measures = ("accuracy", "mean accuracy", "mean over classes", "coverage", "milliseconds",
                "milliseconds per round")  # fmt: skip
    every = {case.name: list(case.arms) for case in cases()}
    every |= {name: ["BADGE", "select"] for name in ("labelling/one set", "labelling/parts, MNIST")}
    table = as_table(
        (name, arm, seed, step, measure, rng.uniform(1, 2))
        for name, found in every.items()
        for arm in found
        for seed in range(2)
        for step in {*labelling.BUDGETS, *labelling.PERCENTS}
        for measure in measures
    )
    for claim in labelling.CLAIMS:
        assert np.isfinite(claim.check(table).mean), claim
    for made in labelling.TABLES.values():
        rows = made(table)
        assert len(rows) > 1
        assert len({len(row) for row in rows}) == 1
    assert sorted(labelling.figures(table, tmp_path)) == sorted(tmp_path.iterdir())


@pytest.fixture(scope="module")
def tutorial():
    return runpy.run_path(str(ROOT / "docs" / "tutorials" / "label_next.py"))


def test_the_tutorial_counts_labels_as_the_stored_results_do(tutorial, tmp_path) -> None:
    page = (ROOT / "docs" / "tutorials" / "label_next.md").read_text(encoding="utf-8")
    said = r"`select` reaches with (\d+) labels what random labels reach with (\d+)"
    ours, others = map(int, re.search(said, page).groups())
    labels, reached, _ = tutorial["curve"]("Oxford-102", "random")
    accuracy = reached[labels.tolist().index(others)]
    assert tutorial["labels_needed"]("Oxford-102", "select", accuracy) <= ours
    from_400 = [tutorial["curve"]("R8", arm)[1][7:] for arm in ("select", "margin")]
    assert abs(from_400[0] - from_400[1]).max() < 0.3
    tutorial["draw"](tmp_path / "curves.png")
    assert (tmp_path / "curves.png").stat().st_size > 20_000


@pytest.mark.long
def test_the_tutorial_runs_on_flowers(tutorial) -> None:
    if not Path(os.environ.get("DMSGD_DATA", ""), "flowers102").is_dir():
        pytest.skip("DMSGD_DATA holds no flowers102")
    start = tutorial["task"](0, "Oxford-102", k=50, pool=2000, tested=1000)
    reached = {}
    for arm in ("select", "random"):
        rows = tutorial["run"](start, tutorial["NEXT"][arm], 0, 0.0, rounds=2)
        reached[arm] = [*rows][2][2]
    assert reached["select"] > reached["random"] + 5
