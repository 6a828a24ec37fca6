"""Near-duplicates: pairs of rows that a bound does not rule out are compared, and grouped."""

from __future__ import annotations

import numpy as np
from numba.types import float64, int64

from dmsgd.compiled.jit import (
    Table,
    callback,
    float32_ptr,
    float64_ptr,
    helper,
    int64_ptr,
    uint32_ptr,
)
from dmsgd.compiled.llvm import doubles_at, ints_at, shift, singles_at, uint32s_at

#: Columns that are added up before the sum is compared with the largest that matters.
COLUMNS = 64

#: Rows u_i = factors[i] X_i.
POINTS = Table(
    X=float64_ptr,  # (n, d), or the entries of a CSR array
    indptr=int64_ptr,  # of a CSR array, or 0
    indices=uint32_ptr,
    factors=float64_ptr,  # (n,)
    d=int64,
)

#: A block of pairs, which `compare_block` goes through, and what was found so far.
SEARCH = Table(
    G=float32_ptr,  # (rows, width) inner products of short rows
    left=float32_ptr,  # (rows,)
    right=float32_ptr,  # (width,)
    row_items=int64_ptr,  # (rows,) their items
    column_items=int64_ptr,  # (width,)
    rows=int64,
    width=int64,
    diagonal=int64,  # whether the columns begin with the rows themselves
    listed=int64,  # how many pairs are listed in full
    pause=int64,  # comparisons after which it pauses
    row=int64,  # where it goes on
    column=int64,
    parent=int64_ptr,  # (n,) another item of the group of each, with a smaller number; or itself
    pairs=int64_ptr,  # (found, 2)
    squares=float64_ptr,  # (found,) squared distances
    found=int64,
    first=int64,  # the closest pair, as long as none is found
    second=int64,
    closest=float64_ptr,  # (1,) its squared distance
)

_MATH = {"nnan", "nsz", "reassoc"}  # with "contract" equal rows would not have the distance 0
_LOWEST = np.float32(-3e38)


@helper
def _square(points, i, j, most):
    """Return |u_i - u_j|², or the part of it that is the first above `most`."""
    X, factors, d = doubles_at(points.X), doubles_at(points.factors), points.d
    a, b, total = factors[i], factors[j], 0.0
    if points.indptr == 0:
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
    indptr, indices = ints_at(points.indptr), uint32s_at(points.indices)
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


@callback(int64(POINTS.record, int64_ptr, int64_ptr, int64, float64_ptr), fastmath=_MATH)
def pair_squares(points, one, other, count, out):
    """out = ((U[one] - U[other]) ** 2).sum(1)."""
    for p in range(count):
        out[p] = _square(points, one[p], other[p], float64(1e308))
    return 0


@callback(int64(POINTS.record, SEARCH.record, float64, float64), fastmath=_MATH)
def compare_block(points, search, limit, bound):
    """Compare the pairs of a block with G - right >= left[:, None]; return 1 if it paused, else 0.

    Pairs of items with |u - v|² <= limit go into `pairs` and `squares`, and their groups, trees of
    `parent`, become one. Once `listed` pairs are found, pairs within a group are passed over. As
    long as none is found, the pair of each row that the bound leaves closest is compared, too.

    bound: |u - v|² is at least bound - 2 (G - right - left).
    """
    width, begin, compared = search.width, search.column, 0
    left, right, parent = singles_at(search.left), singles_at(search.right), ints_at(search.parent)
    rows, columns = ints_at(search.row_items), ints_at(search.column_items)
    pairs, squares = ints_at(search.pairs), doubles_at(search.squares)
    closest = doubles_at(search.closest)
    for i in range(search.row, search.rows):
        products, item = shift(singles_at(search.G), i * width), rows[i]
        first = i + 1 if search.diagonal != 0 else 0
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
                if mine == theirs and search.found >= search.listed:
                    continue
                if compared >= search.pause:
                    search.row, search.column = i, j
                    return 1
                compared += 1
                square = _square(points, item, other, limit)
                if square <= limit:
                    at = search.found
                    pairs[2 * at], pairs[2 * at + 1] = min(item, other), max(item, other)
                    squares[at] = square
                    search.found = at + 1
                    parent[max(mine, theirs)] = min(mine, theirs)
        begin = 0
        if search.found == 0 and first < width and bound - 2 * (top - least) < closest[0]:
            j = first
            while products[j] - right[j] < top:
                j += 1
            other, most = columns[j], closest[0]
            square = _square(points, item, other, most)
            if square < most:
                closest[0] = square
                search.first, search.second = min(item, other), max(item, other)
    return 0
