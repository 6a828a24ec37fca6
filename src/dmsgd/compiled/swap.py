"""The swap chain over sets Y of k items, whose stationary distribution is the k-DPP.

One step: pick a place in Y and an item j of all n. If j is in Y already the chain stays. Otherwise
it moves to Y' = Y - i + j, i being the item at that place, with probability min(1, ratio),
ratio = det(L_Y') / det(L_Y). Determinants are never formed. With the Cholesky factor RᵀR = L_Y,

    e = R^-T e_place,   y = R^-T L[Y, j],   ratio = |e|² (L_jj - |y|² + (e·y)² / |e|²),

where the bracket is the residual of j given Y - i, and 1/|e|² the residual of i. That is two
triangular solves, k² operations. A move drops a column of R, restores the triangle by rotations
and appends j as the last column: about 3k² operations, all orthogonal, so that errors do not grow;
an updated inverse would lose the squared condition number of L_Y.

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
def solve(R, b, first, count):
    """b[:count] = solve(R[:count, :count].T, b[:count]), b being zero before `first`."""
    for p in range(first, count):
        b[p] /= R[p, p]
        value, row, rest = b[p], R[p, p + 1 : count], b[p + 1 : count]
        for q in range(rest.size):
            rest[q] -= value * row[q]


@entry(fastmath=_MATH)
def factor(L, Y, R):
    """R = cholesky(L[Y, Y]).T, except below the diagonal; return log det(L[Y, Y]).

    Pivots are at least at the level of rounding; sets of the chain have far larger ones.
    """
    column, log_det = np.empty(Y.size), 0.0
    for m in range(Y.size):
        for p in range(m):
            column[p] = L[Y[p], Y[m]]
        solve(R, column, 0, m)
        left = L[Y[m], Y[m]]
        for p in range(m):
            R[p, m] = column[p]
            left -= column[p] * column[p]
        left = max(left, 1e-15 * L[Y[m], Y[m]])
        R[m, m] = np.sqrt(left)
        log_det += np.log(left)
    return log_det


@entry(fastmath=_MATH)
def rotate(x, y, c, s):
    """x, y = c * x + s * y, c * y - s * x."""
    for q in range(x.size):
        a, b = x[q], y[q]
        x[q] = c * a + s * b
        y[q] = c * b - s * a


@entry(fastmath=_MATH)
def exchange(Y, R, place, j, y, left):
    """Y = append(delete(Y, place), j), and R its factor; y = R^-T L[Y, j] is overwritten."""
    last = Y.size - 1
    for p in range(place, last):
        Y[p] = Y[p + 1]
    for p in range(last + 1):
        row = R[p, max(p - 1, place) :]
        for q in range(row.size - 1):
            row[q] = row[q + 1]
    for p in range(place, last):
        below = R[p + 1, p]
        length = np.sqrt(R[p, p] * R[p, p] + below * below)
        c, s = R[p, p] / length, below / length
        R[p, p] = length
        rotate(R[p, p + 1 : last], R[p + 1, p + 1 : last], c, s)
        rotate(y[p : p + 1], y[p + 1 : p + 2], c, s)
    for p in range(last):
        R[p, last] = y[p]
    R[last, last] = np.sqrt(left)
    Y[last] = j


@entry(fastmath=_MATH)
def step(L, Y, R, place, j, threshold, e, y):
    """Make one step of the chain if its ratio exceeds `threshold`; return whether it did."""
    k = Y.size
    for p in range(k):
        if Y[p] == j:
            return False
    e[:] = 0.0
    e[place] = 1.0
    solve(R, e, place, k)
    ee = 0.0
    for p in range(place, k):
        ee += e[p] * e[p]
    if ee * L[j, j] <= threshold:  # the ratio is no larger
        return False
    for p in range(k):
        y[p] = L[Y[p], j]
    solve(R, y, 0, k)
    yy, ey = 0.0, 0.0
    for p in range(k):
        yy += y[p] * y[p]
        ey += e[p] * y[p]
    left = L[j, j] - (yy - ey * ey / ee)
    if left <= DEPENDENT * L[j, j] or ee * left <= threshold:
        return False
    exchange(Y, R, place, j, y, left)
    return True


@entry()
def walk(L, Y, R, uniforms, items):
    """Make the steps with these proposals, on Y and R in place; return how many were moves."""
    e, y, moves = np.empty(Y.size), np.empty(Y.size), 0
    for t in range(items.size):
        place, threshold = np.int64(uniforms[3 * t] * Y.size), uniforms[3 * t + 2]
        moves += step(L, Y, R, place, items[t], threshold, e, y)
    return moves
