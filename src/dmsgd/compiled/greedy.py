"""Greedy sets of an RBF kernel with quality: each item has the largest w_i r_i of those left.

w_i is the square of its quality, and r_i what the items chosen before it leave of S_ii = 1, by
steps of a Cholesky factor C Cᵀ of S (Chen, Zhang, Zhou 2018). r_i only falls, so an item whose last
known w_i r_i is below the largest of the others is left alone (Minoux 1978). When its turn comes,
it gets all steps that it has missed at once, and its row of X is read once for them.

Where little is left of an item, rounding counts. A bound on its error is kept beside r_i: items
that differ by less are ties, and an item of which no more is left depends on those chosen.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from dmsgd.compiled.jit import entry

#: Relative differences up to this are ties, which go to the first item.
TIED = 1e-9
#: Items that are looked at before all others, those with the largest last known values.
FIRST = 3
#: Multiplications in the time that passes over all scores take per item.
PASSES = 4
#: Returned instead of an item if all items left depend on those chosen.
NONE = -1
#: Returned instead of an item if the work of one call is done.
UNFINISHED = -2

_MATH = {"contract", "nsz", "reassoc"}


class State(NamedTuple):
    """What is known of the items after the steps so far.

    rate:   -1/m of the kernel exp(-d²/m).
    least:  an item of which no more than this is left depends on those chosen.
    eps:    relative rounding of C.
    picks:  the items in C.
    rows:   their rows, if X is a CSR array.
    C:      (n, k) rows of the Cholesky factor.
    left:   (n,) what is left of each item.
    doubt:  (n,) the error of that.
    near:   (n,) squared distance to the nearest item in C.
    steps:  (n,) steps that each item has seen.
    """

    rate: float
    least: float
    eps: float
    picks: Any
    rows: Any
    C: Any
    left: Any
    doubt: Any
    near: Any
    steps: Any


@entry(fastmath=_MATH)
def catch_up(i, done, points, state):
    """Apply the steps that item i has missed to its row of C, to what is left and how near."""
    X, norms, C = points.X, points.norms, state.C
    left, doubt, near, mine = state.left, state.doubt, state.near, C[i]
    for s in range(state.steps[i], done):
        j = state.picks[s]
        product = 0.0
        if points.is_dense:
            row, other = X[i], X[j]
            for f in range(row.size):
                product += row[f] * other[f]
        else:
            other = state.rows[s]
            for e in range(points.starts[i], points.starts[i + 1]):
                product += X[0, e] * other[points.indices[e]]
        size = norms[i] + norms[j]
        square = size - 2 * product
        if square <= points.noise * size:
            square = 0.0
        near[i] = min(near[i], square)
        if left[i] > 0:
            value, other = np.exp(state.rate * square), C[j]
            error = state.eps - state.rate * points.noise * size * value
            for u in range(s):
                value -= mine[u] * other[u]
            value /= other[s]
            mine[s] = value
            left[i] -= value * value
            pivot = other[s] * other[s]
            doubt[i] += 2 * abs(value) * error / other[s] + value * value * doubt[j] / pivot
            if left[i] <= max(state.least, doubt[i]):
                left[i] = 0.0
    state.steps[i] = done


@entry()
def greatest_item(points, state, worth, score, done, work):
    """Return the first item with the largest w_i r_i, up to ties, and the work that is left.

    The item is NONE if nothing is left of any, and UNFINISHED where the work is used up: another
    call goes on from there.
    """
    left, doubt, steps = state.left, state.doubt, state.steps
    width = points.X.shape[1] / (1 if points.is_dense else score.size)
    top = 0.0
    for _ in range(FIRST):
        best = np.argmax(score)
        catch_up(best, done, points, state)
        score[best] = worth[best] * left[best]
        top = max(top, score[best])
    work -= PASSES * score.size
    for i in range(score.size):
        if steps[i] < done:
            most = score[i] + worth[i] * doubt[i] if score[i] > 0 else 0.0
            if most < (1 - TIED) * top:
                continue
            work -= (done - steps[i]) * (width + done)
            catch_up(i, done, points, state)
            score[i] = worth[i] * left[i]
            if work < 0:
                return UNFINISHED, work
        top = max(top, score[i])
    if top == 0:
        return NONE, work
    item = 0
    while (
        steps[item] < done
        or score[item] == 0
        or score[item] < (1 - TIED) * top - worth[item] * doubt[item]
    ):
        item += 1
    return item, work


@entry()
def greedy_steps(points, state, worth, score, order, forced, step, done, work):
    """Fill order[step:], of which order[:forced] is given, by about `work` multiplications.

    Return the steps made, the items in C, and whether all items left depend on those chosen; `near`
    is then complete. Another call goes on from there.

    points: a `dmsgd.designs.greedy.Points`; state: a `State`.
    """
    X, rows, left, steps = points.X, state.rows, state.left, state.steps
    while step < order.size and work > 0:
        if step < forced:
            item = order[step]
            work -= done * (rows.shape[1] + X.shape[1] * points.is_dense + done)
            catch_up(item, done, points, state)
        else:
            item, work = greatest_item(points, state, worth, score, done, work)
            if item < 0:
                return step, done, item == NONE
            order[step] = item
        if left[item] > 0:
            state.picks[done] = item
            state.C[item, done] = np.sqrt(left[item])
            if not points.is_dense:
                for e in range(points.starts[item], points.starts[item + 1]):
                    rows[done, points.indices[e]] += X[0, e]
            done += 1
        steps[item], state.near[item], left[item], score[item] = done, 0.0, 0.0, 0.0
        step += 1
    return step, done, False
