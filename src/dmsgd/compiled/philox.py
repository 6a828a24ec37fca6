"""Counter-based random numbers: uniform c of draw t is a function of (key, t, c) alone.

Philox4x32-10 (Salmon et al. 2011) has no state, so any thread can make any draw, and a GPU can make
the same one (samplers/cuda/philox.cuh).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.types import int64, uint64

from dmsgd.compiled.jit import callback, float64_ptr, helper

_LOW, _32, _20, _12 = np.uint64(2**32 - 1), np.uint64(32), np.uint64(20), np.uint64(12)
_MULTIPLIER_0, _MULTIPLIER_1 = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
_WEYL_0, _WEYL_1 = np.uint64(0x9E3779B9), np.uint64(0xBB67AE85)


@helper
def fill_uniforms(key, draw, block, out, size):
    """Fill `out` with `size` uniforms of `draw`, from number 2 * block on; return the next block.

    A block of four 32-bit words gives two uniforms strictly inside (0, 1): (52 bits + 1/2) / 2^52.
    """
    for pair in range((size + 1) // 2):
        a, b = np.uint64(block + pair) & _LOW, np.uint64(0)
        c, d = draw & _LOW, draw >> _32
        key_0, key_1 = key & _LOW, key >> _32
        for _ in range(10):
            first, second = _MULTIPLIER_0 * a, _MULTIPLIER_1 * c
            a, b = (second >> _32) ^ b ^ key_0, second & _LOW
            c, d = (first >> _32) ^ d ^ key_1, first & _LOW
            key_0, key_1 = (key_0 + _WEYL_0) & _LOW, (key_1 + _WEYL_1) & _LOW
        out[2 * pair] = (np.int64((a << _20) | (b >> _12)) + 0.5) * 2.0**-52
        if 2 * pair + 1 < size:
            out[2 * pair + 1] = (np.int64((c << _20) | (d >> _12)) + 0.5) * 2.0**-52
    return block + (size + 1) // 2


@callback(int64(uint64, uint64, int64, float64_ptr, int64))
def uniforms(key, draw, block, out, size):
    """`fill_uniforms`, by address."""
    return fill_uniforms(key, draw, block, out, size)


def fill_uniform(key: int, draw: int, block: int, out: Any) -> int:
    """Fill an array with the uniforms of `draw` from number 2 * block on; return the next block."""
    return int(uniforms(key, draw, block, out, out.size))
