"""The coreset approximation: the core of its cluster stands for every item (Li et al. 2015)."""

from __future__ import annotations

import numpy as np
from scipy import linalg

from dmsgd.inputs.scalars import Seed, as_count, seed_key
from dmsgd.kernels.kernel import Kernel, as_kernel
from dmsgd.kernels.nystrom import cluster, landmark_block
from dmsgd.spectra.rounding import Rounding
from dmsgd.spectra.spectrum import Spectrum, changed, truncate


def coreset(kernel: Kernel, cores: int = 100, seed: Seed = 0) -> Spectrum:
    """Return the spectrum of L̂ = Z L_core Zᵀ, where row i of Z says which core item i stands for.

    The cores are the items nearest to k-means centres of the features. L̂ is block-constant, so its
    spectrum comes from a matrix of size `cores`, which is also the largest possible rank: items of
    one cluster never share a batch. Its `trace_error` is Σ_i |φ_i - φ_core(i)|² / trace(L), the
    squared distance in feature space that items are moved by.

    >>> import dmsgd
    >>> coreset(dmsgd.kernels.RBF(np.repeat([[0.0], [1.0], [3.0]], 5, axis=0)), cores=3).rank
    3
    """
    as_kernel(kernel, "coreset")
    count = as_count(cores, "cores")
    if count > kernel.n:
        raise ValueError(f"cores={count} exceeds the number of items, {kernel.n}")
    key = seed_key(seed)
    code, core = cluster(kernel, count, key)
    sizes = np.bincount(code)
    L = landmark_block(kernel, core)
    values, vectors = linalg.eigh(np.sqrt(np.outer(sizes, sizes)) * L, check_finite=False)
    V = (vectors / np.sqrt(sizes)[:, None])[code]
    diagonal = kernel.diag()
    to_core = _to_core(kernel, code, core)
    moved = np.maximum(diagonal - 2 * to_core + L.diagonal()[code], 0.0)
    spectrum = truncate(values, V, f"coreset, {core.size} cores", Rounding(1.0, core.size))
    return changed(
        spectrum,
        trace_error=float(moved.sum() / diagonal.sum()),
        kernel=repr(kernel),
        data=kernel.fingerprint(),
        method=f"coreset(cores={count}, seed={key})",
    )


def _to_core(kernel: Kernel, code: np.ndarray, core: np.ndarray) -> np.ndarray:
    """Return L[i, core(i)] for every item, one cluster at a time."""
    out = np.empty(kernel.n)
    for c, item in enumerate(core):
        members = np.flatnonzero(code == c)
        out[members] = kernel.block(members, [item])[:, 0]
    return out
