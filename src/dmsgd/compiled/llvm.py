"""Instructions of LLVM that numba has no name for: steps of pointers, calls by address, vectors.

Loops whose sums must stay in registers are written in vector instructions (`Code`). Sums are added
up in the order of the inner index by fused multiply-adds, so that results have the same bits on
every processor.
"""

from __future__ import annotations

import platform
from collections.abc import Callable
from functools import wraps
from typing import Any, final

from llvmlite import ir
from numba.core import cgutils
from numba.extending import intrinsic
from numba.types import BaseTuple, StarArgTuple, int64, void

from dmsgd.compiled.jit import float32_ptr, float64_ptr, int8_ptr, int64_ptr, uint32_ptr

INDEX, INT32, DOUBLE, SINGLE = ir.IntType(64), ir.IntType(32), ir.DoubleType(), ir.FloatType()

#: Doubles in a vector of the code; LLVM cuts it into what the processor has.
LANES = 8
DOUBLES, SINGLES = ir.VectorType(DOUBLE, LANES), ir.VectorType(SINGLE, 2 * LANES)

#: Bytes of a cache line.
LINE_BYTES = 64

#: Columns that microkernels work on together, and proposals of a draw that are decided together.
BLOCK = 32

#: The cache that lines are prefetched into, 3 for the nearest. With the next one draws are 8 %
#: faster on a Neoverse-N1, and up to 6 % slower on a Xeon.
_CACHE = 2 if platform.machine() in ("aarch64", "arm64") else 3


@intrinsic
def shift(typing, pointer, count):
    """Return pointer + count."""

    def code(context, builder, signature, arguments):
        kind = context.get_value_type(pointer.dtype)
        return builder.gep(arguments[0], [arguments[1]], source_etype=kind)

    return pointer(pointer, int64), code


def _pointer_at(kind: Any) -> Any:
    @intrinsic
    def pointer_at(typing, address):
        """Return a pointer to this address."""

        def code(context, builder, signature, arguments):
            return builder.inttoptr(arguments[0], context.get_value_type(kind))

        return kind(int64), code

    return pointer_at


doubles_at, singles_at, bytes_at = map(_pointer_at, (float64_ptr, float32_ptr, int8_ptr))
ints_at, uint32s_at = map(_pointer_at, (int64_ptr, uint32_ptr))


@intrinsic
def call(typing, address, *arguments):
    """Return the integer that the function at this address returns; see `jit.Callback`.

    The function is compiled once, and not again within each function that calls it. A tuple among
    the arguments stands for its entries.
    """

    def code(context, builder, signature, values):
        flat: list[Any] = []
        given = cgutils.unpack_tuple(builder, values[1])
        for argument, value in zip(arguments, given, strict=True):
            is_tuple = isinstance(argument, BaseTuple)
            flat += cgutils.unpack_tuple(builder, value) if is_tuple else [value]
        kind = ir.FunctionType(INDEX, [value.type for value in flat])
        function = builder.inttoptr(values[0], kind.as_pointer())  # llvmlite calls no other kind
        return builder.call(function, flat)

    return int64(int64, StarArgTuple(arguments)), code


@intrinsic
def prefetch(typing, pointer):
    """Ask memory for what is at a pointer, which will be read soon."""

    def code(context, builder, signature, arguments):
        kind = ir.FunctionType(ir.VoidType(), [ir.PointerType(), *3 * [INT32]])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        builder.call(function, [arguments[0], *map(INT32, (0, _CACHE, 1))])
        return context.get_dummy_value()

    return void(pointer), code


def instructions(signature: Any) -> Callable[[Any], Any]:
    """Return the decorator of a function (code: Code, *arguments) that writes instructions.

    Compiled code calls it with arguments of this signature. Pointers reach it without a type, so
    that vectors and scalars can be read from them and written to them.
    """

    def decorate(write: Any) -> Any:
        def generate(context: Any, builder: Any, _: Any, values: Any) -> Any:
            untyped = [
                builder.inttoptr(builder.ptrtoint(value, INDEX), ir.PointerType())
                if isinstance(value.type, ir.PointerType)
                else value
                for value in values
            ]
            result = write(Code(builder), *untyped)
            return context.get_dummy_value() if result is None else result

        @wraps(write)
        def typed(*_: Any) -> Any:
            return signature, generate

        return intrinsic(typed)

    return decorate


@final
class Code:
    """Writes instructions by a `builder` of llvmlite."""

    def __init__(self, builder: Any) -> None:
        self.builder = builder

    @staticmethod
    def constant(kind: Any, value: float) -> Any:
        """Return a vector of one constant."""
        return kind([value] * kind.count)

    def loop(self, count: Any) -> Any:
        """Return the context of a loop, whose `index` goes from 0 to count."""
        return cgutils.for_range(self.builder, count)

    def element(self, pointer: Any, index: Any, stride: Any = None, kind: Any = DOUBLE) -> Any:
        """Return a pointer to pointer[index * stride]."""
        index = INDEX(index) if isinstance(index, int) else index
        place = index if stride is None else self.builder.mul(index, stride)
        return self.builder.gep(pointer, [place], source_etype=kind)

    def vectors(self, pointer: Any, count: int, kind: Any = DOUBLES) -> list[Any]:
        """Return pointers to `count` vectors that follow each other."""
        return [self.element(pointer, q, kind=kind) for q in range(count)]

    def number(self, pointer: Any, index: Any, stride: Any = None, kind: Any = DOUBLE) -> Any:
        """Return pointer[index * stride]."""
        return self.builder.load(self.element(pointer, index, stride, kind), typ=kind)

    def load(self, pointer: Any, kind: Any = DOUBLES) -> Any:
        """Return the vector at a pointer."""
        return self.builder.load(pointer, align=4 if kind.element == SINGLE else 8, typ=kind)

    def store(self, vector: Any, pointer: Any) -> None:
        """Write a vector to a pointer."""
        self.builder.store(vector, pointer, align=4 if vector.type.element == SINGLE else 8)

    def broadcast(self, scalar: Any, kind: Any = DOUBLES) -> Any:
        """Return a vector of one number."""
        empty = ir.Constant(kind, ir.Undefined)
        first = self.builder.insert_element(empty, scalar, INT32(0))
        zeros = self.constant(ir.VectorType(INT32, kind.count), 0)
        return self.builder.shuffle_vector(first, empty, zeros)

    def fma(self, a: Any, b: Any, c: Any) -> Any:
        """Return a * b + c, rounded once."""
        kind = a.type
        bits = 32 if kind.element == SINGLE else 64
        return self.call(f"llvm.fma.v{kind.count}f{bits}", kind, [kind] * 3, a, b, c)

    def call(self, name: str, result: Any, kinds: list[Any], *values: Any) -> Any:
        """Return the result of an intrinsic function of LLVM."""
        signature = ir.FunctionType(result, kinds)
        function = cgutils.get_or_insert_function(self.builder.module, signature, name)
        return self.builder.call(function, values)

    def sums(self, count: int, kind: Any = DOUBLES) -> list[Any]:
        """Return `count` vector variables, which LLVM puts into registers, set to zero."""
        variables = [cgutils.alloca_once(self.builder, kind) for _ in range(count)]
        for variable in variables:
            self.builder.store(self.constant(kind, 0.0), variable)
        return variables

    def accumulate(self, a: Any, b: Any, variable: Any) -> None:
        """variable += a * b, rounded once."""
        total = self.builder.load(variable, typ=a.type)
        self.builder.store(self.fma(a, b, total), variable)

    def store_sums(self, sums: list[Any], pointers: list[Any], kind: Any = DOUBLES) -> None:
        """Write vector variables to pointers."""
        for variable, pointer in zip(sums, pointers, strict=True):
            self.store(self.builder.load(variable, typ=kind), pointer)
