"""Innermost loops that keep their sums in registers, written in the instructions of `llvm`."""

from __future__ import annotations

from typing import Any

import llvmlite.binding
from llvmlite import ir
from numba import config
from numba.core import cgutils
from numba.types import boolean, float64, int64, void

from dmsgd.compiled.jit import float32_ptr, float64_ptr, uint32_ptr
from dmsgd.compiled.llvm import (
    BLOCK,
    DOUBLES,
    INDEX,
    INT32,
    LANES,
    SINGLE,
    SINGLES,
    Code,
    instructions,
)


def _has_wide_vectors() -> bool:
    """Return whether numba compiles for a processor with 32 registers of 8 doubles."""
    if config.CPU_NAME or config.CPU_FEATURES:
        return "+avx512f" in (config.CPU_FEATURES or "")
    return bool(llvmlite.binding.get_host_cpu_features().get("avx512f", False))


#: Rows and columns of a product that are in registers at a time, of many columns and of few, and of
#: singles, and columns that `add_outer` works on at a time. The second choice fits into the 32
#: registers of NEON.
if _has_wide_vectors():
    WIDE_ROWS, WIDE_COLUMNS, NARROW_ROWS, NARROW_COLUMNS = 4, 32, 8, 8
    SINGLE_ROWS, SINGLE_COLUMNS, OUTER_COLUMNS = 8, 32, 32
else:
    WIDE_ROWS, WIDE_COLUMNS, NARROW_ROWS, NARROW_COLUMNS = 4, 8, 4, 8
    SINGLE_ROWS, SINGLE_COLUMNS, OUTER_COLUMNS = 4, 16, 16
#: Rows of V in a group of a search table: 24 fractions tell them apart.
GROUP = 25
#: Numbers in a search table for each group and column of V, one cache line.
TABLE_LINE = 8
#: Parts of the sum of a group that fractions count.
FRACTIONS = 2.0**16


def _tile(rows: int, columns: int, vector: Any = DOUBLES) -> Any:
    """Return the product of a tile of `rows` by `columns`, whole vectors."""
    width, kind = columns // vector.count, vector.element
    pointer = float32_ptr if vector == SINGLES else float64_ptr

    @instructions(void(pointer, int64, int64, *2 * [pointer, int64], int64, boolean))
    def tile(code: Code, A, a_row, a_step, B, b_row, C, c_row, inner, add):
        """C = A @ B, or C += A @ B; see `linear_algebra.product`."""
        starts = [code.element(A, i, a_row, kind) for i in range(rows)]
        ends = [code.element(C, i, c_row, kind) for i in range(rows)]
        places = [place for end in ends for place in code.vectors(end, width, vector)]
        sums = code.sums(rows * width, vector)
        with code.builder.if_then(add):
            for place, variable in zip(places, sums, strict=True):
                code.builder.store(code.load(place, vector), variable)
        with code.loop(inner) as loop:
            row = code.vectors(code.element(B, loop.index, b_row, kind), width, vector)
            values = [code.load(at, vector) for at in row]
            for i in range(rows):
                factor = code.broadcast(code.number(starts[i], loop.index, a_step, kind), vector)
                for q in range(width):
                    code.accumulate(factor, values[q], sums[i * width + q])
        code.store_sums(sums, places, vector)

    return tile


#: Tiles of a product of many and of few columns, one row of BLOCK columns, and singles.
wide_tile, narrow_tile = _tile(WIDE_ROWS, WIDE_COLUMNS), _tile(NARROW_ROWS, NARROW_COLUMNS)
row_tile = _tile(1, BLOCK)
single_tile = _tile(SINGLE_ROWS, SINGLE_COLUMNS, SINGLES)


@instructions(void(float32_ptr, int64, float32_ptr))
def single_column_squares(code: Code, Z, rows, squares):
    """squares = (Z[:rows]**2).sum(axis=0); Z has rows of BLOCK."""
    count = BLOCK // SINGLES.count
    sums = code.sums(count, SINGLES)
    with code.loop(rows) as loop:
        start = code.element(Z, loop.index, INDEX(BLOCK), SINGLE)
        for variable, at in zip(sums, code.vectors(start, count, SINGLES), strict=True):
            value = code.load(at, SINGLES)
            code.accumulate(value, value, variable)
    code.store_sums(sums, code.vectors(squares, count, SINGLES), SINGLES)


def _strip_kernels(width: int) -> Any:
    """Return the kernels of strips, which have rows of `width` columns, LANES or BLOCK.

    A strip of LANES goes by 4 rows at a time, so that no sum waits for the one before. Therefore
    strips and columns have zeros in up to 3 places after their rows.
    """
    step, size, whole = BLOCK // width, INDEX(width), range(width // LANES)
    per_pass = min(len(whole), OUTER_COLUMNS // LANES)

    def down_rows(code: Code, rows: Any, out: Any, vectors: range, factors: Any) -> None:
        """Write Σ_i a_i b_i to these vectors of `out`; factors(i) has (a_i, b_i) for each."""
        count = len(vectors)
        sums = code.sums(step * count)
        parts = [sums[q * count : (q + 1) * count] for q in range(step)]
        steps = code.builder.udiv(code.builder.add(rows, INDEX(step - 1)), INDEX(step))
        with code.loop(steps) as loop:
            first = code.builder.mul(loop.index, INDEX(step))
            for q, part in enumerate(parts):
                pairs = factors(code.builder.add(first, INDEX(q)))
                for variable, (a, b) in zip(part, pairs, strict=True):
                    code.accumulate(a, b, variable)
        totals = [[code.builder.load(each, typ=DOUBLES) for each in part] for part in parts]
        while len(totals) > 1:  # 0 + 1 and 2 + 3, then both
            halves = zip(totals[::2], totals[1::2], strict=True)
            totals = [[*map(code.builder.fadd, one, other)] for one, other in halves]
        for total, j in zip(totals[0], vectors, strict=True):
            code.store(total, code.element(out, j, kind=DOUBLES))

    def row(code: Code, strip: Any, i: Any, vectors: range) -> list[Any]:
        """Return pointers to these vectors of row i."""
        start = code.element(strip, i, size)
        return [code.element(start, j, kind=DOUBLES) for j in vectors]

    @instructions(void(float64_ptr, int64, float64_ptr))
    def squares(code: Code, strip, rows, out):
        """out = (strip[:rows]**2).sum(axis=0)."""

        def squared(i: Any) -> list[Any]:
            values = [code.load(at) for at in row(code, strip, i, whole)]
            return [*zip(values, values, strict=True)]

        down_rows(code, rows, out, whole, squared)

    @instructions(void(float64_ptr, int64, int64, float64_ptr, float64_ptr))
    def products(code: Code, strip, rows, column, v, y):
        """v = strip[:rows, column]; y = v @ strip[:rows]."""

        def multiplied(i: Any) -> list[Any]:
            number = code.number(code.element(strip, i, size), column)
            code.builder.store(number, code.element(v, i))
            factor = code.broadcast(number)
            return [(factor, code.load(at)) for at in row(code, strip, i, whole)]

        down_rows(code, rows, y, whole, multiplied)

    @instructions(void(float64_ptr, int64, float64_ptr, float64, float64_ptr, float64_ptr))
    def add_outer(code: Code, strip, rows, v, factor, y, squares):
        """strip[i] += factor * v[i] * y for i < rows; squares = (strip[:rows]**2).sum(axis=0)."""
        for first in range(0, len(whole), per_pass):
            vectors = range(first, first + per_pass)
            others = [code.load(code.element(y, j, kind=DOUBLES)) for j in vectors]

            def changed(i: Any, vectors: range = vectors, others: list[Any] = others) -> list[Any]:
                scale, new = code.broadcast(code.builder.fmul(factor, code.number(v, i))), []
                for other, at in zip(others, row(code, strip, i, vectors), strict=True):
                    new.append(code.fma(scale, other, code.load(at)))
                    code.store(new[-1], at)
                return [*zip(new, new, strict=True)]

            down_rows(code, rows, squares, vectors, changed)

    return squares, products, add_outer


strip_squares, strip_products, strip_add_outer = _strip_kernels(LANES)
column_squares, block_products, block_add_outer = _strip_kernels(BLOCK)


@instructions(void(float64_ptr, int64, float64_ptr))
def take_strip(code: Code, Z, rows, strip):
    """Copy the first LANES columns of Z, which has rows of BLOCK; 4 more rows become zero."""
    with code.loop(rows) as loop:
        row = code.load(code.element(Z, loop.index, INDEX(BLOCK)))
        code.store(row, code.element(strip, loop.index, INDEX(LANES)))
    end = code.element(strip, rows, INDEX(LANES))
    for at in code.vectors(end, 4):
        code.store(code.constant(DOUBLES, 0.0), at)


@instructions(void(float64_ptr, uint32_ptr, int64, float64_ptr, int64, float64_ptr))
def sparse_row_tile(code: Code, data, indices, count, B, b_row, out):
    """out[j] = Σ_e data[e] B[indices[e] b_row + j] for j < BLOCK, over e < count."""
    sums = code.sums(BLOCK // LANES)
    with code.loop(count) as loop:
        index = code.builder.zext(code.number(indices, loop.index, kind=INT32), INDEX)
        factor = code.broadcast(code.number(data, loop.index))
        row = code.vectors(code.element(B, index, b_row), len(sums))
        for at, variable in zip(row, sums, strict=True):
            code.accumulate(factor, code.load(at), variable)
    code.store_sums(sums, code.vectors(out, len(sums)))


@instructions(float64(float64_ptr, int64))
def largest_size(code: Code, row, count):
    """Return the largest |row[j]| over j < count, which is at least LANES; NaN counts as 0."""
    builder, (largest,) = code.builder, code.sums(1)
    last = builder.sub(count, INDEX(LANES))
    with cgutils.for_range_slice(builder, INDEX(0), count, INDEX(LANES)) as (index, _):
        whole = builder.icmp_signed("<", index, last)  # the last vector overlaps the one before
        values = code.load(code.element(row, builder.select(whole, index, last)))
        sizes = code.call(f"llvm.fabs.v{LANES}f64", DOUBLES, [DOUBLES], values)
        before = builder.load(largest, typ=DOUBLES)
        larger = builder.fcmp_ordered(">", sizes, before)
        builder.store(builder.select(larger, sizes, before), largest)
    most = builder.load(largest, typ=DOUBLES)
    return code.call(f"llvm.vector.reduce.fmax.v{LANES}f64", DOUBLES.element, [DOUBLES], most)


@instructions(void(float64_ptr, int64, float64_ptr, float64_ptr, float64_ptr))
def group_line(code: Code, V, r, before, after, table):
    """Fill the search table of GROUP rows of V, of r columns each, for the first LANES columns.

    after = before + (V**2).sum(axis=0). The table has TABLE_LINE numbers for each column: `before`,
    FRACTIONS over the sum of the group, and six words of four fractions each. Fraction s is the
    share of the first s + 1 rows in that sum, in parts of FRACTIONS rounded down, at most
    FRACTIONS - 2.
    """
    builder, words = code.builder, ir.VectorType(INDEX, LANES)
    limit = code.constant(DOUBLES, FRACTIONS - 2.0)
    (total,) = code.sums(1)
    parts = cgutils.alloca_once(builder, DOUBLES, size=INDEX(GROUP))
    with code.loop(INDEX(GROUP)) as loop:
        row = code.load(code.element(V, loop.index, r))
        code.accumulate(row, row, total)
        code.store(builder.load(total, typ=DOUBLES), code.element(parts, loop.index, kind=DOUBLES))

    def store_lanes(vector: Any, place: Any) -> None:
        for lane in range(LANES):
            number = builder.extract_element(vector, INT32(lane))
            builder.store(number, code.element(table, builder.add(place, INDEX(TABLE_LINE * lane))))

    start, whole = code.load(before), builder.load(total, typ=DOUBLES)
    scale = builder.fdiv(code.constant(DOUBLES, FRACTIONS), whole)
    store_lanes(start, INDEX(0))
    store_lanes(scale, INDEX(1))
    with code.loop(INDEX(GROUP // 4)) as loop:
        first = code.element(parts, loop.index, INDEX(4), DOUBLES)
        word = code.constant(words, 0)
        for s, at in enumerate(code.vectors(first, 4)):
            fraction = builder.fmul(code.load(at), scale)
            below = builder.fcmp_ordered("<", fraction, limit)  # false if all squares are 0
            fraction = builder.select(below, fraction, limit)
            number = builder.zext(builder.fptosi(fraction, ir.VectorType(INT32, LANES)), words)
            word = builder.or_(word, builder.shl(number, code.constant(words, 16 * s)))
        store_lanes(builder.bitcast(word, DOUBLES), builder.add(loop.index, INDEX(2)))
    code.store(builder.fadd(start, whole), after)


@instructions(int64(float64_ptr, int64))
def fractions_below(code: Code, line, limit):
    """Return how many of the fractions in a line of a search table are below a limit."""
    builder, short = code.builder, ir.IntType(16)
    words = ir.VectorType(short, 4 * TABLE_LINE)
    values = code.load(line, words)
    below = builder.icmp_unsigned("<", values, code.broadcast(builder.trunc(limit, short), words))
    bits = builder.bitcast(below, INT32)
    bits = builder.and_(bits, INT32(2**32 - 2**8))  # the first 16 bytes are two other numbers
    return builder.zext(builder.ctpop(bits), INDEX)
