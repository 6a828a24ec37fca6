"""A sieve that finds proposals that are certain to be rejected from a byte per coordinate.

A row x of V[:, J] is s (q + d) with bytes q and |d| <= 1/2 in every coordinate, so that |d| <= m =
sqrt(k) / 2. As |W d| <= |d|, the proposal is rejected, |W x|² <= u |x|², if

    |W q| + m <= sqrt(u) (|q| - m).

Both sides are computed in single precision with bounds on the rounding. The other proposals are
looked up in V and decided by `projection.accept`, so draws do not depend on the sieve. Late in a
draw nearly all proposals are rejected, and the sieve reads an eighth of the memory.
"""

from __future__ import annotations

from math import sqrt

import numpy as np
from numba.types import int64

from dmsgd.compiled import microkernels as kernels
from dmsgd.compiled.jit import callback, float64_ptr, int64_ptr
from dmsgd.compiled.linear_algebra import PANEL
from dmsgd.compiled.llvm import (
    BLOCK,
    LINE_BYTES,
    bytes_at,
    doubles_at,
    ints_at,
    prefetch,
    shift,
    singles_at,
)
from dmsgd.compiled.projection import WORK
from dmsgd.compiled.tables import TABLES


@callback(int64(TABLES.record, WORK.record, int64_ptr, int64_ptr, float64_ptr))
def prefilter(source, work, chosen, items, thresholds):
    """Drop proposals that are certain to be rejected, keep the order; return how many stay."""
    k, height, rows = work.k, work.height, work.left + work.pending
    int8_rows, panel = bytes_at(source.int8_rows), height * PANEL
    places, W32 = ints_at(work.columns), singles_at(work.W32)
    for p in range(BLOCK):
        places[p] = items[p] * source.int8_width
    line = -1
    for c in range(k):  # only lines with columns of J come from memory
        if chosen[c] // LINE_BYTES != line:
            line = chosen[c] // LINE_BYTES
            for p in range(BLOCK):
                prefetch(shift(int8_rows, places[p] + line * LINE_BYTES))
    if work.changed != 0:
        W = doubles_at(work.W)
        for i in range((rows + PANEL - 1) // PANEL * panel):
            W32[i] = np.float32(W[i])
        work.changed = 0
    q = singles_at(work.singles)
    Z = shift(q, k * BLOCK)
    full, rest = shift(Z, height * BLOCK), shift(Z, (height + 1) * BLOCK)
    for c in range(k):
        kernels.gather_bytes(int8_rows, places, chosen[c], shift(q, c * BLOCK))
    for i in range(0, rows, kernels.TILE_ROWS):
        part = shift(W32, i // PANEL * panel + i % PANEL)
        for j in range(0, BLOCK, kernels.SINGLE_COLUMNS):
            place = shift(Z, i * BLOCK + j)
            kernels.single_tile(part, 1, PANEL, shift(q, j), BLOCK, place, BLOCK, k, False)
    kernels.single_column_squares(q, k, full)
    kernels.single_column_squares(Z, rows, rest)
    unit = 2.0**-23 * (k + 8)  # more than the rounding of a sum of k products
    half, kept = 0.5 * sqrt(k), 0
    for p in range(BLOCK):
        length = sqrt(full[p])
        most = sqrt(rest[p]) * (1.0 + unit) + sqrt(rows) * unit * length + half
        least = sqrt(thresholds[p]) * (length * (1.0 - unit) - half)
        if most > least * (1.0 - 1e-6):
            items[kept], thresholds[kept] = items[p], thresholds[p]
            kept += 1
    return kept
