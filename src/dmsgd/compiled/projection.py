"""The subspace of R^k that the accepted items leave, and which proposals it accepts.

Householder reflections map each accepted item onto the last remaining axis, which is then dropped.
The reflections of a block of proposals are a group, I + V S Vᵀ.

While more than half of R^k is left, proposals are multiplied by one group after the other. Then W,
whose rows are an orthonormal basis of the subspace, is formed from all groups at once; from there
on proposals are multiplied by W and by the current group, which is multiplied into W when it has
W_UPDATE_BLOCK reflections. Acceptance gets rarer as W gets smaller: all proposals of a batch cost
about 1.6 k³ operations, and W about 1.3 k³.
"""

from __future__ import annotations

from functools import cache
from math import sqrt
from typing import Any, final

import numpy as np
from numba.types import int64

from dmsgd.compiled import microkernels as kernels
from dmsgd.compiled.jit import address, callback, float64_ptr, helper, inlined, int64_ptr
from dmsgd.compiled.linear_algebra import PANEL, compact_wy, householder, product, reflect
from dmsgd.compiled.llvm import (
    BLOCK,
    bytes_at,
    call,
    doubles_at,
    ints_at,
    prefetch,
    shift,
    singles_at,
)
from dmsgd.compiled.philox import uniforms
from dmsgd.compiled.tables import INT8_ROWS, INT8_WIDTH, LINE_BYTES

#: Reflections in a group before W is updated: fewer would not be worth reading and writing W.
W_UPDATE_BLOCK = 8

#: Numbers in `Workspace.fields`. HEIGHT is k up to a multiple of PANEL; FORMED, whether W is
#: formed; GROUPS, their number until then; PENDING, reflections that are not in W yet, so that it
#: has as many more rows; CHANGED, whether W has changed since W32 was made. Then addresses of
#: functions, and the arguments of `kdpp.draw`.
(
    K, HEIGHT, ITEMS_LEFT, GROUPS, FORMED, PENDING, CHANGED,
    PRODUCT, RANDOM, ACCEPT, LOCATE, GATHER, BEGIN_DRAW, PREFILTER,
    SOURCE, LOG_E, RANK, FIRST_BLOCK, OUT, SIZE,
    FIRST_ARRAY,
) = range(21)  # fmt: skip
#: Addresses of arrays in `Workspace.fields`. W is transposed, in panels: W[i, c] is at
#: (i // PANEL * height + c) * PANEL + i % PANEL; W32 is the same in single precision. Z has the
#: coordinates of proposals in the subspace, one in each column. REFLECTIONS are those of the
#: current group, one in each row, and TAUS their factors; V and S are those of all groups, which
#: have COUNTS reflections of SPANS axes. J are the eigenvectors of the draw, ITEMS its proposals
#: with the coordinates X; the rest is scratch.
(
    SPANS, COUNTS, J, ITEMS, COLUMNS, W, W32, Z, REFLECTIONS, TAUS, V, S, U, U2, Y,
    SQUARES, NORMS, UNIFORMS, TARGETS, THRESHOLDS, X, SINGLES, _FIELDS,
) = range(FIRST_ARRAY, FIRST_ARRAY + 23)  # fmt: skip


def array_sizes(k: int) -> dict[int, int]:
    """Return how many numbers of 8 bytes each array takes."""
    height, groups = -(-k // PANEL) * PANEL, k // PANEL + 2
    panels, proposals = max(height, BLOCK) * BLOCK, (k + PANEL) * BLOCK
    return {
        SPANS: groups, COUNTS: groups, J: k,
        **dict.fromkeys((ITEMS, COLUMNS), BLOCK),
        W: height * height, W32: height * height // 2,
        **dict.fromkeys((Z, REFLECTIONS, U, U2), panels),
        V: groups * height * BLOCK, S: groups * BLOCK * BLOCK,
        **dict.fromkeys((TAUS, Y, SQUARES, NORMS, TARGETS, THRESHOLDS), BLOCK),
        UNIFORMS: max(3 * BLOCK, k + 1), X: proposals, SINGLES: proposals,
    }  # fmt: skip


@cache
def _layout(k: int) -> tuple[Any, int]:
    """Return where arrays begin, in bytes from the first, and the room for all in numbers."""
    offsets, end = np.zeros(_FIELDS - FIRST_ARRAY, np.int64), 0
    for field, size in array_sizes(k).items():
        offsets[field - FIRST_ARRAY] = 8 * end
        end += -(-size // 8) * 8  # whole cache lines
    return offsets, end


@final
class Workspace:
    """Scratch of one thread for batches of k: `room`, and `fields` with the addresses in it.

    `fields` is the beginning of `room`, so that it keeps all of it alive.
    """

    def __init__(self, k: int) -> None:
        offsets, size = _layout(k)
        self.room = np.zeros(_FIELDS + 8 + size)
        self.fields = self.room[:_FIELDS].view(np.int64)
        self.address = start = address(self.room, np.float64)
        #: What `fields` has the addresses of, beside `room`.
        self.buffers: Any = None
        self.fields[FIRST_ARRAY:] = offsets + (start + 8 * _FIELDS + 63) // 64 * 64
        self.fields[K : HEIGHT + 1] = k, -(-k // PANEL) * PANEL
        self.fields[PRODUCT:LOCATE] = product.address, uniforms.address, accept.address
        at = (int(self.fields[J]) - start) // 8
        self.J = self.room[at : at + k].view(np.int64)


@inlined
def begin(fields):
    """All of R^k is left."""
    fields[ITEMS_LEFT] = fields[K]
    fields[GROUPS] = fields[FORMED] = fields[PENDING] = 0


@inlined
def project(fields, X, count):
    """Z = W @ X, of the first `count` columns."""
    k, panel = fields[K], fields[HEIGHT] * PANEL
    rows = fields[ITEMS_LEFT] + fields[PENDING]
    W_, Z_ = doubles_at(fields[W]), doubles_at(fields[Z])
    for q in range((rows + PANEL - 1) // PANEL):
        part = rows - q * PANEL if rows - q * PANEL < PANEL else PANEL
        call(
            fields[PRODUCT], shift(W_, q * panel), 1, PANEL, X, BLOCK, PANEL,
            shift(Z_, q * PANEL * BLOCK), BLOCK, PANEL, part, k, count, 0,
        )  # fmt: skip


@inlined
def apply_reflections(fields, group, Z, size):
    """Z = ((I + V S Vᵀ) Z)[:-count] with V and S of this group, of the first `size` columns."""
    span, count = ints_at(fields[SPANS])[group], ints_at(fields[COUNTS])[group]
    V_ = shift(doubles_at(fields[V]), group * fields[HEIGHT] * BLOCK)
    S_ = shift(doubles_at(fields[S]), group * BLOCK * BLOCK)
    first, second, multiply = doubles_at(fields[U]), doubles_at(fields[U2]), fields[PRODUCT]
    call(multiply, V_, 1, BLOCK, Z, BLOCK, PANEL, first, BLOCK, PANEL, count, span, size, 0)
    call(
        multiply, S_, BLOCK, 1, first, BLOCK, PANEL, second, BLOCK, PANEL, count, count, size, 0
    )  # fmt: skip
    call(
        multiply, V_, BLOCK, 1, second, BLOCK, PANEL, Z, BLOCK, PANEL, span - count, count, size, 1
    )  # fmt: skip


@helper
def update_W(fields):
    """W = ((I + V S Vᵀ) W)[:-count] with the current group."""
    k, height, multiply = fields[K], fields[HEIGHT], fields[PRODUCT]
    W_, V_, S_ = doubles_at(fields[W]), doubles_at(fields[V]), doubles_at(fields[S])
    first, second = doubles_at(fields[U]), doubles_at(fields[U2])
    span, count, rest = ints_at(fields[SPANS])[0], ints_at(fields[COUNTS])[0], fields[ITEMS_LEFT]
    rows, panel = doubles_at(fields[REFLECTIONS]), height * PANEL
    for q in range((span + PANEL - 1) // PANEL):
        part = span - q * PANEL if span - q * PANEL < PANEL else PANEL
        call(
            multiply, shift(W_, q * panel), PANEL, 1, shift(V_, q * PANEL * BLOCK), BLOCK, PANEL,
            first, BLOCK, PANEL, k, part, count, q,
        )  # fmt: skip
    call(multiply, S_, 1, BLOCK, rows, height, PANEL, second, height, PANEL, count, count, rest, 0)
    call(multiply, first, BLOCK, 1, second, height, PANEL, W_, PANEL, panel, k, count, rest, 1)
    fields[PENDING], fields[CHANGED] = 0, 1


@helper
def form_W(fields):
    """Form W: the first columns of the identity, multiplied by all groups from last to first."""
    left, height, multiply = fields[ITEMS_LEFT], fields[HEIGHT], fields[PRODUCT]
    W_, first, second = doubles_at(fields[W]), doubles_at(fields[U]), doubles_at(fields[U2])
    panel, flat = height * PANEL, BLOCK * PANEL
    for i in range((left + PANEL - 1) // PANEL * panel):
        W_[i] = 0.0
    for i in range(left):
        W_[i // PANEL * panel + i * PANEL + i % PANEL] = 1.0
    reached = left
    for group in range(fields[GROUPS] - 1, -1, -1):
        span, count = ints_at(fields[SPANS])[group], ints_at(fields[COUNTS])[group]
        V_ = shift(doubles_at(fields[V]), group * height * BLOCK)
        S_ = shift(doubles_at(fields[S]), group * BLOCK * BLOCK)
        call(multiply, V_, 1, BLOCK, W_, PANEL, panel, first, PANEL, flat, count, reached, left, 0)
        call(
            multiply, S_, 1, BLOCK, first, PANEL, flat, second, PANEL, flat, count, count, left, 0
        )  # fmt: skip
        call(multiply, V_, BLOCK, 1, second, PANEL, flat, W_, PANEL, panel, span, count, left, 1)
        reached = span
    fields[GROUPS], fields[FORMED], fields[CHANGED] = 0, 1, 1


@callback(int64(int64_ptr, int64_ptr, float64_ptr, float64_ptr, int64, int64_ptr))
def accept(fields, items, X, thresholds, size, out):
    """Decide on `size` proposals in order, append those accepted to `out`; return the items left.

    X has their coordinates as columns, and is overwritten. A proposal is accepted if its projection
    on the subspace has more than `threshold` of its squared length.
    """
    k, height, left = fields[K], fields[HEIGHT], fields[ITEMS_LEFT]
    squares, norms = doubles_at(fields[SQUARES]), doubles_at(fields[NORMS])
    kernels.column_squares(X, k, norms)
    Z_, groups = X, fields[GROUPS]
    if fields[FORMED] != 0:
        if fields[PENDING] + size > BLOCK:  # there may be no room for all reflections
            update_W(fields)
        project(fields, X, size)
        Z_, groups = doubles_at(fields[Z]), 1 if fields[PENDING] > 0 else 0
    for group in range(groups):
        apply_reflections(fields, group, Z_, size)
    kernels.column_squares(Z_, left, squares)
    group, first = fields[GROUPS], fields[PENDING]
    V_ = shift(doubles_at(fields[V]), group * height * BLOCK)
    taus, y = doubles_at(fields[TAUS]), doubles_at(fields[Y])
    span, count = left + first, first
    for p in range(size):
        if squares[p] <= thresholds[p] * norms[p]:
            continue
        rest = span - count
        out[k - rest] = items[p]
        if rest == 1:
            fields[ITEMS_LEFT] = 0
            return 0
        v = shift(doubles_at(fields[REFLECTIONS]), count * height)
        taus[count] = householder(Z_, rest, p, squares[p], v)
        for i in range(rest):
            V_[i * BLOCK + count] = v[i]
        for i in range(rest, span + PANEL if span + PANEL < height else height):
            v[i] = V_[i * BLOCK + count] = 0.0
        reflect(Z_, rest, p + 1, size, v, taus[count], y, squares)
        count += 1
    if count == first:
        return left
    gram, new = doubles_at(fields[U]), count - first
    call(
        fields[PRODUCT], shift(V_, first), 1, BLOCK, V_, BLOCK, PANEL, shift(gram, first * BLOCK),
        BLOCK, PANEL, new, span, count, 0,
    )  # fmt: skip
    compact_wy(gram, taus, first, count, shift(doubles_at(fields[S]), group * BLOCK * BLOCK))
    ints_at(fields[SPANS])[group], ints_at(fields[COUNTS])[group] = span, count
    fields[ITEMS_LEFT] = span - count
    if fields[FORMED] == 0:
        fields[GROUPS] += 1
        if 2 * (span - count) <= k or group == k // PANEL:
            form_W(fields)
    else:
        fields[PENDING] = count
        if count >= W_UPDATE_BLOCK:
            update_W(fields)
    return span - count


# A sieve finds proposals that are certain to be rejected from a byte per coordinate. A row x of
# V[:, J] is s (q + d) with bytes q and |d| <= 1/2 in every coordinate, so that |d| <= m =
# sqrt(k) / 2. As |W d| <= |d|, the proposal is rejected, |W x|² <= u |x|², if
#
#     |W q| + m <= sqrt(u) (|q| - m).
#
# Both sides are computed in single precision with bounds on the rounding. The other proposals are
# looked up in V and decided by `accept`, so that draws do not depend on the sieve. Late in a draw
# nearly all proposals are rejected, and it reads an eighth of the memory.


@callback(int64(*4 * [int64_ptr], float64_ptr))
def prefilter(source, fields, chosen, items, thresholds):
    """Drop proposals that are certain to be rejected, keep the order; return how many stay."""
    k, height, rows = fields[K], fields[HEIGHT], fields[ITEMS_LEFT] + fields[PENDING]
    int8_rows, panel = bytes_at(source[INT8_ROWS]), height * PANEL
    places, W_ = ints_at(fields[COLUMNS]), singles_at(fields[W32])
    for p in range(BLOCK):
        places[p] = items[p] * source[INT8_WIDTH]
    line = -1
    for c in range(k):  # only lines with columns of J come from memory
        if chosen[c] // LINE_BYTES != line:
            line = chosen[c] // LINE_BYTES
            for p in range(BLOCK):
                prefetch(shift(int8_rows, places[p] + line * LINE_BYTES))
    if fields[CHANGED] != 0:
        doubles = doubles_at(fields[W])
        for i in range((rows + PANEL - 1) // PANEL * panel):
            W_[i] = np.float32(doubles[i])
        fields[CHANGED] = 0
    q = singles_at(fields[SINGLES])
    Z = shift(q, k * BLOCK)
    full, rest = shift(Z, height * BLOCK), shift(Z, (height + 1) * BLOCK)
    for c in range(k):
        kernels.gather_bytes(int8_rows, places, chosen[c], shift(q, c * BLOCK))
    for i in range(0, rows, kernels.TILE_ROWS):
        part = shift(W_, i // PANEL * panel + i % PANEL)
        for j in range(0, BLOCK, kernels.SINGLE_COLUMNS):
            place = shift(Z, i * BLOCK + j)
            kernels.single_tile(part, 1, PANEL, shift(q, j), BLOCK, place, BLOCK, k, False)
    kernels.single_column_squares(q, k, full)
    kernels.single_column_squares(Z, rows, rest)
    unit = 2.0**-23 * (k + 8)  # bounds the rounding of a sum of k products, with room to spare
    half, kept = 0.5 * sqrt(k), 0
    for p in range(BLOCK):
        length = sqrt(full[p])
        most = sqrt(rest[p]) * (1.0 + unit) + sqrt(rows) * unit * length + half
        least = sqrt(thresholds[p]) * (length * (1.0 - unit) - half)
        if most > least * (1.0 - 1e-6):
            items[kept], thresholds[kept] = items[p], thresholds[p]
            kept += 1
    return kept
