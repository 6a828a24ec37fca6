"""The Gram matrix of sparse rows, one product of two entries at a time."""

from __future__ import annotations

from numba.types import int64

from dmsgd.compiled.jit import callback, float64_ptr, int64_ptr, uint32_ptr
from dmsgd.compiled.pointers import shift


@callback(int64(int64_ptr, uint32_ptr, float64_ptr, *5 * [int64], float64_ptr))
def add_gram(indptr, indices, data, first, last, low, high, d, G):
    """G[low:high] += (F[first:last].T @ F[first:last])[low:high], on and above the diagonal.

    F is a CSR matrix with columns in order and none twice in a row; G is (d, d).
    """
    for i in range(first, last):
        for e in range(indptr[i], indptr[i + 1]):
            if indices[e] >= high:
                break
            if indices[e] >= low:
                row, x = shift(G, indices[e] * d), data[e]
                for f in range(e, indptr[i + 1]):
                    row[indices[f]] += x * data[f]
    return 0
