"""Small dense linear algebra for one draw, in a fixed order of operations.

The matrices fit in cache and a draw must not depend on how many threads a BLAS uses, so these are
our own loops. Four rows of the second factor and two of the result are in registers at a time.
"""

from __future__ import annotations

import numpy as np
from numba import njit

_MATH = {"contract", "nsz"}


@njit(nogil=True, cache=True, fastmath=_MATH)
def _add(a, x, out):
    """out += a * x."""
    for j in range(out.size):
        out[j] += a * x[j]


@njit(nogil=True, cache=True, fastmath=_MATH)
def _add_to_two(a, b, x, out, other):
    """out += a * x; other += b * x."""
    for j in range(out.size):
        out[j] += a * x[j]
        other[j] += b * x[j]


@njit(nogil=True, cache=True, fastmath=_MATH)
def _add_four(a, b, c, d, w, x, y, z, out):
    """out += a * w + b * x + c * y + d * z."""
    for j in range(out.size):
        out[j] += a * w[j] + b * x[j] + c * y[j] + d * z[j]


@njit(nogil=True, cache=True, fastmath=_MATH)
def _add_four_to_two(a, b, c, d, e, f, g, h, w, x, y, z, out, other):
    """out += a * w + b * x + c * y + d * z; other += e * w + f * x + g * y + h * z."""
    for j in range(out.size):
        wj, xj, yj, zj = w[j], x[j], y[j], z[j]
        out[j] += a * wj + b * xj + c * yj + d * zj
        other[j] += e * wj + f * xj + g * yj + h * zj


@njit(nogil=True, cache=True, fastmath=_MATH)
def add_product(A, B, C):
    """C += A[:, : len(B)] @ B."""
    rows, inner = A.shape[0], B.shape[0]
    fours = inner - inner % 4
    for i in range(0, rows - 1, 2):
        p, q = A[i], A[i + 1]
        for c in range(0, fours, 4):
            _add_four_to_two(
                p[c], p[c + 1], p[c + 2], p[c + 3], q[c], q[c + 1], q[c + 2], q[c + 3],
                B[c], B[c + 1], B[c + 2], B[c + 3], C[i], C[i + 1],
            )  # fmt: skip
        for c in range(fours, inner):
            _add_to_two(p[c], q[c], B[c], C[i], C[i + 1])
    if rows % 2:
        p, out = A[rows - 1], C[rows - 1]
        for c in range(0, fours, 4):
            _add_four(p[c], p[c + 1], p[c + 2], p[c + 3], B[c], B[c + 1], B[c + 2], B[c + 3], out)
        for c in range(fours, inner):
            _add(p[c], B[c], out)


@njit(nogil=True, cache=True, fastmath=_MATH)
def reflect(Z, v, tau, first, y):
    """Z[:, first:] -= tau * outer(v, v @ Z[:, first:]), except for the last row, which is dropped.

    `y` is scratch of Z's width.
    """
    rows = Z.shape[0]
    y = y[first:]
    y[:] = 0.0
    fours = rows - rows % 4
    for i in range(0, fours, 4):
        _add_four(
            v[i], v[i + 1], v[i + 2], v[i + 3],
            Z[i, first:], Z[i + 1, first:], Z[i + 2, first:], Z[i + 3, first:], y,
        )  # fmt: skip
    for i in range(fours, rows):
        _add(v[i], Z[i, first:], y)
    kept = rows - 1
    for i in range(0, kept - 1, 2):
        _add_to_two(-tau * v[i], -tau * v[i + 1], y, Z[i, first:], Z[i + 1, first:])
    if kept % 2:
        _add(-tau * v[kept - 1], y, Z[kept - 1, first:])


@njit(nogil=True, cache=True, fastmath=_MATH | {"reassoc"})
def _dot(a, b):
    """a @ b."""
    total = 0.0
    for i in range(a.size):
        total += a[i] * b[i]
    return total


@njit(nogil=True, cache=True, fastmath=_MATH)
def reflect_many(W, reflectors, taus, Y, columns):
    """W = H_a ... H_1 W with H_i = I - tau_i v_i v_iᵀ, of which the last `a` rows are dropped.

    Reflector i (a row of `reflectors`) is zero in the last i rows of W. `Y` (group, k) and
    `columns` (rows, group) are scratch; a group of reflectors is applied in two matrix products:
    W -= Vᵀ Y, Y_i = tau_i (v_i W - Σ_{j<i} (v_i·v_j) Y_j).
    """
    rows = W.shape[0]
    for start in range(0, taus.size, Y.shape[0]):
        group = min(Y.shape[0], taus.size - start)
        V = reflectors[start : start + group]
        Yg = Y[:group]
        Yg[:] = 0.0
        add_product(V, W[:rows], Yg)
        for i in range(group):
            for j in range(i):
                _add(-_dot(V[i, :rows], V[j, :rows]), Yg[j], Yg[i])
            for j in range(Yg.shape[1]):
                Yg[i, j] *= taus[start + i]
        rows -= group
        for i in range(rows):
            for j in range(group):
                columns[i, j] = -V[j, i]
        add_product(columns[:rows], Yg, W[:rows])


@njit(nogil=True, cache=True, fastmath=_MATH)
def column_squares(X, out):
    """out = (X**2).sum(axis=0)."""
    out[:] = 0.0
    for c in range(X.shape[0]):
        row = X[c]
        for p in range(out.size):
            out[p] += row[p] * row[p]


@njit(nogil=True, cache=True, fastmath=_MATH)
def householder(Z, column, v):
    """Set v so that I - tau v vᵀ maps Z[:, column] onto the last axis; return tau."""
    last = Z.shape[0] - 1
    squares = 0.0
    for i in range(last + 1):
        v[i] = Z[i, column]
        squares += v[i] * v[i]
    norm = np.sqrt(squares)
    tau = 1.0 / (squares + abs(v[last]) * norm)
    v[last] += norm if v[last] > 0 else -norm
    return tau
