"""Hashes of the rows of large arrays, in one pass over memory."""

from __future__ import annotations

import numpy as np
from numba.types import int64

from dmsgd.compiled.jit import callback, uint64_ptr

BYTES, PAIRS = np.uint64(0x00FF00FF00FF00FF), np.uint64(0x0000FFFF0000FFFF)
ONE, TWO, FOUR = np.uint64(8), np.uint64(16), np.uint64(32)


@callback(int64(uint64_ptr, uint64_ptr, int64, int64, uint64_ptr))
def hash_rows(bits, factors, n, d, out):
    """Fill `out` with Σ_j factors_j swap(bits_ij): `dmsgd.inputs.fingerprint.row_hashes`."""
    for i in range(n):
        total = np.uint64(0)
        for j in range(d):
            x = bits[i * d + j]
            x = ((x & BYTES) << ONE) | ((x >> ONE) & BYTES)
            x = ((x & PAIRS) << TWO) | ((x >> TWO) & PAIRS)
            total += ((x << FOUR) | (x >> FOUR)) * factors[j]
        out[i] = total
    return n
