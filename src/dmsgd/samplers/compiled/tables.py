"""Where in a column of V a share of its squares is reached: by tables, in three look-ups.

mass:   the running sums of V² at the end of every 8 rows (a stretch), and then 8 times infinity.
guides: how many stretches end before each of a row of evenly spaced sums, so that a search begins
        next to where it ends.
shares: where in a stretch the rows end, in 256ths of its mass, a byte a row. What falls between two
        rows of the same 256th is added up from V itself, so that the row found is exact.
"""

from __future__ import annotations

from collections import namedtuple

import numpy as np
from numba import types

from dmsgd.samplers.compiled.jit import (
    DOUBLES,
    HALVES,
    INT,
    INTS,
    NOTHING,
    REAL,
    WORD,
    WORDS,
    compiled,
)
from dmsgd.samplers.compiled.registers import (
    doubles_at,
    halves_at,
    pointer_to,
    prefetch,
    shift,
    words_at,
)

#: V, shape (n, r), and its tables: `stretches` sums a column, `last` the number of its last guide.
Tables = namedtuple("Tables", "n r stretches last V mass guides shares")
TABLES = types.NamedTuple([INT] * 4 + [DOUBLES, DOUBLES, HALVES, WORDS], Tables)

#: Rows of V in a stretch.
ROWS = 8
#: Entries of infinity at the end of each row of the mass table.
BEYOND = 8
#: Stretches between two guides, on average.
STRETCHES = 4
#: A share this close to the end of a 256th is looked up in V: far above rounding.
_DOUBT = 2.0**-20
#: Stretches that are added up, of all columns, before they are transposed.
TILE = 64


@compiled(NOTHING(INT, INT, INT, INT, INT, INT, INT), called_from_python=True)
def fill_stretches(V, n, r, mass, shares, sums, words):
    """mass[j, b] = (V[b * ROWS : (b + 1) * ROWS, j]**2).sum(), and shares[j, b].

    All are addresses; `sums` (ROWS + TILE, r) and `words` (TILE, r) are scratch. Without an
    address (0) shares are left out.
    """
    shared = shares != 0
    V, mass, sums = doubles_at(V), doubles_at(mass), doubles_at(sums)
    shares, words = words_at(shares), words_at(words)
    stretches = (n + ROWS - 1) // ROWS
    scale = shift(sums, (ROWS - 1) * r)
    for first in range(0, stretches, TILE):
        count = min(TILE, stretches - first)
        for b in range(count):
            total, word = shift(sums, (ROWS + b) * r), shift(words, b * r)
            start = (first + b) * ROWS
            for j in range(r):
                total[j] = 0.0
                word[j] = 0
            for s in range(ROWS):
                row, part = shift(V, min(start + s, n - 1) * r), shift(sums, s * r)
                weight = 1.0 if start + s < n else 0.0
                for j in range(r):
                    total[j] += weight * (row[j] * row[j])
                    part[j] = total[j]
            if not shared:
                continue
            for j in range(r):
                scale[j] = 256.0 / total[j] if total[j] > 0.0 else 0.0
            for s in range(ROWS - 1):
                part = shift(sums, s * r)
                for j in range(r):
                    share = np.uint32(np.int32(min(part[j] * scale[j], 255.0)))
                    word[j] |= np.uint64(share) << np.uint64(8 * s)
        for j in range(r):
            for b in range(count):
                mass[j * (stretches + BEYOND) + first + b] = sums[(ROWS + b) * r + j]
            if shared:
                for b in range(count):
                    shares[j * stretches + first + b] = words[b * r + j]


@compiled(NOTHING(INT, INT, INT, INT, INT), called_from_python=True)
def add_up(mass, r, stretches, guides, last):
    """Add up the mass of stretches along each row, put infinity behind them, and fill the guides.

    guides[j, g] = np.searchsorted(mass[j], g / last * mass[j, stretches - 1], "right"), at most
    stretches - 1, for g = 0..last.
    """
    mass, guides = doubles_at(mass), halves_at(guides)
    for j in range(r):
        sums, guide = shift(mass, j * (stretches + BEYOND)), shift(guides, j * (last + 1))
        total = 0.0
        for b in range(stretches):
            total += sums[b]
            sums[b] = total
        for b in range(BEYOND):
            sums[stretches + b] = np.inf
        step, b = total / last, 0
        for g in range(last + 1):
            while b < stretches - 1 and sums[b] <= g * step:
                b += 1
            guide[g] = b


@compiled(INT(DOUBLES, INT, INT, INT, INT, REAL))
def row_within(V, n, r, column, stretch, rest):
    """Return the row of a stretch at which the sum of V[:, column]² from its start passes rest."""
    row, total, passed = stretch * ROWS, 0.0, 0
    for s in range(ROWS - 1):
        x = V[min(row + s, n - 1) * r + column]
        total += x * x
        passed += total <= rest
    return min(row + passed, n - 1)


@compiled(INT(WORD, INT))
def _rows_before(word, share):
    """Return how many rows of a stretch end before this 256th; -1 if one ends in it."""
    before, within = 0, 0
    for s in range(ROWS - 1):
        end = np.int64((word >> np.uint64(8 * s)) & np.uint64(255))
        before += end < share
        within += end == share
    return -1 if within else before


@compiled(NOTHING(TABLES, INTS, DOUBLES, INTS, INT))
def locate(tables, columns, uniforms, items, count):
    """items[p] = the row where the running sum of V[:, columns[p]]² passes a share of the whole.

    The share of proposal p is uniforms[3 p + 1]. All p go side by side, so that they wait for
    memory together.
    """
    n, stretches, last = tables.n, tables.stretches, tables.last
    width = stretches + BEYOND
    for p in range(count):
        guide = np.int64(uniforms[3 * p + 1] * last)
        prefetch(shift(tables.guides, columns[p] * (last + 1) + guide))
        prefetch(shift(tables.mass, columns[p] * width + stretches - 1))
    for p in range(count):
        guide = np.int64(uniforms[3 * p + 1] * last)
        items[p] = tables.guides[columns[p] * (last + 1) + guide]
        prefetch(shift(tables.mass, columns[p] * width + items[p]))
        prefetch(shift(tables.shares, columns[p] * stretches + items[p]))
    for p in range(count):
        j, b = columns[p], items[p]
        sums = shift(tables.mass, j * width)
        target = uniforms[3 * p + 1] * sums[stretches - 1]
        while b > 0 and sums[b - 1] > target:  # rounding put it beyond its guide
            b -= 1
        while sums[b + BEYOND - 1] <= target:
            b += BEYOND
        passed = 0
        for s in range(BEYOND):
            passed += sums[b + s] <= target
        b = min(b + passed, stretches - 1)
        before = sums[b - 1] if b > 0 else 0.0
        rest, whole = target - before, sums[b] - before
        share = rest / whole * 256.0 if whole > 0.0 else 0.0
        here, found = np.int64(share), -1
        if here + _DOUBT < share < here + (1.0 - _DOUBT):
            found = _rows_before(tables.shares[j * stretches + b], here)
        if found < 0:
            items[p] = row_within(tables.V, n, tables.r, j, b, rest)
        else:
            items[p] = min(b * ROWS + found, n - 1)


@compiled()
def search(V, mass, columns, targets, items):
    """items[p] = the row at which the running sum of V[:, columns[p]]² passes targets[p].

    What `locate` finds, without tables other than the running sums: for a few look-ups.
    """
    n, r = V.shape
    for p in range(items.size):
        row, below, above = mass[columns[p]], 0, mass.shape[1] - BEYOND - 1
        while below < above:
            middle = (below + above) >> 1
            if row[middle] <= targets[p]:
                below = middle + 1
            else:
                above = middle
        rest = targets[p] - row[below - 1] if below > 0 else targets[p]
        items[p] = row_within(pointer_to(V), n, r, columns[p], below, rest)
