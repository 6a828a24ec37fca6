"""Steps of pointers, pointers from addresses, and calls by address."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils
from numba.extending import intrinsic
from numba.types import StarArgTuple, int64, void

from dmsgd.compiled.jit import (
    float32_ptr,
    float64_ptr,
    int8_ptr,
    int64_ptr,
    uint32_ptr,
    uint64_ptr,
)


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


doubles_at, singles_at = _pointer_at(float64_ptr), _pointer_at(float32_ptr)
ints_at, bytes_at = _pointer_at(int64_ptr), _pointer_at(int8_ptr)
uint64s_at, uint32s_at = _pointer_at(uint64_ptr), _pointer_at(uint32_ptr)


@intrinsic
def call(typing, address, *arguments):
    """Return the integer that the function at this address returns; see `jit.Callback`.

    The function is compiled once, and not again within each function that calls it.
    """

    def code(context, builder, signature, values):
        kinds = [context.get_value_type(argument) for argument in arguments]
        kind = ir.FunctionType(ir.IntType(64), kinds)
        function = builder.inttoptr(values[0], kind.as_pointer())  # llvmlite calls no other kind
        return builder.call(function, cgutils.unpack_tuple(builder, values[1]))

    return int64(int64, StarArgTuple(arguments)), code


@intrinsic
def prefetch(typing, pointer):
    """Ask memory for what is at a pointer, which will be read soon."""

    def code(context, builder, signature, arguments):
        flag = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [ir.PointerType(), flag, flag, flag])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        builder.call(function, [arguments[0], *(ir.Constant(flag, how) for how in (0, 3, 1))])
        return context.get_dummy_value()

    return void(pointer), code


@intrinsic
def outlined(typing):
    """Keep the machine code of the function that calls this out of its callers."""

    def code(context, builder, signature, arguments):
        builder.function.attributes.add("noinline")
        return context.get_dummy_value()

    return void(), code
