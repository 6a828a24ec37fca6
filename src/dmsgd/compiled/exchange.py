"""Exchanges of items between two batches: a Metropolis chain on the product of determinants.

Let G be the kernel matrix of the items of two batches A and B, with the ridge on its diagonal. G
swept on A (Goodnight 1979) is a symmetric matrix T with T_ii = -(G_A^-1)_ii for i in A, and for j
outside the Schur complement T_jj and T_ij = (G_A^-1 G_Aj)_i. Putting j in the place of i multiplies
det(G_A) by T_ij² - T_ii T_jj, so a proposal is a few numbers.

Sweeping on p is T - u uᵀ / T_pp with u = T_p - e_p, or T_p + e_p to undo it, except for the
diagonal, which is kept separately. An exchange is two such terms. They are collected, and TERMS of
them are added to T in one product; T itself comes about so, from G. Both are symmetric: of each
panel of columns only the rows from its first on are computed and read. All proposals of a pair are
known beforehand, so rows and columns that none of those left reads are dropped on the way.
"""

from __future__ import annotations

import numpy as np
from numba.types import float64, int64, uint64

from dmsgd.compiled.jit import callback, float64_ptr, helper, inlined, int64_ptr
from dmsgd.compiled.linear_algebra import PANEL
from dmsgd.compiled.llvm import BLOCK, LANES, call, outlined, shift
from dmsgd.compiled.microkernels import half_row_tile
from dmsgd.compiled.philox import fill_uniforms

#: Random numbers of a proposal: a place in either batch, and whether it is accepted.
NUMBERS = 3
#: Terms that are added to T at a time.
TERMS = 16


def room(k: int, d: int, proposals: int) -> int:
    """Return how many doubles `exchange` needs for scratch.

    The rows of both batches, and for each batch T, its diagonal and terms; random numbers.
    """
    width = 2 * (-(-k // PANEL) * PANEL)
    return width * d + 2 * (width * width + (2 * TERMS + 1) * width) + NUMBERS * proposals


def integer_room(k: int, proposals: int) -> int:
    """Return how many integers `exchange` needs for scratch: places, needed rows, proposals."""
    return 2 * k + 4 * (-(-k // PANEL) * PANEL) + 2 * proposals


@helper
def _symmetric(multiply, A, B, C, width, inner, add):
    """C = Aᵀ @ B, or C += that, where it is symmetric: the panels on the diagonal and below."""
    for first in range(0, width, PANEL):
        call(
            multiply, shift(A, first), 1, width, shift(B, first), width, PANEL,
            shift(C, first * width + first), width, PANEL, width - first, inner, PANEL, add,
        )  # fmt: skip


@helper
def _gram(multiply, rows, d, first, second, k, places, ridge, X, G):
    """Fill G with the inner products of the rows of two batches; X, d x 2 places, is scratch.

    Places without an item have a row and column of zeros, and 1 on the diagonal.
    """
    width = 2 * places
    for start in range(0, width, places):
        batch = first if start == 0 else second
        for j in range(0, places, LANES):  # eight rows side by side at a time
            for t in range(d):
                to = shift(X, t * width + start + j)
                for lane in range(LANES):
                    to[lane] = rows[batch[j + lane] * d + t] if j + lane < k else 0.0
    _symmetric(multiply, X, X, G, width, d, 0)
    for j in range(width):
        G[j * width + j] += ridge if j % places < k else 1.0


@inlined
def _ratio(T, diagonal, width, terms, i, j):
    """Return the factor of the determinant if j takes the place of i."""
    U, scaled = shift(diagonal, width), shift(diagonal, (TERMS + 1) * width)
    across = T[i * width + j] if i > j else T[j * width + i]
    for q in range(terms):
        across += U[q * width + i] * scaled[q * width + j]
    return across * across - diagonal[i] * diagonal[j]


@helper
def _sweep(multiply, T, diagonal, width, terms, p, sign):
    """Sweep on p (sign 1), or undo that (sign -1): one more term; return how many there are."""
    outlined()
    U, scaled = shift(diagonal, width), shift(diagonal, (TERMS + 1) * width)
    u, minus = shift(U, terms * width), shift(scaled, terms * width)
    end = (p // PANEL + 1) * PANEL
    for j in range(end):
        u[j] = T[p * width + j]
    for j in range(end, width):
        u[j] = T[j * width + p]
    for j in range(0, width, BLOCK // 2):
        half_row_tile(shift(U, p), 0, width, shift(scaled, j), width, shift(u, j), 0, terms, True)
    d = diagonal[p]
    u[p] = d - sign
    for j in range(width):
        minus[j] = u[j] / -d
        diagonal[j] += u[j] * minus[j]
    diagonal[p] = -1.0 / d
    if terms + 1 < TERMS:
        return terms + 1
    _symmetric(multiply, U, scaled, T, width, TERMS, 1)
    return 0


@helper
def _number_needed(proposed, count, place, k, width, needed):
    """needed[m] = the m-th row of T that `count` proposals read; return how many there are.

    `place` is renumbered; -1 is the place of an item whose row is dropped.
    """
    number = shift(needed, width)
    for j in range(width):
        number[j] = -1
    for q in range(2 * count):
        if proposed[q] >= 0:
            number[place[proposed[q]]] = 0
    size = 0
    for j in range(width):
        if number[j] == 0:
            needed[size], number[j] = j, size
            size += 1
    for slot in range(2 * k):
        place[slot] = number[place[slot]] if place[slot] >= 0 else -1
    return size


@helper
def _drop(T, diagonal, width, needed, size, after):
    """Keep the needed rows and columns of T, and of its diagonal and terms; it has `after` then."""
    outlined()
    for i in range(after):
        row = shift(T, i * after)
        for j in range((i // PANEL + 1) * PANEL):
            if i < size and j < size:
                low, high = needed[j if j < i else i], needed[i if j < i else j]
                row[j] = T[high * width + low]
            else:
                row[j] = 0.0
    for q in range(2 * TERMS + 1):
        for j in range(after):
            found = diagonal[q * width + needed[j]] if j < size else 1.0 if q == 0 else 0.0
            diagonal[q * after + j] = found


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
    (key, epoch), from `block` on. `doubles` (`room`) and `integers` (`integer_room`) are scratch.
    `multiply` is the address of `linear_algebra.product`.
    """
    place, places = integers, (k + PANEL - 1) // PANEL * PANEL
    width = 2 * places
    needed_rows, proposed = shift(place, 2 * k), shift(place, 2 * k + 2 * width)
    A, B = doubles, shift(doubles, width * (width + 2 * TERMS + 1))
    X = shift(B, width * (width + 2 * TERMS + 1))
    uniforms = shift(X, width * d)
    of_a, of_b = shift(A, width * width), shift(B, width * width)
    accepted, needed = 0, NUMBERS * proposals
    for p in range(count):
        width = 2 * places
        one, two = pairs[2 * p] * k, pairs[2 * p + 1] * k
        first, second = shift(batches, one), shift(batches, two)
        _gram(multiply, rows, d, first, second, k, places, ridge, X, A)
        for i in range(width * width):
            B[i] = A[i]
        for i in range(width):
            of_a[i] = of_b[i] = A[i * width + i]
        terms = 0
        for i in range(k):
            place[i], place[k + i] = i, places + i
            _sweep(multiply, A, of_a, width, terms, i, 1.0)
            terms = _sweep(multiply, B, of_b, width, terms, places + i, 1.0)
        fill_uniforms(key, epoch, block + p * ((needed + 1) // 2), uniforms, needed)
        for q in range(proposals):
            a = np.int64(uniforms[NUMBERS * q] * k)
            kind = kinds[one + a]
            begin = 0
            while begin < k and kinds[two + begin] != kind:
                begin += 1
            end = begin
            while end < k and kinds[two + end] == kind:
                end += 1
            b = begin + np.int64(uniforms[NUMBERS * q + 1] * (end - begin))
            proposed[2 * q], proposed[2 * q + 1] = (a, k + b) if begin < k else (-1, -1)
        for q in range(proposals):
            a, b = proposed[2 * q], proposed[2 * q + 1] - k
            if a < 0:
                continue
            i, j = place[a], place[k + b]
            ratio = _ratio(A, of_a, width, terms, i, j) * _ratio(B, of_b, width, terms, j, i)
            if uniforms[NUMBERS * q + 2] < ratio:
                if terms + 2 >= TERMS:  # they are added to T next
                    left = shift(proposed, 2 * q)
                    size = _number_needed(left, proposals - q, place, k, width, needed_rows)
                    after = (size + PANEL - 1) // PANEL * PANEL
                    _drop(A, of_a, width, needed_rows, size, after)
                    _drop(B, of_b, width, needed_rows, size, after)
                    width, i, j = after, place[a], place[k + b]
                half = _sweep(multiply, A, of_a, width, terms, i, -1.0)
                _sweep(multiply, B, of_b, width, terms, j, -1.0)
                _sweep(multiply, A, of_a, width, half, j, 1.0)
                terms = _sweep(multiply, B, of_b, width, half, i, 1.0)
                place[a], place[k + b] = j, i
                first[a], second[b] = second[b], first[a]
                accepted += 1
    return accepted
