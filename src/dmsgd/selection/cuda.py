"""Similarities of rows on a GPU: what `similarity.Rows` does, in torch."""

from __future__ import annotations

from threading import Lock
from typing import Any, final

import numpy as np
import torch
from torch import Tensor

from dmsgd.features.products import FARTHEST
from dmsgd.inputs.arrays import on_host
from dmsgd.runtime.pieces import slices
from dmsgd.selection.similarity import Similarity

#: Items in a product, and numbers of one: large enough for fast products, small beside X.
ITEMS, PRODUCT = 2**12, 2**27
KINDS: dict[Any, Any] = {
    np.float64: torch.float64,
    np.float32: torch.float32,
    np.int64: torch.int64,
    bool: torch.bool,
}
#: How torch multiplies in float32: a setting that all threads share, and its value for all bits.
PRECISION: tuple[str, Any] = ("fp32_precision", "ieee")
if not hasattr(torch.backends.cuda.matmul, "fp32_precision"):  # until torch 2.8
    PRECISION = ("allow_tf32", False)
_alone = Lock()


def product(A: Tensor, B: Tensor) -> Tensor:
    """Return A B in float32, where training may let torch multiply more roughly.

    The ten bits of TF32, and those of what `torch.autocast` asks for, are too few for differences.
    """
    matmul, (setting, exact) = torch.backends.cuda.matmul, PRECISION
    with _alone, torch.autocast(A.device.type, enabled=False):
        before = getattr(matmul, setting)
        setattr(matmul, setting, exact)
        try:
            return A @ B
        finally:
            setattr(matmul, setting, before)


@final
class CudaRows(Similarity):
    """exp(-d² / square) between rows on a GPU, in float32."""

    xp = torch

    def __init__(self, X: Tensor, Y: Tensor | None, square: float) -> None:
        """Store X, the candidates, and Y, what is to be covered, None for X."""
        self.same, self.square, self.device = Y is None, square, X.device
        centre = (X if Y is None else Y).mean(0, dtype=torch.float64)
        self.X, self.left = self._scaled(X, centre)
        self.Y, self.right = (self.X, self.left) if Y is None else self._scaled(Y, centre)
        self.n, self.N = len(self.left), len(self.right)

    def _scaled(self, X: Tensor, centre: Tensor) -> tuple[Tensor, Tensor]:
        """Return x and s in float32 such that S_ij = 2^(x_i·y_j - s_i - s_j)."""
        factor, step = (2 / np.log(2) / self.square) ** 0.5, max(1, PRODUCT // X.shape[1])
        rows, halves = torch.empty(X.shape, dtype=torch.float32, device=X.device), []
        for some in slices(len(X), step):
            rows[some] = ((X[some].double() - centre) * factor).clamp_(-FARTHEST, FARTHEST)
            halves.append((rows[some].double().square_().sum(1) / 2).float())
        return rows, torch.cat(halves)

    def _similarities(self, A: Tensor, left: Tensor, B: Tensor, right: Tensor) -> Tensor:
        S = product(A, B.T)
        return S.sub_(left[:, None]).sub_(right).clamp_max_(0).exp2_()

    def gained(self, candidates: Any, items: Any, low: Any, high: Any, weights: Any) -> Tensor:
        A, left = self.X, self.left
        if candidates is not None:
            A, left = A[candidates], left[candidates]
        found = torch.zeros(len(left), dtype=torch.float64, device=self.device)
        high = high if torch.is_tensor(high) else torch.full_like(low, high)
        wide = ITEMS if candidates is None else max(ITEMS, PRODUCT // max(1, len(left)))
        for part in slices(len(low), wide):
            some = part if items is None else items[part]
            B, right = self.Y[some], self.right[some]
            for mine in slices(len(left), max(1, PRODUCT // len(right))):
                S = self._similarities(A[mine], left[mine], B, right)
                torch.minimum(S, high[part], out=S).sub_(low[part]).clamp_min_(0)
                found[mine] += product(S, weights[part])
        return found

    def row(self, candidate: int) -> Tensor:
        one = slice(candidate, candidate + 1)
        S = self._similarities(self.X[one], self.left[one], self.Y, self.right)[0]
        if self.same:
            S[candidate] = 1
        return S

    def vector(self, values: Any, kind: Any) -> Tensor:
        return torch.as_tensor(values, dtype=KINDS[kind], device=self.device)

    def largest(self, scores: Any, count: int) -> Any:
        return torch.topk(scores, min(count, len(scores)))[1]

    def places(self, mask: Tensor) -> Tensor:
        return mask.nonzero()[:, 0]

    def total(self, values: Tensor) -> float:
        return float(values.sum(dtype=torch.float64))

    def host(self, values: Tensor) -> Any:
        return on_host(values)
