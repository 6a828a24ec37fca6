"""`prescribe`: scale a kernel so that its k-DPP has given inclusion probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np

from dmsgd.errors import TargetError
from dmsgd.features import Features, as_features
from dmsgd.features.map_types import Normalize, ScaleRows
from dmsgd.inputs.arrays import TINY, FloatArray, as_numbers
from dmsgd.inputs.fingerprint import digest
from dmsgd.inputs.messages import counted
from dmsgd.inputs.scalars import as_batch_size, as_positive
from dmsgd.kernels import Kernel, Linear
from dmsgd.kernels.combined import Quality
from dmsgd.runtime.memory import reserve
from dmsgd.spectra import Spectrum
from dmsgd.spectra.eigenpairs import spectrum_of_matrix
from dmsgd.targets.solver import ScaledInclusion, solve

#: The rounding error that is allowed in the smallest b during the search, as a share of `tol`.
PRECISE = 0.01
#: Numbers of steps after which feasibility is checked; the search ends after the last.
STAGES = (20, 60, 200)
#: Shares of the largest shortfall at which a set of items is cut out.
LEVELS = (0.9, 0.5, 0.25, 0.1, 0.02)


def prescribe(
    kernel: Kernel | Spectrum,
    k: int,
    target: Any,
    tol: float = 1e-6,
    *,
    start: Kernel | None = None,
) -> Linear:
    """Return a kernel whose k-DPP draws item i with the probability b*_i of the target.

    It is q_i L_ij q_j for factors q, given by features: the kernel's own with row i scaled, or
    those of V Λ^(1/2) for a kernel without any. Of all distributions over batches with these
    inclusion probabilities, its k-DPP is the closest to the given one (in relative entropy), and
    there is only one.

    target: One positive number per item, which are scaled to sum to k (then b*_i < 1 must hold),
            or "uniform".
    tol:    The largest relative error of an inclusion probability.
    start:  What an earlier call returned for the same kernel and a similar target. The search
            begins there, which saves most of it.

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
    k, tol = as_batch_size(k, kernel.n), as_positive(tol, "tol")
    b = as_target(target, kernel.n, k)
    initial, origin = _initial_scale(kernel.n, start), kernel.fingerprint()
    if isinstance(kernel, Spectrum):
        squares = kernel.eigenvectors.weighted_squares(kernel.values)
    else:
        squares = kernel.diag()
    if (empty := np.flatnonzero(squares <= 0)).size:
        raise TargetError(
            f"item {empty[0]} has no features at all ({counted(empty.size, 'such item')}), so no "
            f"batch holds it; give it features or leave it out"
        )
    begun = "" if start is None else start.fingerprint()
    # The result is hashed by what it is made of: its own last digits differ between processors.
    identity = target if isinstance(target, str) else digest(as_numbers(target, "target"))
    origin = digest("prescribe", origin, k, identity, tol.hex(), begun)
    unit, narrow = _unit_rows(kernel, k)
    root = np.exp(_log_scale(narrow, k, b, initial, tol) / 2)
    return Linear.computed(unit.mapped(ScaleRows(root)), origin)


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


def _unit_rows(kernel: Kernel | Spectrum, k: int) -> tuple[Features, Features]:
    """Return features of the kernel with rows of length 1, and some with fewer columns than items.

    The lengths of rows are what is solved for. A kernel without features gets V Λ^(1/2).
    """
    if isinstance(kernel, Kernel) and (given := kernel.factor()) is not None:
        F = given.mapped(Normalize())
        return F, F if F.d < kernel.n else _factor(F.spectrum(), k)
    F = _factor(kernel if isinstance(kernel, Spectrum) else _unit_spectrum(kernel), k)
    F = F.mapped(Normalize())
    return F, F


def _unit_spectrum(kernel: Kernel) -> Spectrum:
    """Return the spectrum of the kernel with row and column i scaled so that L_ii = 1."""
    n, everything = kernel.n, np.arange(kernel.n)
    advice = "pass a spectrum: prescribe(pivoted_cholesky(kernel, rank), k, target)"
    reserve(7 * n**2, f"the full matrix of {kernel!r} with its eigenvectors", advice)
    unit = Quality(kernel, 1 / np.sqrt(kernel.diag()))
    return spectrum_of_matrix(unit.block(everything, everything))


def _factor(spectrum: Spectrum, k: int) -> Features:
    spectrum.require_rank(k)
    spectrum.warn_rounding(k)
    F = np.asarray(spectrum.vectors) * np.sqrt(spectrum.values)
    return as_features(F, "kernel", allow_tiny=True)


def _initial_scale(n: int, start: Kernel | None) -> FloatArray:
    """Return the log scale that leads from unit rows to those of `start`, by default 0."""
    if start is None:
        return np.zeros(n)
    squares = start.diag() if isinstance(start, Kernel) else np.zeros(n)
    if squares.size != n or not (squares > 0).all():
        raise ValueError(
            f"start must be a kernel that prescribe returned for the same {n} items; got {start!r}"
        )
    return np.log(squares)


def _log_scale(
    F: Features, k: int, target: FloatArray, start: FloatArray, tol: float
) -> FloatArray:
    """Return the log scale of F with these inclusion probabilities, or raise TargetError.

    Each stage begins where the last one ended, without its memory of earlier steps.
    """
    inclusion, done = ScaledInclusion(F, k, PRECISE * min(tol, 1.0) * float(target.min())), 0
    for stage in STAGES:
        solution = solve(inclusion, target, start, tol, stage - done)
        if solution.error <= tol:
            return solution.log_scale
        _raise_if_infeasible(F, target, solution.b)
        start, done = solution.log_scale, stage
    raise TargetError(
        f"after {done} steps the inclusion probabilities are still off by up to "
        f"{solution.error:.2g} of their targets; the target is at the edge of what these features "
        f"allow: ask for less of the items that fall short, such as item "
        f"{int(np.argmax(target / solution.b))}, or accept tol={2 * solution.error:.1g}"
    )


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
        if asked < rank * (1 - 1e-9):
            continue
        shown = ", ".join(map(str, items[:8])) + (", ..." if items.size > 8 else "")
        raise TargetError(
            f"the target asks for {asked:.4g} of {counted(items.size, 'item')} in a batch, but "
            f"their features have rank {rank}, so a batch never holds more than {rank} of them: "
            f"items {shown}; ask for less than {rank} of them in all, give them more features, or "
            f"use a smaller k"
        )
