"""The swap chain over sets Y of k items, whose stationary distribution is the k-DPP.

One step: pick a place in Y and an item j of all n. If j is in Y already the chain stays. Otherwise
j replaces the item i at that place with probability min(1, ratio), ratio = det(L_Y') / det(L_Y).

Determinants are never formed. With the Cholesky factor RᵀR = L_Y and i as the last item of Y, the
ratio is that of what the other items leave of j and of i: L_jj - |y|² for y = R^-T L[Y - i, j], and
the square of the last entry of R. A move replaces the last column of R. i becomes the last item by
rotations, so that errors do not grow; an updated inverse would lose the squared condition number of
L_Y.

L has the entries for the set and for the items that may come in; Y has places in it. Inner loops
run over slices from index 0 on, which LLVM vectorises.
"""

from __future__ import annotations

import numpy as np

from dmsgd.compiled.jit import entry

#: An item depends on others if its residual is below this times its diagonal; rounding is 1e-15.
DEPENDENT = 1e-12

_MATH = {"contract", "nsz", "reassoc"}


@entry(fastmath=_MATH)
def solve(R, b, count):
    """b[:count] = solve(R[:count, :count].T, b[:count])."""
    for p in range(count):
        b[p] /= R[p, p]
        value, row, rest = b[p], R[p, p + 1 : count], b[p + 1 : count]
        for q in range(rest.size):
            rest[q] -= value * row[q]


@entry(fastmath=_MATH)
def move_last(Y, R, place, x):
    """Y = append(delete(Y, place), Y[place]), and R its factor; x has room for a row."""
    last, item = Y.size - 1, Y[place]
    for p in range(place, last):
        Y[p] = Y[p + 1]
    Y[last] = item
    for p in range(place + 1):
        row, moved = R[p, place:], R[p, place]
        for q in range(row.size - 1):
            row[q] = row[q + 1]
        row[row.size - 1] = moved
    x[:] = R[place]
    for p in range(place, last):  # rotate x and the next row, so that x begins with zero
        length = np.sqrt(x[p] * x[p] + R[p + 1, p + 1] * R[p + 1, p + 1])
        c, s = x[p] / length, R[p + 1, p + 1] / length
        new, rest, below = R[p, p:last], x[p:last], R[p + 1, p + 1 :]
        for q in range(new.size):
            a, b = rest[q], below[q]
            new[q] = c * a + s * b
            rest[q] = c * b - s * a
        R[p, last], x[last] = c * x[last], -s * x[last]
    R[last, last] = x[last]


@entry(fastmath=_MATH)
def walk(L, Y, R, uniforms, items):
    """Make the steps with these proposals, on Y and R in place; return how many were moves."""
    y, last, moves = np.empty(Y.size), Y.size - 1, 0
    for t in range(items.size):
        j, threshold = items[t], uniforms[3 * t + 2]
        if np.any(j == Y):
            continue
        move_last(Y, R, np.int64(uniforms[3 * t] * Y.size), y)
        left = L[j, j]
        for p in range(last):
            y[p] = L[Y[p], j]
        solve(R, y, last)
        for p in range(last):
            left -= y[p] * y[p]
        if left > DEPENDENT * L[j, j] and left > threshold * R[last, last] ** 2:
            for p in range(last):
                R[p, last] = y[p]
            R[last, last] = np.sqrt(left)
            Y[last] = j
            moves += 1
    return moves
