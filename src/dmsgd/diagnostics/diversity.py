"""How alike the items of a batch are, and how much room the kernel leaves for k of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from dmsgd.designs import DPP, KDPP, ClosedForm, Weighted
from dmsgd.designs.design import inclusion_of
from dmsgd.designs.determinants import log_determinants
from dmsgd.designs.stream import Source, check_design, fixed_seed
from dmsgd.diagnostics.estimates import Estimate, mean_of
from dmsgd.features import as_features
from dmsgd.inputs.arrays import FloatArray, IntArray, as_array
from dmsgd.inputs.scalars import Seed, as_batch_size, as_count
from dmsgd.spectra import Spectrum, effective_rank, repulsion

#: Features of drawn items that are held at a time.
NUMBERS = 2**22
#: Sums of features that differ by no more than this share of their square are the same.
ROUNDING = 1e-24


@final
@dataclass(frozen=True)
class Room:
    """How many directions the kernel has for a batch of k.

    rank:           the largest possible k.
    effective_rank: exp(entropy of λ / Σλ), how many groups of items the kernel tells apart.
    crowding:       k / effective_rank. Far below 1 there are many more groups than places, and
                    batches are near uniform but for the sizes of rows; far above 1 places are
                    filled from directions that hardly matter.
    repulsion:      log-distance from uniform batches, 0 for plain SGD.
    """

    k: int
    rank: int
    effective_rank: float
    crowding: float
    repulsion: float


def room(design: KDPP | DPP | Spectrum, k: int | None = None) -> Room:
    """Return the rank and the effective rank of a design's kernel, and how close k is to them.

    k: the batch size for a Spectrum or a DPP; a k-DPP has its own. O(r k).

    >>> import dmsgd
    >>> found = room(dmsgd.KDPP(dmsgd.exact(dmsgd.identity(10)), 5))
    >>> found.rank, round(found.effective_rank), round(found.crowding, 3)
    (10, 10, 0.5)
    """
    spectrum = design if isinstance(design, Spectrum) else _spectrum_of(design)
    k = as_batch_size(design.k if k is None and isinstance(design, KDPP) else k, spectrum.n)
    effective = effective_rank(spectrum)
    strength = repulsion(spectrum, k) if k <= spectrum.rank else float("inf")
    return Room(k, spectrum.rank, effective, k / effective, strength)


def mean_similarity(design: ClosedForm, X: Any) -> float:
    """Return the expected f_iᵀf_j over the pairs of a batch, exactly; normalise rows for cosines.

    X: (n, d) features f_i. Compare with mean_similarity(Uniform(n, k), X). The cost is that of
    `gradient_variance` with p = d; `estimate_similarity` does with draws.

    >>> import dmsgd, numpy as np
    >>> F = np.repeat(np.eye(3), 4, axis=0)
    >>> design = dmsgd.KDPP(dmsgd.exact(dmsgd.Linear(F)), 3)
    >>> round(mean_similarity(design, F), 6), round(mean_similarity(dmsgd.Uniform(12, 3), F), 3)
    (0.0, 0.273)
    """
    if not isinstance(design, ClosedForm):
        raise TypeError(
            f"design must have joint probabilities in closed form, got {type(design).__name__}; "
            f"estimate_similarity works from draws"
        )
    F = as_array(as_features(X, "X").whole().matrix)
    check_design(design, F.shape[0], "X")
    if design.k < 2:
        raise ValueError("a batch of one item has no pairs; use k >= 2")
    own = design.inclusion() @ np.einsum("ip,ip->i", F, F)
    return float((design.second_moment(F) - own) / (design.k * (design.k - 1)))


@final
@dataclass(frozen=True)
class LogDeterminant:
    """How much volume batches span, estimated from draws.

    mean:      of log det L_Y over the batches whose items are independent.
    dependent: share of the batches with det L_Y = 0, such as those with duplicates.
    """

    mean: Estimate
    dependent: float


def estimate_similarity(
    design: Source, spectrum: Spectrum | None = None, draws: int = 200, seed: Seed = 0
) -> Estimate:
    """Return the mean cosine over the pairs of a batch, estimated from `draws` batches.

    spectrum: the kernel that judges; by default the design's own. Uniform batches by the same
    measure are estimate_similarity(Uniform(n, k), design.spectrum). O(draws k r).

    >>> import dmsgd, numpy as np
    >>> design = dmsgd.diversify(np.repeat(np.eye(3), 4, axis=0), k=3)
    >>> estimate_similarity(design).value < estimate_similarity(
    ...     dmsgd.Uniform(12, 3), design.spectrum
    ... ).value
    True
    """
    spectrum, batches = _drawn(design, spectrum, draws, seed)
    return mean_of(_cosines(spectrum, batches))


def estimate_log_determinant(
    design: Source, spectrum: Spectrum | None = None, draws: int = 200, seed: Seed = 0
) -> LogDeterminant:
    """Return the mean of log det L_Y, which has no closed form, estimated from `draws` batches.

    The arguments are those of `estimate_similarity`. O(draws k² r).

    >>> import dmsgd, numpy as np
    >>> design = dmsgd.diversify(np.repeat(np.eye(3), 4, axis=0), k=3)
    >>> found = estimate_log_determinant(dmsgd.Uniform(12, 3), design.spectrum)
    >>> found.dependent > 0.5 > estimate_log_determinant(design).dependent  # copies in a batch
    True
    """
    spectrum, batches = _drawn(design, spectrum, draws, seed)
    possible = design.k <= spectrum.rank
    logs = log_determinants(spectrum, batches) if possible else np.full(len(batches), -np.inf)
    known = logs[np.isfinite(logs)]
    mean = mean_of(known) if known.size > 1 else Estimate(-np.inf, np.inf, 0)
    return LogDeterminant(mean, 1 - known.size / logs.size)


def estimate_repulsion(
    design: ClosedForm, spectrum: Spectrum | None = None, draws: int = 200, seed: Seed = 0
) -> Estimate:
    """Return how much of the variance of a batch's features repulsion removes; 0 is none of it.

    That is 1 - Tr Cov(Σ f) / Tr Cov(Σ f of batches with the same b without repulsion), f_i being
    the features of the kernel, L_ij = f_iᵀf_j: what `gradient_variance` would say of gradients
    that follow the features. The arguments are those of `estimate_similarity`. O(draws k r).

    >>> import dmsgd, numpy as np
    >>> design = dmsgd.diversify(np.repeat(np.eye(3), 4, axis=0), k=3)
    >>> estimate_repulsion(design).value  # one of each, always
    1.0
    """
    spectrum, batches = _drawn(design, spectrum, draws, seed)
    same_b = Weighted(inclusion_of(design), design.k)
    return repelled(spectrum, batches, same_b.sample(len(batches), fixed_seed(seed)))


def repelled(spectrum: Spectrum, batches: IntArray, without: IntArray) -> Estimate:
    """Return 1 - Tr Cov(Σ f) of these batches over that of those without repulsion."""
    ours, theirs = _spread(spectrum, batches), _spread(spectrum, without)
    if theirs.value == 0:
        return Estimate(0.0, 0.0, ours.draws)
    left = ours.value / theirs.value
    error = float(np.hypot(ours.error, left * theirs.error) / theirs.value)
    return Estimate(1 - left, error, ours.draws)


def _spread(spectrum: Spectrum, batches: IntArray) -> Estimate:
    """Return Tr Cov(Σ f) of the batches, as a share of the largest eigenvalue."""
    scale = np.sqrt(spectrum.values / spectrum.values[0])
    step = max(1, NUMBERS // (batches.shape[1] * spectrum.rank))
    parts = [
        spectrum.held.rows(batches[start : start + step]).sum(axis=1) * scale
        for start in range(0, len(batches), step)
    ]
    sums = np.concatenate(parts)
    squares = np.sum((sums - sums.mean(axis=0)) ** 2, axis=1)
    squares[squares <= ROUNDING * np.sum(sums**2, axis=1)] = 0.0
    found = mean_of(squares)
    return Estimate(found.value * found.draws / (found.draws - 1), found.error, found.draws)


def _drawn(
    design: Source, spectrum: Spectrum | None, draws: int, seed: Seed
) -> tuple[Spectrum, IntArray]:
    """Return the spectrum that judges, and the batches it judges."""
    check_design(design)
    spectrum = _spectrum_of(design) if spectrum is None else spectrum
    if not isinstance(spectrum, Spectrum):
        raise TypeError(
            f"spectrum must be a Spectrum, such as dmsgd.exact(dmsgd.Linear(X)), got "
            f"{type(spectrum).__name__}"
        )
    check_design(design, spectrum.n, "the spectrum")
    if design.k < 2:
        raise ValueError("a batch of one item has no pairs; use k >= 2")
    draws = as_count(draws, "draws", least=2)
    return spectrum, design.stream(seed).sample(draws, start=0)


def _cosines(spectrum: Spectrum, batches: IntArray) -> FloatArray:
    """Return the mean cosine over the pairs of each batch: (|Σ f|² - k) / (k (k - 1))."""
    k, out = batches.shape[1], np.empty(len(batches))
    scale = np.sqrt(spectrum.values)
    for t, rows in enumerate(spectrum.held.rows(batches)):
        F = rows * scale
        lengths = np.linalg.norm(F, axis=1)
        F /= np.where(lengths > 0, lengths, 1.0)[:, None]
        total = F.sum(axis=0)
        out[t] = (total @ total - np.count_nonzero(lengths)) / (k * (k - 1))
    return out


def _spectrum_of(design: Any) -> Spectrum:
    spectrum = getattr(design, "spectrum", None)
    if not isinstance(spectrum, Spectrum):
        raise TypeError(
            f"design is a {type(design).__name__}, which has no kernel of its own; pass the "
            f"spectrum of one, such as dmsgd.exact(dmsgd.Linear(X))"
        )
    return spectrum
