"""Exchanges of items between two batches: a Metropolis chain on the product of determinants.

Let G be the kernel matrix of the items of two batches A and B, with the ridge on its diagonal. G
swept on A (Goodnight 1979) is a symmetric matrix T with T_ii = -(G_A^-1)_ii for i in A, and for j
outside the Schur complement T_jj and T_ij = (G_A^-1 G_Aj)_i. Putting j in the place of i multiplies
det(G_A) by T_ij² - T_ii T_jj, so a proposal is a few numbers. If it is accepted, the sweep on i is
undone and T is swept on j.

All proposals of a pair are known beforehand. They are decided STEP at a time in S, a copy of the
rows and columns of T that they read, where a sweep is cheap. Then T is swept on all items that
changed batches at once, by products. Each row of T belongs to a place, and rows are in the order of
the last proposal that reads them, from last to first: rows that are not read any more are at the
end, and are left out. Only the lower half of T is read.
"""

from __future__ import annotations

import numpy as np
from numba.types import float64, int64, uint64

from dmsgd.compiled.jit import callback, float64_ptr, helper, inlined, int64_ptr
from dmsgd.compiled.linear_algebra import PANEL
from dmsgd.compiled.llvm import LANES, call, outlined, shift
from dmsgd.compiled.microkernels import transpose
from dmsgd.compiled.philox import fill_uniforms

#: Random numbers of a proposal: a place in either batch, and whether it is accepted.
NUMBERS = 3
#: Proposals that are decided together, and the most rows that they read.
STEP, MOST = 8, 16


def room(k: int, d: int, proposals: int) -> int:
    """Return how many doubles `exchange` needs for scratch.

    The rows of both batches, for each batch T and S, scratch of `_sweep`, and random numbers.
    """
    width = -(-2 * k // PANEL) * PANEL
    return width * d + 2 * (width + MOST) * (width + PANEL) + 3 * MOST**2 + NUMBERS * proposals


def integer_room(k: int, proposals: int) -> int:
    """Return how many integers `exchange` needs for scratch: see its variables."""
    return 8 * k + 3 * proposals + 1 + 7 * MOST


@inlined
def _lower(i, j, stride):
    """Return where entry (i, j) of a symmetric matrix is."""
    return i * stride + j if i > j else j * stride + i


@inlined
def _parts(moves):
    """Return the four parts of `moves`: see `_sweep`."""
    return moves, shift(moves, MOST), shift(moves, 2 * MOST), shift(moves, 3 * MOST)


@inlined
def _ratio(S, i, j):
    """Return the factor of the determinant if i and j change places."""
    return S[i * MOST + j] * S[i * MOST + j] - S[i * MOST + i] * S[j * MOST + j]


@helper
def _gram(multiply, rows, d, items, size, ridge, X, G, stride):
    """Fill the lower half of G with the inner products of rows of items; X is scratch."""
    for j in range(0, size, LANES):  # eight rows side by side at a time
        panel, first = shift(X, j // PANEL * PANEL * d + j % PANEL), 0
        if j + LANES <= size:
            transpose(rows, shift(items, j), d, panel, PANEL)
            first = d // LANES * LANES
        for t in range(first, d):
            for lane in range(LANES):
                to = shift(panel, t * PANEL + lane)
                to[0] = rows[items[j + lane] * d + t] if j + lane < size else 0.0
    for i in range(0, size, PANEL):
        for j in range(0, i + 1, PANEL):
            call(
                multiply, shift(X, i * d), 1, PANEL, shift(X, j * d), PANEL, PANEL,
                shift(G, i * stride + j), stride, PANEL, PANEL, d, PANEL, 0,
            )  # fmt: skip
    for j in range(size):
        G[j * stride + j] += ridge


@helper
def _extract(T, stride, rows, size, S):
    """S = T[rows][:, rows]."""
    for x in range(size):
        for y in range(x + 1):
            S[x * MOST + y] = S[y * MOST + x] = T[_lower(rows[x], rows[y], stride)]


@helper
def _sweep_one(multiply, S, size, p, sign, u):
    """Sweep S on p (sign 1), or undo that (sign -1); `u` is scratch.

    S becomes S - u uᵀ / S_pp with u = S_p - e_p, or S_p + e_p, except for its entry (p, p).
    """
    outlined()
    minus, inverse = shift(u, MOST), -1.0 / S[p * MOST + p]
    for j in range(size):
        u[j] = S[p * MOST + j]
    u[p] -= sign
    for j in range(size):
        minus[j] = u[j] * inverse
    call(multiply, u, 1, 0, minus, 0, PANEL, S, MOST, PANEL, size, 1, size, 1)
    S[p * MOST + p] = inverse


@helper
def _read_row(T, stride, width, i, out):
    """out[j] = T[i, j] for j < width."""
    for j in range(min(i + 1, width)):
        out[j] = T[i * stride + j]
    for j in range(i + 1, width):
        out[j] = T[j * stride + i]


@helper
def _sweep(multiply, T, stride, width, moves, swept, moved, side, S, scratch):
    """Sweep the first `width` rows and columns of T on `swept` items, and move `moved` of them.

    moves: of each item, those to sweep on first, its row in S; its row in T, before and after; its
    sign, which is multiplied by `side`. S has been swept already. With D, the entries of T between
    items to sweep on, and signs s, T becomes T - T_i D^-1 T_j, for these items s D^-1 T_j, and
    between them -s D^-1 s.
    """
    outlined()
    at, source, goal, signs = _parts(moves)
    K, U = scratch, shift(scratch, MOST * MOST)
    Y = shift(U, MOST * stride)
    for q in range(swept, moved):  # their rows are read below
        width = max(width, source[q] + 1)
    for q in range(swept):
        for p in range(swept):
            K[q * MOST + p] = signs[q] * signs[p] * S[at[q] * MOST + at[p]]
        _read_row(T, stride, width, source[q], shift(U, q * stride))
    call(multiply, K, MOST, 1, U, stride, PANEL, Y, stride, PANEL, swept, swept, width, 0)
    for j in range(0, width, PANEL):
        call(
            multiply, shift(U, j), 1, stride, shift(Y, j), stride, PANEL,
            shift(T, j * stride + j), stride, PANEL, width - j, swept, PANEL, 1,
        )  # fmt: skip
    for q in range(swept, moved):
        _read_row(T, stride, width, source[q], shift(Y, q * stride))
    for q in range(moved):
        i, y, sign = goal[q], shift(Y, q * stride), -side * signs[q] if q < swept else 1
        if i < width:
            for j in range(i):
                T[i * stride + j] = sign * y[j]
            for j in range(i + 1, width):
                T[j * stride + i] = sign * y[j]
    for q in range(moved):
        for p in range(q + 1):
            T[_lower(goal[q], goal[p], stride)] = S[at[q] * MOST + at[p]]


@helper
def _sweep_batch(multiply, T, stride, size, used, place, k, second, moves, S, scratch):
    """Sweep T, of `size` rows, on one batch, and leave out the rows from `used` on: all are its."""
    outlined()
    at, source, goal, signs = _parts(moves)
    i = size - 1
    while i >= 0:
        count = 0
        while i >= 0 and count < STEP:
            if i >= used or (place[i] >= k) == second:
                at[count], source[count], goal[count], signs[count] = count, i, i, 1
                count += 1
            i -= 1
        _extract(T, stride, source, count, S)
        for x in range(count):
            _sweep_one(multiply, S, count, x, 1, scratch)
        _sweep(multiply, T, stride, max(used, i + 1), moves, count, count, 1, S, scratch)


@helper
def _propose(uniforms, kinds, one, two, k, proposals, proposed):
    """Fill `proposed` with the places of each proposal, k more in the second batch; -1 if none."""
    for q in range(proposals):
        a, begin = np.int64(uniforms[NUMBERS * q] * k), 0
        while begin < k and kinds[two + begin] != kinds[one + a]:
            begin += 1
        end = begin
        while end < k and kinds[two + end] == kinds[one + a]:
            end += 1
        b = begin + np.int64(uniforms[NUMBERS * q + 1] * (end - begin))
        proposed[2 * q], proposed[2 * q + 1] = (a, k + b) if begin < k else (-1, -1)


@helper
def _order(proposed, proposals, k, row, place, needed):
    """Number places by the last proposal that reads them: row[place[i]] = i.

    Proposals from q on read the first needed[q] rows.
    """
    for p in range(2 * k):
        row[p] = -1
    size = needed[proposals] = 0
    for q in range(2 * proposals - 1, -1, -1):
        p = proposed[q]
        if p >= 0 and row[p] < 0:
            row[p], place[size] = size, p
            size += 1
        needed[q // 2] = size
    for p in range(2 * k):
        if row[p] < 0:
            row[p], place[size] = size, p
            size += 1


@helper
def _find_moves(holder, places, size, row, k, moves):
    """List the items of S that changed places, those first that changed batches; count both."""
    at, source, goal, signs = _parts(moves)
    swept = moved = 0
    for changed in (True, False):
        for x in range(size):
            before, after = places[holder[x]], places[x]
            if before != after and ((before < k) != (after < k)) == changed:
                at[moved], source[moved], goal[moved] = holder[x], row[before], row[after]
                signs[moved] = -1 if before < k else 1
                moved += 1
        swept = moved if changed else swept
    return swept, moved


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
    width = (2 * k + PANEL - 1) // PANEL * PANEL
    stride = width + PANEL  # no power of 2: rows would fall on the same lines of the cache
    X, A, B = doubles, shift(doubles, width * d), shift(doubles, width * (d + stride))
    S_A, S_B = shift(B, width * stride), shift(B, width * stride + MOST * MOST)
    scratch = shift(S_B, MOST * MOST)
    uniforms = shift(scratch, MOST * (MOST + 2 * stride))
    row, place, items = integers, shift(integers, 2 * k), shift(integers, 4 * k)
    number, proposed = shift(integers, 6 * k), shift(integers, 8 * k)
    needed = shift(proposed, 2 * proposals)
    holder = shift(needed, proposals + 1)  # of each place in S, the row of S of its item
    places, found, moves = shift(holder, MOST), shift(holder, 2 * MOST), shift(holder, 3 * MOST)
    accepted, numbers = 0, NUMBERS * proposals
    for pair in range(count):
        one, two = pairs[2 * pair] * k, pairs[2 * pair + 1] * k
        fill_uniforms(key, epoch, block + pair * ((numbers + 1) // 2), uniforms, numbers)
        _propose(uniforms, kinds, one, two, k, proposals, proposed)
        _order(proposed, proposals, k, row, place, needed)
        used, of_first = needed[0], 0  # the others come last, those of the first batch before
        for i in range(2 * k):
            items[i] = batches[one + place[i] if place[i] < k else two + place[i] - k]
            number[i] = -1
            of_first += i >= used and place[i] < k
        _gram(multiply, rows, d, items, 2 * k, ridge, X, A, stride)
        size = 2 * k - of_first
        for i in range(size):
            source = shift(A, (i if i < used else i + of_first) * stride)
            for j in range(i + 1):
                B[i * stride + j] = source[j if j < used else j + of_first]
        how = place, k, False, moves, S_A, scratch
        _sweep_batch(multiply, A, stride, used + of_first, used, *how)
        how = place, k, True, moves, S_B, scratch
        _sweep_batch(multiply, B, stride, size, used, *how)
        for first in range(0, proposals, STEP):
            last, size = min(first + STEP, proposals), 0
            for q in range(2 * first, 2 * last):
                p = proposed[q]
                if p >= 0 and number[p] < 0:
                    number[p], places[size], found[size], holder[size] = size, p, row[p], size
                    size += 1
            _extract(A, stride, found, size, S_A)
            _extract(B, stride, found, size, S_B)
            for q in range(first, last):
                a, b = proposed[2 * q], proposed[2 * q + 1]
                if a < 0:
                    continue
                x, y = number[a], number[b]
                i, j = holder[x], holder[y]
                if uniforms[NUMBERS * q + 2] < _ratio(S_A, i, j) * _ratio(S_B, i, j):
                    _sweep_one(multiply, S_A, size, i, -1, scratch)
                    _sweep_one(multiply, S_B, size, j, -1, scratch)
                    _sweep_one(multiply, S_A, size, j, 1, scratch)
                    _sweep_one(multiply, S_B, size, i, 1, scratch)
                    holder[x], holder[y] = j, i
                    a, b = one + a, two + b - k
                    batches[a], batches[b] = batches[b], batches[a]
                    accepted += 1
            for x in range(size):
                number[places[x]] = -1
            if needed[last] > 0:
                swept, moved = _find_moves(holder, places, size, row, k, moves)
                left = stride, needed[last], moves, swept, moved
                _sweep(multiply, A, *left, 1, S_A, scratch)
                _sweep(multiply, B, *left, -1, S_B, scratch)
    return accepted
