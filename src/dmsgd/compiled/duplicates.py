"""Near-duplicates: pairs of rows that a bound does not rule out are compared, and grouped.

Row i is u_i = factors[i] X_i, where X has d columns, dense or as a CSR array (then `indptr` is not
empty).
"""

from __future__ import annotations

import numpy as np
from numba.types import float64, int64

from dmsgd.compiled.jit import (
    callback,
    float32_ptr,
    float64_ptr,
    helper,
    int64_ptr,
    uint32_ptr,
)
from dmsgd.compiled.llvm import shift

#: Columns that are added up before the sum is compared with the largest that matters.
COLUMNS = 64
#: What `compare_block` reads and writes: sizes of the block, whether its columns begin with its own
#: rows, how many pairs are listed in full, after how many comparisons it pauses, where it goes on,
#: pairs found, and the closest pair.
ROWS, WIDTH, DIAGONAL, LISTED, PAUSE, ROW, COLUMN, FOUND, FIRST, SECOND = range(10)

_MATH = {"nnan", "nsz", "reassoc"}  # with "contract" equal rows would not have the distance 0
_LOWEST = np.float32(-3e38)


@helper
def _square(i, j, X, indptr, indices, factors, d, sparse, most):
    """Return |u_i - u_j|², or the part of it that is the first above `most`."""
    a, b, total = factors[i], factors[j], 0.0
    if sparse == 0:
        x, y = shift(X, i * d), shift(X, j * d)
        for first in range(0, d, COLUMNS):
            part = 0.0
            for c in range(first, min(first + COLUMNS, d)):
                gap = a * x[c] - b * y[c]
                part += gap * gap
            total += part
            if total > most:
                break
        return total
    at, other, end, last = indptr[i], indptr[j], indptr[i + 1], indptr[j + 1]
    while (at < end or other < last) and total <= most:
        gap = 0.0
        mine = int64(indices[at]) if at < end else d
        theirs = int64(indices[other]) if other < last else d
        if mine <= theirs:
            gap += a * X[at]
            at += 1
        if theirs <= mine:
            gap -= b * X[other]
            other += 1
        total += gap * gap
    return total


@helper
def _root(parent, i):
    """Return the first item of the group of item i, and shorten the way to it."""
    while parent[i] != i:
        parent[i] = parent[parent[i]]
        i = parent[i]
    return i


@callback(
    int64(
        int64_ptr, int64_ptr, int64, float64_ptr, int64_ptr, uint32_ptr, float64_ptr, int64, int64,
        float64_ptr,
    ),
    fastmath=_MATH,
)  # fmt: skip
def pair_squares(one, other, count, X, indptr, indices, factors, d, sparse, out):
    """out = ((U[one] - U[other]) ** 2).sum(1)."""
    for p in range(count):
        out[p] = _square(one[p], other[p], X, indptr, indices, factors, d, sparse, float64(1e308))
    return 0


@callback(
    int64(
        float32_ptr, float32_ptr, float32_ptr, int64_ptr, int64_ptr, int64_ptr, float64_ptr,
        int64_ptr, uint32_ptr, float64_ptr, int64, int64, float64, float64, int64_ptr, int64_ptr,
        float64_ptr, float64_ptr,
    ),
    fastmath=_MATH,
)  # fmt: skip
def compare_block(
    G, left, right, rows, columns, state, X, indptr, indices, factors, d, sparse, limit, bound,
    parent, pairs, squares, closest,
):  # fmt: skip
    """Compare the pairs of a block with G - right >= left[:, None]; return 1 if it paused, else 0.

    Pairs of items rows[i], columns[j] with |u - v|² <= limit go into `pairs` and `squares`, and
    their groups, trees of `parent`, become one. Once LISTED pairs are found, pairs within a group
    are passed over. As long as none is found, the pair of each row that the bound cannot tell
    apart best is compared, too, for `closest`.

    bound: |u - v|² is at least bound - 2 (G - right - left).
    """
    width, begin, compared = state[WIDTH], state[COLUMN], 0
    for i in range(state[ROW], state[ROWS]):
        products, item = shift(G, i * width), rows[i]
        first = i + 1 if state[DIAGONAL] != 0 else 0
        least, top = left[i], _LOWEST
        for j in range(first, width):
            value = products[j] - right[j]
            top = value if value > top else top
        if top >= least:
            for j in range(max(first, begin), width):
                if products[j] - right[j] < least:
                    continue
                other = columns[j]
                mine, theirs = _root(parent, item), _root(parent, other)
                if mine == theirs and state[FOUND] >= state[LISTED]:
                    continue
                if compared >= state[PAUSE]:
                    state[ROW], state[COLUMN] = i, j
                    return 1
                compared += 1
                square = _square(item, other, X, indptr, indices, factors, d, sparse, limit)
                if square <= limit:
                    at = state[FOUND]
                    pairs[2 * at], pairs[2 * at + 1] = min(item, other), max(item, other)
                    squares[at] = square
                    state[FOUND] = at + 1
                    parent[max(mine, theirs)] = min(mine, theirs)
        begin = 0
        if state[FOUND] == 0 and first < width and bound - 2 * (top - least) < closest[0]:
            j = first
            while products[j] - right[j] < top:
                j += 1
            other, most = columns[j], closest[0]
            square = _square(item, other, X, indptr, indices, factors, d, sparse, most)
            if square < most:
                closest[0] = square
                state[FIRST], state[SECOND] = min(item, other), max(item, other)
    return 0
