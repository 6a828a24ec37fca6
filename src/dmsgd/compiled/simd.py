"""Vector instructions of LLVM, for loops that numba cannot be told to keep in registers.

Every processor has them in some width. They work on pointers, and strides are counted in elements.
Nothing is checked: read a vector too many and the process dies.

Each element of a result is added up in the order of the inner index by fused multiply-adds, so it
has the same bits on every processor.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils
from numba.extending import intrinsic

from dmsgd.compiled.jit import DOUBLES, HALVES, INT, NOTHING

INDEX, SHORT, BYTE = ir.IntType(64), ir.IntType(32), ir.IntType(8)

#: Numbers in a vector of the code; the compiler cuts it into what the processor has.
LANES, SINGLE_LANES = 8, 16
DOUBLE_VECTOR = ir.VectorType(ir.DoubleType(), LANES)
SINGLE_VECTOR = ir.VectorType(ir.FloatType(), SINGLE_LANES)

#: Columns of a tile that is worked on at a time, and with them the proposals in a block.
BLOCK = 32


def integer(value: int) -> Any:
    """Return an index that is known."""
    return ir.Constant(INDEX, value)


def constant(kind: Any, value: float) -> Any:
    """Return a vector of one number."""
    return ir.Constant(kind, [value] * kind.count)


def element(builder: Any, pointer: Any, index: Any, stride: Any) -> Any:
    """Return a pointer to pointer[index * stride]."""
    return builder.gep(pointer, [builder.mul(index, stride)])


def load(builder: Any, pointer: Any, kind: Any = DOUBLE_VECTOR) -> Any:
    """Return the vector at a pointer."""
    size = 8 if kind is DOUBLE_VECTOR else 4
    return builder.load(builder.bitcast(pointer, kind.as_pointer()), align=size)


def store(builder: Any, vector: Any, pointer: Any, size: int = 8) -> None:
    """Write a vector to a pointer; `size` is what its address is a multiple of."""
    builder.store(vector, builder.bitcast(pointer, vector.type.as_pointer()), align=size)


def stream(builder: Any, vector: Any, pointer: Any) -> None:
    """Write a whole line of memory past the caches, for what is read much later if at all."""
    place = builder.bitcast(pointer, vector.type.as_pointer())
    written = builder.store(vector, place, align=8 * LANES)
    written.set_metadata("nontemporal", builder.module.add_metadata([ir.Constant(SHORT, 1)]))


def broadcast(builder: Any, scalar: Any, kind: Any = DOUBLE_VECTOR) -> Any:
    """Return a vector of one number that is not known yet."""
    empty = ir.Constant(kind, ir.Undefined)
    first = builder.insert_element(empty, scalar, ir.Constant(SHORT, 0))
    return builder.shuffle_vector(first, empty, constant(ir.VectorType(SHORT, kind.count), 0))


def call_vector(builder: Any, name: str, *arguments: Any) -> Any:
    """Return what LLVM's function of this name says of vectors of one kind."""
    kind = arguments[0].type
    end = f"v{kind.count}f{64 if kind == DOUBLE_VECTOR else 32}"
    function_type = ir.FunctionType(kind, [kind] * len(arguments))
    function = cgutils.get_or_insert_function(builder.module, function_type, f"llvm.{name}.{end}")
    return builder.call(function, arguments)


def variables(builder: Any, count: int, kind: Any = DOUBLE_VECTOR) -> list[Any]:
    """Return `count` vectors, which the compiler puts into registers."""
    return [cgutils.alloca_once(builder, kind) for _ in range(count)]


def set_zero(builder: Any, variables: list[Any]) -> None:
    """Set all vectors to zero."""
    for variable in variables:
        builder.store(constant(variable.type.pointee, 0.0), variable)


def accumulate(builder: Any, a: Any, b: Any, variable: Any) -> None:
    """variable += a * b, rounded once."""
    builder.store(call_vector(builder, "fma", a, b, builder.load(variable)), variable)


def vectors_of(builder: Any, pointer: Any, count: int, lanes: int = LANES) -> list[Any]:
    """Return pointers to vectors that follow each other."""
    return [builder.gep(pointer, [integer(q * lanes)]) for q in range(count)]


@intrinsic
def sparse_tile(typing, entries, places, count, B, b_row, out):
    """out[j] = Σ_e entries[e] B[places[e] b_row + j] for the columns j of a block."""

    def code(context, builder, signature, arguments):
        entries, places, count, B, b_row, out = arguments
        sums = variables(builder, BLOCK // LANES)
        set_zero(builder, sums)
        with cgutils.for_range(builder, count) as loop:
            place = builder.zext(builder.load(builder.gep(places, [loop.index])), INDEX)
            row = vectors_of(builder, element(builder, B, place, b_row), len(sums))
            factor = broadcast(builder, builder.load(builder.gep(entries, [loop.index])))
            for at, variable in zip(row, sums, strict=True):
                accumulate(builder, factor, load(builder, at), variable)
        for at, variable in zip(vectors_of(builder, out, len(sums)), sums, strict=True):
            store(builder, builder.load(variable), at)
        return context.get_dummy_value()

    return NOTHING(DOUBLES, HALVES, INT, DOUBLES, INT, DOUBLES), code
