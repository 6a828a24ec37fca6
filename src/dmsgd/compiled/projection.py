"""The subspace of R^k that the accepted items leave, and which proposals it accepts.

Householder reflections map each accepted item onto the last remaining axis, which is then dropped.
The reflections of a block of proposals are a group, I + Rᵀ S R = I + V S Vᵀ.

While more than FORMED_AT of R^k is left, proposals are multiplied by one group after the other.
Then W, whose rows are an orthonormal basis of the subspace, is formed from all groups at once; from
there on proposals are multiplied by W and by the current group, which is multiplied into W when it
has W_UPDATE_BLOCK reflections. Acceptance gets rarer as W gets smaller: all proposals of a batch
cost about 2 k³ operations, a third of them in single precision, and W about 0.9 k³.

Above WIDE_UP_TO, a block is decided LANES columns at a time. They are copied into a strip, which
stays in the first cache; the reflections of one strip reach the next as a group.
"""

from __future__ import annotations

from typing import Any, final

import numpy as np
from numba.types import int64

from dmsgd.compiled import linear_algebra as la
from dmsgd.compiled import microkernels as kernels
from dmsgd.compiled.jit import (
    CODE,
    RECORD,
    Table,
    address,
    callback,
    float32_ptr,
    float64_ptr,
    helper,
    inlined,
    int64_ptr,
)
from dmsgd.compiled.linear_algebra import ADD, SET
from dmsgd.compiled.llvm import BLOCK, LANES, LINE_BYTES, call, doubles_at, ints_at, shift
from dmsgd.compiled.philox import uniforms

#: Reflections in a group before W is updated: fewer would not be worth reading and writing W.
W_UPDATE_BLOCK = 8

#: The share of R^k that is left when W is formed.
FORMED_AT = 0.35

#: Up to this k a block of proposals is decided as a whole, not in strips.
WIDE_UP_TO = 128

#: W is formed early if groups have fewer reflections than this on average.
PER_GROUP = 16

#: What one draw works on.
WORK = Table(
    k=int64,  # items of a batch
    length=int64,  # numbers in a row of W: k or more, so that columns do not share a cache set
    width=int64,  # columns of a strip; those of a block where there are no strips
    left=int64,  # items that the draw still lacks: the dimension of the subspace
    groups=int64,  # groups of reflections, until W is formed
    formed=int64,  # whether W is formed
    pending=int64,  # reflections that are not in W yet; W still has this many extra rows
    changed=int64,  # whether W has changed since W32 was made
    # Functions; the last two may be 0.
    product=CODE,
    random=CODE,
    accept=CODE,
    locate=CODE,
    gather=CODE,
    begin_draw=CODE,
    prefilter=CODE,
    # Arguments of `kdpp.draw`.
    source=RECORD,  # what `RowArguments.callbacks` take
    totals=float64_ptr,  # sums of squares of the columns of V
    log_e=float64_ptr,  # logarithms of elementary symmetric polynomials, (k + 1, rank + 1), or 0
    rank=int64,
    first_block=int64,  # of the random numbers
    out=int64_ptr,  # (size, k)
    size=int64,
    # Arrays in `Workspace.room`; those without a comment are scratch.
    W=float64_ptr,  # rows of `length`
    W32=float32_ptr,  # the same in single precision
    Z=float64_ptr,  # coordinates of proposals in the subspace, one proposal per column
    reflections=float64_ptr,  # R of all groups, one reflection per row
    S=float64_ptr,  # of all groups
    V=float64_ptr,  # Rᵀ of the current group
    taus=float64_ptr,  # the factors of its reflections
    spans=int64_ptr,  # axes of each group
    counts=int64_ptr,  # reflections in each group
    J=int64_ptr,  # the eigenvectors of the draw
    items=int64_ptr,  # proposals, of up to two blocks
    thresholds=float64_ptr,  # theirs
    X=float64_ptr,  # coordinates of a block of them, one proposal per column
    columns=int64_ptr,
    targets=float64_ptr,
    uniforms=float64_ptr,
    squares=float64_ptr,
    norms=float64_ptr,
    U=float64_ptr,
    U2=float64_ptr,
    y=float64_ptr,
    singles=float32_ptr,
    strip=float64_ptr,  # LANES columns of Z, in rows of LANES
)


def row_length(k: int) -> int:
    """Return how many numbers are in a row of W, and in a reflection."""
    return -(-k // BLOCK) * BLOCK + LANES


def array_sizes(k: int) -> dict[str, int]:
    """Return how many numbers of 8 bytes each array takes."""
    length, groups = row_length(k), k // PER_GROUP + 2
    block, proposals = (BLOCK + LANES) * BLOCK, length * BLOCK
    per_proposal = ("taus", "y", "squares", "norms", "targets")
    return {
        "spans": groups, "counts": groups, "J": k,
        "items": 2 * BLOCK, "thresholds": 2 * BLOCK, "columns": BLOCK,
        "W": length * length, "W32": length * length // 2,
        **dict.fromkeys(("X", "Z", "V", "singles"), proposals),
        "reflections": groups * length * BLOCK, "S": groups * BLOCK * BLOCK,
        **dict.fromkeys(("U", "U2"), block), **dict.fromkeys(per_proposal, BLOCK),
        "uniforms": max(3 * BLOCK, k + 1), "strip": length * LANES,
    }  # fmt: skip


@final
class Workspace:
    """Scratch of one thread for batches of k: `room`, and `fields` with the addresses in it.

    `fields` is the beginning of `room`, so that it keeps all of it alive.
    """

    def __init__(self, k: int) -> None:
        sizes = {name: -(-size // 8) * 8 for name, size in array_sizes(k).items()}
        own = WORK.dtype.itemsize // 8
        self.room = np.zeros(own + 8 + sum(sizes.values()))
        self.fields = self.room[:own].view(WORK.dtype).reshape(())
        self.address = address(self.room, np.float64)
        #: What `fields` has the addresses of, beside `room`.
        self.buffers: Any = None
        callbacks = {"product": la.product, "random": uniforms, "accept": accept}
        width = BLOCK if k <= WIDE_UP_TO else LANES
        WORK.fill(self.fields, k=k, length=row_length(k), width=width, **callbacks)
        place = -(-(self.address + 8 * own) // LINE_BYTES) * LINE_BYTES
        for name, size in sizes.items():  # each array has whole cache lines
            self.fields[name] = place
            place += 8 * size
        at = (int(self.fields["J"]) - self.address) // 8
        self.J = self.room[at : at + k].view(np.int64)


@inlined
def begin(work):
    """All of R^k is left."""
    work.left = work.k
    work.groups = work.formed = work.pending = 0


@inlined
def group_factors(work, group):
    """Return the reflections and S of a group."""
    rows = shift(doubles_at(work.reflections), group * work.length * BLOCK)
    return rows, shift(doubles_at(work.S), group * BLOCK * BLOCK)


@helper
def apply_reflections(work, group, Z, row, size):
    """Z = ((I + Rᵀ S R) Z)[:-count] with R and S of this group, of the first `size` columns."""
    span, count, length = ints_at(work.spans)[group], ints_at(work.counts)[group], work.length
    R, S = group_factors(work, group)
    U, U2, Z = (doubles_at(work.U), BLOCK), (doubles_at(work.U2), BLOCK), (Z, row)
    call(work.product, (R, length, 1), Z, U, count, span, size, SET)
    call(work.product, (S, BLOCK, 1), U, U2, count, count, size, SET)
    call(work.product, (R, 1, length), U2, Z, span - count, count, size, ADD)


@helper
def extend_group(work, group, span, before, count):
    """The reflections from `before` to `count` come into S of a group, with V = Rᵀ for it."""
    length, V, gram = work.length, doubles_at(work.V), doubles_at(work.U)
    R, S = group_factors(work, group)
    for i in range(span):
        for j in range(before, count):
            V[i * BLOCK + j] = R[j * length + i]
    new, rows = (shift(R, before * length), length, 1), (shift(gram, before * BLOCK), BLOCK)
    call(work.product, new, (V, BLOCK), rows, count - before, span, count, SET)
    la.compact_wy(gram, doubles_at(work.taus), before, count, S)
    ints_at(work.spans)[group], ints_at(work.counts)[group] = span, count


@helper
def update_W(work):
    """W = ((I + Rᵀ S R) W)[:-count] with the current group."""
    for start in range(0, work.k, BLOCK):
        part, size = shift(doubles_at(work.W), start), min(BLOCK, work.k - start)
        apply_reflections(work, 0, part, work.length, size)
    work.pending, work.changed = 0, 1


@helper
def form_W(work):
    """Form W: the first rows of the identity, multiplied by all groups from last to first."""
    k, length, left = work.k, work.length, work.left
    W, Z, rows = doubles_at(work.W), doubles_at(work.Z), (doubles_at(work.Z), BLOCK)
    U, U2 = (doubles_at(work.U), BLOCK), (doubles_at(work.U2), BLOCK)
    for start in range(0, left, BLOCK):  # rows of W are columns of Z
        size, reached = min(BLOCK, left - start), left
        for i in range((k + LANES) * BLOCK):
            Z[i] = 0.0
        for i in range(size):
            Z[(start + i) * BLOCK + i] = 1.0
        for group in range(work.groups - 1, -1, -1):
            span, count = ints_at(work.spans)[group], ints_at(work.counts)[group]
            R, S = group_factors(work, group)
            call(work.product, (R, length, 1), rows, U, count, reached, size, SET)
            call(work.product, (S, 1, BLOCK), U, U2, count, count, size, SET)
            call(work.product, (R, 1, length), U2, rows, span, count, size, ADD)
            reached = span
        for c in range(k):
            for i in range(size):
                W[(start + i) * length + c] = Z[c * BLOCK + i]
    work.groups, work.formed, work.changed = 0, 1, 1


@callback(int64(WORK.record, int64_ptr, float64_ptr, float64_ptr, int64, int64_ptr))
def accept(work, items, X, thresholds, size, out):
    """Decide on `size` proposals in order, append those accepted to `out`; return the items left.

    X has their coordinates as columns, and is overwritten. A proposal is accepted if its projection
    on the subspace has more than `threshold` of its squared length.
    """
    k, length, left = work.k, work.length, work.left
    squares, norms = doubles_at(work.squares), doubles_at(work.norms)
    kernels.column_squares(X, k, norms)
    Z = X
    if work.formed:
        if work.pending + size > BLOCK:  # there may be no room for all reflections
            update_W(work)
        W, Z = (doubles_at(work.W), length, 1), doubles_at(work.Z)
        call(work.product, W, (X, BLOCK), (Z, BLOCK), left + work.pending, k, size, SET)
    for group in range(work.groups):
        apply_reflections(work, group, Z, BLOCK, size)
    group, first, strip = work.groups, work.pending, doubles_at(work.strip)
    R, _ = group_factors(work, group)
    taus, y, width = doubles_at(work.taus), doubles_at(work.y), work.width
    span, count = left + first, first
    for start in range(0, size, width):
        part, before = shift(Z, start), count
        if count > 0:
            apply_reflections(work, group, part, BLOCK, min(width, size - start))
        if width < BLOCK:
            kernels.take_strip(part, span - count, strip)
            part = strip
        la.squares(part, span - count, width, squares)
        for p in range(start, min(start + width, size)):
            if squares[p - start] <= thresholds[p] * norms[p]:
                continue
            rest = span - count
            out[k - rest] = items[p]
            if rest == 1:
                work.left = 0
                return 0
            v = shift(R, count * length)
            taus[count] = la.reflect(part, rest, width, p - start, v, y, squares)
            for i in range(rest, span + LANES):  # a tile of rows may end there
                v[i] = 0.0
            count += 1
        if count > before:
            extend_group(work, group, span, before, count)
    if count == first:
        return left
    work.left = span - count
    if work.formed:
        work.pending = count
        if count >= W_UPDATE_BLOCK:
            update_W(work)
    else:
        work.groups += 1
        if work.left <= FORMED_AT * k or group == k // PER_GROUP:
            form_W(work)
    return span - count
