"""Draws from k-DPPs by rejection: exact, at a cost that does not depend on the number of items.

Given k eigenvectors J, the items are a draw from the projection DPP of V_J. Its first item has
probability Pr(i) = (1/k) Σ_{j∈J} V_ij², a mixture over j: pick j in J uniformly, then i from V_:j².
For the later items, propose i in the same way and accept with probability |W x|² / |x|², where x =
V[i, J] and the rows of W are an orthonormal basis of the subspace of R^k that the accepted items
leave. A batch takes about k (1 + 1/2 + ... + 1/k) proposals.

Proposals are independent given J, so they come in blocks (`compiled/projection.py`).
"""

from __future__ import annotations

from math import log
from typing import Any

import numpy as np
from numba.types import int64, uint64

from dmsgd.compiled import projection as at
from dmsgd.compiled.jit import address, callback, float64_ptr, helper, inlined, int64_ptr
from dmsgd.compiled.llvm import BLOCK, call, doubles_at, ints_at, shift

#: Proposals are prefiltered once fewer than one in this many is accepted: then it saves time.
PREFILTER_BELOW = 3


@inlined
def select_eigenvectors(log_e, rank, k, uniforms, chosen):
    """Choose the k eigenvectors of a draw, by k binary searches.

    With l left to choose among the first n, the next one is at most m with probability
    e_l^m / e_l^n, so it is the first m whose log e_l^m reaches log u + log e_l^n.
    """
    width, n = rank + 1, rank
    for left in range(k, 0, -1):
        target = log_e[left * width + n] + log(uniforms[k - left])
        below, reached = left - 1, n
        while reached - below > 1:
            middle = (below + reached) >> 1
            if log_e[left * width + middle] >= target:
                reached = middle
            else:
                below = middle
        n = reached - 1
        chosen[k - left] = n


@callback(int64(float64_ptr, int64, int64, float64_ptr, int64_ptr, int64))
def choose_eigenvectors(log_e, rank, k, uniforms, chosen, count):
    """Fill row t of `chosen` with the eigenvectors that row t of `uniforms` selects."""
    for t in range(count):
        select_eigenvectors(log_e, rank, k, shift(uniforms, t * k), shift(chosen, t * k))
    return count


@helper
def propose(fields, key, draw, block):
    """Make the next block of proposals: items, and a threshold below 1 for each.

    From three uniforms each: a column j of J, a target below the sum of V_:j², and the threshold.
    Return the next block of random numbers.
    """
    k, chosen, source = fields[at.K], ints_at(fields[at.J]), ints_at(fields[at.SOURCE])
    uniforms, totals = doubles_at(fields[at.UNIFORMS]), doubles_at(source[0])
    columns, targets = ints_at(fields[at.COLUMNS]), doubles_at(fields[at.TARGETS])
    items, thresholds = ints_at(fields[at.ITEMS]), doubles_at(fields[at.THRESHOLDS])
    after = call(fields[at.RANDOM], key, draw, block, uniforms, 3 * BLOCK)
    for p in range(BLOCK):
        columns[p] = chosen[np.int64(uniforms[3 * p] * k)]
        targets[p] = uniforms[3 * p + 1] * totals[columns[p]]
        thresholds[p] = uniforms[3 * p + 2]
    call(fields[at.LOCATE], source, columns, targets, items, BLOCK)
    return after


@callback(int64(int64_ptr, uint64, uint64))
def draw(fields, key, start):
    """Fill row t of OUT (SIZE, k) with the items of the projection DPP of V[:, J].

    Return how many rows succeeded. J is chosen for each row if there is LOG_E. SOURCE is what V is
    found by: its first number is the address of the sums of squares of its columns, the others are
    for the callbacks, of which BEGIN_DRAW and PREFILTER may be 0. The random numbers of draw
    start + t go on at FIRST_BLOCK. The bound on proposals is one that an orthonormal V exceeds with
    probability below e^-90.
    """
    k, chosen, source = fields[at.K], ints_at(fields[at.J]), ints_at(fields[at.SOURCE])
    items, thresholds = ints_at(fields[at.ITEMS]), doubles_at(fields[at.THRESHOLDS])
    coordinates = doubles_at(fields[at.X])
    for t in range(fields[at.SIZE]):
        number, left, row = start + np.uint64(t), k, shift(ints_at(fields[at.OUT]), t * k)
        if fields[at.LOG_E] != 0:
            uniforms = doubles_at(fields[at.UNIFORMS])
            call(fields[at.RANDOM], key, number, 0, uniforms, k)
            select_eigenvectors(doubles_at(fields[at.LOG_E]), fields[at.RANK], k, uniforms, chosen)
        at.begin(fields)
        if fields[at.BEGIN_DRAW] != 0:
            call(fields[at.BEGIN_DRAW], source, chosen, k)
        block = fields[at.FIRST_BLOCK]
        for _ in range(100 * k // BLOCK + 100):
            block, count = propose(fields, key, number, block), BLOCK
            if fields[at.PREFILTER] != 0 and PREFILTER_BELOW * left <= k:
                count = call(fields[at.PREFILTER], source, fields, chosen, items, thresholds)
            if count > 0:
                call(fields[at.GATHER], source, chosen, k, items, coordinates, count)
                left = call(fields[at.ACCEPT], fields, items, coordinates, thresholds, count, row)
                if left == 0:
                    break
        if left > 0:
            return t
    return fields[at.SIZE]


def fill_rows(workspace: at.Workspace, out: Any, key: int, start: int) -> int:
    """Fill row t of `out` with draw start + t; return how many rows were filled."""
    workspace.fields[at.OUT : at.SIZE + 1] = address(out, np.int64), len(out)
    return int(draw.of_addresses(workspace.address, key, start))


@callback(int64(int64_ptr, int64, int64, int64_ptr, *2 * [float64_ptr], *2 * [int64_ptr]))
def decide(fields, size, count, items, coordinates, thresholds, left, out):
    """Decide on proposals that were found elsewhere: of `size` draws in order, `count` blocks each.

    left[t] becomes how many items draw t lacks. `coordinates` has rows of k.
    """
    k, part = fields[at.K], doubles_at(fields[at.X])
    for t in range(size):
        at.begin(fields)
        left[t] = k
        for q in range(count):
            first = (t * count + q) * BLOCK
            for p in range(BLOCK):
                for c in range(k):
                    part[c * BLOCK + p] = coordinates[(first + p) * k + c]
            left[t] = call(
                fields[at.ACCEPT], fields, shift(items, first), part, shift(thresholds, first),
                BLOCK, shift(out, t * k),
            )  # fmt: skip
            if left[t] == 0:
                break
    return 0
