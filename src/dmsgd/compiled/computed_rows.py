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

from dmsgd.compiled.jit import DOUBLES, HALVES, INT, INTS, NOTHING, REAL, compiled
from dmsgd.compiled.linear_algebra import PANEL, product
from dmsgd.compiled.microkernels import WHOLE, dot, dot_of_singles
from dmsgd.compiled.pointers import as_singles, doubles_at, halves_at, ints_at, prefetch, shift
from dmsgd.compiled.simd import BLOCK, sparse_tile
from dmsgd.compiled.tables import find_parts

#: Items in a row block: fewer make larger tables, more make longer searches.
DENSE_ROW_BLOCK, SPARSE_ROW_BLOCK = 16, 64

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
        i, last = stretch * DENSE_ROW_BLOCK, (stretch + 1) * DENSE_ROW_BLOCK
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


#: Numbers in a line of the cache.
LINE = 8

#: totals:  the sums of the squares of the columns of V, shape (r,).
#: starts, places, entries: of the CSR array F, shape (n, d).
#: columns: of B, one after the other, (r, d).
#: sums:    of the squares before each stretch and at the end, (r, stretches + 1).
#: chosen:  B[:, J] of the draw under way, (d, a multiple of BLOCK), and a row of scratch.
Words = namedtuple("Words", "totals n d stretches starts places entries columns sums chosen")
WORDS_OF_ALL = types.NamedTuple(
    [DOUBLES, INT, INT, INT, INTS, HALVES, DOUBLES, DOUBLES, DOUBLES, DOUBLES], Words
)


@compiled(WORDS_OF_ALL(INTS))
def all_words_at(plan):
    """Return what has these sizes and addresses."""
    return Words(
        doubles_at(plan[0]), plan[1], plan[2], plan[3], ints_at(plan[4]), halves_at(plan[5]),
        doubles_at(plan[6]), doubles_at(plan[7]), doubles_at(plan[8]), doubles_at(plan[9]),
    )  # fmt: skip


@compiled(INT(INTS, INTS, INT), called_by_address=True)
def ready_words(plan, J, k):
    """chosen[:, :k] = columns[J].T, for the rows of the draw that begins."""
    words, width = all_words_at(plan), (k + BLOCK - 1) // BLOCK * BLOCK
    for first in range(0, words.d, LINE):
        last = first + LINE if first + LINE < words.d else words.d
        for c in range(k):
            column = shift(words.columns, J[c] * words.d)
            for w in range(first, last):
                words.chosen[w * width + c] = column[w]
    return 0


@compiled(INT(INTS, INTS, DOUBLES, INTS, INT), called_by_address=True)
def locate_words(plan, columns, targets, items, count):
    """items[p] = the row at which the running sum of V[:, columns[p]]² passes targets[p]."""
    words = all_words_at(plan)
    find_parts(words.sums, words.stretches, columns, targets, items, count)
    for p in range(count):
        prefetch(shift(words.entries, words.starts[items[p] * SPARSE_ROW_BLOCK]))
    for p in range(count):
        stretch = items[p]
        column = shift(words.columns, columns[p] * words.d)
        rest = targets[p] - words.sums[columns[p] * (words.stretches + 1) + stretch]
        i, last = stretch * SPARSE_ROW_BLOCK, (stretch + 1) * SPARSE_ROW_BLOCK
        last = (last if last < words.n else words.n) - 1
        total, at = 0.0, words.starts[i]
        while True:
            x, end = 0.0, words.starts[i + 1]
            while at < end:
                x += words.entries[at] * column[words.places[at]]
                at += 1
            total += x * x
            if total > rest or i >= last:
                break
            i += 1
        items[p] = i
    return 0


@compiled(INT(INTS, INTS, INT, INTS, DOUBLES, INTS, INT), called_by_address=True)
def gather_words(plan, J, k, items, X, scratch, count):
    """X[c, p] = V[items[p], J[c]], by `chosen`, which `ready_words` has filled for this J."""
    words, width = all_words_at(plan), (k + BLOCK - 1) // BLOCK * BLOCK
    row = shift(words.chosen, words.d * width)
    for p in range(count):
        at = words.starts[items[p]]
        entries, places = shift(words.entries, at), shift(words.places, at)
        size = words.starts[items[p] + 1] - at
        for first in range(0, k, BLOCK):
            sparse_tile(entries, places, size, shift(words.chosen, first), width, row)
            for c in range(first, k if k < first + BLOCK else first + BLOCK):
                X[c * BLOCK + p] = row[c - first]
    return 0


@compiled(NOTHING(*[INT] * 5), called_from_python=True)
def find_words(plan, columns, targets, items, count):
    """`locate_words`, for Python; all but count are addresses."""
    locate_words(ints_at(plan), ints_at(columns), doubles_at(targets), ints_at(items), count)


@compiled(NOTHING(*[INT] * 13), called_from_python=True)
def rows_of_words(starts, places, entries, columns, d, J, k, draw, items, X, count, chosen, filled):
    """X[p] = V[items[p], J[draw[p]]] for p < count, where proposals of a draw follow each other.

    All but d, k and count are addresses. `chosen` has room for B[:, J[draw]], as in `Words`, whose
    rows are filled when a word first comes up in a draw; filled[w] is the last draw in which w did.
    """
    starts, places, entries, columns = (
        ints_at(starts), halves_at(places), doubles_at(entries), doubles_at(columns)
    )  # fmt: skip
    J, draw, items, filled = ints_at(J), ints_at(draw), ints_at(items), ints_at(filled)
    X, chosen, width = doubles_at(X), doubles_at(chosen), (k + BLOCK - 1) // BLOCK * BLOCK
    row = shift(chosen, d * width)
    for p in range(count):
        at, end, mine = starts[items[p]], starts[items[p] + 1], shift(J, draw[p] * k)
        for e in range(at, end):
            if filled[places[e]] != draw[p]:
                filled[places[e]] = draw[p]
                for c in range(k):
                    chosen[places[e] * width + c] = columns[mine[c] * d + places[e]]
        for first in range(0, k, BLOCK):
            sparse_tile(
                shift(entries, at), shift(places, at), end - at, shift(chosen, first), width, row
            )
            for c in range(first, k if k < first + BLOCK else first + BLOCK):
                X[p * k + c] = row[c - first]


@compiled(NOTHING(*[INT] * 12), called_from_python=True)
def sparse_block_sums(
    starts, places, entries, tile, count, weights, first, last, n, sums, weighed, scratch
):
    """Add up the squares of `count` columns of V = F @ tile over the stretches first..last.

    sums[c, s + 1] = (V[stretch s, c]**2).sum(), and weighed[i] += V[i]**2 @ weights. All but count,
    first, last and n are addresses; `tile` and `weights` have BLOCK columns, `scratch` is for two
    rows.
    """
    starts, places, entries = ints_at(starts), halves_at(places), doubles_at(entries)
    tile, weights, sums, weighed = (
        doubles_at(tile), doubles_at(weights), doubles_at(sums), doubles_at(weighed)
    )  # fmt: skip
    row, mass = doubles_at(scratch), shift(doubles_at(scratch), BLOCK)
    width = (n + SPARSE_ROW_BLOCK - 1) // SPARSE_ROW_BLOCK + 1
    for stretch in range(first, last):
        for t in range(BLOCK):
            mass[t] = 0.0
        end = (stretch + 1) * SPARSE_ROW_BLOCK if (stretch + 1) * SPARSE_ROW_BLOCK < n else n
        for i in range(stretch * SPARSE_ROW_BLOCK, end):
            at = starts[i]
            sparse_tile(shift(entries, at), shift(places, at), starts[i + 1] - at, tile, BLOCK, row)
            total = 0.0
            for t in range(BLOCK):
                square = row[t] * row[t]
                mass[t] += square
                total += square * weights[t]
            weighed[i] += total
        for t in range(count):
            sums[t * width + stretch + 1] = mass[t]
