"""Kernels of features, `Linear` and `RBF`, and what a quality and classes make of them."""

from __future__ import annotations

from typing import Any, final

import numpy as np

from dmsgd.features import Features, as_features
from dmsgd.features.convert import as_frozen_features
from dmsgd.features.maps import NystromFeatures, ScaleRows
from dmsgd.features.products import median_above_rounding, similarity, squared_distances
from dmsgd.inputs.arrays import (
    FloatArray,
    IntArray,
    as_array,
    as_items,
    as_quality,
    check_nonzero,
    random_rows,
)
from dmsgd.inputs.fingerprint import digest
from dmsgd.inputs.scalars import as_positive, seed_key
from dmsgd.kernels.contract import Kernel, as_kernel
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


def with_quality(kernel: Kernel, quality: Any, diversity: float = 0.5) -> Kernel:
    """Return the kernel with L_ij = q_i S_ij q_j, where S is `kernel` and q `quality`.

    quality:   How much each item is worth, whatever it is similar to: n numbers, none below 0.
    diversity: How much similarity counts against quality, above 0 and at most 1. q is raised to
               the power (1 - diversity) / diversity, which is 1 at 0.5 and 0 at 1.

    Raises ValueError if a quality is negative, or all are zero. See also `select`, `diversify`.

    >>> import dmsgd
    >>> S = dmsgd.kernels.RBF([[0.0], [0.1], [5.0]], scale=1.0)
    >>> dmsgd.KDPP(dmsgd.kernels.with_quality(S, [1.0, 2.0, 1.0]), k=2).inclusion().round(2)
    array([0.21, 0.8 , 0.99])
    """
    as_kernel(kernel, "with_quality")
    return Quality(kernel, as_quality(quality, kernel.n, diversity))


@final
class Quality(Kernel):
    """L_ij = q_i S_ij q_j (Kulesza and Taskar 2012); `with_quality` makes it."""

    def __init__(self, similarity: Kernel, q: FloatArray, name: str = "") -> None:
        self.similarity, self.q = similarity, q
        self.n, self.features = similarity.n, similarity.features
        #: Identifies qualities that are a function of the features, rounded.
        self._name = name
        check_nonzero(bool(self.diag().any()))

    def diag(self) -> FloatArray:
        return self.q * self.similarity.diag() * self.q  # q² may overflow

    def block(self, I: Any, J: Any) -> FloatArray:  # noqa: E741
        rows, columns = as_items(I, self.n, "I", 1), as_items(J, self.n, "J", 1)
        return self.q[rows, None] * self.similarity.block(rows, columns) * self.q[columns]

    def columns(self, J: Any) -> Any:
        items = as_items(J, self.n, "J", 1)
        S = self.similarity.columns(items)
        return like(S, self.q)[:, None] * S * like(S, self.q[items])

    def factor(self) -> Features | None:
        F = self.similarity.factor()
        return None if F is None else F.mapped(ScaleRows(self.q))

    def landmark_features(self, items: IntArray, triangle: FloatArray) -> Features:
        inner = self.similarity.landmark_features(items, triangle / self.q[items, None])
        return inner.mapped(ScaleRows(self.q))

    def _part(self, items: IntArray) -> Quality:
        return Quality(self.similarity.subset(items), self.q[items], self._name)

    def fingerprint(self) -> str:
        return digest("Quality", self.similarity.fingerprint(), self._name or self.q)

    def __repr__(self) -> str:
        return f"Quality({self.similarity!r})"


@final
class Mixed(Kernel):
    """L_ij = (1-w)² S_ij + w² [y_i = y_j]: the paper's F Fᵀ, F = [(1-w)X, wH], with S for X Xᵀ.

    codes: the number of each item's class.
    """

    def __init__(self, similarity: Kernel, codes: IntArray, w: float) -> None:
        self.similarity, self.codes, self.w = similarity, codes, w
        self.n, self.features = similarity.n, similarity.features

    def diag(self) -> FloatArray:
        return (1 - self.w) ** 2 * self.similarity.diag() + self.w**2

    def block(self, I: Any, J: Any) -> FloatArray:  # noqa: E741
        rows, columns = as_items(I, self.n, "I", 1), as_items(J, self.n, "J", 1)
        same = self.codes[rows, None] == self.codes[columns]
        S = self.similarity.block(rows, columns)
        return np.asarray((1 - self.w) ** 2 * S + self.w**2 * same)

    def columns(self, J: Any) -> Any:
        items = as_items(J, self.n, "J", 1)
        S = self.similarity.columns(items)
        same = like(S, self.codes)[:, None] == like(S, self.codes[items])
        return (1 - self.w) ** 2 * S + self.w**2 * same

    def _part(self, items: IntArray) -> Mixed:
        return Mixed(self.similarity.subset(items), self.codes[items], self.w)

    def fingerprint(self) -> str:
        return digest("Mixed", self.similarity.fingerprint(), self.codes, self.w.hex())

    def __repr__(self) -> str:
        return f"{self.similarity!r} and classes, w={self.w:g}"


def median_scale(X: Features) -> float:
    """Return the median distance between distinct items among 1,000 drawn from X."""
    sample = X.take(random_rows(X.n, MEDIAN_SUBSAMPLE, np.random.default_rng(seed_key(0))))
    return median_distance(squared_distances(sample, sample))


def median_distance(squares: FloatArray) -> float:
    """Return the median distance between distinct items, from their (m, m) squared distances."""
    found = median_above_rounding(squares[~np.tri(len(squares), dtype=bool)])
    if not found:
        raise ValueError("all items look alike, so no distance suggests a scale; pass scale=")
    return float(np.sqrt(found))
