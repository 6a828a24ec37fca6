"""Small dense linear algebra of one draw, in a fixed order of operations.

A draw must not depend on the processor or on the threads of a BLAS, so these loops are our own. The
columns of a right factor and of a result are in panels of PANEL, side by side within one. Rows are
taken TILE_ROWS at a time and columns 8 at a time: matrices are padded to whole tiles, and the
padding is overwritten.
"""

from __future__ import annotations

from math import sqrt

from numba.types import int64

from dmsgd.compiled import microkernels as kernels
from dmsgd.compiled.jit import callback, float64_ptr, helper, inlined
from dmsgd.compiled.llvm import BLOCK, LANES, shift

#: Columns of a panel.
PANEL = 16

#: Whether there are wide tiles.
_WIDE = kernels.TILE_COLUMNS > LANES

#: The last argument of `product`: whether the result is replaced or added to.
SET, ADD = 0, 1


@callback(int64(float64_ptr, int64, int64, *2 * [float64_ptr, int64, int64], *4 * [int64]))
def product(
    A, a_row, a_step, B, b_row, b_panel, C, c_row, c_panel, rows, inner, columns, add
):  # fmt: skip
    """C = A @ B, or C += A @ B unless `add` is SET; A is (rows, inner), B (inner, columns).

    Entry (i, t) of A is A[i * a_row + t * a_step]. B and C are in panels: (t, j) of B is
    B[t * b_row + j // PANEL * b_panel + j % PANEL]. Compiled code calls it by address, with a tuple
    of the three arguments of each matrix: call(work.product, A, B, C, rows, inner, columns, SET).
    """
    for first in range(0, columns, kernels.TILE_COLUMNS):
        b = shift(B, first // PANEL * b_panel + first % PANEL)
        c = shift(C, first // PANEL * c_panel + first % PANEL)
        for i in range(0, rows, kernels.TILE_ROWS):
            a, place = shift(A, i * a_row), shift(c, i * c_row)
            if _WIDE and columns - first > LANES:
                kernels.wide_tile(a, a_row, a_step, b, b_row, place, c_row, inner, add != 0)
            else:
                kernels.narrow_tile(a, a_row, a_step, b, b_row, place, c_row, inner, add != 0)
    return 0


@inlined
def householder(Z, rows, column, square, v):
    """Set v so that I - tau v vᵀ maps Z[:rows, column] onto the last axis; return tau.

    `square` is the squared length of that column. Z has rows of BLOCK.
    """
    for i in range(rows):
        v[i] = Z[i * BLOCK + column]
    norm, last = sqrt(square), v[rows - 1]
    v[rows - 1] = last + norm if last > 0 else last - norm
    return 1.0 / (square + abs(last) * norm)


@helper
def reflect(Z, rows, first, last, v, tau, y, squares):
    """Z = ((I - tau v vᵀ) Z)[:-1]; squares = (Z**2).sum(axis=0). `y` is scratch for a row.

    In the columns first to last at least; the half of Z that has none of them is left out.
    """
    half = BLOCK // 2
    if first < half < last:
        kernels.row_tile(v, 0, 1, Z, BLOCK, y, 0, rows, False)
        kernels.add_outer(Z, rows - 1, v, -tau, y, squares)
    else:
        start = 0 if first < half else half
        part, sums = shift(Z, start), shift(squares, start)
        kernels.half_row_tile(v, 0, 1, part, BLOCK, y, 0, rows, False)
        kernels.half_add_outer(part, rows - 1, v, -tau, y, sums)


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
