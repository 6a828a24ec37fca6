"""Diverse under-sampling for imbalanced-learn; importing this module loads imbalanced-learn."""

from __future__ import annotations

import warnings
from collections import Counter
from dataclasses import replace
from typing import Any

from dmsgd.inputs.messages import require

require("imblearn", "dmsgd.imblearn")

import numpy as np
from imblearn.under_sampling.base import BaseUnderSampler
from sklearn.utils import check_random_state

from dmsgd import features
from dmsgd.designs.build import make_kdpp
from dmsgd.designs.kdpp import KDPP
from dmsgd.designs.options import CHECKS, DesignOptions, KernelName
from dmsgd.designs.recipe import prepared
from dmsgd.designs.stratified import Stratified
from dmsgd.errors import KernelWarning, RankError
from dmsgd.features import as_features
from dmsgd.features.maps import concat_labels
from dmsgd.inputs.alignment import by_position
from dmsgd.inputs.arrays import IntArray, Matrix
from dmsgd.inputs.scalars import as_part
from dmsgd.kernels import Linear, exact

#: Eigenvalues below this share of the largest do not count: rounding would decide there.
THIN = 1e-6


class DiverseUnderSampler(BaseUnderSampler):  # type: ignore[misc]
    """An under-sampler that keeps a diverse part of the data, by k-DPPs over F = [(1-w)X, wH].

    sampling_strategy: imbalanced-learn's: {class: number of items}, a function from y to that, a
                       name ("majority", "all", ...) or, for two classes, the ratio of the smaller
                       to the larger. Other classes are kept whole. By default every class is cut to
                       the size of the smallest.
    n_samples:         instead of sampling_strategy, how many items to keep in all, by one draw
                       with that k; the class counts are random. Above the kernel's rank classes
                       give equal numbers (one that has fewer gives all).
    w:                 weight of the labels, for a number n_samples; 0 ignores them, 1 ignores X.
    kernel, scale, standardize, normalize: as in `dmsgd.diversify`.
    random_state:      int, RandomState or None, as in scikit-learn.

    With a sampling_strategy, the items of each class are one draw of `diversify` from that class
    alone or, if the kernel's rank is too small, a union of draws of at most that rank. Items drawn
    twice are replaced by draws from the remaining items; duplicates come last, at random.
    See also `dmsgd.select`, `Stratified`.

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
        w: float = DesignOptions.w,
        kernel: KernelName = DesignOptions.kernel,
        scale: float | None = DesignOptions.scale,
        standardize: bool = DesignOptions.standardize,
        normalize: bool | None = DesignOptions.normalize,
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

    def fit_resample(self, X: Any, y: Any, **params: Any) -> tuple[Any, Any]:
        """Return the rows of X and entries of y that are kept.

        Raises ValueError if y has another index than a frame X: rows are matched by position.
        """
        by_position(y, X, "y")
        return super().fit_resample(X, y, **params)  # type: ignore[no-any-return]

    def _fit_resample(self, X: Any, y: Any) -> tuple[Any, Any]:
        random = check_random_state(self.random_state)
        given = self.get_params()
        options = DesignOptions(**{name: given[name] for name in CHECKS if name in given})
        kept = None if self.n_samples == "auto" else self._one_draw(options, X, y, random)
        self.route_ = "per class" if kept is None else "k-DPP"
        if kept is None:
            counts = self._counts(y, random)
            F: Any = features.standardize(X) if self.standardize else X
            alone = replace(options, standardize=False)  # that is done
            members = {label: np.flatnonzero(y == label) for label in sorted(counts)}
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", KernelWarning)  # of one class alone
                parts = [_union(alone, F[at], counts[each], random) for each, at in members.items()]
            kept = np.concatenate(
                [at[part] for at, part in zip(members.values(), parts, strict=True)]
            )
        self.sample_indices_ = np.sort(kept)
        y_kept = y[self.sample_indices_]
        self.sampling_strategy_ = dict(sorted(Counter(y_kept.tolist()).items()))
        return X[self.sample_indices_], y_kept

    def _one_draw(
        self, options: DesignOptions, X: Any, y: Any, random: np.random.RandomState
    ) -> IntArray | None:
        """Return the draw of the k-DPP with k = n_samples, or None if there is no such k-DPP."""
        k = as_part(self.n_samples, "n_samples", X.shape[0])
        if self.sampling_strategy != "auto":
            raise ValueError(f"n_samples={k} replaces sampling_strategy; leave one of them 'auto'")
        try:
            design = make_kdpp(options, X, k, y)
        except RankError:
            return None
        kept: IntArray = design.sample(1, random)[0]
        return kept

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
    options: DesignOptions, F: Matrix, count: int, random: np.random.RandomState
) -> IntArray:
    """Return `count` different rows of F: a draw, or in rounds a union of smaller draws."""
    left = np.arange(F.shape[0])
    if count == left.size:
        return left
    kept = np.empty(0, dtype=np.int64)
    while (missing := count - kept.size) > 0:
        if abs(F[left]).max() == 0:
            return np.append(kept, random.choice(left, missing, replace=False))
        design, draws = _largest(options, F[left], missing), 1
        if design.k < missing and options.kernel == "linear":
            draws = -(-missing // design.k)  # the fewest possible, all of one size
            design = KDPP(design.spectrum, -(-missing // draws))
        items, first = np.unique(design.sample(draws, random), return_index=True)
        new = items[np.argsort(first)][:missing]  # rows are in random order
        kept, left = np.append(kept, left[new]), np.delete(left, new)
    return kept


def _largest(options: DesignOptions, F: Matrix, k: int) -> KDPP:
    """Return the k-DPP of k items, or of as many as are clearly independent."""
    same = np.zeros(F.shape[0], dtype=np.int64)  # all are of one class
    if options.kernel == "linear":
        rows = concat_labels(prepared(options, as_features(F)), same, options.w)
        k = min(k, exact(Linear(rows), tol=THIN).rank)
    try:
        return make_kdpp(options, F, k, same)
    except RankError as error:
        return make_kdpp(options, F, error.rank, same)
