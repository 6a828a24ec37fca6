"""Innermost loops that keep their sums in registers, written in the instructions of `simd`."""

from __future__ import annotations

from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir
from numba import config
from numba.core import cgutils
from numba.extending import intrinsic
from numba.types import boolean, float64, int64, void

from dmsgd.compiled.jit import float32_ptr, float64_ptr, int8_ptr, int64_ptr, uint32_ptr
from dmsgd.compiled.simd import (
    BLOCK,
    DOUBLE,
    DOUBLE_VECTOR,
    INDEX,
    INT32,
    LANES,
    SINGLE,
    SINGLE_LANES,
    SINGLE_VECTOR,
    accumulate,
    broadcast,
    constant,
    element,
    fma,
    integer,
    load,
    opaque,
    store,
    vectors_at,
    zeros,
)


def _has_wide_vectors() -> bool:
    """Return whether numba compiles for a processor with 32 registers of 8 doubles."""
    if config.CPU_NAME or config.CPU_FEATURES:
        return "+avx512f" in (config.CPU_FEATURES or "")
    return bool(llvm.get_host_cpu_features().get("avx512f", False))


#: Rows and columns of a product that are in registers at a time, and columns that `add_outer` works
#: on at a time. The second choice fits into the 32 registers of NEON.
TILE_ROWS, TILE_COLUMNS, OUTER_COLUMNS = (8, 16, 32) if _has_wide_vectors() else (4, 8, 16)
#: Columns of a product of singles.
SINGLE_COLUMNS = 2 * TILE_COLUMNS
#: Numbers that `dot` takes in a step: four vectors, so that none waits for the one before.
DOT_STEP = 4 * LANES


def _tile(rows: int, columns: int, vector: Any = DOUBLE_VECTOR) -> Any:
    """Return the product of a tile of `rows` by `columns`, whole vectors."""
    width, kind = columns // vector.count, vector.element
    pointer = float32_ptr if kind == SINGLE else float64_ptr

    @intrinsic
    def tile(typing, A, a_row, a_step, B, b_step, C, c_row, inner, add):
        """C[i c_row + j] = Σ_t A[i a_row + t a_step] B[t b_step + j], added to C if `add`."""
        return void(pointer, int64, int64, pointer, int64, pointer, int64, int64, boolean), code

    def code(context, builder, signature, arguments):
        A, a_row, a_step, B, b_step, C, c_row, inner, add = arguments
        A, B, C = opaque(builder, A, B, C)
        starts = [element(builder, A, integer(i), a_row, kind) for i in range(rows)]
        places = [
            place
            for i in range(rows)
            for place in vectors_at(builder, element(builder, C, integer(i), c_row, kind), width,
                                    vector)
        ]  # fmt: skip
        sums = zeros(builder, rows * width, vector)
        with builder.if_then(add):
            for place, variable in zip(places, sums, strict=True):
                builder.store(load(builder, place, vector), variable)
        with cgutils.for_range(builder, inner) as loop:
            row = element(builder, B, loop.index, b_step, kind)
            values = [load(builder, at, vector) for at in vectors_at(builder, row, width, vector)]
            for i in range(rows):
                at = element(builder, starts[i], loop.index, a_step, kind)
                factor = broadcast(builder, builder.load(at, typ=kind), vector)
                for q in range(width):
                    accumulate(builder, factor, values[q], sums[i * width + q])
        for place, variable in zip(places, sums, strict=True):
            store(builder, builder.load(variable, typ=vector), place)
        return context.get_dummy_value()

    return tile


#: Tiles of a product and of its right edge, one row of BLOCK columns, half of it, and of singles.
wide_tile, narrow_tile = _tile(TILE_ROWS, TILE_COLUMNS), _tile(TILE_ROWS, LANES)
row_tile, half_row_tile = _tile(1, BLOCK), _tile(1, BLOCK // 2)
single_tile = _tile(TILE_ROWS, SINGLE_COLUMNS, SINGLE_VECTOR)


def _down_rows(builder: Any, Z: Any, rows: Any, squares: Any, count: int, change: Any) -> None:
    """Change the first `count` vectors of each row of Z; write the sums of their squares."""
    sums = zeros(builder, count)
    with cgutils.for_range(builder, rows) as loop:
        row = vectors_at(builder, element(builder, Z, loop.index, integer(BLOCK)), count)
        for variable, new in zip(sums, change(loop.index, row), strict=True):
            accumulate(builder, new, new, variable)
    for place, variable in zip(vectors_at(builder, squares, count), sums, strict=True):
        store(builder, builder.load(variable, typ=DOUBLE_VECTOR), place)


@intrinsic
def column_squares(typing, Z, rows, squares):
    """squares = (Z[:rows]**2).sum(axis=0); Z has rows of BLOCK."""

    def code(context, builder, signature, arguments):
        (Z, squares), rows = opaque(builder, arguments[0], arguments[2]), arguments[1]
        _down_rows(builder, Z, rows, squares, BLOCK // LANES,
                   lambda i, row: [load(builder, at) for at in row])  # fmt: skip
        return context.get_dummy_value()

    return void(float64_ptr, int64, float64_ptr), code


def _add_outer(columns: int) -> Any:
    width = min(columns, OUTER_COLUMNS)

    @intrinsic
    def add_outer(typing, Z, rows, v, factor, y, squares):
        """Z[i] += factor * v[i] * y for i < rows; squares = (Z[:rows]**2).sum(axis=0).

        In the first columns; Z has rows of BLOCK.
        """
        kinds = float64_ptr, int64, float64_ptr, float64, float64_ptr, float64_ptr
        return void(*kinds), code

    def code(context, builder, signature, arguments):
        Z, rows, v, factor, y, squares = arguments
        Z, v, y, squares = opaque(builder, Z, v, y, squares)
        for first in range(0, columns, width):
            parts = [element(builder, part, integer(first)) for part in (Z, y, squares)]
            change_columns(builder, rows, v, factor, *parts)
        return context.get_dummy_value()

    def change_columns(builder, rows, v, factor, Z, y, squares):
        vectors = [load(builder, at) for at in vectors_at(builder, y, width // LANES)]

        def change(i: Any, row: list[Any]) -> list[Any]:
            scale = builder.fmul(factor, builder.load(element(builder, v, i), typ=DOUBLE))
            scale = broadcast(builder, scale)
            new = [
                fma(builder, scale, vector, load(builder, at))
                for vector, at in zip(vectors, row, strict=True)
            ]
            for vector, at in zip(new, row, strict=True):
                store(builder, vector, at)
            return new

        _down_rows(builder, Z, rows, squares, len(vectors), change)

    return add_outer


add_outer, half_add_outer = _add_outer(BLOCK), _add_outer(BLOCK // 2)


@intrinsic
def sparse_row_tile(typing, data, indices, count, B, b_row, out):
    """out[j] = Σ_e data[e] B[indices[e] b_row + j] for j < BLOCK, over e < count."""

    def code(context, builder, signature, arguments):
        data, indices, count, B, b_row, out = arguments
        data, indices, B, out = opaque(builder, data, indices, B, out)
        sums = zeros(builder, BLOCK // LANES)
        with cgutils.for_range(builder, count) as loop:
            index = builder.load(element(builder, indices, loop.index, kind=INT32), typ=INT32)
            row = element(builder, B, builder.zext(index, INDEX), b_row)
            factor = builder.load(element(builder, data, loop.index), typ=DOUBLE)
            factor = broadcast(builder, factor)
            for at, variable in zip(vectors_at(builder, row, len(sums)), sums, strict=True):
                accumulate(builder, factor, load(builder, at), variable)
        for at, variable in zip(vectors_at(builder, out, len(sums)), sums, strict=True):
            store(builder, builder.load(variable, typ=DOUBLE_VECTOR), at)
        return context.get_dummy_value()

    return void(float64_ptr, uint32_ptr, int64, float64_ptr, int64, float64_ptr), code


def _dot(numbers: Any) -> Any:
    """Return the dot product of a row of doubles or singles with doubles."""
    kind = SINGLE if numbers is float32_ptr else DOUBLE
    vector = ir.VectorType(kind, LANES)

    @intrinsic
    def dot(typing, row, column, steps):
        """Return Σ row[j] column[j] over the first steps * DOT_STEP numbers.

        Number j is added to sum j mod DOT_STEP by a fused multiply-add, then these are added up.
        """
        return float64(numbers, float64_ptr, int64), code

    def code(context, builder, signature, arguments):
        (row, column), steps = opaque(builder, *arguments[:2]), arguments[2]
        sums = zeros(builder, DOT_STEP // LANES)
        with cgutils.for_range(builder, steps) as loop:
            at = builder.mul(loop.index, integer(DOT_STEP))
            places = zip(
                vectors_at(builder, element(builder, row, at, kind=kind), len(sums), vector),
                vectors_at(builder, element(builder, column, at), len(sums)),
                sums,
                strict=True,
            )
            for mine, other, variable in places:
                values = load(builder, mine, vector)
                if kind == SINGLE:
                    values = builder.fpext(values, DOUBLE_VECTOR)
                accumulate(builder, values, load(builder, other), variable)
        a, b, c, d = (builder.load(variable, typ=DOUBLE_VECTOR) for variable in sums)
        total = builder.fadd(builder.fadd(a, b), builder.fadd(c, d))
        entries = [builder.extract_element(total, ir.Constant(INT32, q)) for q in range(LANES)]
        while len(entries) > 1:
            half = len(entries) // 2
            entries = [builder.fadd(entries[q], entries[q + half]) for q in range(half)]
        return entries[0]

    return dot


dot, dot_of_singles = _dot(float64_ptr), _dot(float32_ptr)


@intrinsic
def gather_bytes(typing, numbers, places, offset, out):
    """out[p] = numbers[places[p] + offset] for p < BLOCK, as singles.

    Three bytes more are read behind each.
    """

    def code(context, builder, signature, arguments):
        base, places, offset, out = arguments
        places, out = opaque(builder, places, out)
        count = SINGLE_LANES
        words, indices = ir.VectorType(INT32, count), ir.VectorType(INDEX, count)
        pointers, flags = (
            ir.VectorType(ir.PointerType(), count),
            ir.VectorType(ir.IntType(1), count),
        )
        kind = ir.FunctionType(words, [pointers, INT32, flags, words])
        name = f"llvm.masked.gather.v{count}i32.v{count}p0"
        function = cgutils.get_or_insert_function(builder.module, kind, name)
        start = builder.add(builder.ptrtoint(base, INDEX), offset)
        start = broadcast(builder, start, indices)
        byte = constant(words, 24)
        for q in range(BLOCK // count):
            at = builder.add(
                start, load(builder, element(builder, places, integer(q * count)), indices)
            )
            at = builder.inttoptr(at, pointers)
            mask = [ir.Constant(INT32, 1), constant(flags, 1), constant(words, 0)]
            found = builder.call(function, [at, *mask])
            found = builder.ashr(builder.shl(found, byte), byte)
            place = element(builder, out, integer(q * count), kind=SINGLE)
            store(builder, builder.sitofp(found, SINGLE_VECTOR), place)
        return context.get_dummy_value()

    return void(int8_ptr, int64_ptr, int64, float32_ptr), code
