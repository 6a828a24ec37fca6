"""DM-SVI, the paper's Algorithm 2: stochastic variational inference for LDA on diverse batches.

Each batch of S = k documents out of D = n makes one update of the topics λ,

    λ~ = η + (D/S) Σ_{s in batch} n_sw φ_swk,      λ <- (1 - ρ_t) λ + ρ_t λ~,   ρ_t = (τ0 + t)^-κ.

scikit-learn and gensim make exactly this update if they are told k and n, as they are here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, final

from dmsgd.designs.stream import Source, as_indexable, check_design, is_numbered
from dmsgd.inputs.arrays import IntArray, as_matrix
from dmsgd.inputs.messages import kind_of
from dmsgd.inputs.scalars import Seed
from dmsgd.sgd import Step, train_sklearn


def train(
    model: Any, counts: Any, design: Source, steps: int, seed: Seed = 0, start: int = 0
) -> Iterator[Step]:
    """Return an iterator that calls `partial_fit` once per batch and yields a `Step` after it.

    model:  a scikit-learn LatentDirichletAllocation, new or already trained, with batch_size=k and
            total_samples=n. It counts t from 1 over its life (`n_batch_iter_`), whatever `start`
            is, so further training continues with the learning rates where it stopped.
    counts: (n, words) document-word counts: array, CSR, pandas or polars.

    Raises ValueError if the model has other settings, or a count is negative. See also `Step`.

    >>> import dmsgd, numpy as np
    >>> from sklearn.decomposition import LatentDirichletAllocation
    >>> counts = np.random.default_rng(0).poisson(0.5, size=(60, 12))
    >>> design = dmsgd.diversify(counts, k=5)
    >>> model = LatentDirichletAllocation(3, batch_size=5, total_samples=60)
    >>> [record.step for record in train(model, counts, design, steps=2)]
    [0, 1]
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
            f"{model.total_samples:g}; one update per batch needs "
            f"model.set_params(batch_size={design.k}, total_samples={design.n})"
        )
    return train_sklearn(model, counts, None, design, steps, seed=seed, start=start)


def train_gensim(
    model: Any, corpus: Any, design: Source, steps: int, seed: Seed = 0, start: int = 0
) -> None:
    """Make one update of gensim's LdaModel per batch, for the n documents of `corpus`.

    model:  new or already trained, with id2word. It counts t from 0 over its life, whatever `start`
            is: the learning rate is (offset + t)^-decay. Its chunksize, update_every and passes do
            not count. LdaMulticore makes one update for several chunks: it is not DM-SVI.
    corpus: n documents [(word, count), ...] that can be indexed: a list, an indexed MmCorpus, a
            Sparse2Corpus.

    >>> from dmsgd import Uniform
    >>> from gensim.models import LdaModel
    >>> documents, words = [[(i, 1)] for i in range(9)], {i: f"word{i}" for i in range(9)}
    >>> model = LdaModel(id2word=words, num_topics=2, random_state=0)
    >>> train_gensim(model, documents, Uniform(n=9, k=4), steps=3)
    >>> model.num_updates
    12
    """
    if hasattr(corpus, "tocsr"):
        advice = "gensim.matutils.Sparse2Corpus(counts, documents_columns=False)"
        raise TypeError(f"corpus is a sparse matrix; pass {advice}")
    if not is_numbered(corpus):
        raise TypeError(f"corpus must be a list or an indexed corpus, got {kind_of(corpus)}")
    check_design(design, len(corpus), "corpus")
    if not (hasattr(model, "update") and hasattr(getattr(model, "state", None), "numdocs")):
        raise TypeError(f"model must be gensim's LdaModel, got {kind_of(model)}")
    batches = design.stream(seed).batches(start, steps)
    if steps == 0:
        return  # gensim would return before it adds anything to numdocs
    drawn = _Documents(corpus, batches, steps * design.k)
    model.state.numdocs = design.n - len(drawn)  # `update` adds len(drawn) to get D
    model.update(drawn, chunksize=design.k, update_every=1, passes=1)


@final
@dataclass(frozen=True)
class _Documents:
    """The documents of batches, one after the other, as many as gensim is told beforehand."""

    corpus: Any
    batches: Iterator[tuple[int, IntArray]]
    size: int

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Iterator[Any]:
        return (self.corpus[i] for _, batch in self.batches for i in batch.tolist())
