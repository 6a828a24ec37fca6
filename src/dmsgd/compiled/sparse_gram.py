"""The Gram matrix of sparse rows, one product of two entries at a time."""

from __future__ import annotations

from dmsgd.compiled.jit import INT, NOTHING, compiled
from dmsgd.compiled.pointers import doubles_at, halves_at, ints_at, shift


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
