"""Rows of V = F B, made when they are asked for: F is sparse, and nothing is as large as V.

F is a CSR array with few entries a row, as the words of documents. Items come in stretches, and for
every column of V and stretch there is the sum of its squares before it. Where a target falls is
found among these by bisection, and then by making one column of V for the items of one stretch.

Rows are added up in the order of their entries, so they are the same wherever they are made.
"""

from __future__ import annotations

from collections import namedtuple

from numba import types

from dmsgd.compiled.jit import DOUBLES, HALVES, INT, INTS, NOTHING, compiled
from dmsgd.compiled.pointers import doubles_at, halves_at, ints_at, prefetch, shift
from dmsgd.compiled.vectors import BLOCK, sparse_tile
from dmsgd.features.loops import STRETCH
from dmsgd.samplers.compiled.tables import find_parts

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
        prefetch(shift(words.entries, words.starts[items[p] * STRETCH]))
    for p in range(count):
        stretch = items[p]
        column = shift(words.columns, columns[p] * words.d)
        rest = targets[p] - words.sums[columns[p] * (words.stretches + 1) + stretch]
        i, last = stretch * STRETCH, (stretch + 1) * STRETCH
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
