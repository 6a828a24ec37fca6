"""Where in a column of V the running sum of its squares passes a target: in three look-ups.

Rows of V come in stretches of 8, and stretches in groups of 8. For every group and column there is
a line of sums, the running sums at the end of its stretches, and beside it a line of shares: where
in a stretch its rows end, in 256ths of its sum, a byte a row. Guides say which group each of a row
of evenly spaced sums falls into, so that a search begins next to where it ends.

A target that falls into the same 256th as the end of a row is looked up in V itself, so that the
row found is exact.
"""

from __future__ import annotations

from collections import namedtuple

import numpy as np
from numba import types

from dmsgd.compiled.jit import (
    BYTES,
    DOUBLES,
    HALVES,
    INT,
    INTS,
    NOTHING,
    REAL,
    WORDS,
    compiled,
)
from dmsgd.compiled.pointers import (
    bytes_at,
    doubles_at,
    halves_at,
    ints_at,
    prefetch,
    shift,
    words_at,
)
from dmsgd.compiled.simd import BLOCK, LANES
from dmsgd.compiled.summaries import coarsen, survey

#: Rows of V in a stretch and in a group; entries of the table for a group and column.
STRETCH, GROUP, ENTRY = 8, 64, 16
#: Bytes that memory brings at a time.
LINE = 64
#: A share this close to the end of a 256th is looked up in V: far above rounding.
_DOUBT = 2.0**-20
#: Guides are asked for less by far more than rounding: no group that they name begins too late.
_BELOW = 1.0 - 2.0**-40

#: V, shape (n, r); sums and shares, (groups, width, ENTRY), are the same memory; totals, (width,),
#: are the last sums; guides, (width, last + 1). The width is r, or LANES if that is more.
#: coarse, (n, r): each row of V as bytes, in units of its own; nothing (0) if it has few columns.
Tables = namedtuple("Tables", "totals n r groups width last V sums shares guides coarse")
TABLES = types.NamedTuple(
    [DOUBLES, *[INT] * 5, DOUBLES, DOUBLES, WORDS, HALVES, BYTES], Tables
)  # fmt: skip


@compiled(TABLES(INTS))
def tables_at(plan):
    """Return the tables whose sizes and addresses these are."""
    return Tables(
        doubles_at(plan[0]), plan[1], plan[2], plan[3], plan[4], plan[5],
        doubles_at(plan[6]), doubles_at(plan[7]), words_at(plan[7]), halves_at(plan[8]),
        bytes_at(plan[9]),
    )  # fmt: skip


@compiled(NOTHING(*[INT] * 5), called_from_python=True)
def fill_sums(V, groups, width, ends, sums):
    """Fill the sums and shares of whole groups of rows of V, which has this width.

    ends[0], (width,), are the running sums before them, and ends[g + 1] = those behind group g.
    All but the numbers are addresses.
    """
    V, sums, ends = doubles_at(V), doubles_at(sums), doubles_at(ends)
    for group in range(groups):
        rows, table = shift(V, group * GROUP * width), shift(sums, group * width * ENTRY)
        before, after = shift(ends, group * width), shift(ends, (group + 1) * width)
        for j in range(0, width, LANES):
            c = j if j < width - LANES else width - LANES
            survey(
                shift(rows, c), width, shift(before, c), shift(after, c), shift(table, c * ENTRY)
            )


@compiled(NOTHING(*[INT] * 6), called_from_python=True)
def fill_guides(groups, width, last, ends, filled, guides):
    """guides[j, g] = the first group with ends[group + 1, j] > g / last * ends[groups, j].

    The last group if there is none, for g = 0..last. All but the numbers are addresses; `filled`,
    (width,), is how many guides of each column are filled, none at first.
    """
    ends, filled, guides = doubles_at(ends), ints_at(filled), halves_at(guides)
    totals = shift(ends, groups * width)
    for group in range(groups):
        for j in range(width):
            end, total, g = ends[(group + 1) * width + j] * last, totals[j], filled[j]
            while g <= last and (end > g * total or group == groups - 1):
                guides[j * (last + 1) + g] = group
                g += 1
            filled[j] = g


@compiled(NOTHING(*[INT] * 4), called_from_python=True)
def fill_coarse(V, n, r, coarse):
    """coarse[i] = np.rint(V[i] * (127 / abs(V[i]).max())); both are addresses, and r >= LANES."""
    V, coarse = doubles_at(V), bytes_at(coarse)
    for i in range(n):
        coarsen(shift(V, i * r), r, shift(coarse, i * r))


@compiled(INT(DOUBLES, INT, INT, INT, INT, REAL))
def row_within(V, n, r, column, stretch, rest):
    """Return the row of a stretch at which the sum of V[:, column]² from its start passes rest."""
    row, total, passed = stretch * STRETCH, 0.0, 0
    for s in range(STRETCH - 1):
        x = V[(row + s if row + s < n else n - 1) * r + column]
        total += x * x
        passed += total <= rest
    return row + passed if row + passed < n else n - 1


@compiled(NOTHING(DOUBLES, INT, INTS, DOUBLES, INTS, INT))
def find_parts(sums, parts, columns, targets, items, count):
    """items[p] = the last of `parts` whose sum before it, sums[columns[p], part], is at most
    targets[p].

    By bisection, a step for all p and then the next, so that they wait for memory together. `sums`
    has rows of parts + 1.
    """
    for p in range(count):
        items[p] = 0
    left = parts
    while left > 1:
        half = left >> 1
        for p in range(count):
            before = sums[columns[p] * (parts + 1) + items[p] + half]
            items[p] += half if before <= targets[p] else 0
        left -= half


@compiled(INT(INTS, INTS, DOUBLES, INTS, INT), called_by_address=True)
def locate(plan, columns, targets, items, count):
    """items[p] = the row at which the running sum of V[:, columns[p]]² passes targets[p].

    A step for all p and then the next, so that they wait for memory together.
    """
    tables = tables_at(plan)
    n, width, guides = tables.n, tables.width, tables.guides
    for p in range(count):
        j = columns[p]
        guide = targets[p] / tables.totals[j] * (tables.last * _BELOW)
        guide = guide if 0.0 <= guide < tables.last else 0.0  # also where that is no number
        items[p] = j * (tables.last + 1) + np.int64(guide)
        prefetch(shift(guides, items[p]))
    for p in range(count):
        group, after = guides[items[p]], guides[items[p] + 1]
        items[p] = group
        line = shift(tables.sums, (group * width + columns[p]) * ENTRY)
        prefetch(line)
        prefetch(shift(line, STRETCH))
        line = shift(line, width * ENTRY if after > group else 0)  # it may be the next group
        prefetch(line)
        prefetch(shift(line, STRETCH))
    for p in range(count):
        j, group, target = columns[p], items[p], targets[p]
        line = shift(tables.sums, (group * width + j) * ENTRY)
        while group < tables.groups - 1 and line[7] <= target:
            group, line = group + 1, shift(line, width * ENTRY)
        b = 0
        for s in range(7):
            b += line[s] <= target
        if b > 0:
            before = line[b - 1]
        else:
            before = shift(line, -width * ENTRY)[7] if group > 0 else 0.0
        rest, whole = target - before, line[b] - before
        share = rest / whole * 256.0 if whole > 0.0 else 0.0
        here = np.int64(share)
        word = tables.shares[(group * width + j) * ENTRY + STRETCH + b]
        passed, unsure = 0, not (here + _DOUBT < share < here + (1.0 - _DOUBT))
        for s in range(STRETCH - 1):
            end = np.int64((word >> np.uint64(8 * s)) & np.uint64(255))
            passed += 1 if end < here else 0
            unsure = unsure or end == here
        stretch = group * STRETCH + b
        if unsure:
            items[p] = row_within(tables.V, n, tables.r, j, stretch, rest)
        else:
            row = stretch * STRETCH + passed
            items[p] = row if row < n else n - 1
    return 0


@compiled(INT(INTS, INTS, INT, INTS, DOUBLES, INTS, INT), called_by_address=True)
def gather(plan, J, k, items, X, scratch, count):
    """X[c, p] = V[items[p], J[c]]; X has rows of BLOCK, and `scratch` is for one."""
    tables = tables_at(plan)
    for p in range(count):
        scratch[p] = items[p] * tables.r
    for c in range(k):
        for p in range(count):
            X[c * BLOCK + p] = tables.V[scratch[p] + J[c]]
    return 0
