"""Kernels with the classes of the items mixed in: the paper's [(1-w)X, wH] for any similarity."""

from __future__ import annotations

from typing import Any, final

import numpy as np

from dmsgd.inputs.arrays import FloatArray, IntArray, as_items
from dmsgd.inputs.fingerprint import digest
from dmsgd.kernels.contract import Kernel, as_subset
from dmsgd.spectra.decompose import like


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

    def subset(self, items: Any) -> Mixed:
        items = as_subset(items, self.n)
        return Mixed(self.similarity.subset(items), self.codes[items], self.w)

    def fingerprint(self) -> str:
        return digest("Mixed", self.similarity.fingerprint(), self.codes, self.w.hex())

    def __repr__(self) -> str:
        return f"{self.similarity!r} and classes, w={self.w:g}"
