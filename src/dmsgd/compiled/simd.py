"""Vector instructions of LLVM, for loops whose sums must stay in registers.

Sums are added up in the order of the inner index by fused multiply-adds, so that results have the
same bits on every processor.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils

INDEX, INT32, DOUBLE, SINGLE = ir.IntType(64), ir.IntType(32), ir.DoubleType(), ir.FloatType()

#: Numbers in a vector of the code; LLVM cuts it into what the processor has.
LANES, SINGLE_LANES = 8, 16
DOUBLE_VECTOR = ir.VectorType(DOUBLE, LANES)
SINGLE_VECTOR = ir.VectorType(SINGLE, SINGLE_LANES)

#: Columns that microkernels work on together, and proposals of a draw that are decided together.
BLOCK = 32


def integer(value: int) -> Any:
    """Return a constant index."""
    return ir.Constant(INDEX, value)


def constant(kind: Any, value: float) -> Any:
    """Return a constant vector of one number."""
    return ir.Constant(kind, [value] * kind.count)


def opaque(builder: Any, *pointers: Any) -> list[Any]:
    """Return pointers without a type, which vectors and scalars can be read from and written to."""
    return [builder.inttoptr(builder.ptrtoint(each, INDEX), ir.PointerType()) for each in pointers]


def element(builder: Any, pointer: Any, index: Any, stride: Any = None, kind: Any = DOUBLE) -> Any:
    """Return a pointer to pointer[index * stride]."""
    place = index if stride is None else builder.mul(index, stride)
    return builder.gep(pointer, [place], source_etype=kind)


def vectors_at(builder: Any, pointer: Any, count: int, kind: Any = DOUBLE_VECTOR) -> list[Any]:
    """Return pointers to `count` vectors that follow each other."""
    return [element(builder, pointer, integer(q), kind=kind) for q in range(count)]


def load(builder: Any, pointer: Any, kind: Any = DOUBLE_VECTOR) -> Any:
    """Return the vector at a pointer."""
    return builder.load(pointer, align=4 if kind.element == SINGLE else 8, typ=kind)


def store(builder: Any, vector: Any, pointer: Any) -> None:
    """Write a vector to a pointer."""
    builder.store(vector, pointer, align=4 if vector.type.element == SINGLE else 8)


def broadcast(builder: Any, scalar: Any, kind: Any = DOUBLE_VECTOR) -> Any:
    """Return a vector of one number."""
    empty = ir.Constant(kind, ir.Undefined)
    first = builder.insert_element(empty, scalar, ir.Constant(INT32, 0))
    return builder.shuffle_vector(first, empty, constant(ir.VectorType(INT32, kind.count), 0))


def fma(builder: Any, a: Any, b: Any, c: Any) -> Any:
    """Return a * b + c, rounded once."""
    kind = a.type
    name = f"llvm.fma.v{kind.count}f{32 if kind.element == SINGLE else 64}"
    function_type = ir.FunctionType(kind, [kind] * 3)
    function = cgutils.get_or_insert_function(builder.module, function_type, name)
    return builder.call(function, [a, b, c])


def zeros(builder: Any, count: int, kind: Any = DOUBLE_VECTOR) -> list[Any]:
    """Return `count` vector variables, which LLVM puts into registers, set to zero."""
    variables = [cgutils.alloca_once(builder, kind) for _ in range(count)]
    for variable in variables:
        builder.store(constant(kind, 0.0), variable)
    return variables


def accumulate(builder: Any, a: Any, b: Any, variable: Any) -> None:
    """variable += a * b, rounded once."""
    builder.store(fma(builder, a, b, builder.load(variable, typ=a.type)), variable)
