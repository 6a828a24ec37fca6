"""The Nyström approximation of a kernel from a few landmark items (Affandi et al. 2013)."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
from scipy import linalg

from dmsgd.features import Features
from dmsgd.inputs.arrays import FloatArray, IntArray, as_items
from dmsgd.inputs.fingerprint import digest
from dmsgd.inputs.messages import counted, require
from dmsgd.inputs.progress import announce, run_interruptible
from dmsgd.inputs.scalars import Seed, as_choice, as_count, seed_key
from dmsgd.kernels.kernel import Kernel, as_kernel
from dmsgd.kernels.pivoted_cholesky import factor, low_rank_spectrum
from dmsgd.spectra.spectrum import Spectrum

#: Pivots are chosen among this many items, or four per pivot if that is more.
SAMPLE = 20_000

#: Passes of k-means over all items, and over three items per cluster before it begins, about.
PASSES, STARTS = 5, 9

#: `how` of landmarks that the caller chose.
GIVEN = "given"

#: Directions of the landmarks' block below this share of its largest eigenvalue are left out.
WHITENED = 1e-12


def nystrom(kernel: Kernel, landmarks: Any, how: str = "uniform", seed: Seed = 0) -> Spectrum:
    """Return the spectrum of L̂ = C W⁺ Cᵀ, with its relative trace error.

    landmarks: how many items, or their numbers; C holds their columns of L, W their block.
    how:       "uniform" at random; "pivots" of a randomly pivoted Cholesky of 20,000 items, which
               finds rare groups too; or "kmeans": the items nearest to k-means centres.

    n m kernel entries and O(n m²) operations for m landmarks. The result is exact for L̂ <= L.
    For an RBF kernel over features in blocks, C is computed block by block and never stored.

    >>> import dmsgd
    >>> nystrom(dmsgd.kernels.RBF(np.arange(9.0)[:, None], scale=2.0), [0, 4, 8])
    Spectrum(9 items, rank 3, route='Nyström, 3 landmarks (given)', trace error 15.53%)
    """
    as_kernel(kernel, "nystrom")
    key = seed_key(seed)
    items, how = _choose_landmarks(kernel, landmarks, how, key)
    route = f"Nyström, {items.size} landmarks ({how})"
    choice = digest(items) if how == GIVEN else f"{landmarks}, {how}, seed={key}"
    values, vectors = linalg.eigh(landmark_block(kernel, items), check_finite=False)
    kept = values > WHITENED * values[-1]
    F = kernel.landmark_features(items, vectors[:, kept] / np.sqrt(values[kept]))
    return low_rank_spectrum(kernel, F, route, f"nystrom({choice})")


def _choose_landmarks(kernel: Kernel, landmarks: Any, how: str, key: int) -> tuple[IntArray, str]:
    """Return distinct item numbers and how they were chosen."""
    as_choice(how, "how", ("pivots", "uniform", "kmeans"))
    if not isinstance(landmarks, numbers.Integral):
        items = np.unique(as_items(landmarks, kernel.n, "landmarks", ndim=1))
        if items.size == 0:
            raise ValueError("landmarks is empty; give at least one item")
        return items, GIVEN
    count = as_count(landmarks, "landmarks")
    if count > kernel.n:
        raise ValueError(f"landmarks={count} exceeds the number of items, {kernel.n}")
    if how == "uniform":
        items = np.random.default_rng(key).choice(kernel.n, count, replace=False)
    elif how == "pivots":
        items = _pivots(kernel, count, key)
    else:
        items = cluster(kernel, count, key)[1]
    return np.unique(items), how


def landmark_block(kernel: Kernel, items: IntArray) -> FloatArray:
    """Return L at the landmarks, which must not all be zero."""
    L = kernel.block(items, items)
    if not L.diagonal().any():
        raise ValueError(
            f"all features of the {counted(items.size, 'item')} that stand for the others are zero "
            f"(the first is item {items[0]}); choose more items, or other ones"
        )
    return L


def _pivots(kernel: Kernel, count: int, key: int) -> IntArray:
    """Return the pivots of a randomly pivoted Cholesky of (a sample of) the kernel."""
    rng = np.random.default_rng(key)
    most = max(SAMPLE, 4 * count)
    items = np.arange(kernel.n)
    if kernel.n > most:
        items = np.sort(rng.choice(kernel.n, most, replace=False))
    part = kernel.subset(items)
    return items[factor(part, count, 0.0, int(rng.integers(2**63)))[1]]


def cluster(kernel: Kernel, count: int, key: int) -> tuple[IntArray, IntArray]:
    """Return (cluster of each item, item nearest to each centre) of k-means on the features."""
    require("sklearn", "k-means")
    from sklearn.metrics import pairwise_distances_argmin

    points = kernel.features
    if points is None:
        raise TypeError(
            f"k-means needs a kernel with features, {type(kernel).__name__} has none; "
            f"choose landmarks uniformly or give them"
        )
    means = k_means(points, count, key)
    used, code = np.unique(means.labels_, return_inverse=True)
    nearest = pairwise_distances_argmin(means.cluster_centers_[used], points.to_memory().matrix)
    return code.astype(np.int64), nearest.astype(np.int64)


def k_means(X: Features, count: int, key: int) -> Any:
    """Return scikit-learn's k-means of all rows, in mini-batches, with `labels_` and centres."""
    require("sklearn", "k-means")
    from sklearn.cluster import MiniBatchKMeans

    products = (PASSES * X.n + STARTS * count * np.log2(2 * count)) * float(count * X.d)
    what = f"k-means of {X.n:,} items x {X.d:,} features in {count:,} clusters"
    announce(products, X.n * X.d + 3 * count * X.d, what, "fewer clusters take less")
    state = np.random.RandomState(key % 2**32)
    means = MiniBatchKMeans(n_clusters=count, random_state=state, n_init=3)
    rows = X.to_memory().matrix
    return run_interruptible(lambda: means.fit(rows), products, what)
