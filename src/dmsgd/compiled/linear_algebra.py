"""Small dense linear algebra of one draw, in a fixed order of operations.

A draw must not depend on the processor or on the threads of a BLAS, so these loops are our own.
Products are made in tiles: matrices are padded to 8 rows and to columns of whole tiles, and the
padding is overwritten.
"""

from __future__ import annotations

from math import sqrt

from numba.types import int64

from dmsgd.compiled import microkernels as kernels
from dmsgd.compiled.jit import callback, float64_ptr, helper, inlined
from dmsgd.compiled.llvm import BLOCK, shift
from dmsgd.compiled.microkernels import NARROW_COLUMNS, NARROW_ROWS, WIDE_COLUMNS, WIDE_ROWS

#: Rows of a right factor that are multiplied at a time: they stay in the first cache.
INNER = 64

#: The last argument of `product`: whether the result is replaced or added to.
SET, ADD = 0, 1


@callback(int64(float64_ptr, int64, int64, *2 * [float64_ptr, int64], *4 * [int64]))
def product(A, a_row, a_step, B, b_row, C, c_row, rows, inner, columns, add):
    """C = A @ B, or C += A @ B unless `add` is SET; A is (rows, inner), B (inner, columns).

    Entry (i, t) of A is A[i * a_row + t * a_step]; rows of B and C begin b_row and c_row apart.
    Compiled code calls it by address, with a tuple of the arguments of each matrix:
    call(work.product, A, B, C, rows, inner, columns, SET).
    """
    for t in range(0, max(inner, 1), INNER):
        some, sum_up, first = min(INNER, inner - t), t > 0 or add != 0, 0
        left, right = shift(A, t * a_step), shift(B, t * b_row)
        while first < columns:
            wide, b, c = columns - first > WIDE_COLUMNS // 2, shift(right, first), shift(C, first)
            for i in range(0, rows, WIDE_ROWS if wide else NARROW_ROWS):
                a, place = shift(left, i * a_row), shift(c, i * c_row)
                if wide:
                    kernels.wide_tile(a, a_row, a_step, b, b_row, place, c_row, some, sum_up)
                else:
                    kernels.narrow_tile(a, a_row, a_step, b, b_row, place, c_row, some, sum_up)
            first += WIDE_COLUMNS if wide else NARROW_COLUMNS
    return 0


@inlined
def squares(strip, rows, width, out):
    """out = (strip[:rows]**2).sum(axis=0)."""
    if width == BLOCK:
        kernels.column_squares(strip, rows, out)
    else:
        kernels.strip_squares(strip, rows, out)


@helper
def reflect(strip, rows, width, column, v, y, out):
    """strip = ((I - tau v vᵀ) strip)[:-1], which maps a column onto the last axis; return tau.

    Sets v, and out = (strip**2).sum(axis=0). `y` is scratch for a row.
    """
    end = rows - 1
    if width == BLOCK:
        kernels.block_products(strip, rows, column, v, y)
    else:
        kernels.strip_products(strip, rows, column, v, y)
    square, last = y[column], v[end]
    norm = sqrt(square)
    more, tau = norm if last > 0 else -norm, 1.0 / (square + abs(last) * norm)
    for j in range(width):
        y[j] += more * strip[end * width + j]
        strip[end * width + j] = 0.0
    v[end] = 0.0
    if width == BLOCK:
        kernels.block_add_outer(strip, end, v, -tau, y, out)
    else:
        kernels.strip_add_outer(strip, end, v, -tau, y, out)
    v[end] = last + more
    return tau


@helper
def compact_wy(gram, taus, first, count, S):
    """Set S so that H_count ... H_1 = I + V S Vᵀ for reflections H_i = I - tau_i v_i v_iᵀ.

    The first rows of S are there already. The columns of V are v_i, and gram = Vᵀ V. The
    multiple of v_i that is subtracted from z is y_i = tau_i (v_i z - Σ_{j<i} (v_i v_j) y_j), and
    y = -S Vᵀ z. S and gram have rows of BLOCK.
    """
    for i in range(first, count):
        row = shift(S, i * BLOCK)
        kernels.row_tile(shift(gram, i * BLOCK), 0, 1, S, BLOCK, row, 0, i, False)
        row[i] = 1.0
        for j in range(i + 1):
            row[j] *= -taus[i]
