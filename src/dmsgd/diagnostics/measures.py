"""What a design does: shares of classes, the variance of the batch gradient.

A step follows g* = Σ_{i in batch} a_i g_i: with a_i = 1/k the paper's biased update, with
a_i = 1/(n b_i) the unbiased one. Its variance Tr Cov(g*) has the two terms of the paper's theorem,
with y_i = a_i g_i:

    Σ_i (b_i - b_i²) |y_i|²  +  Σ_{i≠j} C_ij b_i b_j y_iᵀy_j.

The first is the variance of *independent* inclusion with the same b_i, whose batches have random
sizes; so baselines of the same k are given, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from dmsgd.designs.contract import ClosedForm, inclusion_of
from dmsgd.designs.stream import Source, check_design
from dmsgd.designs.weighted import Weighted
from dmsgd.features import as_features
from dmsgd.inputs.arrays import FloatArray, as_array, as_numbers
from dmsgd.inputs.labels import as_classes
from dmsgd.inputs.messages import number
from dmsgd.inputs.scalars import Seed, as_count

#: Fourth powers of larger numbers, summed, may overflow.
LARGEST = 1e70


def class_shares(design: Source, labels: Any) -> dict[Any, float]:
    """Return a dict from each class to its expected share of a batch. The shares sum to 1. O(n).

    >>> import dmsgd
    >>> class_shares(dmsgd.Uniform(n=4, k=2), ["a", "a", "a", "b"])
    {'a': 0.75, 'b': 0.25}
    """
    inclusion = inclusion_of(design)
    names, codes = as_classes(labels, inclusion.size)
    shares = np.bincount(codes, inclusion) / inclusion.sum()
    return dict(zip(names.tolist(), shares.tolist(), strict=True))


@final
@dataclass(frozen=True)
class GradientVariance:
    """The variance of the batch gradient, Tr Cov(g*), of a design and of baselines, all at this k.

    variance:          of the design.
    independent:       the theorem's first term, independent inclusion with the same b_i.
    correlation:       the theorem's second term; negative where diversity helps.
                       independent + correlation = variance.
    frequency_matched: of `Weighted.like(design)`: the same b_i and coefficients, no repulsion.
    uniform:           of plain SGD: a uniform batch's mean gradient, without replacement.
    reweighted:        of uniform batches on losses weighted by n a_i b_i: its mean is E g*.
    error:             standard error of `variance`; 0 where it is exact.
    """

    n: int
    k: int
    variance: float
    independent: float
    correlation: float
    frequency_matched: float
    uniform: float
    reweighted: float
    error: float = 0.0

    @property
    def equivalent_batch_size(self) -> float:
        """The size of uniform batches at which plain SGD has the same variance; at most n."""
        if self.uniform == 0:
            return float(self.k if self.variance == 0 else 0)
        ratio = self.variance / self.uniform
        return float(1 / (ratio * (1 / self.k - 1 / self.n) + 1 / self.n))

    @property
    def frequency_factor(self) -> float:
        """The variance with the design's sampling frequencies over that of `reweighted`."""
        return self.frequency_matched / self.reweighted if self.reweighted > 0 else 1.0

    @property
    def repulsion_factor(self) -> float:
        """The design's variance over that of its frequency-matched control."""
        return self.variance / self.frequency_matched if self.frequency_matched > 0 else 1.0

    def __str__(self) -> str:
        kinds = self.uniform, self.reweighted, self.frequency_matched, self.variance
        uniform, reweighted, matched, ours = (number(each, 3) for each in kinds)
        return (
            f"a batch of {self.k} has the variance of a uniform one of "
            f"{self.equivalent_batch_size:.0f} (plain SGD {uniform}; uniform, reweighted to the "
            f"same gradient {reweighted} -> frequency-matched {matched} -> with repulsion {ours})"
        )


def gradient_variance(
    design: Source,
    gradients: Any,
    coefficients: Any = None,
    *,
    draws: int | None = None,
    seed: Seed = 0,
) -> GradientVariance:
    """Return the variance of the batch gradient, its two terms, and that of uniform batches.

    gradients:    (n, p), the gradient of each item's loss (docs/diagnostics.md has the lines).
    coefficients: a_i, shape (n,); 1/k by default, `dmsgd.unbiased_weights(design)` for the unbiased
                  update.
    draws:        estimate the design's variance from this many batches, in O(draws k p); its
                  standard error is in the result. By default it is exact.

    Exact: O(n r² min(n, p)) for a k-DPP of rank r and O(n p) for uniform, stratified and weighted
    batches; other designs need all n² joint probabilities. Raises TypeError without `draws` for
    schedules and designs without closed forms. See also `Weighted`.

    >>> import dmsgd, numpy as np
    >>> result = gradient_variance(dmsgd.Uniform(40, 8), np.arange(40.0).reshape(-1, 1))
    >>> round(result.equivalent_batch_size, 6), round(result.variance / result.uniform, 6)
    (8.0, 1.0)
    """
    g = as_array(as_features(gradients, "gradients").to_memory().matrix)
    check_design(design, g.shape[0], "gradients")
    given = np.full(design.n, 1 / design.k) if coefficients is None else coefficients
    a = as_numbers(given, "coefficients", design.n)
    with np.errstate(over="ignore"):
        largest = max(np.abs(g).max(), (np.abs(a) * np.abs(g).max(axis=1)).max())
    if not largest <= LARGEST:
        what = f"gradients, or their products with coefficients, reach {largest:.0e}"
        raise ValueError(f"{what}, and their squares overflow; rescale them")
    stream, b = design.stream(seed), inclusion_of(design)
    y = a[:, None] * g
    mean = b @ y
    # Σ m_i is always k, so shifting all y_i changes no variance; this shift gives a mean of zero.
    shifted, error = y - mean / design.k, 0.0
    if draws is None:
        if not isinstance(design, ClosedForm):
            kind = type(design).__name__
            raise TypeError(f"{kind} has no exact variance; pass draws=1000 to estimate it")
        variance = max(design.second_moment(shifted), 0.0)
    else:
        batches = stream.batches(0, as_count(draws, "draws", least=2))
        sums = np.array([shifted[batch].sum(axis=0) for _, batch in batches])
        squares = np.einsum("bp,bp->b", sums, sums)
        variance = float(squares.mean())
        error = float(squares.std(ddof=1) / np.sqrt(squares.size))
    independent = float((b - b**2) @ np.einsum("ip,ip->i", y, y))
    return GradientVariance(
        n=design.n,
        k=design.k,
        variance=variance,
        independent=independent,
        correlation=variance - independent,
        frequency_matched=max(Weighted(b, design.k).second_moment(shifted), 0.0),
        uniform=_uniform_variance(g, design.k),
        reweighted=_uniform_variance((design.n * b)[:, None] * y, design.k),
        error=error,
    )


def _uniform_variance(g: FloatArray, k: int) -> float:
    """Return (1/k - 1/n) S² with S² = Σ|g_i - mean|² / (n - 1): sampling without replacement."""
    if (n := g.shape[0]) == k:
        return 0.0
    return float((1 / k - 1 / n) * g.var(axis=0, ddof=1).sum())
