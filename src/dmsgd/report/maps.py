"""Where items lie on a map: the first two principal components of the kernel's features."""

from __future__ import annotations

import numpy as np
from scipy import linalg

from dmsgd.inputs.arrays import FloatArray, IntArray
from dmsgd.spectra import Spectrum

#: Points on a map; more are neither seen apart nor quick to draw.
MAP_POINTS = 20_000


def positions(spectrum: Spectrum) -> FloatArray:
    """Return the first two principal components of the kernel's features, scaled to 0..1.

    F = V Λ^(1/2) has the distances of the features, so its principal components are theirs. Their
    scatter matrix is FᵀF - n μ μᵀ = Λ - n μ μᵀ, where μ is the mean. O(n r + r³).
    """
    V, roots = np.asarray(spectrum.vectors), np.sqrt(spectrum.values)
    mean, count = roots * V.mean(axis=0), min(2, spectrum.rank)
    scatter = np.diag(spectrum.values) - spectrum.n * np.outer(mean, mean)
    last = [spectrum.rank - count, spectrum.rank - 1]
    _, directions = linalg.eigh(scatter, subset_by_index=last, check_finite=False)
    plane = np.zeros((spectrum.n, 2))
    plane[:, :count] = V @ (roots[:, None] * directions[:, ::-1])
    return scaled(plane)


def scaled(plane: FloatArray) -> FloatArray:
    """Return points with both coordinates scaled to 0..1."""
    low, high = plane.min(axis=0), plane.max(axis=0)
    return np.asarray((plane - low) / np.where(high > low, high - low, 1.0))


def map_rows(n: int, important: IntArray, rng: np.random.Generator) -> IntArray:
    """Return the items on the map, sorted: all, or the important ones and a random rest."""
    if n <= MAP_POINTS:
        return np.arange(n)
    others = np.setdiff1d(np.arange(n), important)
    rest = rng.choice(others, max(MAP_POINTS - important.size, 0), replace=False)
    return np.sort(np.concatenate([important, rest]))
