"""Kernels made of others: with a quality (Kulesza and Taskar 2012), with classes, and products."""

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
    check_vanishing,
    on_host,
)
from dmsgd.inputs.fingerprint import digest
from dmsgd.kernels.contract import Kernel, as_kernel, as_subset
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

    def subset(self, items: Any) -> Quality:
        items = as_subset(items, self.n)
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

    def subset(self, items: Any) -> Mixed:
        items = as_subset(items, self.n)
        return Mixed(self.similarity.subset(items), self.codes[items], self.w)

    def fingerprint(self) -> str:
        return digest("Mixed", self.similarity.fingerprint(), self.codes, self.w.hex())

    def __repr__(self) -> str:
        return f"{self.similarity!r} and classes, w={self.w:g}"


@final
class Product(Kernel):
    """The kernel L_ij = A_ij B_ij: two items are similar if A and B both make them similar.

    Product(Linear(P), Linear(H)) is the linear kernel of the products p_i ⊗ h_i. With P = p - y,
    the residuals of a classifier, and H the inputs of its last layer, these are the gradients of
    that layer's weights: batches are then diverse in how items would change the model. The products
    are formed only if there are fewer of them than items. Raises ValueError if A and B are of
    different sizes. See also `gradient_variance`.

    >>> from dmsgd.kernels import Linear
    >>> Product(Linear([[1.0], [2.0]]), Linear([[1.0, 1.0], [0.0, 3.0]])).diag()
    array([ 2., 36.])
    """

    def __init__(self, A: Kernel, B: Kernel) -> None:
        self.parts = as_kernel(A, "Product"), as_kernel(B, "Product")
        if A.n != B.n:
            raise ValueError(f"A and B must be over the same items, got {A.n} and {B.n}")
        self.n = A.n
        one, two = A.diag(), B.diag()
        check_nonzero(bool((one.astype(bool) & two.astype(bool)).any()))
        with np.errstate(over="ignore"):
            trace = float(one @ two)
        check_vanishing(trace, "the product of A and B")
        if not np.isfinite(trace):
            raise ValueError("the product of A and B has values that overflow; rescale one of them")

    def diag(self) -> FloatArray:
        return self.parts[0].diag() * self.parts[1].diag()

    def block(self, I: Any, J: Any) -> FloatArray:  # noqa: E741
        return self.parts[0].block(I, J) * self.parts[1].block(I, J)

    def columns(self, J: Any) -> Any:
        one, two = (part.columns(J) for part in self.parts)
        return one * two if type(one) is type(two) else on_host(one) * on_host(two)

    def factor(self) -> Features | None:
        one, two = (part.factor() for part in self.parts)
        if one is None or two is None or one.d * two.d >= self.n:
            return None
        return one.products(two)

    def subset(self, items: Any) -> Product:
        return Product(*(part.subset(items) for part in self.parts))

    def fingerprint(self) -> str:
        return digest("Product", *(part.fingerprint() for part in self.parts))

    def __repr__(self) -> str:
        return f"Product({self.parts[0]!r}, {self.parts[1]!r})"
