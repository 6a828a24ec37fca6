"""What tables keep of V: running sums of squares with shares in bytes, and rows in bytes."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils
from numba.extending import intrinsic

from dmsgd.compiled.jit import BYTES, DOUBLES, INT, NOTHING
from dmsgd.compiled.simd import (
    BYTE,
    DOUBLE_VECTOR,
    INDEX,
    LANES,
    SHORT,
    broadcast,
    call_vector,
    constant,
    element,
    integer,
    load,
    set_zero,
    store,
    stream,
    variables,
)


def _transposed(builder: Any, rows: list[Any]) -> list[Any]:
    """Return the columns of a square of LANES vectors, as vectors."""
    half = LANES
    while half > 1:
        half //= 2
        # Swap the blocks off the diagonal, of `half` by `half`, of every block twice as large.
        first = [i if not i & half else i + LANES - half for i in range(LANES)]
        second = [i + half if not i & half else i + LANES for i in range(LANES)]
        new = list(rows)
        for i in range(LANES):
            if not i & half:
                for place, order in ((i, first), (i + half, second)):
                    mask = ir.Constant(ir.VectorType(SHORT, LANES), order)
                    new[place] = builder.shuffle_vector(rows[i], rows[i + half], mask)
        rows = new
    return rows


@intrinsic
def survey(typing, V, r, before, after, table):
    """Add up the squares of 64 rows of V, of r columns each, in the first LANES columns.

    after = before + (V**2).sum(axis=0). The table begins with a line of memory and has 16 entries a
    column: the running sums at the end of each stretch of 8 rows, and for each stretch a word,
    whose byte s is the share of its first s + 1 rows in its sum, in 256ths rounded down and at most
    255.
    """

    def code(context, builder, signature, arguments):
        V, r, before, after, table = arguments
        words_of = ir.VectorType(INDEX, LANES)
        limit = constant(DOUBLE_VECTOR, 255.0)
        running, sums, words = load(builder, before), [], []
        for stretch in range(LANES):
            partial, parts = constant(DOUBLE_VECTOR, 0.0), []
            for s in range(8):
                row = load(builder, element(builder, V, integer(8 * stretch + s), r))
                partial = call_vector(builder, "fma", row, row, partial)
                parts.append(partial)
            running = builder.fadd(running, partial)
            sums.append(running)
            scale = builder.fdiv(constant(DOUBLE_VECTOR, 256.0), partial)
            word = ir.Constant(words_of, [0] * LANES)
            for s, part in enumerate(parts[:-1]):
                share = builder.fmul(part, scale)
                below = builder.fcmp_ordered("<", share, limit)  # not so where all squares are 0
                number = builder.fptosi(
                    builder.select(below, share, limit), ir.VectorType(SHORT, LANES)
                )
                number = builder.zext(number, words_of)
                place = ir.Constant(words_of, [8 * s] * LANES)
                word = builder.or_(word, builder.shl(number, place))
            words.append(builder.bitcast(word, DOUBLE_VECTOR))
        store(builder, running, after)
        for part, rows in enumerate((sums, words)):
            for column, vector in enumerate(_transposed(builder, rows)):
                place = builder.gep(table, [integer(2 * LANES * column + LANES * part)])
                stream(builder, vector, place)
        return context.get_dummy_value()

    return NOTHING(DOUBLES, INT, DOUBLES, DOUBLES, DOUBLES), code


@intrinsic
def coarsen(typing, row, width, out):
    """out = np.rint(row * (127 / abs(row).max())), as bytes; the width is at least LANES."""

    def code(context, builder, signature, arguments):
        row, width, out = arguments
        (largest,) = variables(builder, 1)
        set_zero(builder, [largest])
        last = builder.sub(width, integer(LANES))
        steps = builder.udiv(builder.add(width, integer(LANES - 1)), integer(LANES))

        def place(loop: Any) -> Any:
            at = builder.mul(loop.index, integer(LANES))
            return builder.select(builder.icmp_signed("<", at, last), at, last)

        with cgutils.for_range(builder, steps) as loop:
            vector = call_vector(builder, "fabs", load(builder, builder.gep(row, [place(loop)])))
            known = builder.load(largest)
            above = builder.fcmp_ordered(">", vector, known)
            builder.store(builder.select(above, vector, known), largest)
        most, vector = ir.Constant(ir.DoubleType(), 1e-300), builder.load(largest)
        for lane in range(LANES):
            entry = builder.extract_element(vector, ir.Constant(SHORT, lane))
            most = builder.select(builder.fcmp_ordered(">", entry, most), entry, most)
        scale = broadcast(builder, builder.fdiv(ir.Constant(ir.DoubleType(), 127.0), most))
        with cgutils.for_range(builder, steps) as loop:
            at = place(loop)
            vector = builder.fmul(load(builder, builder.gep(row, [at])), scale)
            whole = builder.fptosi(
                call_vector(builder, "rint", vector), ir.VectorType(SHORT, LANES)
            )
            store(
                builder,
                builder.trunc(whole, ir.VectorType(BYTE, LANES)),
                builder.gep(out, [at]),
                1,
            )
        return context.get_dummy_value()

    return NOTHING(DOUBLES, INT, BYTES), code
