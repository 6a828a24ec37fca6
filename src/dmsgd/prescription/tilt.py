"""`prescribe`: scale a kernel so that its k-DPP has given inclusion probabilities."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dmsgd.arrays import FloatArray, IntArray, Matrix, as_batch_size, as_positive
from dmsgd.errors import TargetError
from dmsgd.kernels import Kernel, Linear, Precomputed
from dmsgd.memory import reserve
from dmsgd.prescription.feasibility import refuse_out_of_reach
from dmsgd.prescription.fixed_point import Solution, solve
from dmsgd.prescription.marginals import (
    FeatureMarginals,
    MatrixMarginals,
    RefinedMarginals,
    StreamedMarginals,
    scaled_rows,
)
from dmsgd.prescription.targets import as_target
from dmsgd.spectra import Spectrum
from dmsgd.spectra.eigen import DEFAULT_TOL, eigh
from dmsgd.spectra.exact import of_features
from dmsgd.streams.rows import Rows
from dmsgd.streams.transforms import ScaledRows

#: Where a target is checked for being out of reach, and where the search ends.
STAGES = (20, 60, 200)


def prescribe(
    kernel: Kernel | Spectrum,
    k: int,
    target: Any,
    tol: float = 1e-6,
    *,
    start: Kernel | None = None,
) -> Linear | Precomputed:
    """Return a kernel whose k-DPP includes item i with probability b*_i.

    It is the kernel with row and column i scaled by a factor q_i: q_i f_i for features, q_i L_ij
    q_j for a matrix. Of all laws over batches with these inclusion probabilities, its k-DPP is the
    closest to the given one (in relative entropy), and there is only one: the maximum-entropy tilt.

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
    b = as_target(target, kernel.n, k)
    if isinstance(kernel, Spectrum):
        kernel = Linear(kernel.vectors * np.sqrt(kernel.values))
    theta = _beginning(kernel, start)
    if isinstance(kernel, Linear) and kernel.features.shape[1] < kernel.n:
        return _of_features(kernel.features, k, b, theta, tol)
    return _of_matrix(kernel, k, b, theta, tol)


def _beginning(kernel: Kernel, start: Kernel | None) -> FloatArray:
    """Return θ = 0, or the tilt that leads from the kernel to `start`."""
    diagonal = kernel.diag()
    empty = np.flatnonzero(diagonal <= 0)
    if empty.size:
        raise TargetError(
            f"item {empty[0]} has no features at all ({empty.size} such items), so no batch holds "
            f"it; give it features or leave it out"
        )
    if start is None:
        return np.zeros(kernel.n)
    if not isinstance(start, Kernel) or start.n != kernel.n:
        raise ValueError(
            f"start must be a kernel over the same {kernel.n} items, as returned by prescribe; "
            f"got {start!r}"
        )
    return np.asarray(np.log(start.diag() / diagonal))


def _of_features(F: Matrix | Rows, k: int, b: FloatArray, theta: FloatArray, tol: float) -> Linear:
    def rank_of(items: IntArray) -> int:
        part = F.take(items) if isinstance(F, Rows) else F[items]
        return of_features(part, DEFAULT_TOL).rank

    if isinstance(F, Rows):
        theta = _reached(StreamedMarginals(F, k), b, theta, tol, rank_of).theta
        return Linear(F.mapped(ScaledRows(np.exp(theta / 2))))
    marginals = FeatureMarginals(F, k)
    theta = _reached(marginals, b, theta, tol, rank_of).theta
    if marginals.delicate:  # ask again by the route that the sampler will take
        theta = _reached(RefinedMarginals(F, k), b, theta, tol, rank_of).theta
    return Linear(scaled_rows(F, np.exp(theta / 2)))


def _of_matrix(
    kernel: Kernel, k: int, b: FloatArray, theta: FloatArray, tol: float
) -> Linear | Precomputed:
    advice = "pass a spectrum: prescribe(pivoted_cholesky(kernel, rank), k, target)"
    reserve(4 * kernel.n**2, f"the full matrix of {kernel!r} with its eigenvectors", advice)
    everything = np.arange(kernel.n)
    L = kernel.block(everything, everything)

    def rank_of(items: IntArray) -> int:
        values, _ = eigh(L[np.ix_(items, items)])
        return int(np.count_nonzero(values > items.size * np.finfo(float).eps * values[0]))

    theta = _reached(MatrixMarginals(L, k), b, theta, tol, rank_of).theta
    root = np.exp(theta / 2)
    if isinstance(kernel, Linear):
        return Linear(scaled_rows(kernel.features, root))
    L *= root
    L *= root[:, None]
    return Precomputed(L)


def _reached(
    marginals: Any, b: FloatArray, theta: FloatArray, tol: float, rank_of: Callable[[IntArray], int]
) -> Solution:
    """Return the solution, or say why there is none."""
    done = 0
    for stage in STAGES:
        solution = solve(marginals, b, theta, tol, stage - done)
        if solution.error <= tol:
            return solution
        refuse_out_of_reach(b, solution.b, rank_of)
        theta, done = solution.theta, stage
    raise TargetError(
        f"after {done} steps the inclusion probabilities are still off by up to "
        f"{solution.error:.2g} of their targets; the target is at the edge of what these features "
        f"allow: ask for less of the items that fall short, such as item "
        f"{int(np.argmax(b / solution.b))}, or accept tol={2 * solution.error:.1g}"
    )
