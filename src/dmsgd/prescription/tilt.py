"""`prescribe`: scale a kernel so that its k-DPP has given inclusion probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np

from dmsgd.errors import TargetError
from dmsgd.features import Features, as_features
from dmsgd.features.mapped_rows import RowFactors, UnitRows
from dmsgd.inputs.arrays import FloatArray, IntArray, as_numbers
from dmsgd.inputs.fingerprint import digest
from dmsgd.inputs.memory import reserve
from dmsgd.inputs.messages import counted
from dmsgd.inputs.scalars import as_batch_size, as_positive
from dmsgd.kernels import Kernel, Linear
from dmsgd.prescription.feasibility import refuse_out_of_reach
from dmsgd.prescription.fixed_point import solve
from dmsgd.prescription.marginals import FeatureMarginals
from dmsgd.prescription.targets import as_target
from dmsgd.spectra import Spectrum
from dmsgd.spectra.doubt import doubt, say_doubt
from dmsgd.spectra.exact import of_features, of_matrix

#: How well the smallest b is known while the tilt is looked for, as a share of what is asked.
PRECISE = 0.01
#: Where a target is checked for being out of reach, and where the search ends.
STAGES = (20, 60, 200)


def prescribe(
    kernel: Kernel | Spectrum,
    k: int,
    target: Any,
    tol: float = 1e-6,
    *,
    start: Kernel | None = None,
) -> Linear:
    """Return a kernel whose k-DPP includes item i with probability b*_i.

    It is the kernel with row and column i scaled by a factor q_i, q_i L_ij q_j, given by features:
    the kernel's own with row i scaled, or those of V Λ^(1/2) for a kernel without any. Of all laws
    over batches with these inclusion probabilities, its k-DPP is the closest to the given one (in
    relative entropy), and there is only one: the maximum-entropy tilt.

    target: one positive number per item, scaled to sum to k (then b*_i < 1 must hold), or
            "uniform". `dmsgd.diversify` also takes "balanced" and "density".
    tol:    largest relative error of an inclusion probability.
    start:  a kernel that an earlier call returned for the same kernel: the search begins there,
            which saves most of it when the target has moved a little.

    A target that no scaling reaches raises TargetError, which names the items in the way. A
    Spectrum stands for the kernel V diag(λ) Vᵀ; use one for kernels whose matrix is too large.

    >>> from dmsgd import KDPP, exact
    >>> F = np.random.default_rng(0).normal(size=(6, 3))
    >>> b = KDPP(exact(prescribe(Linear(F), 2, [1, 1, 1, 1, 2, 2])), 2).inclusion()
    >>> [round(float(b_i), 4) for b_i in b]
    [0.25, 0.25, 0.25, 0.25, 0.5, 0.5]
    """
    if not isinstance(kernel, Kernel | Spectrum):
        raise TypeError(
            f"prescribe needs a Kernel or a Spectrum, got {type(kernel).__name__}; for features "
            f"use prescribe(Linear(X), k, target)"
        )
    k, tol = as_batch_size(k, kernel.n), as_positive(tol, "tol")
    if start is not None and (not isinstance(start, Kernel) or start.n != kernel.n):
        raise ValueError(
            f"start must be a kernel over the same {kernel.n} items, as returned by prescribe; "
            f"got {start!r}"
        )
    b = as_target(target, kernel.n, k)
    named = target if isinstance(target, str) else digest(as_numbers(target, "target"))
    return tilted(kernel, k, b, named, tol, start)


def tilted(
    kernel: Kernel | Spectrum,
    k: int,
    b: FloatArray,
    named: str,
    tol: float = 1e-6,
    start: Kernel | None = None,
) -> Linear:
    """Return the kernel that `prescribe` describes, for a target b that sums to k.

    `named` tells the target from all others: its name, or a hash of what was given. The result is
    known by it, because its own last digits differ between processors.
    """
    origin = kernel.fingerprint()
    begun = "" if start is None else start.fingerprint()
    _refuse_empty(kernel)
    unit, narrow = _unit_rows(kernel, k)
    theta = _beginning(kernel.n, start)
    root = np.exp(_reached(narrow, k, b, theta, tol) / 2)
    result = Linear(unit.mapped(RowFactors(root)))
    result.origin = digest("prescribe", origin, k, named, tol.hex(), begun)
    return result


def _refuse_empty(kernel: Kernel | Spectrum) -> None:
    if isinstance(kernel, Spectrum):
        squares = kernel.held.weighed_squares(kernel.values)
    else:
        squares = kernel.diag()
    empty = np.flatnonzero(squares <= 0)
    if empty.size:
        raise TargetError(
            f"item {empty[0]} has no features at all ({counted(empty.size, 'such item')}), so no "
            f"batch holds it; give it features or leave it out"
        )


def _unit_rows(kernel: Kernel | Spectrum, k: int) -> tuple[Features, Features]:
    """Return features of the kernel with rows of length 1, and such with fewer columns than items.

    The lengths of rows are what is solved for, so those given do not matter. A kernel without
    features gets them from its spectrum: F = V Λ^(1/2).
    """
    if isinstance(kernel, Spectrum):
        F = _factor(kernel, k).mapped(UnitRows())
        return F, F
    given = kernel.factor()
    if given is not None:
        F = given.mapped(UnitRows())
        return F, F if F.d < kernel.n else _factor(of_features(F), k)
    advice = "pass a spectrum: prescribe(pivoted_cholesky(kernel, rank), k, target)"
    reserve(4 * kernel.n**2, f"the full matrix of {kernel!r} with its eigenvectors", advice)
    everything = np.arange(kernel.n)
    L = kernel.block(everything, everything)
    length = np.sqrt(L.diagonal())
    L /= length
    L /= length[:, None]
    F = _factor(of_matrix(L), k)
    return F, F


def _factor(spectrum: Spectrum, k: int) -> Features:
    spectrum.refuse_beyond_rank(k)
    say_doubt(doubt(spectrum, k), spectrum, f"a batch of {k}")
    return as_features(np.asarray(spectrum.vectors) * np.sqrt(spectrum.values), allow_tiny=True)


def _beginning(n: int, start: Kernel | None) -> FloatArray:
    """Return the tilt that leads from unit rows to those of `start`, by default none."""
    if start is None:
        return np.zeros(n)
    squares = start.diag()
    empty = np.flatnonzero(squares <= 0)
    if empty.size:
        raise ValueError(
            f"start has no features for item {empty[0]} ({counted(empty.size, 'such item')}), but "
            f"what prescribe returns has; pass such a kernel, or no start"
        )
    return np.log(squares)


def _reached(F: Features, k: int, b: FloatArray, theta: FloatArray, tol: float) -> FloatArray:
    """Return the tilt of F that has the inclusion probabilities b, or say why there is none."""

    def rank_of(items: IntArray) -> int:
        return of_features(as_features(F.take(items), allow_tiny=True)).rank

    marginals = FeatureMarginals(F, k, PRECISE * tol * float(b.min()))
    done = 0
    for stage in STAGES:
        solution = solve(marginals, b, theta, tol, stage - done)
        if solution.error <= tol:
            return solution.theta
        refuse_out_of_reach(b, solution.b, rank_of)
        theta, done = solution.theta, stage
    raise TargetError(
        f"after {done} steps the inclusion probabilities are still off by up to "
        f"{solution.error:.2g} of their targets; the target is at the edge of what these features "
        f"allow: ask for less of the items that fall short, such as item "
        f"{int(np.argmax(b / solution.b))}, or accept tol={2 * solution.error:.1g}"
    )
