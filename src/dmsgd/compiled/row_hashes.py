"""Hashes of the rows of features, and the sum of squares of an array, in one pass over memory."""

from __future__ import annotations

from numba.extending import intrinsic

from dmsgd.compiled.jit import INT, NOTHING, REAL, WORD, compiled
from dmsgd.compiled.pointers import doubles_at, halves_at, ints_at, prefetch, shift, words_at

#: How far ahead of a pass memory is prefetched, and the numbers in a cache line.
AHEAD, LINE = 512, 8


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
