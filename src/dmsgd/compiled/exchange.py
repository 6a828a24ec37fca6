"""Exchanges of items between two batches: a Metropolis chain on the product of determinants.

Let G be the kernel matrix of the items of two batches A and B, with the ridge on its diagonal. G
swept on A (Goodnight 1979) is a symmetric matrix T with T_ii = -(G_A^-1)_ii for i in A, and for j
outside the Schur complement T_jj and T_ij = (G_A^-1 G_Aj)_i. Putting j in the place of i multiplies
det(G_A) by T_ij² - T_ii T_jj, so a proposal is a few numbers.

Sweeping on p is T - u uᵀ / T_pp with u = T_p - e_p, or T_p + e_p to undo it, except for the
diagonal, which is kept separately. An exchange is two such terms. They are collected, and TERMS of
them are added to T in one product.
"""

from __future__ import annotations

import numpy as np
from numba.types import float64, int64, uint64

from dmsgd.compiled.jit import callback, float64_ptr, helper, inlined, int64_ptr
from dmsgd.compiled.linear_algebra import PANEL
from dmsgd.compiled.microkernels import row_tile
from dmsgd.compiled.philox import fill_uniforms
from dmsgd.compiled.pointers import call, shift
from dmsgd.compiled.simd import BLOCK, LANES

#: Random numbers of a proposal: a place in either batch, and whether it is accepted.
NUMBERS = 3
#: Terms that are added to T at a time.
TERMS = 32


def room(k: int, d: int, proposals: int) -> int:
    """Return how many doubles `exchange` needs for scratch.

    G, the rows of both batches, and for each batch T, its diagonal and terms; random numbers.
    """
    width = 2 * (-(-k // PANEL) * PANEL)
    return width * (width + d) + 2 * (width * width + (2 * TERMS + 2) * width) + NUMBERS * proposals


@helper
def _gather(rows, d, batch, k, places, width, X):
    """Fill the columns of X (d x width) with the rows of a batch, eight side by side at a time."""
    for j in range(0, places, LANES):
        for t in range(d):
            to = shift(X, t * width + j)
            for lane in range(LANES):
                to[lane] = rows[batch[j + lane] * d + t] if j + lane < k else 0.0


@helper
def _gram(multiply, rows, d, first, second, k, places, ridge, X, G):
    """Fill G with the inner products of the rows of two batches; X, d x 2 places, is scratch.

    Places without an item have a row and column of zeros, and 1 on the diagonal.
    """
    width = 2 * places
    _gather(rows, d, first, k, places, width, X)
    _gather(rows, d, second, k, places, width, shift(X, places))
    corner = shift(G, places * width + places)
    call(multiply, X, 1, width, X, width, PANEL, G, width, PANEL, places, d, width, 0)
    Y = shift(X, places)
    call(multiply, Y, 1, width, Y, width, PANEL, corner, width, PANEL, places, d, places, 0)
    for i in range(places):
        for j in range(places):
            G[(places + j) * width + i] = G[i * width + places + j]
    for j in range(width):
        G[j * width + j] += ridge if j % places < k else 1.0


@helper
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


@helper
def _sweep_batch(multiply, G, places, first, T, diagonal):
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
        call(
            multiply, inverse, PANEL, 1, rows, width, PANEL, minus, width, PANEL, PANEL, PANEL,
            width, 0,
        )  # fmt: skip
        call(
            multiply, rows, 1, width, minus, width, PANEL, T, width, PANEL, width, PANEL, width, 1
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


@inlined
def _ratio(T, diagonal, width, terms, i, j):
    """Return the factor of the determinant if j takes the place of i."""
    U, scaled = shift(diagonal, width), shift(diagonal, (TERMS + 1) * width)
    across = T[i * width + j]
    for q in range(terms):
        across += U[q * width + i] * scaled[q * width + j]
    return across * across - diagonal[i] * diagonal[j]


@helper
def _add_term(T, diagonal, width, terms, p, sign):
    """Sweep on p (sign 1), or undo that (sign -1): one more term."""
    U, scaled = shift(diagonal, width), shift(diagonal, (TERMS + 1) * width)
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


@callback(
    int64(
        int64, float64_ptr, int64, int64_ptr, int64_ptr, int64, int64_ptr, int64, uint64, uint64,
        int64, int64, float64, float64_ptr, int64_ptr,
    )
)  # fmt: skip
def exchange(
    multiply, rows, d, batches, kinds, k, pairs, count, key, epoch, block, proposals, ridge,
    doubles, integers,
):  # fmt: skip
    """Let each of `count` pairs of batches propose exchanges; return how many were accepted.

    batches, kinds: (batches, k) items, and of what kind the item in each place is, equal ones side
    by side; only items of one kind change places. Pair p takes its own random numbers of
    (key, epoch), from `block` on. `doubles` (see `room`) and `integers` (2k) are scratch.
    `multiply` is the address of `linear_algebra.product`.
    """
    place, G, places = integers, doubles, (k + PANEL - 1) // PANEL * PANEL
    width = 2 * places
    A = shift(G, width * width)
    B = shift(A, width * (width + 2 * TERMS + 2))
    X = shift(B, width * (width + 2 * TERMS + 2))
    uniforms = shift(X, width * d)
    of_a, of_b = shift(A, width * width), shift(B, width * width)
    accepted, needed = 0, NUMBERS * proposals
    for p in range(count):
        one, two = pairs[2 * p] * k, pairs[2 * p + 1] * k
        first, second = shift(batches, one), shift(batches, two)
        _gram(multiply, rows, d, first, second, k, places, ridge, X, G)
        _sweep_batch(multiply, G, places, 0, A, of_a)
        _sweep_batch(multiply, G, places, places, B, of_b)
        for i in range(k):
            place[i], place[k + i] = i, places + i
        fill_uniforms(key, epoch, block + p * ((needed + 1) // 2), uniforms, needed)
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
                if terms == TERMS:
                    for T in (A, B):
                        U = shift(T, width * (width + 1))
                        call(
                            multiply, U, 1, width, shift(U, TERMS * width), width, PANEL, T, width,
                            PANEL, width, TERMS, width, 1,
                        )  # fmt: skip
                    terms = 0
                place[a], place[k + b] = j, i
                first[a], second[b] = second[b], first[a]
                accepted += 1
    return accepted
