"""Diverse under-sampling for imbalanced-learn; importing this module loads imbalanced-learn.

model = imblearn.pipeline.make_pipeline(DiverseUnderSampler(), LogisticRegression())
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from imblearn.under_sampling.base import BaseUnderSampler  # type: ignore[import-untyped]
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions

from dmsgd import features
from dmsgd.arrays import IntArray, Matrix
from dmsgd.designs import KDPP, Stratified
from dmsgd.kernels import RBF, Kernel, Linear, median_scale
from dmsgd.spectra import exact


class DiverseUnderSampler(BaseUnderSampler):  # type: ignore[misc]
    """Keeps a diverse part of the data: k-DPP draws over features and labels, F = [(1-w)X, wH].

    There are two routes, and `route_` says which was taken.

    "k-DPP":     one draw with k = n_samples over all items. The class counts are random; they lean
                 towards balance, but are not balanced exactly.
    "per class": every class gives the same number of items (one that has fewer gives all), drawn
                 with the same kernel restricted to the class. A k-DPP draws at most as many items
                 as its kernel has rank, so a class is a union of draws of at most that size.
                 Items that come twice count once, and are replaced by draws from what is left
                 until the number is reached; items that are zero in F come last, at random.

    n_samples:    "auto" takes the route "per class" with as many items of each class as the
                  smallest has. A number takes the route "k-DPP", or "per class" where it exceeds
                  the rank (linear kernel: features + classes), because no such k-DPP exists.
    w:            weight of the labels, for a number n_samples; 0 ignores them, 1 ignores X.
    kernel:       "linear", or "rbf" (full rank for distinct items; O(n³) time, n² memory).
    scale:        of the RBF kernel, by default the median distance over all items.
    normalize:    scale the rows of X to length 1; otherwise long rows are kept more often.
    random_state: int, RandomState or None, as in scikit-learn.

    After `fit_resample`: `sample_indices_`, the items kept, in increasing order;
    `sampling_strategy_`, how many of each class; `route_`.

    >>> X = np.random.default_rng(0).normal(size=(100, 5))
    >>> y = np.repeat(["common", "rare"], [90, 10])
    >>> sampler = DiverseUnderSampler(random_state=0)
    >>> X_kept, y_kept = sampler.fit_resample(X, y)
    >>> X_kept.shape, sampler.sampling_strategy_, sampler.route_
    ((20, 5), {'common': 10, 'rare': 10}, 'per class')
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_samples": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "w": [Interval(Real, 0, 1, closed="both")],
        "kernel": [StrOptions({"linear", "rbf"})],
        "scale": [Interval(Real, 0, None, closed="neither"), None],
        "normalize": ["boolean"],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        *,
        n_samples: int | str = "auto",
        w: float = 0.7,
        kernel: str = "linear",
        scale: float | None = None,
        normalize: bool = True,
        random_state: Any = None,
    ) -> None:
        super().__init__()
        self.n_samples = n_samples
        self.w = w
        self.kernel = kernel
        self.scale = scale
        self.normalize = normalize
        self.random_state = random_state

    def _fit_resample(self, X: Any, y: Any) -> tuple[Any, Any]:
        random = check_random_state(self.random_state)
        F = features.concat(features.normalize(X) if self.normalize else X, y, self.w)
        kernel = self._kernel(F)
        kept = self._one_draw(F, kernel, random)
        self.route_ = "per class" if kept is None else "k-DPP"
        if kept is None:
            kept = _per_class(F, y, self._size(y), kernel, random)
        self.sample_indices_ = np.sort(kept)
        y_kept = y[self.sample_indices_]
        self.sampling_strategy_ = dict(sorted(Counter(y_kept.tolist()).items()))
        return X[self.sample_indices_], y_kept

    def _kernel(self, F: Matrix) -> Callable[[Matrix], Kernel]:
        """Return the function from rows of F to their kernel, the same one for any of its rows."""
        if self.kernel == "linear":
            if self.scale is not None:
                raise ValueError("scale belongs to kernel='rbf'; leave it None for kernel='linear'")
            return Linear
        scale = median_scale(F) if self.scale is None else self.scale
        return lambda rows: RBF(rows, scale)

    def _one_draw(
        self, F: Matrix, kernel: Callable[[Matrix], Kernel], random: np.random.RandomState
    ) -> IntArray | None:
        """Return the draw of the k-DPP with k = n_samples, None where there is no such k-DPP."""
        if self.n_samples == "auto":
            return None
        k = int(self.n_samples)
        if k > F.shape[0]:
            raise ValueError(
                f"n_samples={k} exceeds the number of items, {F.shape[0]}; "
                f"an under-sampler keeps at most all of them"
            )
        if self.kernel == "linear" and k > F.shape[1]:
            return None  # the rank is at most the number of columns: no need to compute it
        spectrum = exact(kernel(F))
        return KDPP(spectrum, k).sample(1, random)[0] if k <= spectrum.rank else None

    def _size(self, y: Any) -> int:
        counts = np.unique(y, return_counts=True)[1]
        return int(counts.min() * counts.size) if self.n_samples == "auto" else int(self.n_samples)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.sampler_tags.sample_indices = True
        return tags


def _per_class(
    F: Matrix, y: Any, k: int, kernel: Callable[[Matrix], Kernel], random: np.random.RandomState
) -> IntArray:
    """Return k items: the class counts of a stratified draw, each class filled by k-DPPs."""
    labels, codes = np.unique(y, return_inverse=True)
    drawn = Stratified(codes, k).sample(1, random)[0]
    counts = np.bincount(codes[drawn], minlength=labels.size).tolist()
    parts = []
    for label, count in enumerate(counts):
        members = np.flatnonzero(codes == label)
        parts.append(members[_union(F[members], count, kernel, random)])
    return np.concatenate(parts)


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
        spectrum = exact(kernel(F[left]))
        draws = -(-missing // spectrum.rank)  # the fewest that can do, all of one size
        batches = KDPP(spectrum, -(-missing // draws)).sample(draws, random)
        items, first = np.unique(batches, return_index=True)
        new = items[np.argsort(first)][:missing]  # a row is in random order: any part is fair
        kept, left = np.append(kept, left[new]), np.delete(left, new)
    return kept
