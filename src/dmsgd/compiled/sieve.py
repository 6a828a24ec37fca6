"""Proposals that are rejected for certain, found from a byte a coordinate.

A row x of V, cut down to J, is s (q + d) with bytes q and |d| <= 1/2 in every coordinate, so that
|d| <= m = sqrt(k) / 2. As |W d| <= |d|, the proposal is rejected, |W x|² <= u |x|², if

    |W q| + m <= sqrt(u) (|q| - m).

Both sides are computed in single precision with bounds on the rounding. What passes the sieve is
looked up in V and decided by `accept`, so nothing depends on it but the time: late in a draw nearly
all proposals are rejected, and their rows are read an eighth as far.
"""

from __future__ import annotations

from math import sqrt

import numpy as np

from dmsgd.compiled.jit import DOUBLES, INT, INTS, NOTHING, SINGLES, compiled
from dmsgd.compiled.linear_algebra import PANEL
from dmsgd.compiled.microkernels import (
    SINGLE_COLUMNS,
    TILE_ROWS,
    gather_bytes,
    single_tile,
)
from dmsgd.compiled.pointers import prefetch, shift
from dmsgd.compiled.projection import CHANGED, LEFT, PENDING, lay_out
from dmsgd.compiled.simd import BLOCK
from dmsgd.compiled.tables import LINE, tables_at


@compiled(NOTHING(SINGLES, INT, SINGLES))
def _lengths(X, rows, out):
    """out = np.linalg.norm(X[:rows], axis=0); X has rows of BLOCK."""
    for p in range(BLOCK):
        out[p] = np.float32(0.0)
    for i in range(rows):
        for p in range(BLOCK):
            out[p] += X[i * BLOCK + p] * X[i * BLOCK + p]
    for p in range(BLOCK):
        out[p] = np.float32(sqrt(out[p]))


@compiled(
    INT(INTS, INT, DOUBLES, INTS, INTS, INTS, DOUBLES, INTS, SINGLES, INTS), called_by_address=True
)
def sift(plan, k, doubles, integers, J, items, thresholds, next_items, room, rows):
    """Drop proposals that are rejected for certain, keep the order; return how many stay.

    The bytes of `next_items` are asked for, so that they are there next time. Scratch: `room` for
    2 (k + PANEL) rows of BLOCK, `rows` for one.
    """
    tables, basis = tables_at(plan), lay_out(k, doubles, integers)
    left, panel = basis.state[LEFT] + basis.state[PENDING], basis.height * PANEL
    for p in range(BLOCK):
        row = shift(tables.coarse, next_items[p] * tables.r)
        for line in range(0, tables.r, LINE):
            prefetch(shift(row, line))
    if basis.state[CHANGED]:
        for i in range((left + PANEL - 1) // PANEL * panel):
            basis.coarse[i] = np.float32(basis.W[i])
        basis.state[CHANGED] = 0
    q, Z = room, shift(room, k * BLOCK)
    full, rest = shift(Z, basis.height * BLOCK), shift(Z, (basis.height + 1) * BLOCK)
    for p in range(BLOCK):
        rows[p] = items[p] * tables.r
    for c in range(k):
        gather_bytes(tables.coarse, rows, J[c], shift(q, c * BLOCK))
    for i in range(0, left, TILE_ROWS):
        W = shift(basis.coarse, i // PANEL * panel + i % PANEL)
        for j in range(0, BLOCK, SINGLE_COLUMNS):
            place = shift(Z, i * BLOCK + j)
            single_tile(W, 1, PANEL, shift(q, j), BLOCK, place, BLOCK, k, False)
    _lengths(q, k, full)
    _lengths(Z, left, rest)
    unit = 2.0**-23 * (k + 8)  # of a sum of k rounded products, with room to spare
    half, kept = 0.5 * sqrt(k), 0
    for p in range(BLOCK):
        most = rest[p] * (1.0 + unit) + sqrt(left) * unit * full[p] + half
        least = sqrt(thresholds[p]) * (full[p] * (1.0 - unit) - half)
        if most > least * (1.0 - 1e-6):
            items[kept], thresholds[kept] = items[p], thresholds[p]
            kept += 1
    return kept
