"""V in memory: where the running sum of squares of a column passes a target, and rows to decide on.

GROUP rows of V are a group. For every group and column there is one cache line: the running sum
before the group, and fractions, where in the sum of the group its rows end, in parts of 2^16.
Search hints have the group that each of a list of evenly spaced sums falls into, so that a search
begins next to where it ends.

A target in the same part as the end of a row is looked up in V itself, so that the row found is
exact.

A row x of V[:, J] is also kept as bytes, x = s (q + d) with |d| <= 1/2 in every coordinate, so that
|d| <= m = sqrt(k) / 2. As |W d| <= |d|, a proposal is certain to be rejected, |W x|² <= u |x|², if

    |W q| + m <= sqrt(u) (|q| - m).

`prefilter` drops these. Late in a draw that is nearly all of them, for an eighth of the memory.
"""

from __future__ import annotations

from math import sqrt

import numpy as np
from numba.types import int64

from dmsgd.compiled import microkernels as kernels
from dmsgd.compiled.jit import Table, callback, float64_ptr, int8_ptr, int64_ptr, uint32_ptr
from dmsgd.compiled.linear_algebra import INNER
from dmsgd.compiled.llvm import (
    BLOCK,
    LANES,
    LINE_BYTES,
    bytes_at,
    doubles_at,
    ints_at,
    prefetch,
    shift,
    singles_at,
    uint32s_at,
)
from dmsgd.compiled.microkernels import FRACTIONS, GROUP, TABLE_LINE
from dmsgd.compiled.projection import WORK

#: Rows of V that are prefetched before they are read.
AHEAD = 4
#: Adding and subtracting it rounds to the nearest integer, ties to even.
TO_EVEN = 1.5 * 2.0**52
#: A fraction this close to the end of a part is looked up in V: far above rounding.
FRACTION_MARGIN = 2.0**-20
#: Hints are read for a slightly smaller target, so that the group that they name never begins too
#: late. The difference is far above rounding.
HINT_MARGIN = 1.0 - 2.0**-40

#: V and its search tables.
TABLES = Table(
    V=float64_ptr,  # (n, r)
    n=int64,
    r=int64,
    width=int64,  # r, or LANES if that is more
    sums=float64_ptr,  # with fractions, see `group_line`, (groups, width, TABLE_LINE)
    groups=int64,
    totals=float64_ptr,  # the last sums, (width,)
    hints=uint32_ptr,  # (width, last + 1)
    last=int64,
    int8_rows=int8_ptr,  # rows of V as bytes, each in its own units, (n, int8_width); or 0
    int8_width=int64,  # whole cache lines
)


@callback(int64(float64_ptr, int64, int64, float64_ptr, float64_ptr))
def fill_sums(V, groups, width, ends, sums):
    """Fill the sums and fractions of whole groups of rows of V, which has this width.

    ends[0], (width,), has the running sums before them, and ends[g + 1] gets those after group g.
    """
    for group in range(groups):
        rows, lines = shift(V, group * GROUP * width), shift(sums, group * width * TABLE_LINE)
        before, after = shift(ends, group * width), shift(ends, (group + 1) * width)
        for j in range(0, width, LANES):
            c = j if j < width - LANES else width - LANES
            ends_here = shift(before, c), shift(after, c)
            kernels.group_line(shift(rows, c), width, *ends_here, shift(lines, c * TABLE_LINE))
    return 0


@callback(int64(float64_ptr, int64, int64, int64, int8_ptr))
def fill_int8(V, n, r, width, out):
    """Fill row i of `out`, which has this width, with V_i scaled to a largest entry of 127."""
    for i in range(n):
        row, bytes_ = shift(V, i * r), shift(out, i * width)
        largest = kernels.largest_size(row, r)
        scale = 127.0 / (largest if largest > 1e-300 else 1e-300)
        for j in range(r):
            bytes_[j] = np.int8((row[j] * scale + TO_EVEN) - TO_EVEN)
    return 0


@callback(int64(TABLES.record, int64_ptr, float64_ptr, int64_ptr, int64))
def locate(source, columns, targets, items, count):
    """items[p] = the row at which the running sum of V[:, columns[p]]² passes targets[p].

    Each step is made for all p before the next, so that all wait for memory together.
    """
    n, r, groups, width, last = source.n, source.r, source.groups, source.width, source.last
    totals, sums = doubles_at(source.totals), doubles_at(source.sums)
    hints, V = uint32s_at(source.hints), doubles_at(source.V)
    for p in range(count):
        j = columns[p]
        hint = targets[p] / totals[j] * (last * HINT_MARGIN)
        hint = hint if 0.0 <= hint < last else 0.0  # also for NaN
        items[p] = j * (last + 1) + np.int64(hint)
        prefetch(shift(hints, items[p]))
    for p in range(count):
        group, after = hints[items[p]], hints[items[p] + 1]
        items[p] = group
        line = shift(sums, (group * width + columns[p]) * TABLE_LINE)
        prefetch(line)
        prefetch(shift(line, width * TABLE_LINE if after > group else 0))  # it may be the next
    for p in range(count):
        j, group, target = columns[p], items[p], targets[p]
        line = shift(sums, (group * width + j) * TABLE_LINE)
        rest = target - line[0]
        fraction = rest * line[1]
        while group < groups - 1 and not fraction < FRACTIONS - 1.0:  # also if all squares are 0
            later = shift(line, width * TABLE_LINE)
            if later[0] > target:
                break
            group, line, rest = group + 1, later, target - later[0]
            fraction = rest * line[1]
        fraction = fraction if fraction < FRACTIONS - 2.0 else FRACTIONS - 2.0
        passed = kernels.fractions_below(line, np.int64(fraction - FRACTION_MARGIN))
        most = kernels.fractions_below(line, np.int64(fraction + FRACTION_MARGIN) + 1)
        if most > passed:
            total, passed = 0.0, 0
            for s in range(group * GROUP, group * GROUP + GROUP - 1):
                x = V[(s if s < n else n - 1) * r + j]
                total += x * x
                passed += total <= rest
        row = group * GROUP + passed
        items[p] = row if row < n else n - 1
    return 0


@callback(int64(TABLES.record, int64_ptr, int64, int64_ptr, float64_ptr, int64))
def gather(source, chosen, k, items, X, count):
    """X[c, p] = V[items[p], chosen[c]]; X has rows of BLOCK.

    Row by row, while the rows AHEAD of it are on their way from memory, and INNER columns at a
    time, so that what is written stays in a first cache.
    """
    values, r = doubles_at(source.V), source.r
    for p in range(AHEAD if count > AHEAD else count):
        row = shift(values, items[p] * r)
        for c in range(min(k, INNER)):
            prefetch(shift(row, chosen[c]))
    for start in range(0, k, INNER):
        these, part, some = shift(chosen, start), shift(X, start * BLOCK), min(INNER, k - start)
        for p in range(count):
            row, later, those = shift(values, items[p] * r), p + AHEAD, these
            if later >= count and start + 2 * INNER <= k:  # go on with the next columns
                later, those = later - count, shift(these, INNER)
            ahead = shift(values, items[min(later, count - 1)] * r)
            for c in range(some):
                prefetch(shift(ahead, those[c]))
                part[c * BLOCK + p] = row[these[c]]
    return 0


@callback(int64(TABLES.record, WORK.record, int64_ptr, int64_ptr, float64_ptr))
def prefilter(source, work, chosen, items, thresholds):
    """Drop proposals that are certain to be rejected, keep the order; return how many stay.

    Both sides are computed in single precision with bounds on the rounding, and those that stay are
    decided by `projection.accept`, so draws do not depend on it.
    """
    k, length, rows = work.k, work.length, work.left + work.pending
    int8_rows = bytes_at(source.int8_rows)
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
        for i in range(rows * length):
            W32[i] = np.float32(W[i])
        work.changed = 0
    q = singles_at(work.singles)
    Z = shift(q, k * BLOCK)
    full, rest = shift(Z, length * BLOCK), shift(Z, (length + 1) * BLOCK)
    for c in range(k):
        column, row = shift(int8_rows, chosen[c]), shift(q, c * BLOCK)
        for p in range(BLOCK):
            row[p] = np.float32(column[places[p]])
    for t in range(0, k, INNER):
        some, part = min(INNER, k - t), shift(q, t * BLOCK)
        for i in range(0, rows, kernels.SINGLE_ROWS):
            left = shift(W32, i * length + t)
            for j in range(0, BLOCK, kernels.SINGLE_COLUMNS):
                right, place = shift(part, j), shift(Z, i * BLOCK + j)
                kernels.single_tile(left, length, 1, right, BLOCK, place, BLOCK, some, t > 0)
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
