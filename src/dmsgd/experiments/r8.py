"""The paper's Figures 4 to 6 and its tables of top words: topics of Reuters R8 as features.

LDA is trained for one effective pass, 69 updates of 80 documents, with uniform batches (SVI) and
with batches from a k-DPP (DM-SVI), whose kernel is linear in tf-idf to the power of 0.1. A linear
SVM then tells the eight classes apart by a document's topic proportions. Topics and SVM are learnt
from the training documents alone. *Average* accuracy is the mean over the classes, *total* accuracy
the share of all documents.

Two more designs stand beside them: pre-clustering (k-means on tf-idf, no labels), and stratified
sampling by class, which uses the labels that the paper withholds from LDA.

With rho = 0.1 and k much smaller than the rank, b_i is nearly proportional to the number of
distinct words in a document (correlation 0.99): the k-DPP balances the classes of R8 because news
about earnings is short and repeats itself. With rows scaled to length 1 (`dmsgd.normalize`) it
shifts the classes half as far, and accuracies in cross-validation were those of SVI.

The paper states neither the vocabulary nor the priors, the learning rate, the local iterations or
the SVM. `r8_search` chose them, the same for all methods, on the training documents alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import dmsgd
from dmsgd import datasets
from dmsgd.experiments import r8_claims, r8_figures
from dmsgd.experiments.protocol import Claim, Progress
from dmsgd.experiments.topics import Inference, learn_topics, redundancy, word_distributions
from dmsgd.experiments.trials import run_trials
from dmsgd.inputs.arrays import FloatArray, IntArray

TITLE = "Fig. 4 to 6: news topics as features, SVI against DM-SVI on Reuters R8"

#: Words of a topic that are listed.
TOP_WORDS = 10


@dataclass(frozen=True)
class Config:
    """What is run. k, steps, topics and rho are the paper's; see `r8_search` for the others.

    documents:    training documents, None for all; fewer make an eigendecomposition of seconds.
    variant:      "no-short" (words of three letters or more, as in the paper's tables) or
                  "all-terms".
    min_df:       a word of the vocabulary is in at least so many training documents.
    stop_words:   leave out scikit-learn's English stop words.
    alpha to iterations: see `topics.Inference`.
    form:         what the SVM sees of the topic proportions θ: "plain" or "root" (√θ).
    penalty:      C of the SVM.
    """

    seeds: int = 10
    k: int = 80
    steps: int = 69
    topics: int = 30
    rho: float = 0.1
    documents: int | None = None
    variant: str = "no-short"
    min_df: int = 5
    stop_words: bool = True
    alpha: float = 0.3
    eta: float = 1.0
    offset: float = 1.0
    decay: float = 0.5
    iterations: int = 5
    form: str = "root"
    penalty: float = 10.0
    workers: int = 1

    @property
    def inference(self) -> Inference:
        """The settings of LDA's inference."""
        return Inference(self.alpha, self.eta, self.offset, self.decay, self.iterations)


QUICK = Config(seeds=2, steps=25, documents=2000)

#: scikit-learn's defaults for 30 topics: what one gets without a search.
DEFAULTS = Inference(alpha=1 / 30, eta=1 / 30, offset=10.0, decay=0.7, iterations=100)

#: The methods that are also run with DEFAULTS.
COMPARED = ("SVI", "DM-SVI")


@dataclass(frozen=True, eq=False)
class Corpus:
    """R8 as numbers: word counts, tf-idf and classes; `words` names the columns."""

    counts: Any
    tfidf: Any
    y: IntArray
    test_counts: Any
    test_y: IntArray
    words: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Outcome:
    """What one method did. Topics and words are those of the first seed.

    confusion:  (classes, classes) share of the documents of a class (row) taken for another
                (column); mean over seeds.
    accuracy:   (seeds, classes) the diagonal, for each seed.
    total:      (seeds,) share of all test documents that are classified rightly.
    redundancy: (seeds,) mean cosine between two topics.
    expected:   (classes,) expected share of a batch by class, from `inclusion()`.
    drawn:      (classes,) the share in the batches that were used, all seeds together.
    plane:      (topics, 2) topics on the first two principal components of all methods' topics.
    top_words:  the most probable words of each topic.
    """

    confusion: FloatArray
    accuracy: FloatArray
    total: FloatArray
    redundancy: FloatArray
    expected: FloatArray
    drawn: FloatArray
    plane: FloatArray
    top_words: tuple[tuple[str, ...], ...]

    @property
    def average(self) -> FloatArray:
        """Mean accuracy over the classes, one value per seed."""
        return np.asarray(self.accuracy.mean(axis=1))


@dataclass(frozen=True, eq=False)
class Result:
    """All methods; `names` and `sizes` are the classes and their training documents.

    defaults: SVI and DM-SVI with DEFAULTS, shape (seeds, 2): average and total accuracy.
    """

    config: Config
    names: tuple[str, ...]
    sizes: IntArray
    outcomes: dict[str, Outcome]
    defaults: dict[str, FloatArray]


#: How a method draws its batches: (config, corpus) -> design.
METHODS: dict[str, Callable[[Config, Corpus], dmsgd.Design]] = {
    "SVI": lambda config, corpus: dmsgd.Uniform(corpus.y.size, config.k),
    "DM-SVI": lambda config, corpus: dmsgd.diversify(
        dmsgd.anneal(corpus.tfidf, config.rho), config.k
    ),
    "pre-clustered": lambda config, corpus: dmsgd.clustered(corpus.tfidf, config.k),
    "stratified by class": lambda config, corpus: dmsgd.Stratified(corpus.y, config.k),
}


def load(config: Config, data_dir: str | None = None) -> datasets.R8:
    """Return the documents."""
    return datasets.r8(data_dir, config.variant).thinned(config.documents)


def make_corpus(config: Config, data: datasets.R8) -> Corpus:
    """Return counts and tf-idf (rows of length 1); the vocabulary is that of the training part."""
    from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer

    vectorizer = CountVectorizer(
        token_pattern=r"\S+",
        min_df=config.min_df,
        stop_words="english" if config.stop_words else None,
    )
    counts = vectorizer.fit_transform(data.train).astype(np.float64)
    return Corpus(
        counts,
        TfidfTransformer().fit_transform(counts),
        data.y_train,
        vectorizer.transform(data.test).astype(np.float64),
        data.y_test,
        tuple(vectorizer.get_feature_names_out().tolist()),
    )


def run(config: Config, data: datasets.R8, progress: Progress | None = None) -> Result:
    """Return accuracies, class shares and topics of all methods."""
    corpus = make_corpus(config, data)
    classes, seeds = len(data.names), range(config.seeds)
    expected, schedules = {}, {}
    for method, build in METHODS.items():
        design = build(config, corpus)
        expected[method] = np.bincount(corpus.y, design.inclusion(), classes) / config.k
        schedules[method] = [dmsgd.presample(design, config.steps, seed) for seed in seeds]
    kinds = [(config.inference, method) for method in METHODS]
    kinds += [(DEFAULTS, method) for method in COMPARED]
    jobs = [
        (config, inference, corpus, classes, schedules[method][seed], seed)
        for inference, method in kinds
        for seed in seeds
    ]
    trials = run_trials(_trial, jobs, progress, config.workers)
    first_topics = np.array([trial.topics for trial in trials[:: config.seeds]][: len(METHODS)])
    planes = _planes(first_topics)
    outcomes = {}
    for number, method in enumerate(METHODS):
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
    scores = [_scores(trial.confusion) for trial in trials[len(METHODS) * config.seeds :]]
    defaults = {
        method: np.array(scores[number * config.seeds : (number + 1) * config.seeds])
        for number, method in enumerate(COMPARED)
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


def features(config: Config, theta: FloatArray) -> FloatArray:
    """Return what the SVM sees of topic proportions."""
    forms = {"plain": np.positive, "root": np.sqrt}
    if config.form not in forms:
        raise ValueError(f"unknown form {config.form!r}; use 'plain' or 'root'")
    return np.asarray(forms[config.form](theta))


def classifier(config: Config) -> Any:
    """Return the linear SVM: hinge loss, one class against one other, classes not weighted."""
    from sklearn.svm import SVC

    return SVC(C=config.penalty, kernel="linear")


def _planes(topics: FloatArray) -> FloatArray:
    """Return the first two principal components of (methods, topics, words), the same for all."""
    flat = topics.reshape(-1, topics.shape[-1])
    centred = flat - flat.mean(axis=0)
    _, _, axes = np.linalg.svd(centred, full_matrices=False)
    return np.asarray((centred @ axes[:2].T).reshape(*topics.shape[:2], 2))


def _top_words(topics: FloatArray, words: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    best = np.argsort(-topics, axis=1)[:, :TOP_WORDS]
    return tuple(tuple(words[w] for w in row) for row in best)


def claims(result: Result) -> list[Claim]:
    """Return the paper's numbers on R8 beside ours."""
    return r8_claims.claims(result)


def plot(result: Result, folder: Path) -> list[Path]:
    """Write class shares, confusion matrices, topics in the plane and the tables of top words."""
    return [
        *r8_figures.class_shares(result, folder),
        *r8_figures.confusions(result, folder),
        *r8_figures.planes(result, folder),
        r8_figures.word_tables(result, folder),
    ]
