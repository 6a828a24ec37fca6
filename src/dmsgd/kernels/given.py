"""What given items leave of a kernel: the kernel of the other items of a batch."""

from __future__ import annotations

from typing import Any, final

import numpy as np
from scipy import linalg

from dmsgd.features.products import row_norms2
from dmsgd.inputs.arrays import FloatArray, IntArray, as_items, on_host
from dmsgd.inputs.fingerprint import digest
from dmsgd.inputs.messages import counted
from dmsgd.kernels.contract import Kernel
from dmsgd.runtime.memory import reserve


@final
class Given(Kernel):
    """L' = L - L_:G L_GG⁻¹ L_G: for some items G, whose own rows of L' are zero.

    The other items of a k-DPP of L that contains G are a k-DPP of L'. Entries are differences, so
    that rounding is larger beside L' by the factor `rounding`. O(|G|) per entry more than L.

    least: items of G of which the others leave no more than this share are left out of G, such as
           near-duplicates; but they have no row of L' either.
    """

    def __init__(self, whole: Kernel, items: IntArray, least: float) -> None:
        self.whole, self.items, self.least, self.n = whole, items, least, whole.n
        reserve(whole.n * items.size, f"what is given of {whole.n:,} items", "give fewer items")
        block = whole.block(items, items)
        triangle, order, rank, _ = linalg.lapack.dpstrf(block, tol=least * block.max(), lower=1)
        triangle = np.tril(triangle[:rank, :rank])
        columns = on_host(whole.columns(items[order[:rank] - 1]))
        self._C = linalg.solve_triangular(triangle, columns.T, lower=True, check_finite=False).T
        self._left: FloatArray = np.maximum(whole.diag() - row_norms2(self._C), 0.0)
        self._left[items] = 0.0
        shares, left = (self._C**2).max(0) / triangle.diagonal() ** 2, float(self._left.sum())
        grown = max(1.0, float(shares.max()))
        self.rounding = grown * float(whole.diag().sum()) / left if left else np.inf

    def diag(self) -> FloatArray:
        return self._left.copy()

    def block(self, I: Any, J: Any) -> FloatArray:  # noqa: E741
        rows, columns = as_items(I, self.n, "I", 1), as_items(J, self.n, "J", 1)
        L = self.whole.block(rows, columns) - self._C[rows] @ self._C[columns].T
        return self._without_given(L, rows, columns)

    def columns(self, J: Any) -> FloatArray:
        columns = as_items(J, self.n, "J", 1)
        L = on_host(self.whole.columns(columns)) - self._C @ self._C[columns].T
        return self._without_given(L, np.arange(self.n), columns)

    def _without_given(self, L: FloatArray, rows: IntArray, columns: IntArray) -> FloatArray:
        L[np.isin(rows, self.items)] = 0.0
        L[:, np.isin(columns, self.items)] = 0.0
        return L

    def fingerprint(self) -> str:
        return digest("Given", self.whole.fingerprint(), self.items, self.least.hex())

    def __repr__(self) -> str:
        return f"{self.whole!r} given {counted(self.items.size, 'item')}"
