"""Compiled loops over the entries of features, sparse ones and large arrays."""

from __future__ import annotations

from numba.extending import intrinsic

from dmsgd.compiled.jit import INT, NOTHING, REAL, WORD, compiled
from dmsgd.compiled.pointers import doubles_at, halves_at, ints_at, prefetch, shift, words_at
from dmsgd.compiled.vectors import BLOCK, sparse_tile

#: Items in a stretch: fewer make larger tables, more make longer searches.
STRETCH = 64

#: How far ahead of a pass over an array memory is asked for, and what it brings at a time.
AHEAD, LINE = 512, 8


@compiled(NOTHING(*[INT] * 9), called_from_python=True)
def add_gram(starts, places, entries, first, last, low, high, d, G):
    """G[low:high] += (F[first:last].T @ F[first:last])[low:high], above and on the diagonal.

    starts, places and entries are addresses of the CSR array F, with columns in order and none
    twice in a row; G is one of a (d, d) array.
    """
    starts, places, entries, G = (
        ints_at(starts), halves_at(places), doubles_at(entries), doubles_at(G)
    )  # fmt: skip
    for i in range(first, last):
        for e in range(starts[i], starts[i + 1]):
            if places[e] >= high:
                break
            if places[e] >= low:
                row, x = shift(G, places[e] * d), entries[e]
                for f in range(e, starts[i + 1]):
                    row[places[f]] += x * entries[f]


@compiled(NOTHING(*[INT] * 12), called_from_python=True)
def survey(starts, places, entries, tile, count, weights, first, last, n, sums, weighed, scratch):
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
    width = (n + STRETCH - 1) // STRETCH + 1
    for stretch in range(first, last):
        for t in range(BLOCK):
            mass[t] = 0.0
        end = (stretch + 1) * STRETCH if (stretch + 1) * STRETCH < n else n
        for i in range(stretch * STRETCH, end):
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


@compiled(NOTHING(*[INT] * 6), called_from_python=True)
def hash_rows(starts, places, bits, factors, n, hashes):
    """hashes[i] = Σ_e bits[e] factors[places[e]] over the entries e of row i, modulo 2^64."""
    starts, places = ints_at(starts), halves_at(places)
    bits, factors, hashes = words_at(bits), words_at(factors), words_at(hashes)
    for i in range(n):
        total = WORD(0)
        for e in range(starts[i], starts[i + 1]):
            total += bits[e] * factors[places[e]]
        hashes[i] = total


@intrinsic
def _swapped(typing, word):
    """Return the word with its bytes in the other order."""

    def code(context, builder, signature, arguments):
        return builder.bswap(arguments[0])

    return WORD(WORD), code


@compiled(REAL(*[INT] * 5), called_from_python=True, fastmath={"reassoc", "contract"})
def look_through(X, n, d, factors, hashes):
    """hashes = row_hashes(X); return np.vdot(X, X). All but n and d are addresses."""
    factors, hashes, squares = words_at(factors), words_at(hashes), 0.0
    for i in range(n):
        row, bits, total = shift(doubles_at(X), i * d), shift(words_at(X), i * d), WORD(0)
        for j in range(AHEAD, AHEAD + d, LINE):
            prefetch(shift(row, j))
        for j in range(d):
            total += _swapped(bits[j]) * factors[j]
            squares += row[j] * row[j]
        hashes[i] = total
    return squares
