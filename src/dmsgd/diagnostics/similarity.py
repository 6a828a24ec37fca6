"""How similar items are by the kernel: in batches, and each to all others.

Similarity is the cosine L_ij / √(L_ii L_jj) of the kernel L_ij = f_iᵀf_j.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from dmsgd.designs.design import ClosedForm
from dmsgd.designs.stream import Source, check_design, fixed_seed
from dmsgd.designs.weighted import Weighted
from dmsgd.features.row_maps import Normalize
from dmsgd.inputs.arrays import FloatArray, IntArray
from dmsgd.inputs.scalars import Seed, as_count
from dmsgd.spectra import Spectrum

#: Numbers that are held of drawn items' features at a time.
NUMBERS = 2**22
#: Squared deviations below this share of the squared sum are rounding errors.
ROUNDING = 1e-24


@final
@dataclass(frozen=True)
class Estimate:
    """The mean (`value`) of `draws` independent values and its standard error (`error`)."""

    value: float
    error: float
    draws: int

    def __str__(self) -> str:
        return f"{self.value:.4g} ± {self.error:.2g} ({self.draws} draws)"


def mean_of(values: FloatArray) -> Estimate:
    """Return the mean of at least two independent values as an `Estimate`."""
    error = values.std(ddof=1) / np.sqrt(values.size)
    return Estimate(float(values.mean()), float(error), int(values.size))


def estimate_similarity(
    design: Source, spectrum: Spectrum | None = None, draws: int = 200, seed: Seed = 0
) -> Estimate:
    """Return the mean cosine over the pairs of a batch, estimated from `draws` batches.

    spectrum: of the kernel whose cosines are meant; by default the design's own. Raises TypeError
              if it has none.

    >>> import dmsgd, numpy as np
    >>> design = dmsgd.diversify(np.repeat(np.eye(3), 4, axis=0), k=3)
    >>> abs(estimate_similarity(design).value) < 1e-12  # one item of each kind, always
    True
    """
    spectrum, batches = _drawn(design, spectrum, draws, seed)
    return mean_of(np.array([mean_cosine(kernel_features(spectrum, each)) for each in batches]))


def estimate_repulsion(
    design: ClosedForm, spectrum: Spectrum | None = None, draws: int = 200, seed: Seed = 0
) -> Estimate:
    """Return the share of the variance of a batch's features that repulsion removes.

    That is 1 - Tr Cov(Σ f) / Tr Cov(Σ f in batches of `Weighted.like(design)`), where f_i are the
    features of the kernel, L_ij = f_iᵀf_j. The arguments are those of `estimate_similarity`.
    See also `gradient_variance`, `Weighted`.

    >>> import dmsgd, numpy as np
    >>> design = dmsgd.diversify(np.repeat(np.eye(3), 4, axis=0), k=3)
    >>> estimate_repulsion(design).value
    1.0
    """
    spectrum, batches = _drawn(design, spectrum, draws, seed)
    control = Weighted.like(design)
    return removed_noise(spectrum, batches, control.sample(len(batches), fixed_seed(seed)))


def removed_noise(spectrum: Spectrum, batches: IntArray, control: IntArray) -> Estimate:
    """Return 1 - Tr Cov(Σ f) of these batches over that of the frequency-matched `control`."""
    ours, theirs = _feature_variance(spectrum, batches), _feature_variance(spectrum, control)
    if theirs.value == 0:
        return Estimate(0.0, 0.0, ours.draws)
    left = ours.value / theirs.value
    error = float(np.hypot(ours.error, left * theirs.error) / theirs.value)
    return Estimate(1 - left, error, ours.draws)


def _feature_variance(spectrum: Spectrum, batches: IntArray) -> Estimate:
    """Return Tr Cov(Σ f) of the batches, as a share of the largest eigenvalue."""
    step = max(1, NUMBERS // (batches.shape[1] * spectrum.rank))
    parts = range(0, len(batches), step)
    sums = np.concatenate(
        [kernel_features(spectrum, batches[at : at + step]).sum(axis=1) for at in parts]
    )
    squares = np.sum((sums - sums.mean(axis=0)) ** 2, axis=1)
    squares[squares <= ROUNDING * np.sum(sums**2, axis=1)] = 0.0
    found = mean_of(squares)
    return Estimate(found.value * found.draws / (found.draws - 1), found.error, found.draws)


def _drawn(design: Source, given: Any, draws: int, seed: Seed) -> tuple[Spectrum, IntArray]:
    """Return the spectrum, by default the design's, and the batches drawn."""
    check_design(design)
    spectrum = as_spectrum(getattr(design, "spectrum", None) if given is None else given)
    check_design(design, spectrum.n, "the spectrum")
    if design.k < 2:
        raise ValueError("a batch of one item has no pairs; use k >= 2")
    draws = as_count(draws, "draws", least=2)
    return spectrum, design.stream(seed).sample(draws, start=0)


def kernel_features(spectrum: Spectrum, items: IntArray) -> FloatArray:
    """Return rows f_i of V (Λ / λ_1)^(1/2): f_iᵀf_j is L_ij over the largest eigenvalue."""
    scale = np.sqrt(spectrum.values / spectrum.values[0])
    return np.asarray(spectrum.eigenvectors.rows(items) * scale)


def mean_cosine(F: FloatArray) -> float:
    """Return the mean cosine over pairs of rows: (|Σ u|² - Σ |u|²) / (k (k - 1)) of unit rows u."""
    U, k = Normalize()(F), len(F)
    total = U.sum(axis=0)
    return float(total @ total - np.sum(U * U)) / max(k * (k - 1), 1)


def as_spectrum(value: Any) -> Spectrum:
    """Return `value`, which must be a Spectrum."""
    if not isinstance(value, Spectrum):
        kind = type(value).__name__
        raise TypeError(f"spectrum must be a Spectrum, as design.spectrum of a k-DPP, got {kind}")
    return value


def typical_cosines(F: FloatArray) -> FloatArray:
    """Return each row's root mean square cosine with all other rows; outliers have small ones."""
    U = Normalize()(F)
    squares, own = np.einsum("ij,ij->i", U @ (U.T @ U), U), np.einsum("ij,ij->i", U, U)
    return np.asarray(np.sqrt(np.maximum(squares - own, 0.0) / max(len(U) - 1, 1)))
