"""Facility location: similarities, and what items would add to the coverage of others."""

from __future__ import annotations

import numpy as np

from dmsgd.compiled.jit import entry, inlined

#: 2^f = 1 + Σ_p c_p f^p for -1/2 <= f <= 1/2, with the smallest relative error, 9e-8.
_C = tuple(np.float32(c) for c in (0.693147, 0.24022242, 0.05550734, 0.009671513, 0.0013264727))
#: Adding this rounds a float32 to an integer, which then is in the lowest bits.
_ROUND = np.float32(1.5 * 2**23)
_ZERO, _ONE, _LEAST = np.float32(0), np.float32(1), np.float32(-126)
#: What a compiler may assume; "reassoc" would undo the rounding.
_FAST = {"contract", "nsz", "nnan"}
#: Columns that are skipped or added together.
LANES = 16
#: Columns that are added in float32 before they go to float64, and candidates in one go.
TOGETHER, ADDED = 32, 2048


@inlined
def _exp2(x):
    """Return 2^x of a float32, 1 if x > 0. A compiler makes vector instructions of this form."""
    x = max(min(x, _ZERO), _LEAST)
    y = x + _ROUND
    f = x - (y - _ROUND)
    p = (_C[4] * f + _C[3]) * (f * f) + (_C[2] * f + _C[1])
    p = p * (f * f) + (_C[0] * f + _ONE)
    exponent = np.int32(np.float32(y).view(np.int32) << 23)
    return np.int32(np.float32(p).view(np.int32) + exponent).view(np.float32)


@entry(fastmath=_FAST)
def similarities(G, left, right):
    """Replace products G by np.exp2(np.minimum(G - left[:, None] - right, 0)) in float32."""
    for i in range(G.shape[0]):
        row, size = G[i], left[i]
        for j in range(row.size):
            row[j] = _exp2(row[j] - size - right[j])


@entry(fastmath=_FAST)
def add_gains(G, left, right, low, lo, hi, weights, out):
    """Add np.maximum(np.minimum(S, hi) - lo, 0) @ weights to `out`, S as in `similarities`.

    Where no S_ij exceeds lo_j, which is most often, it is skipped.

    low: np.log2(lo) + right.
    """
    n, m = G.shape
    whole = m - m % LANES
    sums = np.empty(LANES, np.float32)
    for i in range(n):
        row, size, total = G[i], left[i], 0.0
        sums[:] = _ZERO
        for first in range(0, whole, LANES):
            some = np.int32(0)
            for j in range(first, first + LANES):
                some |= np.int32(row[j] - size > low[j])
            if some:
                for lane in range(LANES):
                    j = first + lane
                    s = min(_exp2(row[j] - size - right[j]), hi[j])
                    sums[lane] += weights[j] * max(s - lo[j], _ZERO)
        for lane in range(LANES):
            total += sums[lane]
        for j in range(whole, m):
            if row[j] - size > low[j]:
                s = min(_exp2(row[j] - size - right[j]), hi[j])
                total += weights[j] * max(s - lo[j], _ZERO)
        out[i] += total


@entry(fastmath=_FAST)
def add_gains_of_rows(A, left, B, right, low, lo, hi, weights, tile, G, out):
    """Do what `add_gains` does with G = A Bᵀ, of which one tile of this shape is made at a time."""
    tall, wide = tile
    for first in range(0, left.size, tall):
        mine = slice(first, min(first + tall, left.size))
        for start in range(0, right.size, wide):
            some = slice(start, min(start + wide, right.size))
            rows, columns = mine.stop - mine.start, some.stop - some.start
            products = G[: rows * columns].reshape(rows, columns)
            np.dot(A[mine], B[some].T, products)
            add_gains(products, left[mine], right[some], low[some], lo[some], hi[some],
                      weights[some], out[mine])  # fmt: skip


@entry(fastmath=_FAST)
def add_kept_gains(T, columns, lo, hi, weights, first, last, out):
    """Add np.maximum(np.minimum(S, hi) - lo, 0) @ weights to out[first:last].

    S is T[columns, first:last].T: similarities are kept by columns.
    """
    sums = np.empty(ADDED, np.float32)
    for start in range(first, last, ADDED):
        size = min(ADDED, last - start)
        for begin in range(0, columns.size, TOGETHER):
            sums[:size] = _ZERO
            for at in range(begin, min(begin + TOGETHER, columns.size)):
                row, least, most, weight = T[columns[at]], lo[at], hi[at], weights[at]
                for i in range(size):
                    sums[i] += weight * max(min(row[start + i], most) - least, _ZERO)
            for i in range(size):
                out[start + i] += sums[i]
