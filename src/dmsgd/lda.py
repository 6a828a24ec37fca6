"""DM-SVI, the paper's Algorithm 2: stochastic variational inference for LDA on diverse batches.

Each batch of S = k documents out of D = n makes one update of the topics λ,

    λ~ = η + (D/S) Σ_{s in batch} n_sw φ_swk,      λ <- (1 - ρ_t) λ + ρ_t λ~,   ρ_t = (τ0 + t)^-κ.

scikit-learn makes exactly this update if it is told k and n, as it is here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dmsgd.designs.stream import Source, as_indexable, check_design
from dmsgd.inputs.arrays import as_matrix
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
    if not hasattr(model, "total_samples"):
        raise TypeError(f"model must be a LatentDirichletAllocation, got {kind_of(model)}")
    if model.batch_size < design.k or model.total_samples != design.n:
        raise ValueError(
            f"the model has batch_size={model.batch_size} and total_samples="
            f"{model.total_samples:g}; one update per batch needs "
            f"model.set_params(batch_size={design.k}, total_samples={design.n})"
        )
    return train_sklearn(model, counts, None, design, steps, seed=seed, start=start)
