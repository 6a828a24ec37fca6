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
    wide, size = C.shape[0] < C.shape[1], min(C.shape)
    products = C @ C.T if wide else C.T @ C
    last = [size - count, size - 1]
    _, vectors = linalg.eigh(products, subset_by_index=last, check_finite=False)
    directions = (C.T @ vectors if wide else vectors)[:, ::-1]
    lengths = np.linalg.norm(directions, axis=0)
    return np.asarray(directions / np.where(lengths > 0, lengths, 1.0))
