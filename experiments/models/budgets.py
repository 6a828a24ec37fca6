"""Topics learnt within a budget: of updates, or of words read.

Designs that prefer long documents read more in an update, and so cost more: an update is as dear as
its words. Both clocks are therefore kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from dmsgd.lda import train
from experiments.models.topics import Inference, topic_model

#: At most so many times the largest budget of updates are made until the words are read.
PATIENCE = 3


def looks(
    counts: Any,
    design: Any,
    budgets: Sequence[int],
    topics: int,
    inference: Inference,
    seed: int,
) -> Iterator[tuple[str, int, Any]]:
    """Yield ("updates" or "words", number of the budget, LDA at that time), as they come.

    A budget of t updates is also one of the words in t average batches of uniform ones. The model
    that is yielded is trained on afterwards.
    """
    lengths = np.asarray(counts.sum(axis=1)).ravel()
    word_budgets = design.k * lengths.mean() * np.array(budgets)
    model = topic_model(design, topics, inference, seed)
    words, made, read = 0.0, 0, 0
    for update in train(model, counts, design, PATIENCE * budgets[-1], seed):
        words += float(lengths[update.batch].sum())
        if made < len(budgets) and update.step + 1 == budgets[made]:
            yield "updates", made, model
            made += 1
        while read < len(budgets) and words >= word_budgets[read]:
            yield "words", read, model
            read += 1
        if made == read == len(budgets):
            return
    raise RuntimeError(
        f"{PATIENCE * budgets[-1]} updates read {words:.0f} words, and {word_budgets[-1]:.0f} were "
        f"to be read: the design draws short documents alone"
    )
