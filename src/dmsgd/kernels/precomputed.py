"""`Precomputed`: a kernel matrix that the user already has, and features that look like one."""

from __future__ import annotations

from functools import partial
from typing import Any, final

import numpy as np

from dmsgd.features import Features
from dmsgd.inputs.arrays import FloatArray, as_array, as_items, as_matrix
from dmsgd.inputs.fingerprint import digest, fingerprint
from dmsgd.inputs.messages import kind_of
from dmsgd.kernels.contract import Kernel
from dmsgd.runtime.progress import run_interruptible
from dmsgd.spectra.rounding import EPS

#: A matrix is symmetric if |L - Lᵀ| is at most this share of its largest entry.
ASYMMETRIC = 1e-8
#: Sparse features of more items than this are not made dense to see whether they are a kernel.
DENSE = 5000


@final
class Precomputed(Kernel):
    """The kernel of a matrix L that you have, shape (n, n): symmetric, positive semi-definite.

    name: what messages call it.

    The check is O(n³). Raises ValueError if L is asymmetric or has a negative eigenvalue.

    >>> Precomputed([[2.0, 1.0], [1.0, 2.0]]).diag()
    array([2., 2.])
    """

    def __init__(self, L: Any, name: str = "L") -> None:
        L = as_array(as_matrix(L, name))
        if L.shape[0] != L.shape[1]:
            raise ValueError(
                f"{name} must be square, got shape {L.shape}; for features use "
                f"dmsgd.diversify(X, k), or Linear(X) for L = X Xᵀ"
            )
        if not L.any():
            raise ValueError(f"{name} is all zeros, so no batch has a positive determinant")
        gap = np.abs(L - L.T).max()
        if gap > ASYMMETRIC * np.abs(L).max():
            raise ValueError(
                f"{name} is not symmetric: |{name} - {name}ᵀ| reaches {gap:.3g}; DPPs with such "
                f"kernels are not supported"
            )
        self.matrix: FloatArray = (L + L.T) / 2
        self.n = int(L.shape[0])
        if not _is_semidefinite(self.matrix):
            raise ValueError(
                f"{name} is not positive semi-definite (it has a negative eigenvalue), so its "
                f"determinants are no probabilities; use B Bᵀ in float64, Linear(B) or RBF, or "
                f"clip its eigenvalues"
            )

    def diag(self) -> FloatArray:
        return self.matrix.diagonal().copy()

    def block(self, I: Any, J: Any) -> FloatArray:  # noqa: E741
        return self.matrix[np.ix_(as_items(I, self.n, "I", 1), as_items(J, self.n, "J", 1))]

    def fingerprint(self) -> str:
        return digest("Precomputed", fingerprint(self.matrix))

    def __repr__(self) -> str:
        return f"Precomputed({self.n} items)"


def kernel_of(L: Any, name: str = "L") -> Kernel:
    """Return L as a kernel: an (n, n) array becomes a `Precomputed` one."""
    if isinstance(L, Kernel):
        return L
    is_matrix = isinstance(L, list | tuple) or hasattr(L, "__array__") or hasattr(L, "toarray")
    if isinstance(L, type) or not is_matrix:
        raise TypeError(f"{name} must be an (n, n) array or a Kernel, got {kind_of(L)}")
    return Precomputed(L, name)


def looks_like_kernel_matrix(F: Features) -> bool:
    """Return whether (n, n) features in memory are symmetric and positive semi-definite.

    Features hardly ever are, so an L was probably meant. Adjacency and distance matrices, whose
    diagonal is zero, are not, and diagonal ones are left alone. O(n²) for features that are not
    symmetric, otherwise O(n³).

    >>> from dmsgd.features import as_features
    >>> X = np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 2.0]])
    >>> looks_like_kernel_matrix(as_features(X @ X.T)), looks_like_kernel_matrix(as_features(X))
    (True, False)
    """
    X = F.unwrap()
    if F.n != F.d or F.n < 3 or (F.sparse_rows and F.n > DENSE) or X is F:
        return False
    L = as_array(X)
    largest, diagonal = np.abs(L).max(), L.diagonal()
    if diagonal.min() < 0 or np.abs(L - L.T).max() > ASYMMETRIC * largest:
        return False
    beside = np.abs(L - np.diag(diagonal)).max(axis=1)
    return bool(beside.any() and (beside[diagonal == 0] == 0).all() and _is_semidefinite(L))


def _is_semidefinite(symmetric: FloatArray) -> bool:
    """Return whether no eigenvalue is negative beyond rounding."""
    n = len(symmetric)
    raised = symmetric + 100 * n * EPS * np.abs(symmetric).max() * np.eye(n)
    check = partial(np.linalg.cholesky, raised)
    try:
        run_interruptible(check, n**3 / 3, "the check of the matrix")
    except np.linalg.LinAlgError:
        return False
    return True
