"""Accept or reject proposals whose rows were found block by block of the data.

The random numbers are those of `kdpp.draw`, used for the same things, so the draws are the same.
"""

from __future__ import annotations

from numba.types import int64, uint64

from dmsgd.compiled.jit import callback, float64_ptr, int64_ptr, uint64_ptr
from dmsgd.compiled.philox import fill_uniforms
from dmsgd.compiled.pointers import call, doubles_at, shift
from dmsgd.compiled.projection import ACCEPT, K, X, begin
from dmsgd.compiled.simd import BLOCK

#: Blocks of random numbers that a block of proposals takes: three uniforms each, two in a block.
STRIDE = 3 * BLOCK // 2


@callback(int64(uint64, uint64_ptr, int64, int64, int64, float64_ptr))
def fill_proposal_uniforms(key, draws, size, first, count, out):
    """Fill out[t] with the uniforms of `count` blocks of proposals of draw draws[t], t < size.

    From proposal block `first` // STRIDE on, where `first` counts blocks of random numbers.
    """
    for t in range(size):
        fill_uniforms(key, draws[t], first, shift(out, t * count * 3 * BLOCK), count * 3 * BLOCK)
    return 0


@callback(int64(int64_ptr, int64, int64, int64_ptr, *2 * [float64_ptr], *2 * [int64_ptr]))
def decide(fields, size, count, items, coordinates, thresholds, left, out):
    """Decide on the proposals of `size` draws in order, `count` blocks each.

    left[t] becomes how many items draw t lacks. `coordinates` has rows of k.
    """
    k, part = fields[K], doubles_at(fields[X])
    for t in range(size):
        begin(fields)
        left[t] = k
        for q in range(count):
            first = (t * count + q) * BLOCK
            for p in range(BLOCK):
                for c in range(k):
                    part[c * BLOCK + p] = coordinates[(first + p) * k + c]
            left[t] = call(
                fields[ACCEPT], fields, shift(items, first), part, shift(thresholds, first), BLOCK,
                shift(out, t * k),
            )  # fmt: skip
            if left[t] == 0:
                break
    return 0
