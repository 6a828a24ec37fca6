"""Draws from DPPs by rejection: exact, and at a cost that does not depend on the number of items.

Given eigenvectors J (|J| = k), the items are a draw from the projection DPP of V_J. Its first item
has law Pr(i) = (1/k) Σ_{j∈J} V_ij², a mixture over j: pick j in J uniformly, then i from V_:j². For
the later items, propose i in the same way and accept with probability |W x|² / |x|², where x =
V[i, J] and the rows of W are an orthonormal basis of what the accepted items leave of R^k. About
k·(1 + 1/2 + ... + 1/k) proposals make a draw.

Proposals are independent given J, so they come in blocks (`dmsgd.compiled.projection`).
"""

from __future__ import annotations

from math import log
from typing import Any

import numpy as np

from dmsgd.compiled.jit import (
    DOUBLES,
    INT,
    INTS,
    NOTHING,
    WORD,
    compiled,
)
from dmsgd.compiled.linear_algebra import PANEL
from dmsgd.compiled.philox import uniforms_at
from dmsgd.compiled.pointers import as_singles, call, doubles_at, ints_at, shift
from dmsgd.compiled.projection import begin, lay_out, room_for_basis
from dmsgd.compiled.simd import BLOCK

#: Proposals are sifted once less than one in so many is accepted: by then it saves time.
SIEVE = 3


@compiled(NOTHING(DOUBLES, INT, INT, DOUBLES, INTS))
def select_k(log_e, n, k, uniforms, J):
    """Choose the k eigenvectors of a k-DPP draw out of n, by k binary searches.

    With l left to choose among the first n, the next one is at most m with probability
    e_l^m / e_l^n, so it is the first m whose log e_l^m reaches log u + log e_l^n.
    """
    width = n + 1
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
        J[k - left] = n


@compiled(NOTHING(INTS, INT, DOUBLES, DOUBLES, INTS, DOUBLES, DOUBLES))
def propose(J, k, uniforms, totals, columns, targets, thresholds):
    """columns[p] = j uniform in J, targets[p] uniform below totals[j], thresholds[p] below 1.

    From the three uniforms of proposal p; totals[j] is the sum of V[:, j]².
    """
    for p in range(BLOCK):
        columns[p] = J[np.int64(uniforms[3 * p] * k)]
        targets[p] = uniforms[3 * p + 1] * totals[columns[p]]
        thresholds[p] = uniforms[3 * p + 2]


@compiled(NOTHING(INT, INT, WORD, WORD, INT, INT, INT, INT), called_from_python=True)
def choose_fixed(log_e, rank, key, start, size, k, uniforms, J):
    """Fill row t of J (size, k) with the eigenvectors of draw start + t of a k-DPP.

    log_e, J and `uniforms`, which is scratch for k of them, are addresses.
    """
    uniforms = doubles_at(uniforms)
    for t in range(size):
        uniforms_at(key, start + np.uint64(t), 0, uniforms, k)
        select_k(doubles_at(log_e), rank, k, uniforms, shift(ints_at(J), t * k))


@compiled(INT(INT, INT, WORD, WORD, INT, INT), called_from_python=True)
def choose_any(probabilities, rank, key, draw, uniforms, J):
    """Fill J with the eigenvectors of a draw of a DPP; return how many.

    All but the numbers are addresses; `uniforms` is scratch for `rank` of them.
    """
    probabilities, uniforms, J = doubles_at(probabilities), doubles_at(uniforms), ints_at(J)
    uniforms_at(key, draw, 0, uniforms, rank)
    k = 0
    for m in range(rank):
        if uniforms[m] < probabilities[m]:
            J[k] = m
            k += 1
    return k


def room_for_draws(k: int) -> tuple[Any, Any]:
    """Return the scratch of `draw` for batches of k: its basis, and blocks of proposals behind it.

    Of doubles, six rows for uniforms, targets and thresholds, X, and as much again for `sift`; of
    integers, the items of two blocks and a row.
    """
    doubles, integers = room_for_basis(k)
    rows = 6 + 2 * (k + PANEL)
    return np.zeros(doubles + rows * BLOCK), np.zeros(integers + 3 * BLOCK, np.int64)


@compiled(INT(*[INT] * 8, WORD, WORD, *[INT] * 5), called_from_python=True)
def draw(
    plan, ready, locate, gather, sift, accept, J, k, key, start, block, doubles, integers, out, size
):  # fmt: skip
    """Fill row t of `out` (size, k) with the items of the projection DPP of V[:, J[t]].

    Return how many rows succeeded. All but k, key, start, block and size are addresses. `plan` is
    what V is found by: first comes the address of the sums of squares of its columns, and the rest
    is for the functions that know V, of which `ready` and `sift` may be missing (0). The random
    numbers of draw start + t go on at `block`. The bound on proposals is one that an orthonormal V
    exceeds with probability below e^-90.
    """
    plan, doubles, integers = ints_at(plan), doubles_at(doubles), ints_at(integers)
    totals, basis = doubles_at(plan[0]), lay_out(k, doubles, integers)
    uniforms, targets = basis.end, shift(basis.end, 3 * BLOCK)
    thresholds, later = shift(basis.end, 4 * BLOCK), shift(basis.end, 5 * BLOCK)
    X = shift(basis.end, 6 * BLOCK)
    room = as_singles(shift(X, (k + PANEL) * BLOCK))
    items, next_items, columns = basis.stop, shift(basis.stop, BLOCK), shift(basis.stop, 2 * BLOCK)
    for t in range(size):
        number, left = start + np.uint64(t), k
        chosen, row = shift(ints_at(J), t * k), shift(ints_at(out), t * k)
        begin(basis)
        if ready != 0:
            call(ready, plan, chosen, k)
        at = uniforms_at(key, number, block, uniforms, 3 * BLOCK)
        propose(chosen, k, uniforms, totals, columns, targets, thresholds)
        call(locate, plan, columns, targets, items, BLOCK)
        for _ in range(100 * k // BLOCK + 100):
            # The next proposals are found first, so that memory has time to bring their bytes.
            at = uniforms_at(key, number, at, uniforms, 3 * BLOCK)
            propose(chosen, k, uniforms, totals, columns, targets, later)
            call(locate, plan, columns, targets, next_items, BLOCK)
            count = BLOCK
            if sift != 0 and SIEVE * left <= k:
                count = call(
                    sift, plan, k, doubles, integers, chosen, items, thresholds, next_items, room,
                    columns,
                )  # fmt: skip
            if count > 0:
                call(gather, plan, chosen, k, items, X, columns, count)
                left = call(accept, k, doubles, integers, items, X, thresholds, count, row)
                if left == 0:
                    break
            items, next_items = next_items, items
            thresholds, later = later, thresholds
        if left > 0:
            return t
    return size
