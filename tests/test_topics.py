"""Topics of very unequal shares: the documents, the two clocks, and a tiny run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import dmsgd
from dmsgd.commands.reproduce import experiment
from dmsgd.paper import storage
from dmsgd.paper.models.budgets import looks
from dmsgd.paper.topics.claims import rarest, summary
from dmsgd.paper.topics.documents import documents
from dmsgd.paper.topics.result import ARMS, CLUSTERED, KDPP, LENGTH, PAIRS, UNIFORM, UNIT, Result
from dmsgd.paper.topics.run import DESIGNS

topics = experiment("topics")

SMALL = replace(
    topics.Config(), seeds=5, large_seeds=2, sizes=(300, 400), large=400, k=20, budgets=(3, 10),
    topics=8, words=150, true_topics=6, ratio=0.6, alpha=0.125, eta=0.125, iterations=10,
)  # fmt: skip


@pytest.fixture(scope="module")
def small() -> Result:
    return topics.run(SMALL, topics.load(SMALL))


def test_shares_fall_from_a_fifth_to_a_five_thousandth() -> None:
    shares = topics.Config().shares
    assert shares.sum() == pytest.approx(1)
    assert (shares[0], shares[-1]) == pytest.approx((0.2, 0.0002), rel=0.02)


def test_documents_are_as_they_are_said_to_be() -> None:
    config = topics.Config()
    made = documents(config, 20_000, seed=3)
    assert made.counts.shape == (20_000, 1000)
    assert np.bincount(made.main, minlength=32)[:3] / 20_000 == pytest.approx(
        config.shares[:3], rel=0.05
    )
    assert (made.lengths.min(), np.median(made.lengths)) == (10, 40)
    np.testing.assert_allclose(made.topics.sum(axis=1), 1)
    apart = np.abs(made.topics[:, None] - made.topics).sum(axis=2)[np.triu_indices(32, 1)] / 2
    assert apart.min() > 2 * config.threshold  # an equal mixture of two is neither
    # A fifth of the words of a topic's documents are from all topics together.
    for topic in (0, 1):
        own = np.asarray(made.counts[made.main == topic].sum(axis=0)).ravel()
        likely = 0.8 * made.topics[topic] + 0.2 * config.shares @ made.topics
        assert np.abs(own / own.sum() - likely).sum() / 2 < 0.02
    frequency = np.sort(np.asarray(made.counts.sum(axis=0)).ravel())[::-1]
    assert frequency[0] > 10 * frequency[99] > 0  # few words are most of the text
    again = documents(config, 20_000, seed=3)
    assert (again.counts != made.counts).nnz == 0


def test_both_clocks_by_hand() -> None:
    """Ten documents of one word and ten of nine: the design that draws the long reads faster."""
    counts = np.zeros((20, 2))
    counts[:10, 0], counts[10:, 1] = 1, 9
    inference = SMALL.inference
    uneven = dmsgd.Weighted(np.repeat([1e-9, 0.2], 10) * 2 / (2 + 1e-8), k=2)
    seen = [
        (clock, budget, model.n_batch_iter_ - 1)
        for clock, budget, model in looks(counts, uneven, (4, 10), 2, inference, 0)
    ]
    # 18 words an update; budgets of 4 and 10 batches of 10 words are passed at updates 3 and 6.
    assert seen == [("words", 0, 3), ("updates", 0, 4), ("words", 1, 6), ("updates", 1, 10)]


def test_a_design_that_never_reads_enough_says_so() -> None:
    counts = np.zeros((20, 2))
    counts[:10, 0], counts[10:, 1] = 1, 9
    short = dmsgd.Weighted(np.repeat([0.2, 1e-9], 10) * 2 / (2 + 1e-8), k=2)
    with pytest.raises(RuntimeError, match="12 updates read 24 words, and 40 were to be read"):
        list(looks(counts, short, (4,), 2, SMALL.inference, 0))


def test_same_b_is_the_inclusion_of_its_kdpp() -> None:
    data = documents(SMALL, 300, 0)
    for kdpp, same_b in PAIRS.items():
        both = [DESIGNS[arm](SMALL, data, 0) for arm in (kdpp, same_b)]
        np.testing.assert_allclose(*(design.inclusion() for design in both), rtol=1e-6)
        assert isinstance(both[1], dmsgd.Weighted)


def test_every_size_has_its_designs_and_seeds(small: Result) -> None:
    assert [each.arm for each in small.outcomes if each.size == 300] == list(ARMS)
    large = [each for each in small.outcomes if each.size == 400]
    assert [each.arm for each in large] == [arm for arm in ARMS if arm != CLUSTERED]
    for each in small.outcomes:
        seeds = 5 if each.size == 300 else 2
        assert each.by_updates.shape == each.by_words.shape == (seeds, 2)
        assert each.distance.shape == each.distance_by_words.shape == (seeds, 6)
        for clock in ("updates", "words"):
            hits = each.hits(clock, SMALL.threshold).sum(axis=1)
            assert (hits == each.found(clock)[:, -1]).all()


def test_rare_topics_are_seen_more_and_long_documents_read_more(small: Result) -> None:
    uniform, length, kdpp, unit = (small.of(300, arm) for arm in (UNIFORM, LENGTH, KDPP, UNIT))
    assert uniform.expected == pytest.approx(np.ones(6))
    assert uniform.words == pytest.approx(1)
    assert length.words > kdpp.words > 1 > unit.words
    assert unit.expected[0] < 1 < unit.expected[-1]


def test_the_same_seeds_give_the_same_result(small: Result) -> None:
    one = replace(SMALL, seeds=2, sizes=(300,), large=301)
    again = topics.run(one, topics.load(one)).of(300, KDPP)
    np.testing.assert_allclose(again.distance, small.of(300, KDPP).distance[:2], rtol=1e-9)


def test_claims_tables_and_pictures(small: Result, tmp_path: Path) -> None:
    storage.save(small, tmp_path / "result.json")
    result = storage.load(topics.Result, tmp_path / "result.json")
    found = topics.claims(result)
    assert all(claim.where == "beyond" for claim in found)
    ours, theirs = (result.of(300, arm).by_words[:, -1] for arm in (UNIT, UNIFORM))
    claim = next(
        each
        for each in found
        if each.statement == "N = 300: topics found after the words of 10 uniform batches, "
        "k-DPP, unit rows minus uniform"
    )
    assert claim.ours.startswith(f"{(ours - theirs).mean():+.1f} ± ")
    for each in topics.halves(result):
        whole, seen, meets = each.differences.values()
        assert seen[0] + meets[0] == pytest.approx(whole[0])
    head, *rows = summary(result)
    assert [len(row) for row in rows] == [len(head)] * 13
    assert [row[0] for row in rows if row[0]] == ["300", "400"]
    paths = topics.plot(result, tmp_path)
    assert {path.name for path in paths if path.suffix == ".png"} == {
        "topics-shares.png",
        "topics-updates.png",
    }
    assert all(path.stat().st_size > 2000 for path in paths)


def test_the_rarest_topic_that_half_of_the_runs_find(small: Result) -> None:
    each = small.of(300, UNIFORM)
    distance = np.ones_like(each.distance)
    distance[:, 0], distance[:3, 3], distance[:2, 5] = 0.1, 0.1, 0.1
    assert rarest(small, replace(each, distance=distance)) == pytest.approx(SMALL.shares[3])
    assert rarest(small, replace(each, distance=np.ones_like(distance))) == 1
