"""How similar items are by the kernel: in batches, and near-duplicates and outliers of the data.

Similarity is the cosine L_ij / √(L_ii L_jj) of the kernel L_ij = f_iᵀf_j.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
import numpy.typing as npt

from dmsgd.designs.design import ClosedForm
from dmsgd.designs.stream import Source, check_design, fixed_seed
from dmsgd.designs.weighted import Weighted
from dmsgd.features.row_maps import Normalize
from dmsgd.inputs.arrays import FloatArray, IntArray, random_rows
from dmsgd.inputs.scalars import Seed, as_count, seed_key
from dmsgd.spectra import Spectrum

#: Numbers that are held of drawn items' features at a time.
NUMBERS = 2**22
#: Squared deviations below this share of the squared sum are rounding errors.
ROUNDING = 1e-24
#: Two items with a cosine above this share a batch at most a hundredth as often as unlike ones:
#: the determinant of their kernel is 1 - cos² of what it is at cos = 0.
COSINE = 0.995
#: Minus half the squared distance of two units with that cosine, with a margin for rounding.
NEAR = -1.002 * (1 - COSINE)
#: About as many products are spent on looking for near-duplicates.
PRODUCTS = 5e10
#: Columns that are compared first, and items that tell whether these are enough.
COLUMNS, TRIED = 32, 100
#: Rows that are compared with all others at a time: few first, which may claim most of them.
BLOCKS = (16, 256)

Units = npt.NDArray[np.float32]


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


@final
@dataclass(frozen=True, eq=False)
class NearDuplicates:
    """Groups of near-duplicates, and how similar items are to all others.

    representative: (n,) the first item of each item's group, itself where it has no near-duplicate.
    searched:       items among which near-duplicates were searched, n as a rule.
    similarity:     (n,) root mean square cosine with all other items; outliers have small ones.
    """

    representative: IntArray
    searched: int
    similarity: FloatArray


def near_duplicates(spectrum: Spectrum, seed: Seed = 0) -> NearDuplicates:
    """Return groups of items with a cosine above 0.995, and each item's similarity to the others.

    spectrum: of the kernel whose cosines are meant, such as `diversify(X, k).spectrum`.

    In order, each item claims those that are near it and not yet claimed. Where all pairs would
    take long, a random part of the items is searched.

    >>> import dmsgd
    >>> X = np.vstack([np.eye(4), np.eye(4)[:1]])
    >>> near_duplicates(dmsgd.diversify(X, k=2).spectrum).representative.tolist()
    [0, 1, 2, 3, 0]
    """
    F = kernel_features(as_spectrum(spectrum), np.arange(spectrum.n))
    U = Normalize()(F).astype(np.float32)
    representative, searched = _search(U, np.random.default_rng(seed_key(seed)))
    return NearDuplicates(representative, searched, _similarity(U))


def _search(U: Units, rng: np.random.Generator) -> tuple[IntArray, int]:
    """Return for each row the first of its near-duplicates, itself if none; and the rows searched.

    Rows have norm 1 or 0. In some of the columns distances are no longer than in all, so that no
    near-duplicate is missed by comparing these first.
    """
    first, rows = np.arange(len(U)), np.flatnonzero(U.any(axis=1))
    columns = _columns(U[rows], rng)
    most = int(np.sqrt(2 * PRODUCTS / columns))
    searched = len(U) if rows.size <= most else most
    rows = rows[random_rows(rows.size, most, rng)]
    A, B = _sides(U[rows, :columns])
    free, start, size = np.ones(rows.size, dtype=bool), 0, BLOCKS[0]
    while start < rows.size:
        block = start + np.flatnonzero(free[start : start + size])
        others = start + np.flatnonzero(free[start:])
        near = A[block] @ B[others].T >= NEAR
        for place in np.flatnonzero(np.count_nonzero(near, axis=1) > 1):
            if free[i := block[place]]:
                found = others[near[place]]
                found = found[free[found]]
                found = found[U[rows[found]] @ U[rows[i]] >= COSINE]
                first[rows[found]] = rows[i]
                free[found] = False
        start, size = start + size, min(2 * size, BLOCKS[1])
    return first, searched


def _sides(P: Units) -> tuple[Units, Units]:
    """Return A and B with A Bᵀ = -|p_i - p_j|² / 2."""
    half, one = -np.einsum("ij,ij->i", P, P) / 2, np.ones(len(P), dtype=np.float32)
    return np.column_stack([P, half, one]), np.column_stack([P, one, half])


def _columns(U: Units, rng: np.random.Generator) -> int:
    """Return how many of the first columns separate most pairs that all columns separate."""
    count = int(U.shape[1])
    if len(U) ** 2 * count <= 2 * PRODUCTS:
        return count
    tried = rng.choice(len(U), min(TRIED, len(U)), replace=False)
    true = np.count_nonzero(U[tried] @ U.T >= COSINE)
    columns = COLUMNS
    while columns < count:
        A, B = _sides(U[:, :columns])
        if np.count_nonzero(A[tried] @ B.T >= NEAR) <= 2 * true + 20 * tried.size:
            return columns
        columns *= 2
    return count


def _similarity(U: Units) -> FloatArray:
    """Return the root of the mean of cos² with all other rows: uᵀ (Σ u uᵀ) u without its own."""
    squares = np.einsum("ij,ij->i", U @ (U.T @ U), U, dtype=np.float64)
    own = np.einsum("ij,ij->i", U, U, dtype=np.float64)
    return np.asarray(np.sqrt(np.maximum(squares - own, 0.0) / max(len(U) - 1, 1)))
