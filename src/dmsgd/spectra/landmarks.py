"""A few items that stand for all: pivots, uniform, by k-means, or given."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np

from dmsgd.features import Features
from dmsgd.inputs.arrays import FloatArray, IntArray, as_items
from dmsgd.inputs.messages import counted, require
from dmsgd.inputs.progress import announce, run_interruptible
from dmsgd.inputs.scalars import as_choice, as_count
from dmsgd.kernels import Kernel
from dmsgd.spectra.cholesky import factor

#: Pivots are looked for among this many items, or four for each pivot if that is more.
SAMPLE = 20_000

#: About as often k-means looks at every item, and at three for each cluster before it begins.
PASSES, STARTS = 5, 9

#: How landmarks were chosen that the caller chose.
GIVEN = "given"


def choose_landmarks(kernel: Kernel, landmarks: Any, how: str, key: int) -> tuple[IntArray, str]:
    """Return distinct item numbers, as many as asked for or those given, and how they were got."""
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


def block_of(kernel: Kernel, items: IntArray) -> FloatArray:
    """Return L at the items that stand for all, of which one at least must not be zero."""
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
    part = kernel.restricted(items)
    return items[factor(part, count, 0.0, int(rng.integers(2**63)))[1]]


def cluster(kernel: Kernel, count: int, key: int) -> tuple[IntArray, IntArray]:
    """Return (cluster of each item, item nearest to each centre) of k-means on the features."""
    require("sklearn", "k-means")
    from sklearn.metrics import pairwise_distances_argmin

    points = kernel.points()
    if points is None:
        raise TypeError(
            f"k-means needs a kernel with features, {type(kernel).__name__} has none; "
            f"choose landmarks uniformly or give them"
        )
    means = k_means(points, count, key)
    used, code = np.unique(means.labels_, return_inverse=True)
    nearest = pairwise_distances_argmin(means.cluster_centers_[used], points.whole().matrix)
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
    rows = X.whole().matrix
    return run_interruptible(lambda: means.fit(rows), products, what)
