"""L = B Bᵀ, and the special cases of it that are sampling designs of their own."""

from __future__ import annotations

from typing import Any, final

import numpy as np
from scipy import sparse

from dmsgd.features import Features, as_features, one_hot
from dmsgd.inputs.arrays import FloatArray, as_array, as_items
from dmsgd.inputs.fingerprint import digest
from dmsgd.inputs.memory import reserve
from dmsgd.inputs.scalars import as_count, as_flag
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
        features = as_features(B, "B")
        self.features = features if isinstance(B, Features) else features.copied()
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
        """Return the squared norms of the feature rows."""
        return self.features.row_norms2()

    def block(self, I: Any, J: Any) -> FloatArray:  # noqa: E741
        """Return B_I B_Jᵀ."""
        rows, columns = as_items(I, self.n, "I", 1), as_items(J, self.n, "J", 1)
        return as_array(self.features.take(rows) @ self.features.take(columns).T)

    def columns(self, J: Any) -> Any:
        """Return B B_Jᵀ."""
        return self.features.times(self.features.take(as_items(J, self.n, "J", 1)).T)

    def factor(self) -> Features:
        """Return B."""
        return self.features

    def subset(self, items: Any) -> Linear:
        """Return Linear(B_items)."""
        part = self.features.take(as_subset(items, self.n))
        return Linear(as_features(part, allow_tiny=True))

    def fingerprint(self) -> str:
        """Return the hash of the features, or of what they were computed from."""
        return self._origin or digest("Linear", self.features.fingerprint())

    def __repr__(self) -> str:
        return f"Linear({self.n} items, {self.features.d} {self.features.kind} features)"


def strata(labels: Any, balanced: bool = False) -> Linear:
    """Return the kernel of stratified sampling: L_ij = 1 within a stratum, else 0 (Proposition 1).

    With k = number of strata every batch holds one item of each. With smaller k, large strata are
    still drawn more often; `balanced=True` divides each block by its size, and then all strata are
    equally likely for every k. `labels` has shape (n,); O(n).

    >>> strata(["a", "b", "a"]).block([0], [0, 1, 2])
    array([[1., 0., 1.]])
    """
    balanced = as_flag(balanced, "balanced")
    H = one_hot(labels)
    if balanced:
        H = sparse.csr_array(H @ sparse.diags_array(1 / np.sqrt(H.sum(axis=0))))
    return Linear(H)


def identity(n: int) -> Linear:
    """Return the kernel of plain SGD, L = I: every batch is equally likely.

    The batches are drawn *without* replacement, so C_ij is slightly negative rather than 0.
    It takes O(n) numbers.

    >>> identity(2).block([0, 1], [0, 1])
    array([[1., 0.],
           [0., 1.]])
    """
    n = as_count(n, "n")
    reserve(5 * n, f"the identity of {n:,} items", "dmsgd.Uniform draws the same without it")
    return Linear(sparse.eye_array(n, format="csr"))
