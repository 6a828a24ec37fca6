"""The LDA experiments on small generated data: directions, files, and the paper's numbers."""

from __future__ import annotations

import os
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dmsgd.commands.reproduce import experiment
from dmsgd.datasets import R8, Topics
from dmsgd.paper import storage
from dmsgd.paper.intervals import margin, paired, wilson
from dmsgd.paper.models import topics
from dmsgd.paper.protocol import Experiment
from dmsgd.paper.r8 import search
from dmsgd.paper.r8.classifier import features
from dmsgd.paper.r8.corpus import METHODS, designs, make_corpus
from dmsgd.paper.r8_cost.result import DEFAULT, EARLY
from dmsgd.paper.synthetic_lda.result import typical_seed

synthetic_lda, r8, r8_cost = map(experiment, ("synthetic-lda", "r8", "r8-cost"))

SYNTHETIC = synthetic_lda.Config(seeds=6, steps=40, iterations=50)
NEWS = r8.Config(seeds=5, k=20, steps=25, topics=8, min_df=2, stop_words=False)
COST = r8_cost.Config(seeds=2, sizes=(10, 30), cores=40, updates=3, warm_up=1, slow_draws=1)


@pytest.fixture(scope="module")
def synthetic() -> synthetic_lda.Result:
    return synthetic_lda.run(SYNTHETIC, synthetic_lda.load(SYNTHETIC))


def small_news(seed: int = 0) -> R8:
    """Four classes of 300, 60, 20 and 10 documents with words of their own and common ones."""
    rng = np.random.default_rng(seed)
    words = np.array([f"word{i}" for i in range(120)])
    parts = []
    for sizes in ((300, 60, 20, 10), (60, 20, 10, 10)):
        y = np.repeat(np.arange(4), sizes)
        documents = []
        for label in y:
            own = rng.integers(20 * label, 20 * label + 20, size=15)
            common = rng.integers(80, 120, size=15)
            documents.append(" ".join(words[np.concatenate([own, common])]))
        parts += [tuple(documents), y.astype(np.int64)]
    return R8(*parts, names=("a", "b", "c", "d"))


@pytest.fixture(scope="module")
def news() -> r8.Result:
    return r8.run(NEWS, small_news())


@pytest.fixture(scope="module")
def cost() -> r8_cost.Result:
    return r8_cost.run(COST, small_news())


def assert_same(one: object, two: object) -> None:
    """Compare results field by field; files keep nine digits."""
    if is_dataclass(one):
        assert type(one) is type(two)
        for field in fields(one):
            assert_same(getattr(one, field.name), getattr(two, field.name))
    elif isinstance(one, dict):
        assert isinstance(two, dict)
        assert list(one) == list(two)
        for key in one:
            assert_same(one[key], two[key])
    elif isinstance(one, np.ndarray):
        assert isinstance(two, np.ndarray)
        assert one.dtype == two.dtype
        np.testing.assert_allclose(one, two, rtol=1e-8)
    else:
        assert one == two


def assert_pictures(paths: list[Path], names: set[str]) -> None:
    from matplotlib.image import imread

    assert {path.name for path in paths} == names
    for path in paths:
        assert path.stat().st_size > 200
        if path.suffix == ".png":
            ink = np.mean(imread(path)[..., :3].min(axis=2) < 0.9)
            assert 0.01 < ink < 0.95, path


def assert_halves(module: Experiment, result: Any) -> None:
    """Every measure has both halves among the claims, and they add up to the whole."""
    found = module.halves(result)
    assert found
    stated = {claim.statement: claim for claim in module.claims(result)}
    for each in found:
        whole, seen, meets, *alone = each.differences.values()
        assert seen[0] + meets[0] == pytest.approx(whole[0])
        assert whole == paired(each.kdpp, each.uniform)
        assert len(alone) == (each.uniform_b is not None)
        claim = stated[f"{each.what}: who meets, k-DPP minus same b"]
        assert claim.ours == each.text(meets)


def paper_numbers(found: list) -> str:
    return " ".join(claim.paper for claim in found)


# what they share


def test_topics_are_matched_one_to_one_at_the_smallest_distance() -> None:
    truth = np.array([[0.5, 0.5, 0.0], [0.0, 0.5, 0.5]])
    found = np.array([[0.0, 0.4, 0.6], [0.1, 0.4, 0.5]])
    partner, distance = topics.match(truth, found)
    assert partner.tolist() == [1, 0]  # each alone would take another
    assert distance == pytest.approx([0.5, 0.1])


def test_wilson_is_the_interval_of_the_score_test() -> None:
    centre, half = wilson(7, 20)
    for edge in (centre - half, centre + half):
        z = (7 / 20 - edge) / np.sqrt(edge * (1 - edge) / 20)
        assert abs(z) == pytest.approx(1.959964, abs=1e-5)
    assert np.subtract(*wilson(0, 20)) == pytest.approx(0)
    assert np.add(*wilson(20, 20)) == pytest.approx(1)


def test_redundancy_by_hand() -> None:
    assert topics.redundancy(np.ones((3, 4))) == pytest.approx(1)
    assert topics.redundancy(np.eye(3)) == pytest.approx(0)
    assert topics.redundancy(np.array([[1.0, 0.0], [1.0, 1.0]])) == pytest.approx(np.sqrt(0.5))


# generated topics


def test_dm_svi_recovers_rare_topics_that_svi_loses(synthetic: synthetic_lda.Result) -> None:
    svi, ours = synthetic.recovered("SVI"), synthetic.recovered("DM-SVI")
    assert ours.mean() > svi.mean()
    assert synthetic.complete("DM-SVI").mean() > synthetic.complete("SVI").mean()
    rare = {name: o.distance[:, 2:].mean() for name, o in synthetic.outcomes.items()}
    assert rare["DM-SVI"] < rare["SVI"]


def test_rare_documents_are_drawn_more_often(synthetic: synthetic_lda.Result) -> None:
    assert synthetic.outcomes["SVI"].shares == pytest.approx([300 / 360, 50 / 360, 10 / 360])
    assert synthetic.outcomes["DM-SVI"].shares[2] > 2 * 10 / 360


def test_found_topics_are_in_the_order_of_the_true_ones(synthetic: synthetic_lda.Result) -> None:
    for method, outcome in synthetic.outcomes.items():
        assert outcome.topics.sum(axis=1) == pytest.approx(np.ones(5))
        off = np.abs(outcome.topics - synthetic.truth).sum(axis=1) / 2
        assert off == pytest.approx(outcome.distance[synthetic.shown])
        good = outcome.distance <= 0.2
        assert np.array_equal(synthetic.complete(method), good.all(axis=1))


def test_the_typical_seed_is_one_of_median_recovery(synthetic: synthetic_lda.Result) -> None:
    assert typical_seed(np.array([5.0, 3, 3]), np.array([5.0, 4, 5])) == 2
    assert typical_seed(np.array([5.0, 3, 2]), np.array([5.0, 3, 5])) == 2
    counts = (synthetic.recovered(method) for method in ("SVI", "DM-SVI"))
    assert synthetic.shown == typical_seed(*counts)


def test_the_same_b_is_seen_as_often_and_the_halves_add_up(
    synthetic: synthetic_lda.Result,
) -> None:
    shares = {method: outcome.shares for method, outcome in synthetic.outcomes.items()}
    assert shares["same b"] == pytest.approx(shares["DM-SVI"], abs=1e-9)
    assert shares["by length"] != pytest.approx(shares["DM-SVI"], abs=1e-3)
    assert_halves(synthetic_lda, synthetic)


def test_the_same_documents_give_the_same_result() -> None:
    config = replace(SYNTHETIC, seeds=1, steps=5)
    told: list[float] = []
    one = synthetic_lda.run(config, synthetic_lda.load(config), told.append)
    two = synthetic_lda.run(config, synthetic_lda.load(config))
    assert_same(one, two)
    assert told == pytest.approx(np.arange(1, 8) / 7)
    assert isinstance(synthetic_lda.load(config)[0], Topics)


def test_claims_and_pictures_of_generated_topics(
    synthetic: synthetic_lda.Result, tmp_path: Path
) -> None:
    found = synthetic_lda.claims(synthetic)
    share = f"{100 * synthetic.complete('DM-SVI').mean():.0f} % of runs"
    assert found[0].where == "Fig. 3 (c)"
    assert found[0].ours.startswith(share)
    storage.save(synthetic, tmp_path / "result.json")
    again = storage.load(synthetic_lda.Result, tmp_path / "result.json")
    assert_same(again, synthetic)
    kinds = ("topics", "documents", "recovery")
    names = {f"synthetic-lda-{kind}.{end}" for kind in kinds for end in ("png", "svg")}
    assert_pictures(synthetic_lda.plot(again, tmp_path), names)


# news


def test_batches_are_flatter_than_the_data(news: r8.Result) -> None:
    data = news.sizes / news.sizes.sum()
    uniform, ours = news.outcomes["SVI"], news.outcomes["DM-SVI"]
    assert uniform.expected == pytest.approx(data)
    assert ours.expected[0] < data[0]
    assert np.all(ours.expected[1:] > data[1:])
    assert news.outcomes["stratified by class"].expected == pytest.approx(np.full(4, 0.25))
    for outcome in news.outcomes.values():
        draws = NEWS.seeds * NEWS.steps * NEWS.k
        slack = 5 * np.sqrt(outcome.expected * (1 - outcome.expected) / draws)
        assert np.all(np.abs(outcome.drawn - outcome.expected) <= slack)


def test_dm_svi_classifies_no_worse_on_average_over_the_classes(news: r8.Result) -> None:
    svi, ours = news.outcomes["SVI"], news.outcomes["DM-SVI"]
    assert ours.average.mean() >= svi.average.mean()


def test_the_halves_of_the_news_are_seen_as_they_should_be(news: r8.Result) -> None:
    shares = {method: outcome.expected for method, outcome in news.outcomes.items()}
    assert shares["same b"] == pytest.approx(shares["DM-SVI"], abs=1e-9)
    assert shares["uniform b"] == pytest.approx(shares["SVI"], rel=1e-5)
    corpus = make_corpus(NEWS, small_news())
    words = np.bincount(corpus.y, weights=np.asarray(corpus.counts.sum(axis=1)).ravel())
    assert shares["by length"] == pytest.approx(words / words.sum(), abs=1e-9)
    assert set(news.defaults) == set(news.outcomes)
    assert_halves(r8, news)


def test_every_method_of_the_news_is_made_once() -> None:
    corpus = make_corpus(NEWS, small_news())
    made = designs(NEWS, corpus)
    assert set(made) == {*METHODS, "same b"}
    for method, build in METHODS.items():
        assert made[method].fingerprint() == build(NEWS, corpus).fingerprint()
    b = made["DM-SVI"].inclusion()
    assert made["same b"].inclusion() == pytest.approx(b, abs=1e-9)
    assert np.corrcoef(b, made["unit rows"].inclusion())[0, 1] < 0.999


def test_measures_of_the_news_agree_with_each_other(news: r8.Result) -> None:
    sizes = np.array([60, 20, 10, 10])
    for outcome in news.outcomes.values():
        assert outcome.confusion.sum(axis=1) == pytest.approx(np.ones(4))
        assert outcome.accuracy.mean(axis=0) == pytest.approx(np.diagonal(outcome.confusion))
        assert outcome.total == pytest.approx(outcome.accuracy @ sizes / 100)
        assert outcome.plane.shape == (8, 2)
        assert [len(words) for words in outcome.top_words] == [10] * 8
    for name, scores in news.defaults.items():
        assert scores.shape == (NEWS.seeds, 2)
        assert np.all((scores > 0.25) & (scores <= 1)), name


def test_claims_and_pictures_of_the_news(news: r8.Result, tmp_path: Path) -> None:
    found = r8.claims(news)
    for number in ("82.11", "87.24", "+5.13", "94.11", "94.70"):
        assert number in paper_numbers(found)
    ours, svi = news.outcomes["DM-SVI"], news.outcomes["SVI"]
    seeds = np.array([[0.02], [-0.01], [-0.01], [0.0], [0.0]])
    half = margin(seeds)
    for lead, expected in ((0.0, False), (half - 1e-6, False), (half + 1e-6, True)):
        other = replace(ours, accuracy=svi.accuracy + lead + seeds)
        made = replace(news, outcomes=news.outcomes | {"DM-SVI": other})
        gain = next(claim for claim in r8.claims(made) if claim.paper == "+5.13")
        assert gain.ours == f"{100 * lead:+.2f} ± {100 * half:.2f}"
        assert gain.holds is expected
    storage.save(news, tmp_path / "result.json")
    again = storage.load(r8.Result, tmp_path / "result.json")
    assert_same(again, news)
    kinds = ("class-shares", "confusion", "topics", "halves")
    names = {f"r8-{kind}.{end}" for kind in kinds for end in ("png", "svg")}
    assert_pictures(r8.plot(again, tmp_path), names | {"r8-top-words.md"})
    table = (tmp_path / "r8-top-words.md").read_text()
    assert " ".join(ours.top_words[7]) in table
    assert table.count("| ") > 2 * 8


def test_the_search_scores_settings_without_the_test_documents() -> None:
    data = small_news()
    blind = replace(data, test=data.test[:1], y_test=data.y_test[:1])
    configs = [NEWS, replace(NEWS, penalty=1e-6)]
    scores = search.search(data, configs, seeds=1)
    assert scores.shape == (2, 2, 1, 2)  # settings, methods, seeds, (average, total)
    assert np.array_equal(scores, search.search(blind, configs, seeds=1))
    assert search.best(configs, scores) is NEWS  # an SVM without force calls all class a
    assert scores[1, :, :, 0] == pytest.approx(np.full((2, 1), 0.25), abs=0.02)


def test_random_settings_are_reproducible_and_differ() -> None:
    one, two = search.candidates(5, seed=1), search.candidates(5, seed=1)
    assert one == two
    assert len(set(one)) == 5


def test_unknown_form_of_the_topic_proportions_is_refused() -> None:
    with pytest.raises(ValueError, match="'plain' or 'root'"):
        features(replace(NEWS, form="log"), np.ones((2, 2)))


# costs


def test_costs_are_positive_and_shares_are_of_the_same_round(cost: r8_cost.Result) -> None:
    assert set(cost.sampling) == set(cost.setup)
    for seconds in (*cost.sampling.values(), *cost.update.values()):
        assert seconds.shape == (2, 2)
        assert np.all(seconds > 0)
    assert all(np.all(seconds > 0) for seconds in cost.setup.values())
    sampling = {DEFAULT: np.array([[1.0, 3.0], [2.0, 4.0]])}
    update = {EARLY: np.array([[100.0, 100.0], [50.0, 100.0]])}
    made = replace(cost, sampling=sampling, update=update)
    assert made.share(DEFAULT, EARLY).tolist() == [[1, 3], [4, 4]]


def test_a_batch_is_cheap_only_if_the_whole_interval_is(cost: r8_cost.Result) -> None:
    rounds = np.array([[0.5, 1.9], [0.6, 1.8], [0.5, 1.9], [0.6, 1.8], [0.8, 2.1]])
    cheap = rounds  # percent of an update
    made = replace(cost, sampling=cost.sampling | {DEFAULT: cheap / 100})
    made = replace(made, update={name: np.ones((5, 2)) for name in cost.update})
    found = [claim for claim in r8_cost.claims(made) if claim.where == "Table 1"]
    assert [claim.ours for claim in found] == 2 * ["0.60 ± 0.15", "1.90 ± 0.15"]
    assert [claim.holds for claim in found] == 2 * [True, False]
    assert all(claim.holds is None for claim in r8_cost.claims(cost))  # two rounds say nothing
    assert [name for name in cost.update if name in found[2].statement] == [EARLY]


def test_claims_and_picture_of_the_costs(cost: r8_cost.Result, tmp_path: Path) -> None:
    found = r8_cost.claims(cost)
    for number in ("0.114", "1.097", "9.8 146.8", "1 13.9", "877.7 1253"):
        assert number in paper_numbers(found)
    assert "8.971" not in paper_numbers(found)  # k = 80 was not run
    storage.save(cost, tmp_path / "result.json")
    again = storage.load(r8_cost.Result, tmp_path / "result.json")
    assert_same(again, cost)
    assert_pictures(r8_cost.plot(again, tmp_path), {"r8-cost.png", "r8-cost.svg"})


# the real data


def test_the_kdpp_balances_the_classes_of_r8() -> None:
    folder = os.environ.get("DMSGD_DATA")
    if folder is None or not (Path(folder) / "r8/train.txt.gz").exists():
        pytest.skip("DMSGD_DATA names no folder with r8/train.txt.gz")
    data = r8.load(r8.Config(), folder)
    config = replace(r8.Config(), min_df=20)
    corpus = make_corpus(config, data)
    assert np.bincount(corpus.y).tolist() == [2840, 1596, 253, 251, 206, 190, 108, 41]
    assert corpus.counts.shape[1] == len(corpus.words) == corpus.test_counts.shape[1]
    design = METHODS["DM-SVI"](config, corpus)
    shares = np.bincount(corpus.y, design.inclusion()) / config.k
    assert shares[0] < 0.8 * 2840 / 5485
    assert shares[-1] > 1.3 * 41 / 5485
