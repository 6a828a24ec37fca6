"""Inner products of long rows, in vectors and in a fixed order."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils
from numba.extending import intrinsic

from dmsgd.compiled.jit import DOUBLES, INT, REAL, SINGLES
from dmsgd.compiled.vectors import (
    DOUBLE_VECTOR,
    LANES,
    accumulate,
    integer,
    load,
    set_zero,
    variables,
    vectors_of,
)

#: Numbers that are taken in one step: four vectors, so that none waits for the one before.
WHOLE = 4 * LANES


def _dot(numbers: Any) -> Any:
    """Return the function for rows of singles or doubles."""
    single = numbers is SINGLES
    vector = ir.VectorType(ir.FloatType() if single else ir.DoubleType(), LANES)

    @intrinsic
    def dot(typing, row, column, steps):
        """Return Σ row[j] column[j] over the first steps * WHOLE numbers.

        Number j is added to sum j mod WHOLE by a fused multiply-add, then these are added up.
        """
        return REAL(numbers, DOUBLES, INT), code

    def code(context, builder, signature, arguments):
        row, column, steps = arguments
        sums = variables(builder, WHOLE // LANES)
        set_zero(builder, sums)
        with cgutils.for_range(builder, steps) as loop:
            at = builder.mul(loop.index, integer(WHOLE))
            places = zip(
                vectors_of(builder, builder.gep(row, [at]), len(sums)),
                vectors_of(builder, builder.gep(column, [at]), len(sums)),
                sums,
                strict=True,
            )
            for mine, other, variable in places:
                numbers_of_row = load(builder, mine, vector)
                if single:
                    numbers_of_row = builder.fpext(numbers_of_row, DOUBLE_VECTOR)
                accumulate(builder, numbers_of_row, load(builder, other), variable)
        first, second, third, fourth = (builder.load(variable) for variable in sums)
        total = builder.fadd(builder.fadd(first, second), builder.fadd(third, fourth))
        entries = [
            builder.extract_element(total, ir.Constant(ir.IntType(32), lane))
            for lane in range(LANES)
        ]
        while len(entries) > 1:
            half = len(entries) // 2
            entries = [builder.fadd(entries[q], entries[q + half]) for q in range(half)]
        return entries[0]

    return dot


dot, dot_of_singles = _dot(DOUBLES), _dot(SINGLES)
