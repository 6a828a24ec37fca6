"""Topics, accuracies and class shares of every method and seed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import dmsgd
from dmsgd import datasets
from dmsgd.inputs.arrays import FloatArray, IntArray
from dmsgd.paper.models.topics import Inference, learn_topics, redundancy, word_distributions
from dmsgd.paper.protocol import Progress
from dmsgd.paper.r8.classifier import classifier, features
from dmsgd.paper.r8.corpus import Corpus, designs, make_corpus
from dmsgd.paper.r8.result import Config, Outcome, Result
from dmsgd.paper.trials import run_trials

#: Words of a topic that are listed.
TOP_WORDS = 10

#: scikit-learn's defaults for 30 topics: what one gets without a search.
DEFAULTS = Inference(alpha=1 / 30, eta=1 / 30, offset=10.0, decay=0.7, iterations=100)


def load(config: Config, data_dir: str | None = None) -> datasets.R8:
    """Return the documents."""
    return datasets.r8(data_dir, config.variant).thinned(config.documents)


def run(config: Config, data: datasets.R8, progress: Progress | None = None) -> Result:
    """Return accuracies, class shares and topics of all methods."""
    corpus = make_corpus(config, data)
    classes, seeds = len(data.names), range(config.seeds)
    expected, schedules = {}, {}
    for method, design in designs(config, corpus).items():
        expected[method] = np.bincount(corpus.y, design.inclusion(), classes) / config.k
        schedules[method] = [dmsgd.presample(design, config.steps, seed) for seed in seeds]
    methods = tuple(schedules)
    kinds = [
        (inference, method) for inference in (config.inference, DEFAULTS) for method in methods
    ]
    jobs = [
        (config, inference, corpus, classes, schedules[method][seed], seed)
        for inference, method in kinds
        for seed in seeds
    ]
    trials = run_trials(_trial, jobs, progress, config.workers)
    first_topics = np.array([trial.topics for trial in trials[:: config.seeds]][: len(methods)])
    planes = _planes(first_topics)
    outcomes = {}
    for number, method in enumerate(methods):
        own = trials[number * config.seeds : (number + 1) * config.seeds]
        confusion = np.array([trial.confusion for trial in own])
        rows = confusion.sum(axis=2, keepdims=True)
        drawn = np.concatenate([schedule.sample(config.steps) for schedule in schedules[method]])
        outcomes[method] = Outcome(
            confusion=(confusion / rows).mean(axis=0),
            accuracy=np.diagonal(confusion / rows, axis1=1, axis2=2),
            total=np.trace(confusion, axis1=1, axis2=2) / corpus.test_y.size,
            redundancy=np.array([trial.redundancy for trial in own]),
            expected=expected[method],
            drawn=np.bincount(corpus.y[drawn].ravel(), minlength=classes) / drawn.size,
            plane=planes[number],
            top_words=_top_words(first_topics[number], corpus.words),
        )
    scores = [_scores(trial.confusion) for trial in trials[len(methods) * config.seeds :]]
    defaults = {
        method: np.array(scores[number * config.seeds : (number + 1) * config.seeds])
        for number, method in enumerate(methods)
    }
    sizes = np.bincount(corpus.y, minlength=classes).astype(np.int64)
    return Result(config, data.names, sizes, outcomes, defaults)


def _scores(confusion: IntArray) -> tuple[float, float]:
    """Return average and total accuracy."""
    right = np.diagonal(confusion)
    return float((right / confusion.sum(axis=1)).mean()), float(right.sum() / confusion.sum())


@dataclass(frozen=True, eq=False)
class _Trial:
    confusion: IntArray
    redundancy: float
    topics: FloatArray


def _trial(
    config: Config,
    inference: Inference,
    corpus: Corpus,
    classes: int,
    schedule: dmsgd.Schedule,
    seed: int,
) -> _Trial:
    from sklearn.metrics import confusion_matrix

    model = learn_topics(corpus.counts, schedule, config.steps, config.topics, inference, seed)
    theta, test_theta = model.transform(corpus.counts), model.transform(corpus.test_counts)
    svm = classifier(config).fit(features(config, theta), corpus.y)
    guess = svm.predict(features(config, test_theta))
    confusion = confusion_matrix(corpus.test_y, guess, labels=range(classes))
    topics = word_distributions(model)
    return _Trial(confusion, redundancy(topics), topics)


def _planes(topics: FloatArray) -> FloatArray:
    """Return the first two principal components of (methods, topics, words), the same for all."""
    flat = topics.reshape(-1, topics.shape[-1])
    centred = flat - flat.mean(axis=0)
    _, _, axes = np.linalg.svd(centred, full_matrices=False)
    return np.asarray((centred @ axes[:2].T).reshape(*topics.shape[:2], 2))


def _top_words(topics: FloatArray, words: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    best = np.argsort(-topics, axis=1)[:, :TOP_WORDS]
    return tuple(tuple(words[w] for w in row) for row in best)
