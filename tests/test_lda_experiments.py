"""What the LDA experiments compute beside their runs: matched topics, designs, class shares."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from experiments import r8, r8_cost, synthetic_lda
from experiments.core.table import as_table
from experiments.models import topics
from experiments.r8.corpus import QUICK, TINY, arms, corpus


def test_topics_are_matched_one_to_one_at_the_smallest_distance() -> None:
    truth = np.array([[0.5, 0.5, 0.0], [0.0, 0.5, 0.5]])
    found = np.array([[0.0, 0.4, 0.6], [0.1, 0.4, 0.5]])
    partner, distance = topics.match(truth, found)
    assert partner.tolist() == [1, 0]  # each alone would take another
    assert distance == pytest.approx([0.5, 0.1])


def test_redundancy_by_hand() -> None:
    assert topics.redundancy(np.ones((3, 4))) == pytest.approx(1)
    assert topics.redundancy(np.eye(3)) == pytest.approx(0)
    assert topics.redundancy(np.array([[1.0, 0.0], [1.0, 1.0]])) == pytest.approx(np.sqrt(0.5))


def found_topics(uniform: list[float], kdpp: list[float]) -> pl.DataFrame:
    return as_table(
        ("synthetic_lda", arm, seed, 90, "topics found", value)
        for arm, every in (("uniform", uniform), ("k-DPP", kdpp))
        for seed, value in enumerate(every)
    )


def test_the_typical_seed_is_one_of_median_recovery() -> None:
    assert synthetic_lda.typical_seed(found_topics([5.0, 3, 3], [5.0, 4, 5])) == 2
    assert synthetic_lda.typical_seed(found_topics([5.0, 3, 2], [5.0, 3, 5])) == 2


def test_arms_of_the_news_have_the_frequencies_of_their_names() -> None:
    task = corpus(TINY)
    made = {name: arm(task, 0) for name, arm in arms(TINY).items()}
    b = {name: design.inclusion() for name, design in made.items()}
    even = np.full(TINY.documents, TINY.k / TINY.documents)
    assert b["k-DPP, frequency-matched"] == pytest.approx(b["k-DPP"], abs=1e-9)
    assert b["k-DPP, uniform frequency"] == pytest.approx(even, rel=1e-5)
    assert b["k-DPP"] != pytest.approx(even, rel=0.1)
    assert b["k-DPP"] != pytest.approx(b["k-DPP, unit rows"], rel=0.01)
    words = np.asarray(task.counts.sum(axis=1)).ravel()
    assert np.corrcoef(b["by length"], words)[0, 1] > 0.99
    assert np.bincount(task.y, b["stratified"]) == pytest.approx(np.full(4, TINY.k / 4))
    assert made["k-DPP"] is arms(TINY)["k-DPP"](task, 1)  # no second eigendecomposition


def test_the_percentage_of_an_update_is_of_its_own_k(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(r8_cost, "update", lambda task, inference, k, *_: 10.0 * k)
    rows = list(r8_cost.run(corpus(TINY), r8_cost.EXACT, 0, 1.0, draws=2, updates=1))
    found = {(step, measure): value for step, measure, value in rows}
    for k in r8_cost.SIZES:
        spent = found[k, "milliseconds"]
        assert spent > 0
        assert found[k, "% of an update, converged"] == pytest.approx(100 * spent / (10 * k))


@pytest.mark.long
def test_the_kdpp_balances_the_classes_of_r8() -> None:
    folder = os.environ.get("DMSGD_DATA")
    if folder is None or not (Path(folder) / "r8/train.txt.gz").exists():
        pytest.skip("DMSGD_DATA names no folder with r8/train.txt.gz")
    task = corpus(QUICK)
    assert task.counts.shape[1] == len(task.words) == task.test_counts.shape[1]
    found = {
        arm: {measure: value for _, measure, value in r8.frequencies(task, design, 0)}
        for arm in ("uniform", "k-DPP")
        for design in [arms(QUICK)[arm](task, 0)]
    }
    data = 100 * np.bincount(task.y) / QUICK.documents
    assert found["uniform"]["share of earn"] == pytest.approx(data[0])
    assert found["k-DPP"]["share of earn"] < 0.8 * data[0]
    assert found["k-DPP"]["share of grain"] > 1.3 * data[-1]
    assert found["k-DPP"]["correlation of b with distinct words"] > 0.95
