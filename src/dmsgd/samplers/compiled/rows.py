"""Rows of V = F B, made when they are asked for: F is dense, and nothing is as large as V.

F is made of an array X of singles or doubles: row i is scale_i X_i, and behind it, where there are
labels, one more entry, extra_i, in the column of its class. Items come in stretches, and for every
column of V and stretch there is the sum of its squares before it. Where a target falls is found
among these by bisection, and then by making one column of V for the items of one stretch.

Products are added up in a fixed order, so that rows are the same wherever they are made.
"""

from __future__ import annotations

from collections import namedtuple

from numba import types

from dmsgd.compiled.jit import DOUBLES, INT, INTS, REAL, compiled
from dmsgd.compiled.pointers import as_singles, doubles_at, ints_at, shift
from dmsgd.compiled.vectors import BLOCK
from dmsgd.samplers.compiled.dots import WHOLE, dot, dot_of_singles
from dmsgd.samplers.compiled.linear_algebra import PANEL, product
from dmsgd.samplers.compiled.tables import find_parts

#: Items in a stretch: fewer make larger tables, more make longer searches.
STRETCH = 16

#: totals:  the sums of the squares of the columns of V, shape (r,).
#: n, d:    the shape of X; D is d and the number of classes.
#: single:  whether X is of singles.
#: scale, extra, codes: as above, (n,); the last two are nothing (0) where there are no labels.
#: columns: of B, one after the other, (r, D).
#: sums:    of the squares before each stretch and at the end, (r, stretches + 1).
#: chosen:  the columns of the draw under way, (k, D), with room to the next tile.
#: turned:  scratch for a block of rows of X, one a column, (d, BLOCK).
Rows = namedtuple(
    "Rows", "totals n d D stretches single X scale labelled extra codes columns sums chosen turned"
)
ROWS = types.NamedTuple(
    [DOUBLES, *[INT] * 5, DOUBLES, DOUBLES, INT, DOUBLES, INTS, *[DOUBLES] * 4], Rows
)


@compiled(ROWS(INTS))
def rows_at(plan):
    """Return what has these sizes and addresses."""
    return Rows(
        doubles_at(plan[0]), plan[1], plan[2], plan[3], plan[4], plan[5], doubles_at(plan[6]),
        doubles_at(plan[7]), plan[8], doubles_at(plan[9]), ints_at(plan[10]), doubles_at(plan[11]),
        doubles_at(plan[12]), doubles_at(plan[13]), doubles_at(plan[14]),
    )  # fmt: skip


@compiled(REAL(ROWS, INT, DOUBLES))
def entry(rows, i, column):
    """Return V_ij, where `column` is column j of B."""
    d, x = rows.d, 0.0
    whole = d // WHOLE * WHOLE
    if rows.single != 0:
        singles = shift(as_singles(rows.X), i * d)
        x = dot_of_singles(singles, column, d // WHOLE)
        for j in range(whole, d):
            x += singles[j] * column[j]
    else:
        doubles = shift(rows.X, i * d)
        x = dot(doubles, column, d // WHOLE)
        for j in range(whole, d):
            x += doubles[j] * column[j]
    x *= rows.scale[i]
    if rows.labelled != 0:
        x += rows.extra[i] * column[d + rows.codes[i]]
    return x


@compiled(INT(INTS, INTS, INT), called_by_address=True)
def ready_rows(plan, J, k):
    """chosen = columns[J], for the rows of the draw that begins."""
    rows = rows_at(plan)
    for c in range(k):
        to, column = shift(rows.chosen, c * rows.D), shift(rows.columns, J[c] * rows.D)
        for j in range(rows.D):
            to[j] = column[j]
    return 0


@compiled(INT(INTS, INTS, DOUBLES, INTS, INT), called_by_address=True)
def locate_rows(plan, columns, targets, items, count):
    """items[p] = the row at which the running sum of V[:, columns[p]]² passes targets[p]."""
    rows = rows_at(plan)
    find_parts(rows.sums, rows.stretches, columns, targets, items, count)
    for p in range(count):
        stretch = items[p]
        column = shift(rows.columns, columns[p] * rows.D)
        rest = targets[p] - rows.sums[columns[p] * (rows.stretches + 1) + stretch]
        i, last = stretch * STRETCH, (stretch + 1) * STRETCH
        last = (last if last < rows.n else rows.n) - 1
        total = 0.0
        while True:
            x = entry(rows, i, column)
            total += x * x
            if total > rest or i >= last:
                break
            i += 1
        items[p] = i
    return 0


@compiled(INT(INTS, INTS, INT, INTS, DOUBLES, INTS, INT), called_by_address=True)
def gather_rows(plan, J, k, items, X, scratch, count):
    """X[c, p] = V[items[p], J[c]], by `chosen`, which `ready_rows` has filled for this J."""
    rows, d = rows_at(plan), rows_at(plan).d
    for p in range(count):
        if rows.single != 0:
            singles = shift(as_singles(rows.X), items[p] * d)
            for j in range(d):
                rows.turned[j * BLOCK + p] = singles[j]
        else:
            doubles = shift(rows.X, items[p] * d)
            for j in range(d):
                rows.turned[j * BLOCK + p] = doubles[j]
    product(rows.chosen, rows.D, 1, rows.turned, BLOCK, PANEL, X, BLOCK, PANEL, k, d, count, 0)
    for c in range(k):
        for p in range(count):
            X[c * BLOCK + p] *= rows.scale[items[p]]
        if rows.labelled != 0:
            column = shift(rows.chosen, c * rows.D + d)
            for p in range(count):
                X[c * BLOCK + p] += rows.extra[items[p]] * column[rows.codes[items[p]]]
    return 0
