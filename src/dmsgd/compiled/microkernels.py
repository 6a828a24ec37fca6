"""The innermost loops of a draw: what they add up stays in registers until the loop is over.

numba cannot be told to keep a tile of a matrix in registers, so these loops are written as vector
instructions (`dmsgd.compiled.simd`, which says what holds for them).
"""

from __future__ import annotations

from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir
from numba.core import cgutils, config
from numba.extending import intrinsic

from dmsgd.compiled.jit import BYTES, DOUBLES, INT, INTS, NOTHING, REAL, SINGLES, YES_NO
from dmsgd.compiled.simd import (
    BLOCK,
    DOUBLE_VECTOR,
    INDEX,
    LANES,
    SHORT,
    SINGLE_LANES,
    SINGLE_VECTOR,
    accumulate,
    broadcast,
    call_vector,
    constant,
    element,
    integer,
    load,
    set_zero,
    store,
    variables,
    vectors_of,
)


def _has_wide_vectors() -> bool:
    """Return whether there are 32 registers of 8 doubles, for what numba compiles for."""
    if config.CPU_NAME or config.CPU_FEATURES:
        return "+avx512f" in (config.CPU_FEATURES or "")
    return bool(llvm.get_host_cpu_features().get("avx512f", False))


#: Rows and columns of the tile of a product that is in registers at a time, and columns that are
#: changed in one sweep. The narrow ones fit into the 32 registers of NEON, too, and no larger do.
TILE_ROWS, TILE_COLUMNS, SWEPT = (8, 16, BLOCK) if _has_wide_vectors() else (4, 8, BLOCK // 2)


def _tile(rows: int, columns: int, kind: Any = DOUBLE_VECTOR) -> Any:
    """Return the product of a tile of `rows` by `columns` (whole vectors)."""
    width, numbers = columns // kind.count, DOUBLES if kind is DOUBLE_VECTOR else SINGLES

    @intrinsic
    def tile(typing, A, a_row, a_step, B, b_step, C, c_row, inner, add):
        """C[i c_row + j] (+)= Σ_t A[i a_row + t a_step] B[t b_step + j]."""
        return NOTHING(numbers, INT, INT, numbers, INT, numbers, INT, INT, YES_NO), code

    def code(context, builder, signature, arguments):
        A, a_row, a_step, B, b_step, C, c_row, inner, add = arguments
        sums = variables(builder, rows * width, kind)
        places = [
            place
            for i in range(rows)
            for place in vectors_of(
                builder, element(builder, C, integer(i), c_row), width, kind.count
            )
        ]
        with builder.if_else(add) as (then, otherwise):
            with then:
                for place, variable in zip(places, sums, strict=True):
                    builder.store(load(builder, place, kind), variable)
            with otherwise:
                set_zero(builder, sums)
        lines = [element(builder, A, integer(i), a_row) for i in range(rows)]
        with cgutils.for_range(builder, inner) as loop:
            step = vectors_of(builder, element(builder, B, loop.index, b_step), width, kind.count)
            vectors = [load(builder, place, kind) for place in step]
            for i in range(rows):
                factor = builder.load(element(builder, lines[i], loop.index, a_step))
                factor = broadcast(builder, factor, kind)
                for q in range(width):
                    accumulate(builder, factor, vectors[q], sums[i * width + q])
        for place, variable in zip(places, sums, strict=True):
            store(builder, builder.load(variable), place, 4)
        return context.get_dummy_value()

    return tile


#: Tiles: of a product, of what it leaves at its right edge, one row of BLOCK columns, and half.
wide_tile = _tile(TILE_ROWS, TILE_COLUMNS)
narrow_tile = _tile(TILE_ROWS, LANES)
row_tile, half_row_tile = _tile(1, BLOCK), _tile(1, BLOCK // 2)

#: A tile of a product of singles.
SINGLE_COLUMNS = 2 * TILE_COLUMNS
single_tile = _tile(TILE_ROWS, SINGLE_COLUMNS, SINGLE_VECTOR)


def _sweep(builder: Any, Z: Any, rows: Any, squares: Any, count: int, change: Any) -> None:
    """Go down the first `count` vectors of the rows of Z, change them, and leave their squares."""
    sums = variables(builder, count)
    set_zero(builder, sums)
    with cgutils.for_range(builder, rows) as loop:
        row = vectors_of(builder, element(builder, Z, loop.index, integer(BLOCK)), count)
        for variable, new in zip(sums, change(loop.index, row), strict=True):
            accumulate(builder, new, new, variable)
    for place, variable in zip(vectors_of(builder, squares, count), sums, strict=True):
        store(builder, builder.load(variable), place)


@intrinsic
def column_squares(typing, Z, rows, squares):
    """squares = (Z[:rows]**2).sum(axis=0); Z has rows of BLOCK."""

    def code(context, builder, signature, arguments):
        Z, rows, squares = arguments
        count = BLOCK // LANES
        _sweep(builder, Z, rows, squares, count, lambda i, row: [load(builder, at) for at in row])
        return context.get_dummy_value()

    return NOTHING(DOUBLES, INT, DOUBLES), code


def _add_outer(columns: int) -> Any:
    width = min(columns, SWEPT)

    @intrinsic
    def add_outer(typing, Z, rows, v, factor, y, squares):
        """Z[i] += factor * v[i] * y for i < rows; squares = (Z[:rows]**2).sum(axis=0).

        In the first columns; Z has rows of BLOCK.
        """
        return NOTHING(DOUBLES, INT, DOUBLES, REAL, DOUBLES, DOUBLES), code

    def code(context, builder, signature, arguments):
        Z, rows, v, factor, y, squares = arguments
        for first in range(0, columns, width):
            parts = [builder.gep(part, [integer(first)]) for part in (Z, y, squares)]
            sweep(builder, rows, v, factor, *parts)
        return context.get_dummy_value()

    def sweep(builder, rows, v, factor, Z, y, squares):
        vectors = [load(builder, at) for at in vectors_of(builder, y, width // LANES)]

        def change(i: Any, row: list[Any]) -> list[Any]:
            entry = builder.fmul(factor, builder.load(builder.gep(v, [i])))
            entry = broadcast(builder, entry)
            new = [
                call_vector(builder, "fma", entry, vector, load(builder, at))
                for vector, at in zip(vectors, row, strict=True)
            ]
            for vector, at in zip(new, row, strict=True):
                store(builder, vector, at)
            return new

        _sweep(builder, Z, rows, squares, len(vectors), change)

    return add_outer


add_outer, half_add_outer = _add_outer(BLOCK), _add_outer(BLOCK // 2)


@intrinsic
def gather_bytes(typing, bytes_, places, shift_by, out):
    """out[p] = bytes_[places[p] + shift_by] for p < BLOCK, as singles.

    Three bytes more are read behind each.
    """

    def code(context, builder, signature, arguments):
        base, places, by, out = arguments
        count = SINGLE_LANES
        words, indices = ir.VectorType(SHORT, count), ir.VectorType(INDEX, count)
        pointers = ir.VectorType(ir.PointerType(SHORT), count)
        kind = ir.FunctionType(words, [pointers, SHORT, ir.VectorType(ir.IntType(1), count), words])
        name = f"llvm.masked.gather.v{count}i32.v{count}p0"
        function = cgutils.get_or_insert_function(builder.module, kind, name)
        start = builder.add(builder.ptrtoint(base, INDEX), by)
        start = builder.shuffle_vector(
            builder.insert_element(ir.Constant(indices, ir.Undefined), start, integer(0)),
            ir.Constant(indices, ir.Undefined),
            constant(words, 0),
        )
        every = ir.Constant(ir.VectorType(ir.IntType(1), count), [1] * count)
        for q in range(BLOCK // count):
            at = builder.gep(places, [integer(q * count)])
            at = builder.add(start, load(builder, at, indices))
            at = builder.inttoptr(at, pointers)
            found = builder.call(function, [at, ir.Constant(SHORT, 1), every, constant(words, 0)])
            found = builder.ashr(builder.shl(found, constant(words, 24)), constant(words, 24))
            found = builder.sitofp(found, SINGLE_VECTOR)
            store(builder, found, builder.gep(out, [integer(q * count)]), 4)
        return context.get_dummy_value()

    return NOTHING(BYTES, INTS, INT, SINGLES), code


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
