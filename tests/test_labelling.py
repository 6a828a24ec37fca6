"""Arms and models of experiments/labelling, and its claims and figures on made-up values."""

from __future__ import annotations

import os
import re
import runpy
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from experiments import labelling
from experiments.core import table as tables
from experiments.labelling import arms
from experiments.labelling.rounds import Round, run, task
from experiments.models import few_labels

ROOT = Path(__file__).parent.parent
RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 5))
MODEL = few_labels.fit(X, np.arange(200) % 4, 4, 0, 0)


def now(k: int = 12) -> Round:
    P = RNG.dirichlet(np.ones(4), 200)
    return Round(X, MODEL, P, np.arange(9), k, np.random.default_rng(1))


EVERY = arms.MAIN | arms.PARTS | arms.ACTIVEML


@pytest.mark.parametrize("arm", EVERY)
def test_every_arm_chooses_k_items_without_a_label(arm: str) -> None:
    if "activeml" in arm:
        pytest.importorskip("skactiveml", reason="scikit-activeml is not installed")
    chosen = EVERY[arm](now())
    assert len(set(chosen.tolist())) == 12
    assert min(chosen) >= 9


def test_facility_location_in_numpy_is_greedy() -> None:
    seen = now()
    S, u = arms._wide_kernel(X, 0.25), seen.u
    u[:9] = 0
    covered = S[:9].max(0)
    for item in arms.facility_location(seen, 0.25):
        gains = np.maximum(S - covered, 0) @ u
        assert gains[item] == pytest.approx(gains.max())
        covered = np.maximum(covered, S[item])


def test_cover_is_facility_location_where_all_is_equally_uncertain() -> None:
    seen = Round(X, MODEL, np.full((200, 4), 0.25), np.arange(9), 12, np.random.default_rng(1))
    expected = arms.facility_location(seen, None)
    assert arms.MAIN[arms.COVER](seen).tolist() == expected.tolist()


@pytest.mark.parametrize("scale", [None, 0.25])
def test_greedy_sets_in_numpy_are_greedy(scale: float | None) -> None:
    seen = now(4)
    S = arms._wide_kernel(X, scale or 1.0)
    L = seen.u[:, None] * (S * seen.u**2) @ S * seen.u
    if scale:
        L = seen.u[:, None] ** 2 * S * seen.u**2
    chosen: list[int] = []
    for item in arms.greedy(seen, scale) if scale else arms.coverage_times_diversity(seen):
        dets = [np.linalg.det(L[np.ix_([*chosen, i], [*chosen, i])]) for i in range(9, 200)]
        assert dets[item - 9] == pytest.approx(max(dets))
        chosen.append(int(item))


@pytest.mark.parametrize("units", [0, 6])
def test_models_have_the_least_loss(units: int) -> None:
    y = (X[:, 0] > 0).astype(int) + (X[:, 1] > 0)
    layers = few_labels.fit(X, y, 3, units, 0)
    P = few_labels.probabilities(layers, X)
    assert P.sum(1) == pytest.approx(np.ones(200))
    assert (P.argmax(1) == y).mean() > 0.7
    if not units:
        from sklearn.linear_model import LogisticRegression

        expected = LogisticRegression(C=1.0).fit(X, y).predict_proba(X)
        assert np.abs(P - expected).max() < 0.01


def test_rounds_label_k_more_each_time() -> None:
    rows = list(run(task(0, "digits", 10, 300, 100), arms.MAIN["margin"], 0, 1.0, 2, 0))
    assert [step for step, measure, _ in rows if measure == "accuracy"] == [10, 20, 30]


def test_claims_tables_and_figures_name_what_is_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = Figure.savefig
    monkeypatch.setattr(Figure, "savefig", lambda self, path, dpi: whole(self, path, dpi=25))
    rng = np.random.default_rng(0)
    measures = ("accuracy", "mean accuracy", "mean over classes", "milliseconds",
                "milliseconds per round")  # fmt: skip
    table = tables.as_table(
        (case.name, arm, seed, step, measure, rng.uniform(1, 2))
        for case in labelling.cases()
        for arm in case.arms
        for seed in range(2)
        for step in labelling.BUDGETS
        for measure in measures
    )
    for claim in labelling.CLAIMS:
        assert np.isfinite(claim.check(table).mean), claim
    for made in labelling.TABLES.values():
        assert len({len(row) for row in made(table)}) == 1
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
        choose = tutorial["MAIN"][tutorial["ARMS"][arm]]
        reached[arm] = [*tutorial["run"](start, choose, 0, 0.0, rounds=2, units=0)][2][2]
    assert reached["select"] > reached["random"] + 5
