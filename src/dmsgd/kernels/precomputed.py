"""A kernel matrix that the user already has."""

from __future__ import annotations

from functools import partial
from typing import Any, final

import numpy as np

from dmsgd.inputs.arrays import FloatArray, as_array, as_items, as_matrix
from dmsgd.inputs.fingerprint import digest, fingerprint
from dmsgd.inputs.progress import run_interruptible
from dmsgd.kernels.kernel import Kernel


@final
class Precomputed(Kernel):
    """A kernel matrix that the user already has, shape (n, n): symmetric, positive semi-definite.

    O(n³) to check.

    >>> Precomputed([[2.0, 1.0], [1.0, 2.0]]).diag()
    array([2., 2.])
    """

    def __init__(self, L: Any) -> None:
        L = as_array(as_matrix(L, "L"))
        if L.shape[0] != L.shape[1]:
            raise ValueError(f"L must be square, got shape {L.shape}")
        size = np.abs(L).max()
        if size == 0:
            raise ValueError("L is all zeros, so no batch has a positive determinant")
        gap = np.abs(L - L.T).max()
        if gap > 1e-8 * size:
            raise ValueError(
                f"L is not symmetric: |L - Lᵀ| reaches {gap:.3g}; is (L + L.T) / 2 meant?"
            )
        self.matrix: FloatArray = (L + L.T) / 2
        self.n = int(L.shape[0])
        self._check_definite(size)

    def _check_definite(self, size: float) -> None:
        slack = 100 * self.n * np.finfo(float).eps * size
        raised = self.matrix + slack * np.eye(self.n)
        check = partial(np.linalg.cholesky, raised)
        try:
            run_interruptible(check, self.n**3 / 3, "the check of the matrix")
        except np.linalg.LinAlgError:
            raise ValueError(
                "L is not positive semi-definite (it has a negative eigenvalue), so its "
                "determinants are no probabilities; use B Bᵀ or RBF, or clip its eigenvalues"
            ) from None

    def diag(self) -> FloatArray:
        return self.matrix.diagonal().copy()

    def block(self, I: Any, J: Any) -> FloatArray:  # noqa: E741
        return self.matrix[np.ix_(as_items(I, self.n, "I", 1), as_items(J, self.n, "J", 1))]

    def columns(self, J: Any) -> FloatArray:
        return self.matrix[:, as_items(J, self.n, "J", 1)]

    def fingerprint(self) -> str:
        return digest("Precomputed", fingerprint(self.matrix))

    def __repr__(self) -> str:
        return f"Precomputed({self.n} items)"
