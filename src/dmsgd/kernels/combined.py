"""Kernels made of another: with a quality (Kulesza and Taskar 2012), and with classes."""

from __future__ import annotations

from typing import Any, final

import numpy as np

from dmsgd.features import Features
from dmsgd.features.map_types import ScaleRows
from dmsgd.inputs.arrays import (
    FloatArray,
    IntArray,
    as_items,
    as_quality,
    check_nonzero,
)
from dmsgd.inputs.fingerprint import digest
from dmsgd.kernels.contract import Kernel, as_kernel
from dmsgd.spectra.decompose import like


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
    """L_ij = q_i S_ij q_j; `with_quality` makes it."""

    def __init__(self, similarity: Kernel, q: FloatArray, name: str = "") -> None:
        self.similarity, self.q = similarity, q
        self.n, self.features = similarity.n, similarity.features
        #: Identifies qualities that are a function of the features, rounded.
        self._name = name
        check_nonzero(bool(self.diag().any()))

    def diag(self) -> FloatArray:
        return self.q**2 * self.similarity.diag()

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
