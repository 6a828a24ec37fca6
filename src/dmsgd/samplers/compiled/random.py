"""Counter-based random numbers: number c of draw t is a function of (key, t, c) alone.

Philox4x32-10 (Salmon et al. 2011): no state to carry, so any worker can make any draw, and a
graphics card can make the same one.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from dmsgd.compiled.jit import DOUBLES, INT, REAL, WORD, compiled, to_fill
from dmsgd.compiled.pointers import pointer_to

_U32 = np.uint32
_U64 = np.uint64
_SHIFT = np.uint64(32)
_MULTIPLIERS = (np.uint64(0xD2511F53), np.uint64(0xCD9E8D57))
_WEYL = (np.uint32(0x9E3779B9), np.uint32(0xBB67AE85))


@njit(inline="always")
def philox(key0, key1, c0, c1, c2, c3):
    """Return four random 32-bit words for a 64-bit key and a 128-bit counter."""
    for _ in range(10):
        product0 = _MULTIPLIERS[0] * _U64(c0)
        product1 = _MULTIPLIERS[1] * _U64(c2)
        c0 = _U32(product1 >> _SHIFT) ^ c1 ^ key0
        c2 = _U32(product0 >> _SHIFT) ^ c3 ^ key1
        c1 = _U32(product1)
        c3 = _U32(product0)
        key0 = _U32(key0 + _WEYL[0])
        key1 = _U32(key1 + _WEYL[1])
    return c0, c1, c2, c3


@njit(inline="always")
def _uniform(high, low):
    """Return a float strictly inside (0, 1) from 52 random bits."""
    bits = (_U64(high) << _U64(20)) | (_U64(low) >> _U64(12))
    return (np.float64(bits) + 0.5) * 2.0**-52


@compiled(INT(WORD, WORD, INT, DOUBLES, INT))
def uniforms_at(key, draw, block, out, size):
    """Fill `out` with `size` uniforms of `draw` from number 2 * block on; return the next block."""
    key0, key1 = _U32(key), _U32(key >> _SHIFT)
    draw0, draw1 = _U32(draw), _U32(draw >> _SHIFT)
    blocks = (size + 1) // 2
    for b in range(blocks):
        a0, a1, a2, a3 = philox(key0, key1, _U32(block + b), _U32(0), draw0, draw1)
        out[2 * b] = _uniform(a0, a1)
        if 2 * b + 1 < size:
            out[2 * b + 1] = _uniform(a2, a3)
    return block + blocks


@compiled(INT(WORD, WORD, INT, to_fill(REAL, 1)), called_from_python=True)
def fill_uniform(key, draw, block, out):
    """Fill `out` with the uniforms of `draw` from number 2 * block on; return the next block."""
    return uniforms_at(key, draw, block, pointer_to(out), out.size)
