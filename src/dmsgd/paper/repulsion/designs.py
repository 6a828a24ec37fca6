"""Batches in which every item is as likely: without repulsion, from k-DPPs, from equal cells."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations_with_replacement

import numpy as np

import dmsgd
from dmsgd.diagnostics import gradient_variance
from dmsgd.diagnostics.variance import uniform_variance
from dmsgd.inputs.arrays import FloatArray, IntArray
from dmsgd.paper.noise.variance import Batches
from dmsgd.paper.repulsion.result import SHUFFLED, UNIFORM

#: Up to so many items the joint probabilities of a k-DPP are made as a matrix.
FEW = 2048
#: Of the largest eigenvalue of an RBF kernel: below, rounding shows in b.
SMALLEST = 1e-11
#: Polynomials are used up to about so many along an axis: of more, no tilt makes items as likely.
HIGHEST = 16


@dataclass(frozen=True, eq=False)
class Arm:
    """A way to draw batches; epochs that are shuffled have no design, only `n` and `k`."""

    n: int
    k: int
    design: dmsgd.ClosedForm | None

    def batches(self, steps: int, streams: int, seed: int) -> IntArray:
        """Return independent streams of batches, shape (steps, streams, k)."""
        return np.stack([self._stream(steps, [seed, s]) for s in range(streams)], axis=1)

    def _stream(self, steps: int, seed: list[int]) -> IntArray:
        rng = np.random.default_rng(seed)
        if self.design is not None:
            return self.design.sample(steps, rng)
        whole = self.n // self.k
        epochs = [rng.permutation(self.n)[: whole * self.k] for _ in range(-(-steps // whole))]
        return np.concatenate(epochs).reshape(-1, self.k)[:steps]

    def variance(self, gradients: list[FloatArray]) -> FloatArray:
        """Return the variance of a batch's gradient over that of uniform batches."""
        if self.design is None:
            return np.ones(len(gradients))
        if isinstance(self.design, dmsgd.KDPP) and self.n <= FEW:
            law = Batches(self.design)
            found = [law.variance(g) for g in gradients]
        else:
            found = [gradient_variance(self.design, g).variance for g in gradients]
        plain = [uniform_variance(g, self.k) for g in gradients]
        return np.asarray(np.array(found) / np.array(plain))


def arms(
    features: Mapping[str, FloatArray], polynomials: FloatArray | None, k: int, stretch: float
) -> dict[str, Arm]:
    """Return the arms by name: two without repulsion, then a k-DPP and cells for each features.

    polynomials: (n, d) in [-1, 1], of which the first k polynomials make one more k-DPP, unless
                 their degree is so high that no tilt makes the items as likely. It is the only one
                 of more than FEW items.
    """
    n = len(next(iter(features.values())))
    made: dict[str, Arm] = {UNIFORM: Arm(n, k, dmsgd.Uniform(n, k)), SHUFFLED: Arm(n, k, None)}
    for name, F in features.items():
        if n <= FEW:
            made[f"k-DPP on {name}"] = Arm(n, k, rbf(F, k, stretch))
        made[f"cells of {name}"] = Arm(n, k, dmsgd.cells(F, k))
    if polynomials is not None and k ** (1 / polynomials.shape[1]) <= HIGHEST:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", dmsgd.KernelWarning)  # rounding moves b by 1e-8
            made["k-DPP on polynomials"] = Arm(n, k, equal(legendre(polynomials, k), k))
    return made


def equal(F: FloatArray, k: int) -> dmsgd.KDPP:
    """Return the k-DPP with the linear kernel on F, tilted to b_i = k/n."""
    return dmsgd.diversify(F, k, target="uniform")


def rbf(F: FloatArray, k: int, stretch: float) -> dmsgd.KDPP:
    """Return the k-DPP with an RBF kernel of scale `stretch` x suggest_scale, b_i = k/n.

    2k + 32 leading directions stand for the kernel. Where no tilt of them makes items as likely, as
    where a few items have very many copies, it is the whole kernel at the suggested scale.
    """
    suggested = dmsgd.suggest_scale(F, k)
    spectrum = dmsgd.exact(dmsgd.RBF(F, stretch * suggested))
    r = min(2 * k + 32, int(np.sum(spectrum.values > SMALLEST * spectrum.values[0])))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", dmsgd.KernelWarning)  # that rounding shows in b
            return equal(spectrum.vectors[:, :r] * np.sqrt(spectrum.values[:r]), k)
    except (ValueError, dmsgd.KernelWarning):  # also TargetError and RankError
        return dmsgd.diversify(None, k, kernel=dmsgd.RBF(F, suggested), target="uniform")


def legendre(X: FloatArray, count: int) -> FloatArray:
    """Return the first `count` products of Legendre polynomials on [-1, 1]^d, by total degree.

    Their mean square over the box is 1.
    """
    d, chosen, degree = X.shape[1], list[tuple[int, ...]](), 0
    while len(chosen) < count:
        chosen += combinations_with_replacement(range(d), degree)
        degree += 1
    from numpy.polynomial.legendre import legvander

    tables = [legvander(column, degree) * np.sqrt(2 * np.arange(degree + 1) + 1) for column in X.T]
    columns = []
    for factors in chosen[:count]:
        powers = np.bincount(np.array(factors, dtype=np.int64), minlength=d)
        columns.append(np.prod([tables[j][:, powers[j]] for j in range(d)], axis=0))
    return np.column_stack(columns)
