"""The one rule for rounding: which eigenvalues are zero or equal, how wrong b is, when to warn.

Rounding of λ_n and of its eigenvector changes inclusion probabilities by at most about
π_n (relative error of λ_n), π_n being the probability that a batch uses eigenvector n. An
eigenvalue λ that was cut off as zero would be used with probability λ e_{k-1} / e_k or less.
Measured in 70 digits, the estimate is 10 to 100 times the error (docs/project/numerics.md).
Approximate kernels follow the same rule: their rounding comes on top of what they leave out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

import numpy as np

from dmsgd.inputs.arrays import FloatArray
from dmsgd.polynomials import eigenvector_inclusion, ratios

EPS = float(np.finfo(float).eps)
#: Eigenvalues below this share of the largest are too small for a Gram matrix to resolve.
GRAM_LIMIT = 1e-6
#: Equal eigenvalues differ by at most this share of their size; b moves by about as much.
WIDEST = 1e-9
#: An item of which others leave no more than this share is dependent on them.
DEPENDENT = 1e-14
#: Items whose values differ by this share at most are tied: the first is taken.
TIED = 1e-9
#: A larger estimated error of an inclusion probability raises a KernelWarning.
WARN_ABOVE = 1e-8


@final
@dataclass(frozen=True)
class Rounding:
    """Rounding disturbs λ_n by a relative error of about eps (scale λ_1 / λ_n)^power.

    power:  1 if entries of the kernel are rounded (RBF, Precomputed, all approximations), 1/2 if
            features are, 0 if the spectrum is exact, as one that the user gave.
    size:   rows of the matrix that was diagonalised.
    scale:  the eigenvalue that errors are relative to, as a multiple of the largest: above 1 where
            the spectrum is what remains of a larger one (`dmsgd.kernels.conditioned`).
    hidden: bound on the sum of the eigenvalues cut off as zero, as a share of the largest.
    """

    power: float = 0.0
    size: int = 1
    scale: float = 1.0
    hidden: float = 0.0

    @property
    def noise(self) -> float:
        """Bound on the error of the largest eigenvalue, as a share of it; it is 0.2 to 10 eps."""
        return 4 * EPS * float(np.sqrt(self.size))

    @property
    def cutoff(self) -> float:
        """Eigenvalues up to this share of the largest cannot be told from zero."""
        return self.scale * self.noise ** (1 / self.power) if self.power else 0.0

    def relative_error(self, values: FloatArray) -> FloatArray:
        """Return the expected relative error of each eigenvalue; `values` are all of them."""
        with np.errstate(over="ignore"):
            return np.asarray(EPS * (self.scale * values.max() / values) ** self.power)

    def equal_groups(self, values: FloatArray) -> Iterator[slice]:
        """Yield the slices of two or more eigenvalues, largest first, that cannot be told apart.

        Rounding may have moved the first of a group up and the others down, each by `noise`; no
        value is farther from the first than WIDEST: neighbours do not chain.

        >>> list(Rounding(1.0).equal_groups(np.array([2.0, 1.0, 1.0, 0.5])))
        [slice(1, 3, None)]
        """
        if not values.size:
            return
        top = self.scale * float(values[0])
        moved = 2 * self.noise * top**self.power * values ** (1 - self.power)
        least = values - np.minimum(moved, WIDEST * values)
        begun = np.flatnonzero(values[1:] >= least[:-1])
        stop = 0
        for start in begun.tolist():
            if start >= stop:
                stop = start + int(np.count_nonzero(values[start:] >= least[start]))
                yield slice(start, stop)

    def inclusion_error(self, values: FloatArray, k: int | None) -> float:
        """Return an upper estimate of the error of b of the k-DPP (None: the DPP).

        O(r) where the kernel is well conditioned, O(rk) where it is not.
        """
        errors, hidden = self.relative_error(values), self.hidden * float(values[0])
        if k is None:
            return float(np.max(values / (1 + values) * errors)) + hidden
        at_most = float(errors[-1]) + hidden * k / float(values[k - 1])
        if at_most < WARN_ABOVE:
            return at_most
        used, lost = eigenvector_inclusion(values, k), hidden / float(ratios(values, k)[-1, k])
        return float(np.max(used * errors)) + lost

    def items_moved(self, values: FloatArray, k: int) -> float:
        """Return a bound on how many of k items change, and on the total variation.

        By the errors of eigenpairs, without those that are hidden; as `noise` bounds them. O(rk).
        """
        if not self.power:
            return 0.0
        errors = self.relative_error(values) * (self.noise / EPS)
        return float(eigenvector_inclusion(values, k) @ errors)


def lost_by_factor(columns: int, trace: float) -> float:
    """Return how much of the trace rounding may leave out of a factor with this many columns."""
    return Rounding(1.0, columns).noise * trace
