"""Greedy sets of an RBF kernel with quality: each item has the largest w_i r_i of those left.

w_i is the square of its quality, and r_i what the items chosen before it leave of S_ii = 1, by
steps of a Cholesky factor C Cᵀ of S (Chen, Zhang, Zhou 2018). r_i only falls, so an item whose last
known w_i r_i is below the largest of the others is left alone (Minoux 1978). When its turn comes,
it gets all steps that it has missed at once, and its row of X is read once for them.
"""

from __future__ import annotations

import numpy as np

from dmsgd.compiled.jit import entry
from dmsgd.compiled.philox import fill_uniforms

#: Forms of X: rows (n, d), and the entries (1, nnz) of a CSR array.
DENSE, SPARSE = 0, 1
#: Relative differences up to this are ties, which go to the first item.
TIED = 1e-9
#: An item of which others leave less than this share depends on them.
DEPENDENT = 1e-4
#: Items that are looked at before all others, those with the largest last known values.
FIRST = 3
#: Random items that are tried before all values are brought up to date; even.
TRIES = 64

_MATH = {"contract", "nsz", "reassoc"}


@entry(fastmath=_MATH)
def catch_up(i, done, points, state):
    """Apply the steps that item i has missed to its row of C, to what is left and how near."""
    form, X, starts, indices, norms, noise = points
    rate, picks, rows, C, left, near, steps = state
    mine = C[i]
    for s in range(steps[i], done):
        j = picks[s]
        product = 0.0
        if form == DENSE:
            row, other = X[i], X[j]
            for f in range(row.size):
                product += row[f] * other[f]
        else:
            other = rows[s]
            for e in range(starts[i], starts[i + 1]):
                product += X[0, e] * other[indices[e]]
        size = norms[i] + norms[j]
        square = size - 2 * product
        if square <= noise * size:
            square = 0.0
        near[i] = min(near[i], square)
        if left[i] > 0:
            value, other = np.exp(rate * square), C[j]
            for u in range(s):
                value -= mine[u] * other[u]
            value /= other[s]
            mine[s] = value
            left[i] -= value * value
            if left[i] < DEPENDENT:
                left[i] = 0.0
    steps[i] = done


@entry(fastmath=_MATH)
def greatest_item(points, state, worth, score, done):
    """Return the first item with the largest w_i r_i, up to ties; -1 if all are 0."""
    left, _, steps = state[4:]
    top = 0.0
    for _ in range(FIRST):
        best = np.argmax(score)
        catch_up(best, done, points, state)
        score[best] = worth[best] * left[best]
        top = max(top, score[best])
    for i in range(score.size):
        if score[i] >= (1 - TIED) * top and steps[i] < done:
            catch_up(i, done, points, state)
            score[i] = worth[i] * left[i]
            top = max(top, score[i])
    item = 0
    while score[item] < (1 - TIED) * top:
        item += 1
    return item if top > 0 else -1


@entry()
def random_item(points, state, worth, score, sums, key, draw, done):
    """Return item i with a probability in proportion to w_i r_i; -1 if all are 0.

    Items are drawn by their last known values, whose running sums are `sums`, and accepted with
    the share that is left of these (Epperly, Tropp, Webber 2024).
    """
    left, uniforms, block = state[4], np.empty(2 * TRIES), 0
    while True:
        if block > 0:
            for i in range(score.size):
                catch_up(i, done, points, state)
                score[i] = worth[i] * left[i]
                sums[i] = score[i] + (sums[i - 1] if i > 0 else 0.0)
            if sums[-1] <= 0:
                return -1
        block = fill_uniforms(key, draw, block, uniforms, uniforms.size)
        for t in range(TRIES):
            i = np.searchsorted(sums, uniforms[2 * t] * sums[-1], side="right")
            if i < score.size:
                catch_up(i, done, points, state)
                if uniforms[2 * t + 1] * score[i] < worth[i] * left[i]:
                    return i


@entry()
def greedy_steps(points, state, worth, score, sums, key, order, forced, first, last, done):
    """Fill order[first:last], of which order[:forced] is given; return (steps, items in C).

    Fewer steps mean that all items left depend on those that are chosen; `near` is then complete.
    Where `sums` are given, items are drawn at random by `key`: a randomly pivoted Cholesky factor.

    points: form of X, X, indptr and indices of a CSR array, squared lengths of rows, and the share
            of these below which a squared distance is rounding.
    state:  -1/m of the kernel exp(-d²/m), the items in C, their rows if X is a CSR array, C (n, k)
            and of each item what is left, the squared distance to the nearest in C, and the steps
            that it has seen.
    """
    form, X, starts, indices = points[:4]
    picks, rows, C, left, near, steps = state[1:]
    for step in range(first, last):
        if step < forced:
            item = order[step]
            catch_up(item, done, points, state)
        else:
            if sums.size == 0:
                item = greatest_item(points, state, worth, score, done)
            else:
                item = random_item(points, state, worth, score, sums, key, np.uint64(step), done)
            if item < 0:
                for i in range(score.size):
                    catch_up(i, done, points, state)
                return step, done
            order[step] = item
        if left[item] > 0:
            picks[done] = item
            C[item, done] = np.sqrt(left[item])
            if form == SPARSE:
                for e in range(starts[item], starts[item + 1]):
                    rows[done, indices[e]] += X[0, e]
            done += 1
        steps[item], near[item], left[item], score[item] = done, 0.0, 0.0, 0.0
    return last, done
