"""Pointers: where arrays begin, steps from there, and what is done at an address.

Nothing is checked. Strides and steps are counted in elements.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from dmsgd.compiled.jit import (
    BYTES,
    DOUBLES,
    HALVES,
    INT,
    INTS,
    NOTHING,
    SINGLES,
    WORDS,
)


@intrinsic
def shift(typing, pointer, count):
    """Return pointer + count."""

    def code(context, builder, signature, arguments):
        return builder.gep(arguments[0], [arguments[1]])

    return pointer(pointer, INT), code


@intrinsic
def pointer_to(typing, array):
    """Return a pointer to the first element of a contiguous array."""

    def code(context, builder, signature, arguments):
        return context.make_array(signature.args[0])(context, builder, arguments[0]).data

    return types.CPointer(array.dtype)(array), code


def _pointer_at(kind: Any) -> Any:
    @intrinsic
    def pointer_at(typing, address):
        """Return a pointer to this address."""

        def code(context, builder, signature, arguments):
            return builder.inttoptr(arguments[0], context.get_value_type(kind))

        return kind(INT), code

    return pointer_at


doubles_at, ints_at = _pointer_at(DOUBLES), _pointer_at(INTS)
words_at, halves_at = _pointer_at(WORDS), _pointer_at(HALVES)
bytes_at = _pointer_at(BYTES)


@intrinsic
def call(typing, address, *arguments):
    """Return the integer that the function at this address returns (see `jit.address_of`)."""

    def code(context, builder, signature, values):
        kinds = [context.get_value_type(argument) for argument in arguments]
        kind = ir.FunctionType(ir.IntType(64), kinds)
        function = builder.inttoptr(values[0], kind.as_pointer())
        return builder.call(function, cgutils.unpack_tuple(builder, values[1]))

    return INT(INT, types.StarArgTuple(arguments)), code


@intrinsic
def as_singles(typing, pointer):
    """Return the same pointer, to singles."""

    def code(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], context.get_value_type(SINGLES))

    return SINGLES(pointer), code


@intrinsic
def prefetch(typing, pointer):
    """Ask for what is there: it will be read soon."""

    def code(context, builder, signature, arguments):
        place = builder.bitcast(arguments[0], ir.IntType(8).as_pointer())
        short = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [place.type, short, short, short])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        builder.call(function, [place, *(ir.Constant(short, how) for how in (0, 3, 1))])
        return context.get_dummy_value()

    return NOTHING(pointer), code
