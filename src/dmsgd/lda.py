"""DM-SVI, the paper's Algorithm 2: stochastic variational inference for LDA on diverse batches.

Each batch of S = k documents out of D = n makes one update of the topics λ,

    λ~ = η + (D/S) Σ_{s in batch} n_sw φ_swk,      λ <- (1 - ρ_t) λ + ρ_t λ~,   ρ_t = (τ0 + t)^-κ.

The inference is scikit-learn's or gensim's. Both make exactly this update with the settings that
`sklearn_settings` and `gensim_settings` return:

    model = LatentDirichletAllocation(30, **dmsgd.lda.sklearn_settings(design))
    for record in dmsgd.lda.train(model, counts, design, steps=69):
        ...

    model = LdaModel(id2word=words, num_topics=30, **dmsgd.lda.gensim_settings(design))
    dmsgd.lda.train_gensim(model, dmsgd.lda.GensimCorpus(corpus, design, steps=69))
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, final

from scipy import sparse

from dmsgd.designs.stream import Source, as_indexable, check_design, is_numbered, take
from dmsgd.inputs.arrays import IntArray, as_matrix
from dmsgd.inputs.scalars import Seed, as_count


@final
@dataclass(frozen=True, eq=False)
class Update:
    """One update of the topics that has been made.

    step:  number of the batch; start=step+1 continues after it.
    batch: the documents it used, shape (k,).
    rate:  ρ_t, the share of this batch's topics in the new λ.
    """

    step: int
    batch: IntArray
    rate: float


def sklearn_settings(design: Source) -> dict[str, int]:
    """Return the arguments of LatentDirichletAllocation for one update per batch, with D = n.

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
            `sklearn_settings(design)`: a batch_size below k would split a batch into several
            updates, and total_samples is D (its default is a million).
    counts: (n, words) document-word counts: array, CSR, pandas or polars.

    scikit-learn counts t from 1 over the model's life (`n_batch_iter_`), whatever `start` is, so
    further training continues with the learning rates where it stopped.

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
    _check_settings(model, design)
    batches = design.stream(seed).batches(start, steps)

    def updates() -> Iterator[Update]:
        for t, batch in batches:
            age = getattr(model, "n_batch_iter_", 1)
            model.partial_fit(take(counts, batch))
            rate = float((model.learning_offset + age) ** -model.learning_decay)
            yield Update(t, batch, rate)

    return updates()


def _check_settings(model: Any, design: Source) -> None:
    if not hasattr(model, "partial_fit") or not hasattr(model, "total_samples"):
        raise TypeError(
            f"model must be scikit-learn's LatentDirichletAllocation, got {type(model).__name__}"
        )
    if model.batch_size < design.k or model.total_samples != design.n:
        raise ValueError(
            f"the model has batch_size={model.batch_size} and total_samples="
            f"{model.total_samples:g}; one update per batch needs batch_size >= {design.k} and "
            f"total_samples = {design.n}: use model.set_params(**sklearn_settings(design))"
        )


def gensim_settings(design: Source) -> dict[str, int]:
    """Return the arguments of gensim's LdaModel for one update per batch.

    gensim also evaluates the perplexity of every tenth batch for its log; eval_every=None saves
    that time.

    >>> from dmsgd import Uniform
    >>> gensim_settings(Uniform(n=5485, k=80))
    {'chunksize': 80, 'update_every': 1, 'passes': 1}
    """
    check_design(design)
    return {"chunksize": design.k, "update_every": 1, "passes": 1}


@final
class GensimCorpus:
    """The documents of `steps` batches, one after the other: a corpus for gensim's LdaModel.

    It is the same each time it is iterated. Its length is steps * k, the number of documents that
    it yields, as gensim requires. gensim takes that length, plus those of all updates before, for
    D. So

        LdaModel(GensimCorpus(...), **gensim_settings(design))     has D = steps * k,
        train_gensim(model, GensimCorpus(...))                     has D = n, as in Algorithm 2.

    Pass id2word: without it gensim takes the vocabulary from the documents drawn. LdaMulticore
    makes one update for several chunks, so it is not DM-SVI.

    corpus: n documents [(word, count), ...] that can be indexed: a list, an indexed MmCorpus, a
            Sparse2Corpus.

    >>> from dmsgd import Uniform
    >>> documents = [[(i, 1)] for i in range(9)]
    >>> corpus = GensimCorpus(documents, Uniform(n=9, k=4), steps=3)
    >>> len(corpus), len(list(corpus)), list(corpus) == list(corpus)
    (12, 12, True)
    """

    def __init__(
        self, corpus: Any, design: Source, steps: int, seed: Seed = 0, start: int = 0
    ) -> None:
        if sparse.issparse(corpus):
            raise TypeError(
                "corpus is a sparse matrix; pass gensim.matutils.Sparse2Corpus(counts, "
                "documents_columns=False) for one with a row per document"
            )
        if not is_numbered(corpus):
            raise TypeError(
                f"corpus is a {type(corpus).__name__}, which cannot be read by document number; "
                f"pass a list or an indexed corpus"
            )
        check_design(design, len(corpus), "corpus")
        self.corpus = corpus
        self.design = design
        self.steps = as_count(steps, "steps", least=0)
        self.start = as_count(start, "start", least=0)
        self._stream = design.stream(seed)
        self._stream.batches(self.start, self.steps)  # raises now if a schedule is too short

    def __len__(self) -> int:
        return self.steps * self.design.k

    def __iter__(self) -> Iterator[Any]:
        for _, batch in self._stream.batches(self.start, self.steps):
            for document in batch.tolist():
                yield self.corpus[document]


def train_gensim(model: Any, corpus: GensimCorpus) -> None:
    """Make one update of gensim's `model` for every batch of `corpus`, each with D = n.

    `LdaModel.update` sets D = model.state.numdocs + len(corpus), so numdocs is first set to
    n - len(corpus). gensim counts t from 0 over the model's life: ρ_t = (offset + t)^-decay.

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
    model.state.numdocs = corpus.design.n - len(corpus)
    model.update(corpus, **gensim_settings(corpus.design))
