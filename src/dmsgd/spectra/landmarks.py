"""A few items that stand for all: uniform, by k-means, or given."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np

from dmsgd.arrays import IntArray, as_count, as_items
from dmsgd.kernels import Kernel
from dmsgd.seeding import Seed, key_of
from dmsgd.streams.rows import Rows


def choose_landmarks(kernel: Kernel, landmarks: Any, how: str, seed: Seed) -> IntArray:
    """Return distinct item numbers: `landmarks` of them chosen as `how` says, or those given."""
    if not isinstance(landmarks, numbers.Integral):
        items = np.unique(as_items(landmarks, kernel.n, "landmarks"))
        if items.size == 0:
            raise ValueError("landmarks is empty; give at least one item")
        return items
    count = as_count(landmarks, "landmarks")
    if count > kernel.n:
        raise ValueError(f"landmarks={count} exceeds the number of items, {kernel.n}")
    if how == "uniform":
        return np.sort(np.random.default_rng(key_of(seed)).choice(kernel.n, count, replace=False))
    if how == "kmeans":
        return np.unique(cluster(kernel, count, seed)[1])
    raise ValueError(f"unknown way to choose landmarks {how!r}; use 'uniform' or 'kmeans'")


def cluster(kernel: Kernel, count: int, seed: Seed) -> tuple[IntArray, IntArray]:
    """Return (cluster of each item, item nearest to each centre) of k-means on the features."""
    from sklearn.cluster import MiniBatchKMeans
    from sklearn.metrics import pairwise_distances_argmin

    features = getattr(kernel, "features", None)
    if features is None:
        raise TypeError(
            f"k-means needs a kernel with features, {type(kernel).__name__} has none; "
            f"choose landmarks uniformly or give them"
        )
    if isinstance(features, Rows):
        raise TypeError(
            "k-means over features in blocks is not supported; choose landmarks uniformly or give "
            "the numbers of the items"
        )
    state = np.random.RandomState(key_of(seed) % 2**32)
    means = MiniBatchKMeans(n_clusters=count, random_state=state, n_init=3).fit(features)
    used, code = np.unique(means.labels_, return_inverse=True)
    nearest = pairwise_distances_argmin(means.cluster_centers_[used], features)
    return code.astype(np.int64), nearest.astype(np.int64)
