"""DM-SVI, the paper's Algorithm 2: stochastic variational inference for LDA on diverse batches.

Each batch of S = k documents out of D = n makes one update of the topics λ,

    λ~ = η + (D/S) Σ_{s in batch} n_sw φ_swk,      λ <- (1 - ρ_t) λ + ρ_t λ~,   ρ_t = (τ0 + t)^-κ.

scikit-learn and gensim make exactly this update with the settings that `sklearn_settings` and
`gensim_settings` return.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, final

from dmsgd.designs.stream import Source, as_indexable, check_design, is_numbered, take
from dmsgd.inputs.arrays import IntArray, as_matrix
from dmsgd.inputs.messages import kind_of
from dmsgd.inputs.scalars import Seed


@final
@dataclass(frozen=True, eq=False)
class Update:
    """One update of the topics: number of the batch, its documents, and learning rate ρ_t."""

    step: int
    batch: IntArray
    rate: float


def sklearn_settings(design: Source) -> dict[str, int]:
    """Return the arguments of LatentDirichletAllocation for one update per batch.

    >>> from dmsgd import Uniform
    >>> sklearn_settings(Uniform(n=5485, k=80))
    {'batch_size': 80, 'total_samples': 5485}
    """
    check_design(design)
    return {"batch_size": design.k, "total_samples": design.n}


def train(
    model: Any, counts: Any, design: Source, steps: int, seed: Seed = 0, start: int = 0
) -> Iterator[Update]:
    """Return an iterator that calls `partial_fit` once per batch and yields an `Update` after it.

    model:  a scikit-learn LatentDirichletAllocation, new or already trained, with
            `sklearn_settings(design)`. It counts t from 1 over its life (`n_batch_iter_`), whatever
            `start` is, so further training continues with the learning rates where it stopped.
    counts: (n, words) document-word counts: array, CSR, pandas or polars.

    Raises ValueError if the model has other settings, or a count is negative.

    >>> import dmsgd, numpy as np
    >>> from sklearn.decomposition import LatentDirichletAllocation
    >>> counts = np.random.default_rng(0).poisson(0.5, size=(60, 12))
    >>> design = dmsgd.diversify(counts, k=5)
    >>> model = LatentDirichletAllocation(3, **sklearn_settings(design))
    >>> [round(record.rate, 4) for record in train(model, counts, design, steps=2)]
    [0.1866, 0.1756]
    """
    counts = as_indexable(counts, "counts")
    check_design(design, counts.shape[0], "counts")
    if as_matrix(counts, "counts", allow_tiny=True).min() < 0:  # now, not in mid-training
        raise ValueError("counts has negative entries; word counts are at least 0")
    if not hasattr(model, "partial_fit") or not hasattr(model, "total_samples"):
        raise TypeError(f"model must be a LatentDirichletAllocation, got {kind_of(model)}")
    if model.batch_size < design.k or model.total_samples != design.n:
        raise ValueError(
            f"the model has batch_size={model.batch_size} and total_samples="
            f"{model.total_samples:g}; one update per batch needs batch_size >= {design.k} and "
            f"total_samples = {design.n}: use model.set_params(**sklearn_settings(design))"
        )
    batches = design.stream(seed).batches(start, steps)

    def updates() -> Iterator[Update]:
        for t, batch in batches:
            age = getattr(model, "n_batch_iter_", 1)
            model.partial_fit(take(counts, batch))
            rate = float((model.learning_offset + age) ** -model.learning_decay)
            yield Update(t, batch, rate)

    return updates()


def gensim_settings(design: Source) -> dict[str, int]:
    """Return the arguments of gensim's LdaModel for one update per batch.

    >>> from dmsgd import Uniform
    >>> gensim_settings(Uniform(n=5485, k=80))
    {'chunksize': 80, 'update_every': 1, 'passes': 1}
    """
    check_design(design)
    return {"chunksize": design.k, "update_every": 1, "passes": 1}


@final
class GensimCorpus:
    """The documents of `steps` batches, one after the other: a corpus for gensim's LdaModel.

    corpus: n documents [(word, count), ...] that can be indexed: a list, an indexed MmCorpus, a
            Sparse2Corpus.

    gensim takes the length of its corpus, here steps * k, for the number of documents; use
    `train_gensim`, which takes n. Pass id2word to LdaModel: without it gensim takes the vocabulary
    from the documents drawn. LdaMulticore makes one update for several chunks: it is not DM-SVI.

    >>> from dmsgd import Uniform
    >>> documents = [[(i, 1)] for i in range(9)]
    >>> corpus = GensimCorpus(documents, Uniform(n=9, k=4), steps=3)
    >>> len(corpus), len(list(corpus)), list(corpus) == list(corpus)
    (12, 12, True)
    """

    def __init__(
        self, corpus: Any, design: Source, steps: int, seed: Seed = 0, start: int = 0
    ) -> None:
        if hasattr(corpus, "tocsr"):
            advice = "gensim.matutils.Sparse2Corpus(counts, documents_columns=False)"
            raise TypeError(f"corpus is a sparse matrix; pass {advice}")
        if not is_numbered(corpus):
            raise TypeError(f"corpus must be a list or an indexed corpus, got {kind_of(corpus)}")
        check_design(design, len(corpus), "corpus")
        self.corpus, self.design, self.steps, self.start = corpus, design, steps, start
        self._stream = design.stream(seed)
        self._stream.batches(start, steps)  # raises now if they are no counts, or too many

    def __len__(self) -> int:
        return self.steps * self.design.k

    def __iter__(self) -> Iterator[Any]:
        for _, batch in self._stream.batches(self.start, self.steps):
            for document in batch.tolist():
                yield self.corpus[document]


def train_gensim(model: Any, corpus: GensimCorpus) -> None:
    """Make one update of gensim's `model` for every batch of `corpus`, for n documents in all.

    gensim counts t from 0 over the model's life: the learning rate is (offset + t)^-decay.

    >>> from dmsgd import Uniform
    >>> from gensim.models import LdaModel
    >>> design, words = Uniform(n=9, k=4), {i: f"word{i}" for i in range(9)}
    >>> model = LdaModel(id2word=words, num_topics=2, random_state=0, **gensim_settings(design))
    >>> train_gensim(model, GensimCorpus([[(i, 1)] for i in range(9)], design, steps=3))
    >>> model.num_updates
    12
    """
    if not isinstance(corpus, GensimCorpus):
        raise TypeError(f"corpus must be a GensimCorpus, got {type(corpus).__name__}")
    if not (hasattr(model, "update") and hasattr(getattr(model, "state", None), "numdocs")):
        raise TypeError(f"model must be gensim's LdaModel, got {type(model).__name__}")
    if not len(corpus):
        return  # gensim would return before it adds anything to numdocs
    model.state.numdocs = corpus.design.n - len(corpus)  # `update` adds len(corpus) to get D
    model.update(corpus, **gensim_settings(corpus.design))
