"""The subspace of R^k that the accepted items leave, and which proposals it accepts.

Householder reflections map each accepted item onto the last remaining axis, which is then dropped.
The reflections of a block of proposals are a group, I + V S Vᵀ.

While more than FORMED_AT of R^k is left, proposals are multiplied by one group after the other.
Then W, whose rows are an orthonormal basis of the subspace, is formed from all groups at once; from
there on proposals are multiplied by W and by the current group, which is multiplied into W when it
has W_UPDATE_BLOCK reflections. Acceptance gets rarer as W gets smaller: all proposals of a batch
cost about 1.9 k³ operations, a third of them in single precision, and W about 1.0 k³.
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
from dmsgd.compiled.microkernels import PANEL
from dmsgd.compiled.philox import uniforms

#: Reflections in a group before W is updated: fewer would not be worth reading and writing W.
W_UPDATE_BLOCK = 8

#: The share of R^k that is left when W is formed.
FORMED_AT = 0.4

#: Up to this k a block of proposals is one strip.
WIDE_UP_TO = 128

#: Columns of W that are updated together, and rows that are formed together: they stay in a cache.
COLUMNS, ROWS = 128, 64

#: What one draw works on.
WORK = Table(
    k=int64,  # items of a batch
    height=int64,  # k rounded up to a multiple of PANEL
    length=int64,  # numbers from one reflection to the next: those at a place are not one cache set
    width=int64,  # proposals that are decided before the next are multiplied by their reflections
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
    W=float64_ptr,  # W[i, c] is at (i // PANEL * height + c) * PANEL + i % PANEL
    W32=float32_ptr,  # the same in single precision
    Z=float64_ptr,  # coordinates of proposals in the subspace, one proposal per column
    reflections=float64_ptr,  # of all groups, I + V S Vᵀ, one per row: they are Vᵀ
    S=float64_ptr,  # of all groups
    V=float64_ptr,  # of the current group
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


def array_sizes(k: int) -> dict[str, int]:
    """Return how many numbers of 8 bytes each array takes."""
    height, groups = -(-k // PANEL) * PANEL, k // PANEL + 2
    panels, proposals = (max(height, BLOCK) + LANES) * BLOCK, (k + PANEL) * BLOCK
    per_proposal = "taus", "y", "squares", "norms", "targets"
    return {
        "spans": groups, "counts": groups, "J": k,
        "items": 2 * BLOCK, "thresholds": 2 * BLOCK, "columns": BLOCK,
        "W": height * height, "W32": height * height // 2,
        **dict.fromkeys(("Z", "V", "U", "U2"), panels),
        "reflections": groups * (height + LANES) * BLOCK, "S": groups * BLOCK * BLOCK,
        **dict.fromkeys(per_proposal, BLOCK),
        "uniforms": max(3 * BLOCK, k + 1), "X": proposals, "singles": proposals,
        "strip": (height + 4) * LANES,
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
        height = -(-k // PANEL) * PANEL
        callbacks = {"product": la.product, "random": uniforms, "accept": accept}
        WORK.fill(
            self.fields,
            k=k,
            height=height,
            length=height + LANES,
            **callbacks,
            width=BLOCK if k <= WIDE_UP_TO else LANES,
        )
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


@inlined
def apply_reflections(work, group, Z, size):
    """Z = ((I + Rᵀ S R) Z)[:-count] with R and S of this group, of the first `size` columns."""
    span, count, length = ints_at(work.spans)[group], ints_at(work.counts)[group], work.length
    R, S = group_factors(work, group)
    U, U2 = (doubles_at(work.U), BLOCK, PANEL), (doubles_at(work.U2), BLOCK, PANEL)
    panels = (Z, BLOCK, PANEL)
    call(work.product, (R, length, 1), panels, U, count, span, size, SET)
    call(work.product, (S, BLOCK, 1), U, U2, count, count, size, SET)
    call(work.product, (R, 1, length), U2, panels, span - count, count, size, ADD)


@helper
def extend_group(work, group, span, before, count):
    """The reflections from `before` to `count` come into V and S of the current group."""
    length, V, gram = work.length, doubles_at(work.V), doubles_at(work.U)
    R, S = group_factors(work, group)
    for i in range(span):
        for j in range(before, count):
            V[i * BLOCK + j] = R[j * length + i]
    rows, right = (shift(gram, before * BLOCK), BLOCK, PANEL), (V, BLOCK, PANEL)
    new = shift(R, before * length), length, 1
    call(work.product, new, right, rows, count - before, span, count, SET)
    la.compact_wy(gram, doubles_at(work.taus), before, count, S)
    ints_at(work.spans)[group], ints_at(work.counts)[group] = span, count


@helper
def update_W(work):
    """W = ((I + V S Vᵀ) W)[:-count] with the current group."""
    k, height, left, length = work.k, work.height, work.left, work.length
    W, V, (R, S) = doubles_at(work.W), doubles_at(work.V), group_factors(work, 0)
    U, U2 = doubles_at(work.U), (doubles_at(work.U2), length, PANEL)
    span, count = ints_at(work.spans)[0], ints_at(work.counts)[0]
    call(work.product, (S, 1, BLOCK), (R, length, PANEL), U2, count, count, left, SET)
    for start in range(0, k, COLUMNS):
        columns, own = min(COLUMNS, k - start), shift(W, start * PANEL)
        for first in range(0, span, PANEL):  # U = W V, a panel of W after the other
            part, size = (shift(own, first * height), PANEL, 1), min(PANEL, span - first)
            rows, out = (shift(V, first * BLOCK), BLOCK, PANEL), (U, BLOCK, PANEL)
            call(work.product, part, rows, out, columns, size, count, SET if first == 0 else ADD)
        panels = (own, PANEL, height * PANEL)
        call(work.product, (U, BLOCK, 1), U2, panels, columns, count, left, ADD)
    work.pending, work.changed = 0, 1


@helper
def form_W(work):
    """Form W: the first columns of the identity, multiplied by all groups from last to first."""
    left, panel, W = work.left, work.height * PANEL, doubles_at(work.W)
    length = work.length
    for i in range((left + PANEL - 1) // PANEL * panel):
        W[i] = 0.0
    for i in range(left):
        W[i // PANEL * panel + i * PANEL + i % PANEL] = 1.0
    U = (doubles_at(work.U), PANEL, BLOCK * PANEL)
    U2 = (doubles_at(work.U2), PANEL, BLOCK * PANEL)
    for start in range(0, left, ROWS):
        rows, panels = min(ROWS, left - start), (shift(W, start * work.height), PANEL, panel)
        reached = left
        for group in range(work.groups - 1, -1, -1):
            span, count = ints_at(work.spans)[group], ints_at(work.counts)[group]
            R, S = group_factors(work, group)
            call(work.product, (R, length, 1), panels, U, count, reached, rows, SET)
            call(work.product, (S, 1, BLOCK), U, U2, count, count, rows, SET)
            call(work.product, (R, 1, length), U2, panels, span, count, rows, ADD)
            reached = span
    work.groups, work.formed, work.changed = 0, 1, 1


@callback(int64(WORK.record, int64_ptr, float64_ptr, float64_ptr, int64, int64_ptr))
def accept(work, items, X, thresholds, size, out):
    """Decide on `size` proposals in order, append those accepted to `out`; return the items left.

    X has their coordinates as columns, and is overwritten. A proposal is accepted if its projection
    on the subspace has more than `threshold` of its squared length.
    """
    k, height, left = work.k, work.height, work.left
    squares, norms = doubles_at(work.squares), doubles_at(work.norms)
    kernels.column_squares(X, k, norms)
    Z = X
    if work.formed:
        if work.pending + size > BLOCK:  # there may be no room for all reflections
            update_W(work)
        W, Z = doubles_at(work.W), doubles_at(work.Z)
        for start in range(0, left + work.pending, PANEL):  # Z = W @ X
            some, panel = min(PANEL, left + work.pending - start), shift(W, start * height)
            right, here = (X, BLOCK, PANEL), (shift(Z, start * BLOCK), BLOCK, PANEL)
            call(work.product, (panel, 1, PANEL), right, here, some, k, size, SET)
    for group in range(work.groups):
        apply_reflections(work, group, Z, size)
    group, first, strip = work.groups, work.pending, doubles_at(work.strip)
    R, _ = group_factors(work, group)
    taus, y, width = doubles_at(work.taus), doubles_at(work.y), work.width
    span, count = left + first, first
    for start in range(0, size, width):
        part, before = shift(Z, start), count
        if count > 0:
            apply_reflections(work, group, part, min(width, size - start))
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
            v = shift(R, count * work.length)
            taus[count] = la.reflect(part, rest, width, p - start, v, y, squares)
            for i in range(rest, min(span + PANEL, height)):
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
        if work.left <= FORMED_AT * k or group == k // PANEL:
            form_W(work)
    return span - count
