"""Batches exchange items: a Metropolis chain on the product of the determinants of two batches.

Let G be the kernel matrix of the items of two batches A and B, with the ridge on its diagonal. G
swept on A (Goodnight 1979) is a symmetric matrix T with T_ii = -(G_A^-1)_ii for i in A, and for j
outside the Schur complement T_jj and T_ij = (G_A^-1 G_Aj)_i. Putting j in the place of i multiplies
det(G_A) by T_ij² - T_ii T_jj, so a proposal is a few numbers.

Sweeping on p is T - u uᵀ / T_pp with u = T_p - e_p, or T_p + e_p to take it back, but for the
diagonal, which is kept apart. An exchange is two such terms. They are collected, and T takes up
LATE of them in one product.
"""

from __future__ import annotations

import numpy as np

from dmsgd.compiled.jit import DOUBLES, INT, INTS, NOTHING, REAL, WORD, compiled
from dmsgd.compiled.linear_algebra import PANEL, product
from dmsgd.compiled.microkernels import row_tile
from dmsgd.compiled.philox import uniforms_at
from dmsgd.compiled.pointers import doubles_at, ints_at, shift
from dmsgd.compiled.simd import BLOCK, LANES

#: Random numbers of a proposal: a place in either batch, and whether it is accepted.
NUMBERS = 3
#: Terms that T takes up at a time.
LATE = 32


def padded(k: int) -> int:
    """Return the places of a batch in a matrix: whole panels."""
    return (k + PANEL - 1) // PANEL * PANEL


def room(k: int, d: int, proposals: int) -> int:
    """Return how many doubles `exchange` needs for scratch.

    G, the rows of both batches, and for each batch T, its diagonal and terms; random numbers.
    """
    width = 2 * padded(k)
    return width * (width + d) + 2 * (width * width + (2 * LATE + 2) * width) + NUMBERS * proposals


@compiled(NOTHING(DOUBLES, INT, INTS, INT, INT, INT, DOUBLES))
def _gather(rows, d, batch, k, places, width, X):
    """Fill the columns of X (d x width) with the rows of a batch, eight side by side at a time."""
    for j in range(0, places, LANES):
        for t in range(d):
            to = shift(X, t * width + j)
            for lane in range(LANES):
                to[lane] = rows[batch[j + lane] * d + t] if j + lane < k else 0.0


@compiled(NOTHING(DOUBLES, INT, INTS, INTS, INT, INT, REAL, DOUBLES, DOUBLES))
def _gram(rows, d, first, second, k, places, ridge, X, G):
    """Fill G with the inner products of the rows of two batches; X is scratch, d x 2 places.

    Places without an item have a row and column of zeros, and 1 on the diagonal.
    """
    width = 2 * places
    _gather(rows, d, first, k, places, width, X)
    _gather(rows, d, second, k, places, width, shift(X, places))
    corner = shift(G, places * width + places)
    product(X, 1, width, X, width, PANEL, G, width, PANEL, places, d, width, 0)
    Y = shift(X, places)
    product(Y, 1, width, Y, width, PANEL, corner, width, PANEL, places, d, places, 0)
    for i in range(places):
        for j in range(places):
            G[(places + j) * width + i] = G[i * width + places + j]
    for j in range(width):
        G[j * width + j] += ridge if j % places < k else 1.0


@compiled(NOTHING(DOUBLES, INT, DOUBLES, DOUBLES))
def _invert_panel(T, width, scratch, out):
    """Fill `out` with minus the inverse of the first PANEL x PANEL numbers of T."""
    for i in range(PANEL):
        for j in range(PANEL):
            out[i * PANEL + j] = T[i * width + j]
    for p in range(PANEL):
        d = out[p * PANEL + p]
        for j in range(PANEL):
            scratch[j] = out[p * PANEL + j]
        for i in range(PANEL):
            factor = out[i * PANEL + p] / d
            for j in range(PANEL):
                out[i * PANEL + j] -= factor * scratch[j]
            out[i * PANEL + p] = factor
        for j in range(PANEL):
            out[p * PANEL + j] = scratch[j] / d
        out[p * PANEL + p] = -1.0 / d


@compiled(NOTHING(DOUBLES, INT, INT, DOUBLES, DOUBLES))
def _sweep_batch(G, places, first, T, diagonal):
    """Fill T with G swept on the batch whose places begin at `first`, and its diagonal.

    A panel P at a time: T - T_:P T_P^-1 T_P:, with T_P^-1 T_P: in its rows and columns.
    """
    width = 2 * places
    rows, minus = shift(diagonal, width), shift(diagonal, width * (PANEL + 1))
    inverse = shift(minus, width * PANEL)
    for i in range(width * width):
        T[i] = G[i]
    for p in range(first, first + places, PANEL):
        here = shift(T, p * width)
        _invert_panel(shift(here, p), width, diagonal, inverse)
        for i in range(PANEL * width):
            rows[i] = here[i]
        product(
            inverse, PANEL, 1, rows, width, PANEL, minus, width, PANEL, PANEL, PANEL, width, 0
        )  # fmt: skip
        product(
            rows, 1, width, minus, width, PANEL, T, width, PANEL, width, PANEL, width, 1
        )  # fmt: skip
        for q in range(PANEL):
            for i in range(width):
                here[q * width + i] = -minus[q * width + i]
                T[i * width + p + q] = -minus[q * width + i]
        for q in range(PANEL):
            for i in range(PANEL):
                here[q * width + p + i] = inverse[q * PANEL + i]
    for i in range(width):
        diagonal[i] = T[i * width + i]


@compiled(REAL(DOUBLES, DOUBLES, INT, INT, INT, INT))
def _ratio(T, diagonal, width, terms, i, j):
    """Return what the determinant is multiplied by if j takes the place of i."""
    U, scaled = shift(diagonal, width), shift(diagonal, (LATE + 1) * width)
    across = T[i * width + j]
    for q in range(terms):
        across += U[q * width + i] * scaled[q * width + j]
    return across * across - diagonal[i] * diagonal[j]


@compiled(NOTHING(DOUBLES, DOUBLES, INT, INT, INT, REAL))
def _add_term(T, diagonal, width, terms, p, sign):
    """Sweep on p (sign 1), or take that back (sign -1): one more term."""
    U, scaled = shift(diagonal, width), shift(diagonal, (LATE + 1) * width)
    u, minus = shift(U, terms * width), shift(scaled, terms * width)
    for j in range(width):
        u[j] = T[p * width + j]
    for j in range(0, width, BLOCK):
        row_tile(shift(U, p), 0, width, shift(scaled, j), width, shift(u, j), 0, terms, True)
    d = diagonal[p]
    u[p] = d - sign
    for j in range(width):
        minus[j] = u[j] / -d
        diagonal[j] += u[j] * minus[j]
    diagonal[p] = -1.0 / d


@compiled(INT(*7 * [INT], WORD, WORD, INT, INT, REAL, INT, INT), called_from_python=True)
def exchange(
    rows, d, batches, kinds, k, pairs, count, key, epoch, block, proposals, ridge, doubles, integers
):  # fmt: skip
    """Let each of `count` pairs of batches propose exchanges; return how many were accepted.

    batches, kinds: (batches, k) items, and of what kind the item in each place is, equal ones side
    by side; only items of one kind change places. Pair p takes its own random numbers of
    (key, epoch), from `block` on. `doubles` (see `room`) and `integers` (2k) are scratch.
    """
    rows, batches, kinds = doubles_at(rows), ints_at(batches), ints_at(kinds)
    pairs, place = ints_at(pairs), ints_at(integers)
    places = (k + PANEL - 1) // PANEL * PANEL
    width = 2 * places
    G = doubles_at(doubles)
    A = shift(G, width * width)
    B = shift(A, width * (width + 2 * LATE + 2))
    X = shift(B, width * (width + 2 * LATE + 2))
    uniforms = shift(X, width * d)
    of_a, of_b = shift(A, width * width), shift(B, width * width)
    accepted, needed = 0, NUMBERS * proposals
    for p in range(count):
        one, two = pairs[2 * p] * k, pairs[2 * p + 1] * k
        first, second = shift(batches, one), shift(batches, two)
        _gram(rows, d, first, second, k, places, ridge, X, G)
        _sweep_batch(G, places, 0, A, of_a)
        _sweep_batch(G, places, places, B, of_b)
        for i in range(k):
            place[i], place[k + i] = i, places + i
        uniforms_at(key, epoch, block + p * ((needed + 1) // 2), uniforms, needed)
        terms = 0
        for q in range(proposals):
            a = np.int64(uniforms[NUMBERS * q] * k)
            kind = kinds[one + a]
            begin = 0
            while begin < k and kinds[two + begin] != kind:
                begin += 1
            end = begin
            while end < k and kinds[two + end] == kind:
                end += 1
            if begin == k:
                continue
            b = begin + np.int64(uniforms[NUMBERS * q + 1] * (end - begin))
            i, j = place[a], place[k + b]
            ratio = _ratio(A, of_a, width, terms, i, j) * _ratio(B, of_b, width, terms, j, i)
            if uniforms[NUMBERS * q + 2] < ratio:
                _add_term(A, of_a, width, terms, i, -1.0)
                _add_term(A, of_a, width, terms + 1, j, 1.0)
                _add_term(B, of_b, width, terms, j, -1.0)
                _add_term(B, of_b, width, terms + 1, i, 1.0)
                terms += 2
                if terms == LATE:
                    for T in (A, B):
                        U = shift(T, width * (width + 1))
                        product(
                            U, 1, width, shift(U, LATE * width), width, PANEL, T, width, PANEL,
                            width, LATE, width, 1,
                        )  # fmt: skip
                    terms = 0
                place[a], place[k + b] = j, i
                first[a], second[b] = second[b], first[a]
                accepted += 1
    return accepted
