"""L = B Bᵀ, and the special cases of it that are sampling designs of their own."""

from __future__ import annotations

from typing import Any, final

from dmsgd.features import Features, as_features
from dmsgd.features.convert import as_frozen_features
from dmsgd.inputs.arrays import FloatArray, as_array, as_items
from dmsgd.inputs.fingerprint import digest
from dmsgd.kernels.kernel import Kernel, as_subset


@final
class Linear(Kernel):
    """L = B Bᵀ for features B, shape (n, d): anything `dmsgd.diversify` takes for X.

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
