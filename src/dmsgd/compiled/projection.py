"""What the items accepted so far leave of R^k, and which proposals are accepted.

Householder reflections turn R^k so that each accepted item lies on the last axis left, which is
then dropped. The reflections of a block of proposals are a group, I + V S Vᵀ.

While more than half of R^k is left, proposals are turned by one group after the other. Then the
rows of W, an orthonormal basis of what is left, are formed from all groups at once; from there on
proposals are multiplied by W and turned by the group under way, which is multiplied into W when it
has LAZY reflections. Acceptance gets rarer as W gets smaller: all proposals of a draw cost about
1.6 k³ operations, and W about 1.3 k³.
"""

from __future__ import annotations

from collections import namedtuple

from numba import types

from dmsgd.compiled.jit import DOUBLES, INT, INTS, NOTHING, SINGLES, compiled
from dmsgd.compiled.linear_algebra import PANEL, householder, join, product, reflect
from dmsgd.compiled.microkernels import column_squares
from dmsgd.compiled.pointers import as_singles, shift
from dmsgd.compiled.simd import BLOCK

#: k, height: the size of a batch, and the same up to a multiple of PANEL.
#: state:     how many items are left to find; groups before W is formed; whether it is; reflections
#:            that are not in W yet, so that it has as many rows more; whether W has changed.
#: W:         Wᵀ in panels: W[i, c] is at (i // PANEL * height + c) * PANEL + i % PANEL.
#: coarse:    W as singles, in the same places.
#: Z:         proposals on the axes that are left, a column each.
#: rows:      reflections of the current group, one a row, and their taus.
#: V, S:      of each group; spans, counts: how many axes it acts on and reflections it has.
#: stop, end: what is behind it in memory. The rest is scratch.
Basis = namedtuple(
    "Basis", "k height state spans counts stop W coarse Z rows taus V S U other y squares bound end"
)
BASIS = types.NamedTuple([INT] * 2 + [INTS] * 4 + [DOUBLES, SINGLES] + [DOUBLES] * 11, Basis)
LEFT, _GROUPS, _FORMED, PENDING, CHANGED, _STATE = 0, 1, 2, 3, 4, 5

#: Reflections that W waits for: fewer would not be worth reading and writing it.
LAZY = 8


def room_for_basis(k: int) -> tuple[int, int]:
    """Return how many doubles and integers `lay_out` needs."""
    height, most = -(-k // PANEL) * PANEL, k // PANEL + 2
    panels = 4 * max(height, BLOCK) * BLOCK
    squares = height * height + height * height // 2
    return squares + panels + most * (height + BLOCK) * BLOCK + 4 * BLOCK, _STATE + 2 * most


def room_for_W(k: int) -> int:
    """Return how many doubles W has."""
    return int((-(-k // PANEL) * PANEL) ** 2)


@compiled(BASIS(INT, DOUBLES, INTS))
def lay_out(k, doubles, integers):
    """Return a basis in this room, which is zero or has been one for this k."""
    height, most = (k + PANEL - 1) // PANEL * PANEL, k // PANEL + 2
    panel = (height if height > BLOCK else BLOCK) * BLOCK
    coarse = shift(doubles, height * height)
    Z = shift(coarse, height * height // 2)
    rows, U, other, V = (
        shift(Z, panel), shift(Z, 2 * panel), shift(Z, 3 * panel), shift(Z, 4 * panel)
    )  # fmt: skip
    S = shift(V, most * height * BLOCK)
    taus = shift(S, most * BLOCK * BLOCK)
    y, squares, bound = shift(taus, BLOCK), shift(taus, 2 * BLOCK), shift(taus, 3 * BLOCK)
    spans, counts = shift(integers, _STATE), shift(integers, _STATE + most)
    return Basis(
        k, height, integers, spans, counts, shift(counts, most), doubles, as_singles(coarse), Z,
        rows, taus, V, S, U, other, y, squares, bound, shift(bound, BLOCK),
    )  # fmt: skip


@compiled(NOTHING(BASIS))
def begin(basis):
    """All of R^k is left."""
    basis.state[LEFT] = basis.k
    basis.state[_GROUPS] = basis.state[_FORMED] = basis.state[PENDING] = 0


@compiled(NOTHING(BASIS, DOUBLES, INT))
def project(basis, X, count):
    """Z = W @ X, of the first `count` columns."""
    rows, panel = basis.state[LEFT] + basis.state[PENDING], basis.height * PANEL
    for q in range((rows + PANEL - 1) // PANEL):
        part = rows - q * PANEL if rows - q * PANEL < PANEL else PANEL
        product(
            shift(basis.W, q * panel), 1, PANEL, X, BLOCK, PANEL,
            shift(basis.Z, q * PANEL * BLOCK), BLOCK, PANEL, part, basis.k, count, 0,
        )  # fmt: skip


@compiled(NOTHING(BASIS, INT, DOUBLES))
def turn(basis, group, Z):
    """Z = ((I + V S Vᵀ) Z)[:-count] with V and S of this group."""
    span, count = basis.spans[group], basis.counts[group]
    V, S = shift(basis.V, group * basis.height * BLOCK), shift(basis.S, group * BLOCK * BLOCK)
    U, other = basis.U, basis.other
    product(V, 1, BLOCK, Z, BLOCK, PANEL, U, BLOCK, PANEL, count, span, BLOCK, 0)
    product(S, BLOCK, 1, U, BLOCK, PANEL, other, BLOCK, PANEL, count, count, BLOCK, 0)
    product(V, BLOCK, 1, other, BLOCK, PANEL, Z, BLOCK, PANEL, span - count, count, BLOCK, 1)


@compiled(NOTHING(BASIS))
def fold(basis):
    """W = ((I + V S Vᵀ) W)[:-count] with the group under way."""
    k, height, panel = basis.k, basis.height, basis.height * PANEL
    W, V, S, U, other = basis.W, basis.V, basis.S, basis.U, basis.other
    span, count, rest = basis.spans[0], basis.counts[0], basis.state[LEFT]
    for q in range((span + PANEL - 1) // PANEL):
        part = span - q * PANEL if span - q * PANEL < PANEL else PANEL
        product(
            shift(W, q * panel), PANEL, 1, shift(V, q * PANEL * BLOCK), BLOCK, PANEL,
            U, BLOCK, PANEL, k, part, count, q,
        )  # fmt: skip
    product(S, 1, BLOCK, basis.rows, height, PANEL, other, height, PANEL, count, count, rest, 0)
    product(U, BLOCK, 1, other, height, PANEL, W, PANEL, panel, k, count, rest, 1)
    basis.state[PENDING], basis.state[CHANGED] = 0, 1


@compiled(NOTHING(BASIS))
def form(basis):
    """Form W from all groups: its transpose is the identity's first columns, turned backwards."""
    left, panel, flat = basis.state[LEFT], basis.height * PANEL, BLOCK * PANEL
    W, U, other = basis.W, basis.U, basis.other
    for i in range((left + PANEL - 1) // PANEL * panel):
        W[i] = 0.0
    for i in range(left):
        W[i // PANEL * panel + i * PANEL + i % PANEL] = 1.0
    reached = left
    for group in range(basis.state[_GROUPS] - 1, -1, -1):
        span, count = basis.spans[group], basis.counts[group]
        V, S = shift(basis.V, group * basis.height * BLOCK), shift(basis.S, group * BLOCK * BLOCK)
        product(V, 1, BLOCK, W, PANEL, panel, U, PANEL, flat, count, reached, left, 0)
        product(S, 1, BLOCK, U, PANEL, flat, other, PANEL, flat, count, count, left, 0)
        product(V, BLOCK, 1, other, PANEL, flat, W, PANEL, panel, span, count, left, 1)
        reached = span
    basis.state[_GROUPS], basis.state[_FORMED], basis.state[CHANGED] = 0, 1, 1


@compiled(INT(INT, DOUBLES, INTS, INTS, DOUBLES, DOUBLES, INT, INTS), called_by_address=True)
def accept(k, doubles, integers, items, X, thresholds, size, out):
    """Go through `size` proposals, put those accepted into `out`; return how many are left.

    X holds their coordinates as columns, and is overwritten. One is accepted if what is left of it
    has more than the threshold's share of its squared length.
    """
    basis = lay_out(k, doubles, integers)
    height, left = basis.height, basis.state[LEFT]
    squares, bound = basis.squares, basis.bound
    column_squares(X, k, bound)
    Z, groups = X, basis.state[_GROUPS]
    if basis.state[_FORMED]:
        if basis.state[PENDING] + size > BLOCK:  # there may be no room for all
            fold(basis)
        project(basis, X, size)
        Z, groups = basis.Z, 1 if basis.state[PENDING] > 0 else 0
    for group in range(groups):
        turn(basis, group, Z)
    column_squares(Z, left, squares)
    group, first = basis.state[_GROUPS], basis.state[PENDING]
    V, S = shift(basis.V, group * height * BLOCK), shift(basis.S, group * BLOCK * BLOCK)
    span, count = left + first, first
    for p in range(size):
        if squares[p] <= thresholds[p] * bound[p]:
            continue
        rest = span - count
        out[k - rest] = items[p]
        if rest == 1:
            basis.state[LEFT] = 0
            return 0
        v = shift(basis.rows, count * height)
        basis.taus[count] = householder(Z, rest, p, squares[p], v)
        for i in range(rest):
            V[i * BLOCK + count] = v[i]
        for i in range(rest, span + PANEL if span + PANEL < height else height):
            v[i] = V[i * BLOCK + count] = 0.0
        reflect(Z, rest, p + 1, size, v, basis.taus[count], basis.y, squares)
        count += 1
    if count == first:
        return left
    gram = shift(basis.U, first * BLOCK)
    new = count - first
    product(shift(V, first), 1, BLOCK, V, BLOCK, PANEL, gram, BLOCK, PANEL, new, span, count, 0)
    join(basis.U, basis.taus, first, count, S)
    basis.spans[group], basis.counts[group] = span, count
    basis.state[LEFT] = span - count
    if not basis.state[_FORMED]:
        basis.state[_GROUPS] += 1
        if 2 * (span - count) <= k or group == k // PANEL:
            form(basis)
    else:
        basis.state[PENDING] = count
        if count >= LAZY:
            fold(basis)
    return span - count


@compiled(NOTHING(BASIS, DOUBLES))
def suspend(basis, W):
    """Fill W with what the draw can go on from."""
    if not basis.state[_FORMED]:
        form(basis)
    if basis.state[PENDING] > 0:
        fold(basis)
    for i in range(basis.height * basis.height):
        W[i] = basis.W[i]


@compiled(NOTHING(BASIS, INT, DOUBLES))
def resume(basis, left, W):
    """Go on from what `suspend` returned, with this many items left to find."""
    begin(basis)
    basis.state[LEFT], basis.state[_FORMED], basis.state[CHANGED] = left, 1, 1
    for i in range(basis.height * basis.height):
        basis.W[i] = W[i]
