"""Proposals that are certain to be rejected, found from a byte per coordinate.

A row x of V[:, J] is s (q + d) with bytes q and |d| <= 1/2 in every coordinate, so that |d| <= m =
sqrt(k) / 2. As |W d| <= |d|, the proposal is rejected, |W x|² <= u |x|², if

    |W q| + m <= sqrt(u) (|q| - m).

Both sides are computed in single precision with bounds on the rounding. The other proposals are
looked up in V and decided by `accept`, so that draws do not depend on the sieve. Late in a draw
nearly all proposals are rejected, and it reads an eighth of the memory.
"""

from __future__ import annotations

from math import sqrt

import numpy as np
from numba.types import int64

from dmsgd.compiled.jit import callback, float64_ptr, helper, int64_ptr
from dmsgd.compiled.linear_algebra import PANEL
from dmsgd.compiled.microkernels import SINGLE_COLUMNS, TILE_ROWS, gather_bytes, single_tile
from dmsgd.compiled.pointers import bytes_at, doubles_at, ints_at, prefetch, shift, singles_at
from dmsgd.compiled.projection import (
    CHANGED,
    COLUMNS,
    HEIGHT,
    ITEMS_LEFT,
    PENDING,
    SINGLES,
    W32,
    K,
    W,
)
from dmsgd.compiled.simd import BLOCK
from dmsgd.compiled.tables import INT8_ROWS, LINE_BYTES, R


@helper
def _lengths(X, rows, out):
    """out = np.linalg.norm(X[:rows], axis=0); X has rows of BLOCK."""
    for p in range(BLOCK):
        out[p] = np.float32(0.0)
    for i in range(rows):
        for p in range(BLOCK):
            out[p] += X[i * BLOCK + p] * X[i * BLOCK + p]
    for p in range(BLOCK):
        out[p] = np.float32(sqrt(out[p]))


@callback(int64(*4 * [int64_ptr], float64_ptr, int64_ptr))
def prefilter(source, fields, chosen, items, thresholds, next_items):
    """Drop proposals that are certain to be rejected, keep the order; return how many stay.

    The bytes of `next_items` are prefetched for the next call.
    """
    k, height, rows = fields[K], fields[HEIGHT], fields[ITEMS_LEFT] + fields[PENDING]
    r, int8_rows, panel = source[R], bytes_at(source[INT8_ROWS]), height * PANEL
    places, W_ = ints_at(fields[COLUMNS]), singles_at(fields[W32])
    for p in range(BLOCK):
        row = shift(int8_rows, next_items[p] * r)
        for line in range(0, r, LINE_BYTES):
            prefetch(shift(row, line))
    if fields[CHANGED] != 0:
        doubles = doubles_at(fields[W])
        for i in range((rows + PANEL - 1) // PANEL * panel):
            W_[i] = np.float32(doubles[i])
        fields[CHANGED] = 0
    q = singles_at(fields[SINGLES])
    Z = shift(q, k * BLOCK)
    full, rest = shift(Z, height * BLOCK), shift(Z, (height + 1) * BLOCK)
    for p in range(BLOCK):
        places[p] = items[p] * r
    for c in range(k):
        gather_bytes(int8_rows, places, chosen[c], shift(q, c * BLOCK))
    for i in range(0, rows, TILE_ROWS):
        part = shift(W_, i // PANEL * panel + i % PANEL)
        for j in range(0, BLOCK, SINGLE_COLUMNS):
            place = shift(Z, i * BLOCK + j)
            single_tile(part, 1, PANEL, shift(q, j), BLOCK, place, BLOCK, k, False)
    _lengths(q, k, full)
    _lengths(Z, rows, rest)
    unit = 2.0**-23 * (k + 8)  # bounds the rounding of a sum of k products, with room to spare
    half, kept = 0.5 * sqrt(k), 0
    for p in range(BLOCK):
        most = rest[p] * (1.0 + unit) + sqrt(rows) * unit * full[p] + half
        least = sqrt(thresholds[p]) * (full[p] * (1.0 - unit) - half)
        if most > least * (1.0 - 1e-6):
            items[kept], thresholds[kept] = items[p], thresholds[p]
            kept += 1
    return kept
