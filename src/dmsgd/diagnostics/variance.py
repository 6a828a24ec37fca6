"""The variance of the stochastic gradient, exactly, and what it is worth in uniform batches.

A step follows g* = Σ_{i in batch} a_i g_i: with a_i = 1/k the paper's biased update, with
a_i = 1/(N b_i) the unbiased one. Its variance Tr Cov(g*) has the two terms of the paper's theorem,
with y_i = a_i g_i:

    Σ_i (b_i - b_i²) |y_i|²  +  Σ_{i≠j} C_ij b_i b_j y_iᵀy_j.

The first is what *independent* inclusion with the same b_i would give; it is no sampler that
anybody uses, because its batches have random sizes. So three more baselines of the same k are
given. Two are uniform and without replacement: plain SGD, and SGD on losses weighted by N a_i b_i,
whose expected gradient is that of g*; with unbiased weights the two are one. The third is
`dmsgd.Weighted(b, k)`, which sees every item as often as the design does, without its repulsion: it
takes the variance apart into what comes of who is seen and what comes of who meets.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from dmsgd.designs import ClosedForm, Weighted
from dmsgd.designs.design import inclusion_of
from dmsgd.designs.stream import Source, check_design
from dmsgd.diagnostics.estimates import Estimate, mean_of
from dmsgd.features import as_features
from dmsgd.inputs.arrays import FloatArray, as_array, as_numbers
from dmsgd.inputs.scalars import Seed, as_count

#: Fourth powers of larger numbers, summed, may be beyond 1e308.
LARGEST = 1e70


@final
@dataclass(frozen=True)
class GradientVariance:
    """Tr Cov(g*) of a design and of what it is compared with, all for batches of k items.

    variance:    of the design.
    independent: the theorem's first term, independent inclusion with the same b_i.
    correlation: the theorem's second term; negative where diversity helps. The two add up to
                 `variance`.
    same_b:      of batches with the same b_i and coefficients, without repulsion.
    uniform:     of plain SGD: a uniform batch's mean gradient.
    reweighted:  of uniform batches weighted so that their expected gradient is the design's.
    signal:      |E g*|², to compare with.

    From uniform batches to the design there are two steps: reweighted -> same_b is who is seen,
    same_b -> variance is who meets. `by_inclusion` and `by_repulsion` are their factors.
    """

    n: int
    k: int
    variance: float
    independent: float
    correlation: float
    same_b: float
    uniform: float
    reweighted: float
    signal: float

    @property
    def worth(self) -> float:
        """The size of uniform batches at which plain SGD has the same variance; at most n."""
        return same_variance(self.n, self.k, self.uniform, self.variance)

    @property
    def worth_reweighted(self) -> float:
        """The same for uniform batches weighted to follow the same expected gradient."""
        return same_variance(self.n, self.k, self.reweighted, self.variance)

    @property
    def by_inclusion(self) -> float:
        """What seeing items as often as b says makes of the variance, the gradient being one."""
        return _factor(self.same_b, self.reweighted)

    @property
    def by_repulsion(self) -> float:
        """What repulsion makes of the variance, b being the same: below 1 where it helps."""
        return _factor(self.variance, self.same_b)

    def __str__(self) -> str:
        return (
            f"a batch of {self.k} from this design is worth a uniform one of {self.worth:.0f} "
            f"(variance: plain SGD {self.uniform:.3g}, uniform reweighted to the same gradient "
            f"{self.reweighted:.3g} -> same b, no repulsion {self.same_b:.3g} -> with repulsion "
            f"{self.variance:.3g}; independent inclusion {self.independent:.3g})"
        )


def gradient_variance(
    design: ClosedForm, gradients: Any, coefficients: Any = None
) -> GradientVariance:
    """Return the exact variance of the batch gradient, its two terms, and the baselines.

    gradients:    (n, p), the gradient of each item's loss (`item_gradients` makes them with torch).
    coefficients: a_i, shape (n,); 1/k by default, `dmsgd.unbiased_weights(design)` for the unbiased
                  update.

    O(n r² min(n, p)) for a k-DPP of rank r and O(n p) for uniform, stratified and weighted batches;
    other designs need all n² joint probabilities. `estimate_variance` does with draws.

    >>> import dmsgd, numpy as np
    >>> result = gradient_variance(dmsgd.Uniform(40, 8), np.arange(40.0).reshape(-1, 1))
    >>> round(result.worth, 6), round(result.variance, 3) == round(result.uniform, 3)
    (8.0, True)
    """
    if not isinstance(design, ClosedForm):
        raise TypeError(
            f"design must be a design with joint probabilities, got "
            f"{type(design).__name__}; estimate_variance works from draws"
        )
    return compared(design, *_checked(design, gradients, coefficients))


def compared(
    design: ClosedForm, g: FloatArray, a: FloatArray, variance: float | None = None
) -> GradientVariance:
    """Return the variance, if it is not known from elsewhere, with all that it is compared with."""
    b = design.inclusion()
    y = a[:, None] * g
    mean = b @ y
    # Σ m_i is always k, so a shift of all y_i is no variance; this one leaves a mean of zero.
    shifted = y - mean / design.k
    if variance is None:
        variance = max(design.second_moment(shifted), 0.0)
    independent = float((b - b**2) @ np.einsum("ip,ip->i", y, y))
    return GradientVariance(
        n=design.n,
        k=design.k,
        variance=variance,
        independent=independent,
        correlation=variance - independent,
        same_b=max(Weighted(b, design.k).second_moment(shifted), 0.0),
        uniform=uniform_variance(g, design.k),
        reweighted=uniform_variance((design.n * b)[:, None] * y, design.k),
        signal=float(mean @ mean),
    )


def estimate_variance(
    design: Source, gradients: Any, coefficients: Any = None, draws: int = 1000, seed: Seed = 0
) -> Estimate:
    """Return Tr Cov(g*) estimated from `draws` batches, for designs and sizes without a cheap form.

    The arguments are those of `gradient_variance`; a Schedule will do as the design. O(draws k p).

    >>> import dmsgd, numpy as np
    >>> g = np.arange(40.0).reshape(-1, 1)
    >>> found = estimate_variance(dmsgd.Uniform(40, 8), g, draws=2000)
    >>> abs(found.value - gradient_variance(dmsgd.Uniform(40, 8), g).variance) < 4 * found.error
    True
    """
    g, a = _checked(design, gradients, coefficients)
    expected = (inclusion_of(design) * a) @ g
    draws = as_count(draws, "draws", least=2)
    distances = np.empty(draws)
    for t, (_, batch) in enumerate(design.stream(seed).batches(0, draws)):
        error = a[batch] @ g[batch] - expected
        distances[t] = error @ error
    return mean_of(distances)


def _checked(design: Source, gradients: Any, coefficients: Any) -> tuple[FloatArray, FloatArray]:
    g = as_array(as_features(gradients, "gradients").whole().matrix)
    check_design(design, g.shape[0], "gradients")
    if coefficients is None:
        a = np.full(design.n, 1 / design.k)
    else:
        a = as_numbers(coefficients, "coefficients", design.n)
    with np.errstate(over="ignore"):
        largest = max(np.abs(g).max(), (np.abs(a) * np.abs(g).max(axis=1)).max())
    if not largest <= LARGEST:
        raise ValueError(
            f"gradients, or gradients times coefficients, reach {largest:.0e}, and the variance of "
            f"their squares is beyond numbers; rescale them"
        )
    return g, a


def _factor(part: float, whole: float) -> float:
    return part / whole if whole > 0 else 1.0


def uniform_variance(g: FloatArray, k: int) -> float:
    """Return (1/k - 1/n) S² with S² = Σ|g_i - mean|² / (n - 1): sampling without replacement."""
    n = g.shape[0]
    if n == k:
        return 0.0
    centred = g - g.mean(axis=0)
    return float((1 / k - 1 / n) * np.einsum("ip,ip->", centred, centred) / (n - 1))


def same_variance(n: int, k: int, at_k: float, wanted: float) -> float:
    """Return the size s with (1/s - 1/n) S² = wanted, where (1/k - 1/n) S² = at_k."""
    if at_k == 0:
        return float(k if wanted == 0 else 0)
    return float(1 / (wanted / at_k * (1 / k - 1 / n) + 1 / n))
