"""Diverse under-sampling for imbalanced-learn; importing this module loads imbalanced-learn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

from dmsgd.inputs.messages import require

require("imblearn", "dmsgd.imblearn")

import numpy as np
from imblearn.under_sampling.base import BaseUnderSampler
from sklearn.utils import check_random_state

from dmsgd import features
from dmsgd.designs.kdpp import KDPP
from dmsgd.designs.options import CHECKS, DesignOptions, KernelName
from dmsgd.designs.stratified import Stratified
from dmsgd.inputs.arrays import IntArray, Matrix
from dmsgd.inputs.scalars import as_count
from dmsgd.kernels import RBF, Kernel, Linear, exact, median_scale

#: Eigenvalues below this share of the largest do not count: rounding would decide there.
THIN = 1e-6


class DiverseUnderSampler(BaseUnderSampler):  # type: ignore[misc]
    """Keeps a diverse part of the data: k-DPP draws over features and labels, F = [(1-w)X, wH].

    sampling_strategy: imbalanced-learn's: {class: number of items}, a function from y to that, a
                       name ("majority", "all", ...) or, for two classes, the ratio of the smaller
                       to the larger. Other classes are kept whole. By default every class is cut to
                       the size of the smallest.
    n_samples:         instead of it, how many items to keep in all, by one draw with that k; the
                       class counts are random. Above the rank (linear kernel: features + classes)
                       classes give equal numbers (one that has fewer gives all).
    w:                 weight of the labels, for a number n_samples; 0 ignores them, 1 ignores X.
    kernel, scale, standardize, normalize: as in `dmsgd.diversify`; "rbf" takes O(n³) time.
    random_state:      int, RandomState or None, as in scikit-learn.

    Where classes have their numbers, each is a union of draws with the kernel restricted to it,
    each draw of at most its rank. Items drawn twice are replaced by draws from the remaining items;
    items that are zero in F come last, at random.

    After `fit_resample`: `sample_indices_`, the items kept, in increasing order;
    `sampling_strategy_`, how many of each class; `route_`, "per class" or "k-DPP" (one draw).

    >>> X = np.random.default_rng(0).normal(size=(100, 5))
    >>> y = np.repeat(["common", "rare"], [90, 10])
    >>> sampler = DiverseUnderSampler(random_state=0)
    >>> X_kept, y_kept = sampler.fit_resample(X, y)
    >>> X_kept.shape, sampler.sampling_strategy_, sampler.route_
    ((20, 5), {'common': 10, 'rare': 10}, 'per class')
    """

    def __init__(
        self,
        *,
        sampling_strategy: Any = "auto",
        n_samples: int | str = "auto",
        w: float = 0.0,
        kernel: KernelName = "linear",
        scale: float | None = None,
        standardize: bool = False,
        normalize: bool = False,
        random_state: Any = None,
    ) -> None:
        super().__init__(sampling_strategy=sampling_strategy)
        self.n_samples = n_samples
        self.w = w
        self.kernel = kernel
        self.scale = scale
        self.standardize = standardize
        self.normalize = normalize
        self.random_state = random_state

    def _fit_resample(self, X: Any, y: Any) -> tuple[Any, Any]:
        random = check_random_state(self.random_state)
        given = self.get_params()
        DesignOptions(**{name: given[name] for name in CHECKS if name in given})  # raises if bad
        F: Matrix = features.standardize(X) if self.standardize else X
        F = features.concat(features.normalize(F) if self.normalize else F, y, self.w)
        scale = median_scale(F) if self.kernel == "rbf" and self.scale is None else self.scale
        kernel = Linear if self.kernel == "linear" else partial(RBF, scale=scale)  # of any rows
        kept = None if self.n_samples == "auto" else self._one_draw(F, kernel, random)
        self.route_ = "per class" if kept is None else "k-DPP"
        if kept is None:
            counts = self._counts(y, random)
            members = {label: np.flatnonzero(y == label) for label in sorted(counts)}
            kept = np.concatenate(
                [at[_union(F[at], counts[label], kernel, random)] for label, at in members.items()]
            )
        self.sample_indices_ = np.sort(kept)
        y_kept = y[self.sample_indices_]
        self.sampling_strategy_ = dict(sorted(Counter(y_kept.tolist()).items()))
        return X[self.sample_indices_], y_kept

    def _one_draw(
        self, F: Matrix, kernel: Callable[[Matrix], Kernel], random: np.random.RandomState
    ) -> IntArray | None:
        """Return the draw of the k-DPP with k = n_samples, or None if there is no such k-DPP."""
        k = as_count(self.n_samples, "n_samples")
        if self.sampling_strategy != "auto":
            raise ValueError(f"n_samples={k} replaces sampling_strategy; leave one of them 'auto'")
        if k > F.shape[0]:
            raise ValueError(f"n_samples={k} exceeds the number of items, {F.shape[0]}")
        if self.kernel == "linear" and k > F.shape[1]:
            return None  # the rank is at most the number of columns
        spectrum = exact(kernel(F))
        return KDPP(spectrum, k).sample(1, random)[0] if k <= spectrum.rank else None

    def _counts(self, y: Any, random: np.random.RandomState) -> dict[Any, int]:
        """Return how many items each class gives."""
        if self.n_samples == "auto":
            return {**Counter(y.tolist()), **self.sampling_strategy_}
        return Counter(y[Stratified(y, int(self.n_samples)).sample(1, random)[0]].tolist())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.sampler_tags.sample_indices = True
        return tags


def _union(
    F: Matrix, count: int, kernel: Callable[[Matrix], Kernel], random: np.random.RandomState
) -> IntArray:
    """Return `count` different rows of F: a union of k-DPP draws, in rounds."""
    left = np.arange(F.shape[0])
    if count == left.size:
        return left
    kept = np.empty(0, dtype=np.int64)
    while (missing := count - kept.size) > 0:
        if abs(F[left]).max() == 0:
            return np.append(kept, random.choice(left, missing, replace=False))
        spectrum = exact(kernel(F[left]), tol=THIN)
        draws = -(-missing // spectrum.rank)  # the fewest possible, all of one size
        batches = KDPP(spectrum, -(-missing // draws)).sample(draws, random)
        items, first = np.unique(batches, return_index=True)
        new = items[np.argsort(first)][:missing]  # rows are in random order
        kept, left = np.append(kept, left[new]), np.delete(left, new)
    return kept
