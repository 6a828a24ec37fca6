"""Topics of very unequal shares: the documents, and the two budgets."""

from __future__ import annotations

import numpy as np
import pytest

import dmsgd
from experiments.datasets import UnequalTopics
from experiments.models.budgets import looks
from experiments.models.topics import Inference
from experiments.topics import FOUND, Setting

INFERENCE = Inference(alpha=0.125, eta=0.125, offset=10.0, decay=0.7, iterations=10)


def test_shares_fall_from_a_fifth_to_a_five_thousandth() -> None:
    shares = Setting(0).shares
    assert shares.sum() == pytest.approx(1)
    assert (shares[0], shares[-1]) == pytest.approx((0.2, 0.0002), rel=0.02)


def test_documents_are_as_they_are_said_to_be() -> None:
    shares = Setting(0).shares
    made = UnequalTopics(20_000, 1000, shares, seed=3)
    assert made.counts.shape == (20_000, 1000)
    assert np.bincount(made.main)[:3] / 20_000 == pytest.approx(shares[:3], rel=0.05)
    assert (made.lengths.min(), np.median(made.lengths)) == (10, 40)
    np.testing.assert_allclose(made.topics.sum(axis=1), 1)
    apart = np.abs(made.topics[:, None] - made.topics).sum(axis=2)[np.triu_indices(32, 1)] / 2
    assert apart.min() > 2 * FOUND  # an equal mixture of two is neither
    # A fifth of the words of a topic's documents are from all topics together.
    for topic in (0, 1):
        own = np.asarray(made.counts[made.main == topic].sum(axis=0)).ravel()
        likely = 0.8 * made.topics[topic] + 0.2 * shares @ made.topics
        assert np.abs(own / own.sum() - likely).sum() / 2 < 0.02
    frequency = np.sort(np.asarray(made.counts.sum(axis=0)).ravel())[::-1]
    assert frequency[0] > 10 * frequency[99] > 0  # few words are most of the text
    again = UnequalTopics(20_000, 1000, shares, seed=3)
    assert (again.counts != made.counts).nnz == 0


def test_both_budgets_by_hand() -> None:
    """Ten documents of one word and ten of nine: the design that draws the long reads faster."""
    counts = np.zeros((20, 2))
    counts[:10, 0], counts[10:, 1] = 1, 9
    uneven = dmsgd.Weighted(np.repeat([1e-9, 0.2], 10) * 2 / (2 + 1e-8), k=2)
    seen = [
        (clock, budget, model.n_batch_iter_ - 1)
        for clock, budget, model in looks(counts, uneven, (4, 10), 2, INFERENCE, 0)
    ]
    # 18 words an update; budgets of 4 and 10 batches of 10 words are passed at updates 3 and 6.
    assert seen == [("words", 0, 3), ("updates", 0, 4), ("words", 1, 6), ("updates", 1, 10)]


def test_a_design_that_never_reads_enough_says_so() -> None:
    counts = np.zeros((20, 2))
    counts[:10, 0], counts[10:, 1] = 1, 9
    short = dmsgd.Weighted(np.repeat([0.2, 1e-9], 10) * 2 / (2 + 1e-8), k=2)
    with pytest.raises(RuntimeError, match="short"):
        list(looks(counts, short, (4,), 2, INFERENCE, 0))
