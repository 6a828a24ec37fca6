"""The Nyström approximation of a kernel from a few landmark items (Affandi et al. 2013)."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import linalg

from dmsgd.inputs.fingerprint import digest
from dmsgd.inputs.scalars import Seed, seed_key
from dmsgd.kernels import Kernel, as_kernel
from dmsgd.spectra.factor import of_factor
from dmsgd.spectra.landmarks import GIVEN, block_of, choose_landmarks
from dmsgd.spectra.spectrum import Spectrum

#: Directions of the landmarks' block below this share of its largest eigenvalue are left out.
WHITENED = 1e-12


def nystrom(kernel: Kernel, landmarks: Any, how: str = "uniform", seed: Seed = 0) -> Spectrum:
    """Return the spectrum of L̂ = C W⁺ Cᵀ, with its relative trace error.

    landmarks: how many items, or their numbers; C holds their columns of L, W their block.
    how:       "uniform" at random; "pivots" of a randomly pivoted Cholesky of 20,000 items, which
               finds rare groups too; or "kmeans": the items nearest to k-means centres.

    N·m kernel entries and O(N m²) operations for m landmarks. The result is exact for L̂ <= L.
    For an RBF kernel over features in blocks, C is made block by block and never kept.

    >>> import dmsgd
    >>> nystrom(dmsgd.RBF(np.arange(9.0)[:, None], scale=2.0), [0, 4, 8])
    Spectrum(9 items, rank 3, route='Nyström, 3 landmarks (given)', trace error 15.53%)
    """
    as_kernel(kernel, "nystrom")
    key = seed_key(seed)
    items, how = choose_landmarks(kernel, landmarks, how, key)
    route = f"Nyström, {items.size} landmarks ({how})"
    choice = digest(items) if how == GIVEN else f"{landmarks}, {how}, seed={key}"
    values, vectors = linalg.eigh(block_of(kernel, items), check_finite=False)
    kept = values > WHITENED * values[-1]
    F = kernel.landmark_features(items, vectors[:, kept] / np.sqrt(values[kept]))
    return of_factor(kernel, F, route, f"nystrom({choice})")
