"""`inclusion`: b of a linear k-DPP at any size, without the eigenvectors of the items."""

from __future__ import annotations

from typing import Any
from warnings import warn

import numpy as np

from dmsgd.designs.kdpp import KDPP
from dmsgd.errors import KernelWarning
from dmsgd.features import Features, RowMap, as_features
from dmsgd.features.convert import split_label_column
from dmsgd.features.large_array import in_blocks
from dmsgd.features.maps import standardize_map
from dmsgd.features.row_maps import ConcatLabels, Normalize
from dmsgd.inputs.arrays import FloatArray
from dmsgd.inputs.labels import as_classes
from dmsgd.inputs.memory import reserve
from dmsgd.inputs.scalars import as_batch_size, as_flag, as_fraction
from dmsgd.kernels import Linear
from dmsgd.polynomials import eigenvector_inclusion
from dmsgd.spectra.decompose import like
from dmsgd.spectra.spectrum import truncate


def inclusion(
    X: Any,
    k: int,
    labels: Any = None,
    w: float = 0.0,
    *,
    standardize: bool = False,
    normalize: bool = False,
) -> FloatArray:
    """Return how often a linear k-DPP draws each item, shape (n,); the numbers sum to k.

    They are diversify(X, k, labels, w).inclusion(), for the same arguments, but of
    the features only sums over rows are formed: with FᵀF = U Λ Uᵀ and π_n the probability that
    eigenvector n is used, b_i = |f_i U (π/Λ)^(1/2)|². O(n d²) time, 4 d² + n numbers of memory
    beside X, and two passes where X is read in blocks (more where its condition is above 1000).

    Without labels it is a measure of rarity: unusual items have large b. Any sampler that takes
    weights can use it,

        torch.utils.data.WeightedRandomSampler(b, num_samples=64, replacement=False)

    but only `dmsgd.Weighted(b, k)` draws items with probability b. Drawing one after the other
    without replacement, as torch and NumPy do, sees items of large b less often than that and
    those of small b more often; with replacement items come twice.

    >>> b = inclusion(np.vstack([np.repeat(np.eye(2)[:1], 9, axis=0), np.eye(2)[1:]]), k=2)
    >>> [round(float(each), 6) for each in b[-2:]]
    [0.111111, 1.0]
    """
    scaled, unit = as_flag(standardize, "standardize"), as_flag(normalize, "normalize")
    X, labels = split_label_column(X, labels)
    F = _features(X, labels, as_fraction(w, "w"), scaled, unit)
    k = as_batch_size(k, F.n)
    if F.d >= F.n:
        return KDPP(Linear(F.to_memory()), k).inclusion()
    reserve(4 * F.d**2, f"the Gram matrix of {F.d} features", "reduce the number of features (PCA)")
    values, U, rounding = F.gram_eigenpairs()
    dual = truncate(values, U, "dual", rounding)  # whose eigenvalues are the kernel's
    dual.require_rank(k)
    dual.warn_rounding(k)
    weights = np.sqrt(eigenvector_inclusion(values, k) / values)
    return F.projected_norms2(U * like(U, weights))


def _features(X: Any, labels: Any, w: float, standardize: bool, normalize: bool) -> Features:
    """Return the features that `diversify` would make; arrays are mapped block by block."""
    if w > 0 and labels is None:
        raise ValueError(f"w={w} mixes in labels, but labels is None; pass labels= or w=0")
    F = as_features(X)
    maps: list[RowMap] = [standardize_map(F)] if standardize else []
    maps += [Normalize()] if normalize else []
    if labels is not None:
        classes, codes = as_classes(labels, F.n)
        if w > 0:
            maps.append(ConcatLabels(codes, classes.size, w))
        else:
            warn(KernelWarning("labels are given, but w=0 ignores them", w=0.7), stacklevel=3)
    if w < 1 and isinstance(F.unwrap(), np.ndarray):
        F = in_blocks(F.unwrap())
    for map in maps:
        F = F.mapped(map)
    return F
