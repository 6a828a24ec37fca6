"""`Linear`, L = B Bᵀ, and `Product` of two kernels, which is linear if both are."""

from __future__ import annotations

from typing import Any, final

import numpy as np

from dmsgd.features import Features, as_features
from dmsgd.features.convert import as_frozen_features
from dmsgd.inputs.arrays import (
    FloatArray,
    as_array,
    as_items,
    check_nonzero,
    check_vanishing,
    on_host,
)
from dmsgd.inputs.fingerprint import digest
from dmsgd.kernels.contract import Kernel, as_kernel, as_subset


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
        self._origin: str | None = None

    @classmethod
    def computed(cls, features: Features, origin: str) -> Linear:
        """Return the kernel of features that are rounded results of what has this fingerprint."""
        made = cls(features)
        made._origin = origin
        return made

    def diag(self) -> FloatArray:
        return self.features.row_norms2()

    def block(self, I: Any, J: Any) -> FloatArray:  # noqa: E741
        rows, columns = as_items(I, self.n, "I", 1), as_items(J, self.n, "J", 1)
        return as_array(self.features.take(rows) @ self.features.take(columns).T)

    def columns(self, J: Any) -> Any:
        return self.features.times(self.features.take(as_items(J, self.n, "J", 1)).T)

    def factor(self) -> Features:
        return self.features

    def subset(self, items: Any) -> Linear:
        part = self.features.take(as_subset(items, self.n))
        return Linear(as_features(part, allow_tiny=True))

    def fingerprint(self) -> str:
        return self._origin or digest("Linear", self.features.fingerprint())

    def __repr__(self) -> str:
        return f"Linear({self.n} items, {self.features.d} {self.features.kind} features)"


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

    def on_gpu(self) -> bool:
        return all(part.on_gpu() for part in self.parts)

    def subset(self, items: Any) -> Product:
        return Product(*(part.subset(items) for part in self.parts))

    def fingerprint(self) -> str:
        return digest("Product", *(part.fingerprint() for part in self.parts))

    def __repr__(self) -> str:
        return f"Product({self.parts[0]!r}, {self.parts[1]!r})"
