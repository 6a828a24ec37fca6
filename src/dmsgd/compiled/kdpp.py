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
#: Prefiltered proposals are decided when there are this many, or at once while few items are left,
#: since the prefilter drops fewer meanwhile.
TOGETHER = 24


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


@helper
def propose(work, key, draw, block, items, thresholds):
    """Make the next block of proposals: items, and a threshold below 1 for each.

    From three uniforms each: a column j of J, a target below the sum of V_:j², and the threshold.
    Return the next block of random numbers.
    """
    k, chosen, source = work.k, ints_at(work.J), ints_at(work.source)
    uniforms, totals = doubles_at(work.uniforms), doubles_at(work.totals)
    columns, targets = ints_at(work.columns), doubles_at(work.targets)
    after = call(work.random, key, draw, block, uniforms, 3 * BLOCK)
    for p in range(BLOCK):
        columns[p] = chosen[np.int64(uniforms[3 * p] * k)]
        targets[p] = uniforms[3 * p + 1] * totals[columns[p]]
        thresholds[p] = uniforms[3 * p + 2]
    call(work.locate, source, columns, targets, items, BLOCK)
    return after


@callback(int64(at.WORK.record, uint64, uint64))
def draw(work, key, start):
    """Fill row t of `work.out` with the items of the projection DPP of V[:, J].

    Return how many rows succeeded. J is chosen for each row if there is `work.log_e`. The random
    numbers of draw start + t go on at `work.first_block`. With an orthonormal V, a draw needs more
    proposals than this loop makes with probability below e^-90.
    """
    k, chosen, source = work.k, ints_at(work.J), ints_at(work.source)
    items, thresholds = ints_at(work.items), doubles_at(work.thresholds)
    coordinates = doubles_at(work.X)
    for t in range(work.size):
        number, left, row = start + np.uint64(t), k, shift(ints_at(work.out), t * k)
        if work.log_e != 0:
            uniforms = doubles_at(work.uniforms)
            call(work.random, key, number, 0, uniforms, k)
            select_eigenvectors(doubles_at(work.log_e), work.rank, k, uniforms, chosen)
        at.begin(work)
        if work.begin_draw != 0:
            call(work.begin_draw, source, chosen, k)
        block, waiting = work.first_block, 0
        for _ in range(100 * k // BLOCK + 100):
            new, limits = shift(items, waiting), shift(thresholds, waiting)
            block, count = propose(work, key, number, block, new, limits), BLOCK
            if work.prefilter != 0 and PREFILTER_BELOW * left <= k:
                count = call(work.prefilter, source, work, chosen, new, limits)
            waiting += count
            if waiting < TOGETHER and left > 2 * TOGETHER:
                continue
            for first in range(0, waiting, BLOCK):
                count, some = min(BLOCK, waiting - first), shift(items, first)
                call(work.gather, source, chosen, k, some, coordinates, count)
                limits = shift(thresholds, first)
                left = call(work.accept, work, some, coordinates, limits, count, row)
                if left == 0:
                    break
            waiting = 0
            if left == 0:
                break
        if left > 0:
            return t
    return work.size


def fill_rows(workspace: at.Workspace, out: Any, key: int, start: int) -> int:
    """Fill row t of `out` with draw start + t; return how many rows were filled."""
    workspace.fields["out"], workspace.fields["size"] = address(out, np.int64), len(out)
    return int(draw.of_addresses(workspace.address, key, start))


@callback(int64(at.WORK.record, int64, int64, int64_ptr, *2 * [float64_ptr], *2 * [int64_ptr]))
def decide(work, size, count, items, coordinates, thresholds, left, out):
    """Decide on proposals that were found elsewhere: of `size` draws in order, `count` blocks each.

    left[t] becomes how many items draw t lacks. `coordinates` has rows of k.
    """
    k, part = work.k, doubles_at(work.X)
    for t in range(size):
        at.begin(work)
        left[t] = k
        for q in range(count):
            first = (t * count + q) * BLOCK
            for p in range(BLOCK):
                for c in range(k):
                    part[c * BLOCK + p] = coordinates[(first + p) * k + c]
            left[t] = call(
                work.accept, work, shift(items, first), part, shift(thresholds, first),
                BLOCK, shift(out, t * k),
            )  # fmt: skip
            if left[t] == 0:
                break
    return 0
