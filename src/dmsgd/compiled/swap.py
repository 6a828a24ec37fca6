"""The swap chain over sets Y of k items, whose stationary distribution is the k-DPP.

One step: pick a place in Y and an item j of all n. If j is in Y already the chain stays. Otherwise
it moves to Y' = Y - i + j, i being the item at that place, with probability min(1, ratio),
ratio = det(L_Y') / det(L_Y). Determinants are never formed. With the Cholesky factor RᵀR = L_Y,

    e = R^-T e_place,   y = R^-T L[Y, j],   ratio = |e|² (L_jj - |y|² + (e·y)² / |e|²),

where the bracket is the residual of j given Y - i, and 1/|e|² the residual of i. That is two
triangular solves, k² operations. A move drops a column of R, restores the triangle by rotations
and appends j as the last column: about 3k² operations, all orthogonal, so that errors do not grow;
an updated inverse would lose the squared condition number of L_Y.

A kernel is (kind, X, gamma, diagonal): entries are computed from the features when they are needed.
Inner loops run over slices from index 0 on, which LLVM vectorises.
"""

from __future__ import annotations

import numpy as np

from dmsgd.compiled.jit import entry
from dmsgd.compiled.philox import fill_uniforms

#: Kinds of kernel: X Xᵀ, exp(-gamma |x_i - x_j|²), and X itself.
LINEAR, GAUSSIAN, MATRIX = 0, 1, 2

#: An item depends on others if its residual is below this times its diagonal; rounding is 1e-15.
DEPENDENT = 1e-12

#: Steps whose random numbers are made at a time.
CHUNK = 256

#: Steps after which the factor is computed anew from the kernel, as at the start of every draw.
REFRESH = 16 * CHUNK

_MATH = {"contract", "nsz", "reassoc"}


@entry(fastmath=_MATH)
def fill_similarities(kind, X, gamma, items, count, j, out):
    """out[:count] = L[items[:count], j]."""
    other = X[j]
    for p in range(count):
        row, total = X[items[p]], 0.0
        if kind == LINEAR:
            for f in range(row.size):
                total += row[f] * other[f]
        elif kind == GAUSSIAN:
            for f in range(row.size):
                total += (row[f] - other[f]) ** 2
            total = np.exp(-gamma * total)
        else:
            total = row[j]
        out[p] = total


@entry(fastmath=_MATH)
def solve(R, b, first, count):
    """b[:count] = solve(R[:count, :count].T, b[:count]), b being zero before `first`."""
    for p in range(first, count):
        b[p] /= R[p, p]
        value, row, rest = b[p], R[p, p + 1 : count], b[p + 1 : count]
        for q in range(rest.size):
            rest[q] -= value * row[q]


@entry(fastmath=_MATH)
def factor(kind, X, gamma, diagonal, Y, R):
    """R = cholesky(L[Y, Y]).T, except below the diagonal; return log det(L[Y, Y]).

    Pivots are at least at the level of rounding; sets of the chain have far larger ones.
    """
    column, log_det = np.empty(Y.size), 0.0
    for m in range(Y.size):
        fill_similarities(kind, X, gamma, Y, m, Y[m], column)
        solve(R, column, 0, m)
        left = diagonal[Y[m]]
        for p in range(m):
            R[p, m] = column[p]
            left -= column[p] * column[p]
        left = max(left, 1e-15 * diagonal[Y[m]])
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
def step(kind, X, gamma, diagonal, Y, R, place, j, threshold, e, y):
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
    if ee * diagonal[j] <= threshold:  # the ratio is no larger: L[Y, j] is not needed
        return False
    fill_similarities(kind, X, gamma, Y, k, j, y)
    solve(R, y, 0, k)
    yy, ey = 0.0, 0.0
    for p in range(k):
        yy += y[p] * y[p]
        ey += e[p] * y[p]
    left = diagonal[j] - (yy - ey * ey / ee)
    if left <= DEPENDENT * diagonal[j] or ee * left <= threshold:
        return False
    exchange(Y, R, place, j, y, left)
    return True


@entry()
def walk(kind, X, gamma, diagonal, Y, R, uniforms, items):
    """Make the steps with these proposals, on Y and R in place; return how many were moves."""
    e, y, moves = np.empty(Y.size), np.empty(Y.size), 0
    for t in range(items.size):
        place, threshold = np.int64(uniforms[3 * t] * Y.size), uniforms[3 * t + 2]
        moves += step(kind, X, gamma, diagonal, Y, R, place, items[t], threshold, e, y)
    return moves


@entry()
def advance(kind, X, gamma, diagonal, Y, key, draw, block, steps):
    """Make `steps` steps with the random numbers of `draw` from `block` on.

    Return the next block, how many steps were moves, and log det(L[Y, Y]) at the end.
    """
    n, k, moves = diagonal.size, Y.size, 0
    R, uniforms, items = np.zeros((k, k)), np.empty(3 * CHUNK), np.empty(CHUNK, np.int64)
    for done in range(0, steps, CHUNK):
        if done % REFRESH == 0:
            factor(kind, X, gamma, diagonal, Y, R)
        count = min(CHUNK, steps - done)
        block = fill_uniforms(key, draw, block, uniforms, 3 * count)
        for t in range(count):
            items[t] = np.int64(uniforms[3 * t + 1] * n)
        moves += walk(kind, X, gamma, diagonal, Y, R, uniforms, items[:count])
    return block, moves, factor(kind, X, gamma, diagonal, Y, R)
