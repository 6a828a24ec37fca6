"""Kernels of features: `Linear`, L = B Bᵀ, and `RBF`, L_ij = exp(-|x_i - x_j|² / (2 scale²))."""

from __future__ import annotations

from typing import Any, final

import numpy as np

from dmsgd.features import Features, as_features
from dmsgd.features.convert import as_frozen_features
from dmsgd.features.map_types import NystromFeatures
from dmsgd.features.median import median_above_rounding
from dmsgd.features.products import similarity, squared_distances
from dmsgd.inputs.arrays import FloatArray, IntArray, as_array, as_items, random_rows
from dmsgd.inputs.fingerprint import digest
from dmsgd.inputs.scalars import as_positive, seed_key
from dmsgd.kernels.contract import Kernel
from dmsgd.spectra.decompose import like

#: Items in the subsample of the median heuristic.
MEDIAN_SUBSAMPLE = 1000
#: Scales whose squares are neither 0 nor infinite.
SCALES = (1e-153, 9e153)


@final
class Linear(Kernel):
    """The linear kernel L = B Bᵀ of features B, shape (n, d): anything `diversify` takes for X.

    The rank is at most d, and an entry costs O(d). Features larger than memory, or on a Dask
    cluster, are read in blocks.

    >>> Linear([[1.0, 0.0], [1.0, 1.0]]).block([0], [0, 1])
    array([[1., 1.]])
    """

    features: Features

    def __init__(self, B: Any) -> None:
        self.features = as_frozen_features(B, "B")
        self.n = self.features.n
        #: Fingerprint of what the features were computed from, where they are rounded results.
        self.origin: str | None = None

    def diag(self) -> FloatArray:
        return self.features.row_norms2()

    def block(self, I: Any, J: Any) -> FloatArray:  # noqa: E741
        rows, columns = as_items(I, self.n, "I", 1), as_items(J, self.n, "J", 1)
        return as_array(self.features.take(rows) @ self.features.take(columns).T)

    def columns(self, J: Any) -> Any:
        return self.features.times(self.features.take(as_items(J, self.n, "J", 1)).T)

    def factor(self) -> Features:
        return self.features

    def _part(self, items: IntArray) -> Linear:
        part = self.features.take(items)
        return Linear(as_features(part, allow_tiny=True))

    def fingerprint(self) -> str:
        return self.origin or digest("Linear", self.features.fingerprint())

    def __repr__(self) -> str:
        return f"Linear({self.n} items, {self.features.d} {self.features.kind} features)"


@final
class RBF(Kernel):
    """The RBF kernel L_ij = exp(-|x_i - x_j|² / (2 scale²)) of features X, shape (n, d).

    The default scale is the median distance between distinct items of a random subsample of
    1,000: half of the pairs are then closer than one scale. An entry costs O(d).
    Raises ValueError if all items are equal and no scale is given. See also `suggest_scale`.

    >>> RBF([[0.0], [1.0]], scale=1.0).diag()
    array([1., 1.])
    """

    features: Features

    def __init__(self, X: Any, scale: float | None = None) -> None:
        self.features = as_frozen_features(X)
        self.n = self.features.n
        given = None if scale is None else as_positive(scale, "scale")
        self.scale = median_scale(self.features) if given is None else given
        if not SCALES[0] <= self.scale <= SCALES[1]:
            raise ValueError(
                f"scale must lie between {SCALES[0]:g} and {SCALES[1]:g}, so that its square is a "
                f"number, got {self.scale:g}; rescale the features"
            )
        #: Identifies the scale: not a fitted one itself, whose last digits differ by processor.
        self.named_scale = "median" if given is None else given.hex()

    def diag(self) -> FloatArray:
        return np.ones(self.n)

    def block(self, I: Any, J: Any) -> FloatArray:  # noqa: E741
        rows, columns = as_items(I, self.n, "I", 1), as_items(J, self.n, "J", 1)
        L: FloatArray = similarity(
            self.features.take(rows), self.features.take(columns), self.scale
        )
        L[rows[:, None] == columns[None, :]] = 1.0
        return L

    def columns(self, J: Any) -> Any:
        columns = as_items(J, self.n, "J", 1)
        L = self.features.similarities(self.features.take(columns), self.scale)
        L[like(L, columns), like(L, np.arange(columns.size))] = 1.0
        return L

    def landmark_features(self, items: IntArray, triangle: FloatArray) -> Features:
        landmarks = self.features.take(items)
        return self.features.mapped(NystromFeatures(landmarks, self.scale, triangle))

    def _part(self, items: IntArray) -> RBF:
        part = self.features.take(items)
        return RBF(as_features(part, allow_tiny=True), self.scale)

    def fingerprint(self) -> str:
        return digest("RBF", self.features.fingerprint(), self.named_scale)

    def __repr__(self) -> str:
        return f"RBF({self.n} items, scale={self.scale:.4g})"


def median_scale(X: Features) -> float:
    """Return the median distance between distinct items among 1,000 drawn from X."""
    rows = random_rows(X.n, MEDIAN_SUBSAMPLE, np.random.default_rng(seed_key(0)))
    sample = X.take(rows)
    return median_distance(squared_distances(sample, sample))


def median_distance(squares: FloatArray) -> float:
    """Return the median distance between distinct items, from their (m, m) squared distances."""
    found = median_above_rounding(squares[~np.tri(len(squares), dtype=bool)])
    if not found:
        raise ValueError("all items look alike, so no distance suggests a scale; pass scale=")
    return float(np.sqrt(found))
