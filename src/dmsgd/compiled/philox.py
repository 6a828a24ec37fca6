"""Counter-based random numbers: number c of draw t is a function of (key, t, c) alone.

Philox4x32-10 (Salmon et al. 2011): no state to carry, so any worker can make any draw, and a
graphics card can make the same one. Its words of 32 bits are in vectors of 64, whose products they
need, for eight counters at a time.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils
from numba.extending import intrinsic

from dmsgd.compiled.jit import DOUBLES, INT, NOTHING, REAL, WORD, compiled, to_fill
from dmsgd.compiled.pointers import pointer_to, shift
from dmsgd.compiled.simd import (
    DOUBLE_VECTOR,
    INDEX,
    LANES,
    SHORT,
    broadcast,
    constant,
    integer,
    store,
    vectors_of,
)

_WORDS = ir.VectorType(INDEX, LANES)
_LOW = 2**32 - 1
_MULTIPLIERS, _WEYL = (0xD2511F53, 0xCD9E8D57), (0x9E3779B9, 0xBB67AE85)
#: The bits of 2^52; numbers below that are the last 52 bits of 2^52 + the number.
_EXPONENT = 0x4330000000000000
#: Uniforms that are made at a time: two of every counter.
TILE = 2 * LANES


def _philox(builder: Any, keys: list[Any], counter: list[Any]) -> list[Any]:
    """Return four random 32-bit words for a 64-bit key and a 128-bit counter, given as words."""
    low, half = constant(_WORDS, _LOW), constant(_WORDS, 32)
    a, b, c, d = counter
    for turn in range(10):
        first = builder.mul(constant(_WORDS, _MULTIPLIERS[0]), a)
        second = builder.mul(constant(_WORDS, _MULTIPLIERS[1]), c)
        key = [
            builder.and_(builder.add(word, constant(_WORDS, turn * step)), low)
            for word, step in zip(keys, _WEYL, strict=True)
        ]
        a = builder.xor(builder.xor(builder.lshr(second, half), b), key[0])
        c = builder.xor(builder.xor(builder.lshr(first, half), d), key[1])
        b, d = builder.and_(second, low), builder.and_(first, low)
    return [a, b, c, d]


def _uniform(builder: Any, high: Any, low: Any) -> Any:
    """Return numbers strictly inside (0, 1) from 52 random bits: (bits + 1/2) / 2^52."""
    bits = builder.or_(
        builder.shl(high, constant(_WORDS, 20)), builder.lshr(low, constant(_WORDS, 12))
    )
    number = builder.bitcast(builder.or_(bits, constant(_WORDS, _EXPONENT)), DOUBLE_VECTOR)
    number = builder.fsub(number, constant(DOUBLE_VECTOR, 2.0**52 - 0.5))
    return builder.fmul(number, constant(DOUBLE_VECTOR, 2.0**-52))


def _store_first(builder: Any, vector: Any, pointer: Any, count: Any) -> None:
    """Write the first `count` numbers of a vector, none if that is below 1.

    Processors without masks (NEON, SSE2) do it one number at a time.
    """
    places = ir.Constant(_WORDS, list(range(LANES)))
    mask = builder.icmp_signed("<", places, broadcast(builder, count, _WORDS))
    place = builder.bitcast(pointer, vector.type.as_pointer())
    kind = ir.FunctionType(ir.VoidType(), [vector.type, place.type, SHORT, mask.type])
    name = f"llvm.masked.store.v{LANES}f64.p0"
    function = cgutils.get_or_insert_function(builder.module, kind, name)
    builder.call(function, [vector, place, ir.Constant(SHORT, 8), mask])


@intrinsic
def _fill_tile(typing, key, draw, block, out, count):
    """Fill `out` with the first of TILE uniforms of `draw` from number 2 * block on."""

    def code(context, builder, signature, arguments):
        key, draw, block, out, count = arguments

        def words(number: Any) -> list[Any]:
            parts = builder.and_(number, integer(_LOW)), builder.lshr(number, integer(32))
            return [broadcast(builder, part, _WORDS) for part in parts]

        blocks = builder.add(
            broadcast(builder, block, _WORDS), ir.Constant(_WORDS, list(range(LANES)))
        )
        counter = [builder.and_(blocks, constant(_WORDS, _LOW)), constant(_WORDS, 0), *words(draw)]
        found = _philox(builder, words(key), counter)
        even, odd = _uniform(builder, *found[:2]), _uniform(builder, *found[2:])
        mixed, places = [], vectors_of(builder, out, 2)
        for first in (0, LANES // 2):
            order = [at for i in range(first, first + LANES // 2) for at in (i, LANES + i)]
            mask = ir.Constant(ir.VectorType(SHORT, LANES), order)
            mixed.append(builder.shuffle_vector(even, odd, mask))
        whole = builder.icmp_signed(">=", count, integer(TILE))
        with builder.if_else(whole) as (then, otherwise):
            with then:
                for vector, place in zip(mixed, places, strict=True):
                    store(builder, vector, place)
            with otherwise:
                for part, (vector, place) in enumerate(zip(mixed, places, strict=True)):
                    left = builder.sub(count, integer(part * LANES))
                    _store_first(builder, vector, place, left)
        return context.get_dummy_value()

    return NOTHING(WORD, WORD, INT, DOUBLES, INT), code


@compiled(INT(WORD, WORD, INT, DOUBLES, INT))
def uniforms_at(key, draw, block, out, size):
    """Fill `out` with `size` uniforms of `draw` from number 2 * block on; return the next block."""
    for first in range(0, size, TILE):
        _fill_tile(key, draw, block + first // 2, shift(out, first), size - first)
    return block + (size + 1) // 2


@compiled(INT(WORD, WORD, INT, to_fill(REAL, 1)), called_from_python=True)
def fill_uniform(key, draw, block, out):
    """Fill `out` with the uniforms of `draw` from number 2 * block on; return the next block."""
    return uniforms_at(key, draw, block, pointer_to(out), out.size)
