"""`prescribe`: scale a kernel so that its k-DPP has given inclusion probabilities.

The k-DPPs of L_ij exp((θ_i + θ_j) / 2) are an exponential family in θ, so the θ with the target b*
is the maximum of the concave function φ(θ) = Σ_i b*_i θ_i - log Z(θ). The step

    θ'_i = θ_i + log(b*_i / b_i(θ))

raises φ by Σ_i b*_i log(b*_i / b_i) or more (docs/project/proofs.md). Anderson's extrapolation from
the last few steps halves their number; one that lowers φ is undone by the plain step.
"""

from __future__ import annotations

from collections import deque
from functools import cached_property
from typing import Any, final

import numpy as np

from dmsgd.errors import RankError, TargetError
from dmsgd.features import Features, as_features
from dmsgd.features.contract import SHORTER
from dmsgd.features.maps import Normalize, ScaleRows
from dmsgd.inputs.arrays import TINY, FloatArray, as_numbers
from dmsgd.inputs.fingerprint import digest
from dmsgd.inputs.messages import counted, few
from dmsgd.inputs.scalars import as_part, as_positive
from dmsgd.kernels import Kernel, Linear, exact
from dmsgd.kernels.feature_kernels import Quality
from dmsgd.polynomials import eigenvector_inclusion, log_polynomial
from dmsgd.runtime.progress import Progress, one_work
from dmsgd.samplers.conditional_poisson import extrapolate
from dmsgd.spectra import Spectrum
from dmsgd.spectra.decompose import like
from dmsgd.spectra.eigenpairs import spectrum_of_matrix

__all__ = ["prescribe"]

#: Most steps, those that an extrapolation uses, and those after which feasibility is checked.
STEPS, MEMORY, CHECKED = 200, 6, (20, 60, 200)
#: A step that lowers φ by more than this relative amount is taken back.
FALLS = 1e-10
#: With at least so many columns per item, entries of the kernel are quicker to diagonalise than its
#: features. Rounding of entries may move b by this share of the error that `tol` allows.
SQUARE, ROUNDED = 0.8, 0.1
#: |θ| beyond this is beyond the range of numbers.
LARGEST = 700.0
#: Shares of the largest shortfall at which a set of items is cut out.
LEVELS = (0.9, 0.5, 0.25, 0.1, 0.02)


def prescribe(kernel: Kernel | Spectrum, k: int, target: Any, tol: float = 1e-6) -> Linear:
    """Return a kernel whose k-DPP draws item i with the probability b*_i of the target.

    It is q_i L_ij q_j for factors q, given by features: the kernel's own with row i scaled, or
    those of V Λ^(1/2) for a kernel without any. Of all distributions over batches with these
    inclusion probabilities, its k-DPP is the closest to the given one (in relative entropy), and
    there is only one.

    target: One positive number per item, which are scaled to sum to k (then b*_i < 1 must hold),
            or "uniform".
    tol:    The largest relative error of an inclusion probability.

    A Spectrum stands for the kernel V diag(λ) Vᵀ; use one for kernels whose matrix is too large.
    Raises `TargetError`, which names items in the way, if no scaling reaches the target.
    See also `diversify` with target=, `Weighted`.

    >>> from dmsgd import KDPP
    >>> from dmsgd.kernels import exact
    >>> F = np.random.default_rng(0).normal(size=(6, 3))
    >>> b = KDPP(prescribe(Linear(F), 2, [1, 1, 1, 1, 2, 2]), 2).inclusion()
    >>> [round(float(b_i), 4) for b_i in b]
    [0.25, 0.25, 0.25, 0.25, 0.5, 0.5]
    """
    if not isinstance(kernel, Kernel | Spectrum):
        raise TypeError(
            f"prescribe needs a Kernel or a Spectrum, got {type(kernel).__name__}; for features "
            f"use prescribe(Linear(X), k, target)"
        )
    k, tol = as_part(k, "k", kernel.n), as_positive(tol, "tol")
    b = as_target(target, kernel.n, k)
    # The result is hashed by what it is made of: its own last digits differ between processors.
    identity = target if isinstance(target, str) else digest(as_numbers(target, "target"))
    origin = digest("prescribe", kernel.fingerprint(), k, identity, tol.hex())
    with one_work():
        F = _unit_rows(kernel)
        found = Linear(_scaled(F, _solve(F, k, b, tol)))
    found.origin = origin
    return found


def as_target(value: Any, n: int, k: int) -> FloatArray:
    """Return `value`, one positive number per item, scaled so that it sums to k and is below 1."""
    if isinstance(value, str):
        if value != "uniform":
            raise ValueError(f"unknown target {value!r}; use 'uniform' or one number per item")
        value = np.ones(n)
    weights = as_numbers(value, "target", n)
    if (bad := np.flatnonzero(weights <= 0)).size:
        raise ValueError(
            f"target must be positive and finite, but is {weights[bad[0]]:g} for item {bad[0]} "
            f"({counted(bad.size, 'such item')}); remove items that are never to be drawn"
        )
    weights = np.ldexp(weights, -np.frexp(weights.max())[1])  # sums stay within range
    b: FloatArray = weights * (k / weights.sum())
    if b.max() >= 1:
        fits = int(np.ceil(k / b.max()) - 1)
        advice = f"use k <= {fits}, or " if fits else ""
        raise ValueError(
            f"target asks for item {b.argmax()} {b.max():.3g} times in a batch of {k} "
            f"({counted(int((b >= 1).sum()), 'such item')}), but an item is in a batch at "
            f"most once; {advice}lower the largest values (np.minimum)"
        )
    if b.min() < TINY:
        raise ValueError(
            f"target asks for item {b.argmin()} in a share of {b.min():.0e} of the batches, which "
            f"is as good as never; leave it out of the data, or raise the smallest values"
        )
    return b


def _unit_rows(kernel: Kernel | Spectrum) -> Features:
    """Return features of the kernel with rows of length 1, and no more columns than items.

    The lengths of rows are what is solved for.
    """
    if isinstance(kernel, Spectrum):
        squares = kernel.eigenvectors.weighted_squares(kernel.values)
    else:
        squares = kernel.diag()
    if (empty := np.flatnonzero(squares <= 0)).size:
        raise TargetError(
            f"item {empty[0]} has no features at all ({counted(empty.size, 'such item')}), so no "
            f"batch holds it; give it features or leave it out"
        )
    if isinstance(kernel, Kernel):
        factor = kernel.factor()
        if factor is not None and factor.d < kernel.n:
            return factor.mapped(Normalize())
        kernel = exact(Quality(kernel, 1 / np.sqrt(squares)))
    A = kernel.eigenvectors.factor(kernel.values, complete=kernel.tol == 0)
    return as_features(A, "kernel", allow_tiny=True).mapped(Normalize())


def _solve(F: Features, k: int, target: FloatArray, tol: float) -> FloatArray:
    """Return the log scale of F with these inclusion probabilities, or raise TargetError."""
    past: deque[tuple[FloatArray, FloatArray]] = deque(maxlen=MEMORY + 1)
    tilted = Tilted(F, k, ROUNDED * min(1.0, tol) * float(target.min()))
    theta = plain = np.zeros(F.n)
    reached, error, most, nearest = -np.inf, np.inf, 0.0, target
    report = Progress(f"prescribed inclusion of {F.n:,} items")
    for step in range(1, STEPS + 1):
        try:
            b, log_z = tilted.inclusion(theta)
        except RankError:
            if step == 1:
                raise
            break  # the scale has left the range of numbers: the target is infeasible
        if not b.all():
            break  # some b underflowed: the target is infeasible, too
        phi = float(target @ theta) - log_z
        if phi < reached - FALLS * (1 + abs(phi)):
            past.clear()
            theta = plain
            continue
        gap = np.log(target / b)
        with np.errstate(over="ignore"):
            error = float(np.abs(np.expm1(-gap)).max())
        if error <= tol:
            return theta
        reached, nearest, most = phi, b, max(most, error)
        report(max(0.01, float(np.log(most / error) / np.log(most / tol))))
        if step in CHECKED:
            _raise_if_infeasible(F, target, b)
        plain = theta + gap
        past.append((theta, gap))
        theta = extrapolate(past, target)
        plain, theta = plain - plain.mean(), theta - theta.mean()  # a constant changes nothing
    _raise_if_infeasible(F, target, nearest)
    raise TargetError(
        f"after {step} steps the inclusion probabilities are still off by up to {error:.2g} of "
        f"their targets; the target is at the edge of what these features allow: ask for less of "
        f"the items that fall short, such as item {int(np.argmax(target / nearest))}, or accept "
        f"tol={2 * error:.1g}"
    )


@final
class Tilted:
    """k-DPPs of the kernels F_i F_jᵀ exp((θ_i + θ_j) / 2).

    With about as many columns as items their entries are diagonalised, in less than half of the
    time, until rounding of entries moves b by more than `allowed`.
    """

    def __init__(self, F: Features, k: int, allowed: float = 0.0) -> None:
        self.F, self.k, self.allowed = F, k, allowed
        self.by_entries = allowed > 0 and F.d >= SQUARE * F.n

    @cached_property
    def products(self) -> Any:
        """F Fᵀ, where F lives."""
        return self.F.transposed().gram()

    def inclusion(self, theta: FloatArray) -> tuple[FloatArray, float]:
        """Return b(θ) and log Z(θ)."""
        if np.abs(theta).max() > LARGEST:
            what = "the scale is beyond the range of floating point numbers"
            raise RankError(self.k, 0, what, rbf=False)
        spectrum = self._from_entries(theta) if self.by_entries else None
        if spectrum is None:
            spectrum = _scaled(self.F, theta).spectrum(overwrite=True)
        spectrum.require_rank(self.k)
        values, pi = spectrum.values, eigenvector_inclusion(spectrum.values, self.k)
        return spectrum.eigenvectors.weighted_squares(pi), float(log_polynomial(values, self.k))

    def _from_entries(self, theta: FloatArray) -> Spectrum | None:
        """Return a spectrum if it is precise enough; otherwise none, and never again."""
        self.F.plan_spectrum(SHORTER)
        q = like(self.products, np.exp(theta / 2))
        found = spectrum_of_matrix(q[:, None] * self.products * q)
        values, k = found.values, self.k
        if found.rank >= k and found.rounding.inclusion_error(values, k) <= self.allowed:
            return found
        self.by_entries = False
        del self.products
        return None


def _scaled(F: Features, theta: FloatArray) -> Features:
    return F.mapped(ScaleRows(np.exp(theta / 2)))


def _raise_if_infeasible(F: Features, target: FloatArray, b: FloatArray) -> None:
    """Raise TargetError if the target asks for more of some items than their features allow.

    A batch holds at most rank(F_A) items of any set A, because more would be linearly dependent.
    Where the target asks for more, b falls short: A is found by the shortfall.
    """
    shortfall = np.log(target / b)
    for level in LEVELS:
        items = np.flatnonzero(shortfall > level * max(shortfall.max(), 0.0))
        if not items.size:
            continue
        asked = float(target[items].sum())
        rank = as_features(F.take(items), allow_tiny=True).spectrum().rank
        if asked >= rank * (1 - 1e-9):
            raise TargetError(
                f"the target asks for {asked:.4g} of {counted(items.size, 'item')} in a batch, "
                f"but their features have rank {rank}, so a batch never holds more than {rank} of "
                f"them: items {few(items)}; ask for less of them, or use a smaller k"
            )
