"""The innermost loops of a draw: what they add up stays in registers until the loop is over.

numba cannot be told to keep a tile of a matrix in registers, so these loops are written as vector
instructions of LLVM, which every processor has in some width. They work on pointers, and strides
are counted in elements. Nothing is checked: read a tile too many and the process dies.

Each element of a result is added up in the order of the inner index by fused multiply-adds, however
large the tile is. So the result has the same bits on every processor.
"""

from __future__ import annotations

from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir
from numba.core import cgutils, config
from numba.extending import intrinsic

from dmsgd.compiled.jit import (
    BYTES,
    DOUBLES,
    HALVES,
    INT,
    INTS,
    NOTHING,
    REAL,
    SINGLES,
    YES_NO,
)

_INDEX, _SHORT, _BYTE = ir.IntType(64), ir.IntType(32), ir.IntType(8)

#: Numbers in a vector of the code; the compiler cuts it into what the processor has.
LANES, SINGLE_LANES = 8, 16
_DOUBLE_VECTOR = ir.VectorType(ir.DoubleType(), LANES)
_SINGLE_VECTOR = ir.VectorType(ir.FloatType(), SINGLE_LANES)


def _has_wide_vectors() -> bool:
    """Return whether there are 32 registers of 8 doubles, for what numba compiles for."""
    if config.CPU_NAME or config.CPU_FEATURES:
        return "+avx512f" in (config.CPU_FEATURES or "")
    return bool(llvm.get_host_cpu_features().get("avx512f", False))


#: Rows and columns of the tile of a product that is in registers at a time.
TILE_ROWS, TILE_COLUMNS = (8, 16) if _has_wide_vectors() else (4, 8)


def _number(value: int) -> Any:
    return ir.Constant(_INDEX, value)


def _all(kind: Any, value: float) -> Any:
    return ir.Constant(kind, [value] * kind.count)


def _at(builder: Any, pointer: Any, index: Any, stride: Any) -> Any:
    return builder.gep(pointer, [builder.mul(index, stride)])


def _load(builder: Any, pointer: Any, kind: Any = _DOUBLE_VECTOR) -> Any:
    size = 8 if kind is _DOUBLE_VECTOR else 4
    return builder.load(builder.bitcast(pointer, kind.as_pointer()), align=size)


def _store(builder: Any, vector: Any, pointer: Any, size: int = 8) -> None:
    builder.store(vector, builder.bitcast(pointer, vector.type.as_pointer()), align=size)


def _broadcast(builder: Any, scalar: Any, kind: Any = _DOUBLE_VECTOR) -> Any:
    empty = ir.Constant(kind, ir.Undefined)
    first = builder.insert_element(empty, scalar, ir.Constant(_SHORT, 0))
    return builder.shuffle_vector(first, empty, _all(ir.VectorType(_SHORT, kind.count), 0))


def _call(builder: Any, name: str, *arguments: Any) -> Any:
    """Return what LLVM's function of this name says of vectors of one kind."""
    kind = arguments[0].type
    end = f"v{kind.count}f{64 if kind == _DOUBLE_VECTOR else 32}"
    function_type = ir.FunctionType(kind, [kind] * len(arguments))
    function = cgutils.get_or_insert_function(builder.module, function_type, f"llvm.{name}.{end}")
    return builder.call(function, arguments)


def _variables(builder: Any, count: int, kind: Any = _DOUBLE_VECTOR) -> list[Any]:
    """Return `count` vectors, which the compiler puts into registers."""
    return [cgutils.alloca_once(builder, kind) for _ in range(count)]


def _zero(builder: Any, variables: list[Any]) -> None:
    for variable in variables:
        builder.store(_all(variable.type.pointee, 0.0), variable)


def _accumulate(builder: Any, a: Any, b: Any, variable: Any) -> None:
    """variable += a * b, rounded once."""
    builder.store(_call(builder, "fma", a, b, builder.load(variable)), variable)


def _vectors_of(builder: Any, pointer: Any, count: int, lanes: int = LANES) -> list[Any]:
    return [builder.gep(pointer, [_number(q * lanes)]) for q in range(count)]


def _tile(rows: int, columns: int, kind: Any = _DOUBLE_VECTOR) -> Any:
    """Return the product of a tile of `rows` by `columns` (whole vectors)."""
    width, numbers = columns // kind.count, DOUBLES if kind is _DOUBLE_VECTOR else SINGLES

    @intrinsic
    def tile(typing, A, a_row, a_step, B, b_step, C, c_row, inner, add):
        """C[i c_row + j] (+)= Σ_t A[i a_row + t a_step] B[t b_step + j]."""
        return NOTHING(numbers, INT, INT, numbers, INT, numbers, INT, INT, YES_NO), code

    def code(context, builder, signature, arguments):
        A, a_row, a_step, B, b_step, C, c_row, inner, add = arguments
        sums = _variables(builder, rows * width, kind)
        places = [
            place
            for i in range(rows)
            for place in _vectors_of(builder, _at(builder, C, _number(i), c_row), width, kind.count)
        ]
        with builder.if_else(add) as (then, otherwise):
            with then:
                for place, variable in zip(places, sums, strict=True):
                    builder.store(_load(builder, place, kind), variable)
            with otherwise:
                _zero(builder, sums)
        lines = [_at(builder, A, _number(i), a_row) for i in range(rows)]
        with cgutils.for_range(builder, inner) as loop:
            step = _vectors_of(builder, _at(builder, B, loop.index, b_step), width, kind.count)
            vectors = [_load(builder, place, kind) for place in step]
            for i in range(rows):
                factor = builder.load(_at(builder, lines[i], loop.index, a_step))
                factor = _broadcast(builder, factor, kind)
                for q in range(width):
                    _accumulate(builder, factor, vectors[q], sums[i * width + q])
        for place, variable in zip(places, sums, strict=True):
            _store(builder, builder.load(variable), place, 4)
        return context.get_dummy_value()

    return tile


#: Proposals in a block: the columns of the matrices below.
BLOCK = 32

#: Tiles: of a product, of what it leaves at its right edge, one row of BLOCK columns, and half.
wide_tile = _tile(TILE_ROWS, TILE_COLUMNS)
narrow_tile = _tile(TILE_ROWS, LANES)
row_tile, half_row_tile = _tile(1, BLOCK), _tile(1, BLOCK // 2)

#: A tile of a product of singles.
SINGLE_COLUMNS = 2 * TILE_COLUMNS
single_tile = _tile(TILE_ROWS, SINGLE_COLUMNS, _SINGLE_VECTOR)


@intrinsic
def sparse_tile(typing, entries, places, count, B, b_row, out):
    """out[j] = Σ_e entries[e] B[places[e] b_row + j] for the columns j of a block."""

    def code(context, builder, signature, arguments):
        entries, places, count, B, b_row, out = arguments
        sums = _variables(builder, BLOCK // LANES)
        _zero(builder, sums)
        with cgutils.for_range(builder, count) as loop:
            place = builder.zext(builder.load(builder.gep(places, [loop.index])), _INDEX)
            row = _vectors_of(builder, _at(builder, B, place, b_row), len(sums))
            factor = _broadcast(builder, builder.load(builder.gep(entries, [loop.index])))
            for at, variable in zip(row, sums, strict=True):
                _accumulate(builder, factor, _load(builder, at), variable)
        for at, variable in zip(_vectors_of(builder, out, len(sums)), sums, strict=True):
            _store(builder, builder.load(variable), at)
        return context.get_dummy_value()

    return NOTHING(DOUBLES, HALVES, INT, DOUBLES, INT, DOUBLES), code


def _sweep(builder: Any, Z: Any, rows: Any, squares: Any, count: int, change: Any) -> None:
    """Go down the first `count` vectors of the rows of Z, change them, and leave their squares."""
    sums = _variables(builder, count)
    _zero(builder, sums)
    with cgutils.for_range(builder, rows) as loop:
        row = _vectors_of(builder, _at(builder, Z, loop.index, _number(BLOCK)), count)
        for variable, new in zip(sums, change(loop.index, row), strict=True):
            _accumulate(builder, new, new, variable)
    for place, variable in zip(_vectors_of(builder, squares, count), sums, strict=True):
        _store(builder, builder.load(variable), place)


@intrinsic
def column_squares(typing, Z, rows, squares):
    """squares = (Z[:rows]**2).sum(axis=0); Z has rows of BLOCK."""

    def code(context, builder, signature, arguments):
        Z, rows, squares = arguments
        count = BLOCK // LANES
        _sweep(builder, Z, rows, squares, count, lambda i, row: [_load(builder, at) for at in row])
        return context.get_dummy_value()

    return NOTHING(DOUBLES, INT, DOUBLES), code


def _add_outer(columns: int) -> Any:
    count = columns // LANES

    @intrinsic
    def add_outer(typing, Z, rows, v, factor, y, squares):
        """Z[i] += factor * v[i] * y for i < rows; squares = (Z[:rows]**2).sum(axis=0).

        In the first columns; Z has rows of BLOCK.
        """
        return NOTHING(DOUBLES, INT, DOUBLES, REAL, DOUBLES, DOUBLES), code

    def code(context, builder, signature, arguments):
        Z, rows, v, factor, y, squares = arguments
        vectors = [_load(builder, at) for at in _vectors_of(builder, y, count)]

        def change(i: Any, row: list[Any]) -> list[Any]:
            entry = builder.fmul(factor, builder.load(builder.gep(v, [i])))
            entry = _broadcast(builder, entry)
            new = [
                _call(builder, "fma", entry, vector, _load(builder, at))
                for vector, at in zip(vectors, row, strict=True)
            ]
            for vector, at in zip(new, row, strict=True):
                _store(builder, vector, at)
            return new

        _sweep(builder, Z, rows, squares, count, change)
        return context.get_dummy_value()

    return add_outer


add_outer, half_add_outer = _add_outer(BLOCK), _add_outer(BLOCK // 2)


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
                    mask = ir.Constant(ir.VectorType(_SHORT, LANES), order)
                    new[place] = builder.shuffle_vector(rows[i], rows[i + half], mask)
        rows = new
    return rows


@intrinsic
def survey(typing, V, r, before, after, table):
    """Add up the squares of 64 rows of V, of r columns each, in the first LANES columns.

    after = before + (V**2).sum(axis=0). The table has 16 entries a column: the running sums at the
    end of each stretch of 8 rows, and for each stretch a word, whose byte s is the share of its
    first s + 1 rows in its sum, in 256ths rounded down and at most 255.
    """

    def code(context, builder, signature, arguments):
        V, r, before, after, table = arguments
        words_of = ir.VectorType(_INDEX, LANES)
        limit = _all(_DOUBLE_VECTOR, 255.0)
        running, sums, words = _load(builder, before), [], []
        for stretch in range(LANES):
            partial, parts = _all(_DOUBLE_VECTOR, 0.0), []
            for s in range(8):
                row = _load(builder, _at(builder, V, _number(8 * stretch + s), r))
                partial = _call(builder, "fma", row, row, partial)
                parts.append(partial)
            running = builder.fadd(running, partial)
            sums.append(running)
            scale = builder.fdiv(_all(_DOUBLE_VECTOR, 256.0), partial)
            word = ir.Constant(words_of, [0] * LANES)
            for s, part in enumerate(parts[:-1]):
                share = builder.fmul(part, scale)
                below = builder.fcmp_ordered("<", share, limit)  # not so where all squares are 0
                number = builder.fptosi(
                    builder.select(below, share, limit), ir.VectorType(_SHORT, LANES)
                )
                number = builder.zext(number, words_of)
                place = ir.Constant(words_of, [8 * s] * LANES)
                word = builder.or_(word, builder.shl(number, place))
            words.append(builder.bitcast(word, _DOUBLE_VECTOR))
        _store(builder, running, after)
        for part, rows in enumerate((sums, words)):
            for column, vector in enumerate(_transposed(builder, rows)):
                place = builder.gep(table, [_number(2 * LANES * column + LANES * part)])
                _store(builder, vector, place)
        return context.get_dummy_value()

    return NOTHING(DOUBLES, INT, DOUBLES, DOUBLES, DOUBLES), code


@intrinsic
def coarsen(typing, row, width, out):
    """out = np.rint(row * (127 / abs(row).max())), as bytes; the width is at least LANES."""

    def code(context, builder, signature, arguments):
        row, width, out = arguments
        (largest,) = _variables(builder, 1)
        _zero(builder, [largest])
        last = builder.sub(width, _number(LANES))
        steps = builder.udiv(builder.add(width, _number(LANES - 1)), _number(LANES))

        def place(loop: Any) -> Any:
            at = builder.mul(loop.index, _number(LANES))
            return builder.select(builder.icmp_signed("<", at, last), at, last)

        with cgutils.for_range(builder, steps) as loop:
            vector = _call(builder, "fabs", _load(builder, builder.gep(row, [place(loop)])))
            known = builder.load(largest)
            above = builder.fcmp_ordered(">", vector, known)
            builder.store(builder.select(above, vector, known), largest)
        most, vector = ir.Constant(ir.DoubleType(), 1e-300), builder.load(largest)
        for lane in range(LANES):
            entry = builder.extract_element(vector, ir.Constant(_SHORT, lane))
            most = builder.select(builder.fcmp_ordered(">", entry, most), entry, most)
        scale = _broadcast(builder, builder.fdiv(ir.Constant(ir.DoubleType(), 127.0), most))
        with cgutils.for_range(builder, steps) as loop:
            at = place(loop)
            vector = builder.fmul(_load(builder, builder.gep(row, [at])), scale)
            whole = builder.fptosi(_call(builder, "rint", vector), ir.VectorType(_SHORT, LANES))
            _store(
                builder,
                builder.trunc(whole, ir.VectorType(_BYTE, LANES)),
                builder.gep(out, [at]),
                1,
            )
        return context.get_dummy_value()

    return NOTHING(DOUBLES, INT, BYTES), code


@intrinsic
def gather_bytes(typing, bytes_, places, shift_by, out):
    """out[p] = bytes_[places[p] + shift_by] for p < BLOCK, as singles.

    Three bytes more are read behind each.
    """

    def code(context, builder, signature, arguments):
        base, places, by, out = arguments
        count = SINGLE_LANES
        words, indices = ir.VectorType(_SHORT, count), ir.VectorType(_INDEX, count)
        pointers = ir.VectorType(ir.PointerType(_SHORT), count)
        kind = ir.FunctionType(
            words, [pointers, _SHORT, ir.VectorType(ir.IntType(1), count), words]
        )
        name = f"llvm.masked.gather.v{count}i32.v{count}p0"
        function = cgutils.get_or_insert_function(builder.module, kind, name)
        start = builder.add(builder.ptrtoint(base, _INDEX), by)
        start = builder.shuffle_vector(
            builder.insert_element(ir.Constant(indices, ir.Undefined), start, _number(0)),
            ir.Constant(indices, ir.Undefined),
            _all(words, 0),
        )
        every = ir.Constant(ir.VectorType(ir.IntType(1), count), [1] * count)
        for q in range(BLOCK // count):
            at = builder.gep(places, [_number(q * count)])
            at = builder.add(start, _load(builder, at, indices))
            at = builder.inttoptr(at, pointers)
            found = builder.call(function, [at, ir.Constant(_SHORT, 1), every, _all(words, 0)])
            found = builder.ashr(builder.shl(found, _all(words, 24)), _all(words, 24))
            found = builder.sitofp(found, _SINGLE_VECTOR)
            _store(builder, found, builder.gep(out, [_number(q * count)]), 4)
        return context.get_dummy_value()

    return NOTHING(BYTES, INTS, INT, SINGLES), code
