"""Approximations of a kernel by a few of its items: `nystrom` and `coreset`."""

from __future__ import annotations

import numbers
from functools import partial
from typing import Any

import numpy as np
from scipy import linalg

from dmsgd.features import Features
from dmsgd.inputs.arrays import FloatArray, IntArray, as_items, random_rows
from dmsgd.inputs.fingerprint import digest
from dmsgd.inputs.messages import counted, require
from dmsgd.inputs.scalars import Seed, as_choice, as_part, seed_key
from dmsgd.kernels.contract import Kernel, as_kernel, recorded
from dmsgd.kernels.pivoted_cholesky import factor, low_rank_spectrum
from dmsgd.runtime.progress import announce, run_interruptible
from dmsgd.spectra.eigenpairs import Spectrum, truncate
from dmsgd.spectra.rounding import Rounding, lost_by_factor

#: Pivots are chosen among this many items, or four per pivot if that is more.
SAMPLE = 20_000
#: Passes of k-means over all items, and over three items per cluster before it begins, about.
PASSES, STARTS = 5, 9


def nystrom(kernel: Kernel, landmarks: Any, how: str = "uniform", seed: Seed = 0) -> Spectrum:
    """Return an approximate spectrum of a kernel L: that of L̂ = C W⁺ Cᵀ (Affandi et al. 2013).

    landmarks: how many items, or their numbers; C holds their columns of L, W their block.
    how:       "uniform" at random; "pivots" of a randomly pivoted Cholesky of 20,000 items, which
               finds rare groups too; or "kmeans": the items nearest to k-means centres.

    n m kernel entries and O(n m²) operations for m landmarks. Draws are exact for L̂ <= L;
    `trace_error` is the share of the trace of L that L̂ leaves out. For an RBF kernel over features
    in blocks, C is computed block by block and never stored. Raises ValueError if there are more
    landmarks than items. See also `pivoted_cholesky`, `exact`.

    >>> import dmsgd
    >>> nystrom(dmsgd.kernels.RBF([[0.0], [1.0], [2.0]], scale=2.0), [0, 2])
    Spectrum(RBF(3 items, scale=2), rank 2, route='Nyström, 2 landmarks (given)', trace error 1.02%)
    """
    as_kernel(kernel, "nystrom")
    as_choice(how, "how", ("pivots", "uniform", "kmeans"))
    key = seed_key(seed)
    if isinstance(landmarks, numbers.Integral):
        count = as_part(landmarks, "landmarks", kernel.n)
        items = np.unique(_choose_landmarks(kernel, count, how, key))
        method = f"nystrom({landmarks}, {how}, seed={key})"
    else:
        items, how = np.unique(as_items(landmarks, kernel.n, "landmarks", ndim=1)), "given"
        if items.size == 0:
            raise ValueError("landmarks is empty; give at least one item")
        method = f"nystrom({digest(items)})"
    return landmark_spectrum(kernel, items, how, method)


def landmark_spectrum(
    kernel: Kernel, items: IntArray, how: str, method: str, F: Features | None = None
) -> Spectrum:
    """Return the spectrum for these landmarks, from features F with F Fᵀ = L̂ if there are some."""
    if F is None:
        kept, triangle = _independent(_landmark_block(kernel, items))
        F = kernel.landmark_features(items[kept], triangle)
    route = f"Nyström, {items.size} landmarks ({how})"
    return low_rank_spectrum(kernel, F, route, method)


def coreset(kernel: Kernel, cores: int = 100, seed: Seed = 0) -> Spectrum:
    """Return an approximate spectrum of a kernel, in which one core item replaces each cluster.

    It is that of L̂ = Z L_core Zᵀ, where row i of Z picks the core of item i: the item nearest to
    its k-means centre (Li et al. 2015). It comes from a matrix of size `cores`, which is also the
    largest possible rank: items of one cluster never share a batch. Its `trace_error` is
    Σ_i |φ_i - φ_core(i)|² / trace(L), by how far items are moved in feature space.
    Raises TypeError for a kernel without features. See also `nystrom`.

    >>> import dmsgd
    >>> coreset(dmsgd.kernels.RBF(np.repeat([[0.0], [1.0], [3.0]], 5, axis=0)), cores=3).rank
    3
    """
    count, key = as_part(cores, "cores", as_kernel(kernel, "coreset").n), seed_key(seed)
    code, core = _cluster(kernel, count, key)
    sizes = np.bincount(code)
    L = _landmark_block(kernel, core)
    values, vectors = linalg.eigh(np.sqrt(np.outer(sizes, sizes)) * L, check_finite=False)
    V = (vectors / np.sqrt(sizes)[:, None])[code]
    to_core, diagonal = np.empty(kernel.n), kernel.diag()  # L[i, core(i)], by clusters
    for c, item in enumerate(core):
        members = np.flatnonzero(code == c)
        to_core[members] = kernel.block(members, [item])[:, 0]
    moved = np.maximum(diagonal - 2 * to_core + L.diagonal()[code], 0.0)
    spectrum = truncate(values, V, f"coreset, {core.size} cores", Rounding(1.0, core.size))
    method, error = f"coreset(cores={count}, seed={key})", float(moved.sum() / diagonal.sum())
    return recorded(spectrum, kernel, method, trace_error=error)


def _choose_landmarks(kernel: Kernel, count: int, how: str, key: int) -> IntArray:
    rng = np.random.default_rng(key)
    if how == "uniform":
        return rng.choice(kernel.n, count, replace=False)
    if how == "kmeans":
        return _cluster(kernel, count, key)[1]
    items = random_rows(kernel.n, max(SAMPLE, 4 * count), rng)
    return items[factor(kernel.subset(items), count, 0.0, int(rng.integers(2**63)))[1]]


def _independent(L: FloatArray) -> tuple[IntArray, FloatArray]:
    """Return which landmarks are independent beyond rounding, and T with T Tᵀ their block of L."""
    m = len(L)
    least = lost_by_factor(m, float(L.diagonal().max()))
    solve = partial(linalg.lapack.dpstrf, L, tol=least, lower=1)
    T, order, rank, _ = run_interruptible(solve, m**3 / 3, f"the factor of {m:,} landmarks")
    return order[:rank] - 1, np.tril(T[:rank, :rank])


def _landmark_block(kernel: Kernel, items: IntArray) -> FloatArray:
    """Return L at the landmarks, which must not all be zero."""
    L = kernel.block(items, items)
    if not L.diagonal().any():
        raise ValueError(
            f"all features of the {counted(items.size, 'item')} that stand for the others are zero "
            f"(the first is item {items[0]}); choose more items, or other ones"
        )
    return L


def _cluster(kernel: Kernel, count: int, key: int) -> tuple[IntArray, IntArray]:
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
