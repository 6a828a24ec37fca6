"""Draws from DPPs by rejection: exact, and at a cost that does not depend on the number of items.

Given eigenvectors J (|J| = k), the items are a draw from the projection DPP of V_J. Its first item
has law Pr(i) = (1/k) Σ_{j∈J} V_ij², a mixture over j: pick j in J uniformly, then i from V_:j². For
the later items, propose i in the same way and accept with probability |W x|² / |x|², where x =
V[i, J] and the rows of W are an orthonormal basis of what the accepted items leave of R^k. About
k·(1 + 1/2 + ... + 1/k) proposals make a draw.

Proposals are independent given J, so they come in blocks: Z = W Xᵀ is one matrix product. On
acceptance a Householder reflection turns Z so that the new item lies on the last axis, which is
dropped; W follows once a block. W shrinks as acceptance gets rarer, so that all proposals together
cost about 2k³ operations, and all reflections about as much.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from dmsgd.samplers.compiled.linear_algebra import (
    add_product,
    column_squares,
    householder,
    reflect,
    reflect_many,
)
from dmsgd.samplers.compiled.random import fill_uniform

#: Rows whose squares are added up on the fly below one entry of the mass table.
ROWS = 8
#: Proposals per block.
BLOCK = 32
#: Reflections applied to W at a time.
GROUP = 8

_MATH = {"contract", "nsz"}


@njit(nogil=True, cache=True, fastmath=_MATH)
def block_squares(V, table):
    """table[j, b] = (V[b * ROWS : (b + 1) * ROWS, j]**2).sum(), transposed tile by tile."""
    n, r = V.shape
    tile = np.empty((64, r))
    for first in range(0, table.shape[1], 64):
        count = min(64, table.shape[1] - first)
        tile[:] = 0.0
        for b in range(count):
            out = tile[b]
            for i in range((first + b) * ROWS, min((first + b + 1) * ROWS, n)):
                row = V[i]
                for j in range(r):
                    out[j] += row[j] * row[j]
        for j in range(r):
            for b in range(count):
                table[j, first + b] = tile[b, j]


@njit(nogil=True, cache=True)
def select_k(log_e, k, uniforms, J):
    """Choose the k eigenvectors of a k-DPP draw, by k binary searches.

    With l left to choose among the first n, the next one is at most m with probability
    e_l^m / e_l^n, so it is the first m whose log e_l^m reaches log u + log e_l^n.
    """
    n = log_e.shape[1] - 1
    for left in range(k, 0, -1):
        row = log_e[left]
        target = row[n] + np.log(uniforms[k - left])
        below, reached = left - 1, n
        while reached - below > 1:
            middle = (below + reached) >> 1
            if row[middle] >= target:
                reached = middle
            else:
                below = middle
        n = reached - 1
        J[k - left] = n


@njit(nogil=True, cache=True)
def select_any(probabilities, uniforms, J):
    """Choose each eigenvector of a DPP draw with its own probability; return how many."""
    k = 0
    for n in range(probabilities.size):
        if uniforms[n] < probabilities[n]:
            J[k] = n
            k += 1
    return k


@njit(nogil=True, cache=True)
def choose_columns(J, uniforms, columns):
    """columns[p] = j uniform in J, from the first of the three uniforms of proposal p."""
    for p in range(columns.size):
        columns[p] = J[np.uint64(uniforms[3 * p] * J.size)]


@njit(nogil=True, cache=True, fastmath=_MATH)
def locate(V, mass, columns, targets, items):
    """items[p] = the row at which the running sum of V[:, columns[p]]² passes targets[p].

    `mass` holds these sums at every 8th row. All p side by side, to hide memory latency.
    """
    one, last = np.uint64(1), np.uint64(V.shape[0] - 1)
    for p in range(items.size):
        items[p] = 0
    length = mass.shape[1]
    while length > 1:
        half = np.uint64(length >> 1)
        for p in range(items.size):
            below = mass[columns[p], items[p] + half - one] <= targets[p]
            items[p] += half if below else np.uint64(0)
        length -= length >> 1
    for p in range(items.size):
        block, j = items[p], columns[p]
        rest = targets[p]
        if block > 0:
            rest -= mass[j, block - one]
        row = block * np.uint64(ROWS)
        total = 0.0
        passed = 0
        for s in range(ROWS - 1):
            x = V[min(row + np.uint64(s), last), j]
            total += x * x
            passed += total <= rest
        items[p] = min(row + np.uint64(passed), last)


@njit(nogil=True, cache=True)
def _gather(V, J, items, X):
    """X = V[items][:, J].T."""
    for p in range(items.size):
        row = V[items[p]]
        for c in range(J.size):
            X[c, p] = row[J[c]]


@njit(nogil=True, cache=True, fastmath=_MATH)
def _squared_norm(Z, column):
    """(Z[:, column]**2).sum()."""
    total = 0.0
    for i in range(Z.shape[0]):
        total += Z[i, column] * Z[i, column]
    return total


@njit(nogil=True, cache=True)
def _project(W, X, Z):
    """Z = W @ X; a square W is still the identity."""
    if W.shape[0] == W.shape[1]:
        for c in range(X.shape[0]):
            for p in range(X.shape[1]):
                Z[c, p] = X[c, p]
    else:
        Z[:] = 0.0
        add_product(W, X, Z)


@njit(nogil=True, cache=True)
def workspace(k):
    """Return the scratch arrays of `accept` for batches of k."""
    return (
        np.zeros((k, BLOCK)),
        np.empty((BLOCK, k)),
        np.empty(BLOCK),
        np.empty((GROUP, k)),
        np.empty((k, GROUP)),
        np.empty(BLOCK),
        np.empty(BLOCK),
    )


@njit(nogil=True, cache=True)
def accept(items, X, uniforms, W, left, scratch, out):
    """Go through a block of proposals, put those accepted into `out`; return how many are left.

    X holds their coordinates as columns. The first `left` rows of W span what the items accepted
    before leave of R^k, and are brought up to date.
    """
    Z, reflectors, taus, Y, columns, bound, row = scratch
    k = W.shape[1]
    column_squares(X, bound)
    _project(W[:left], X, Z[:left])
    accepted = 0
    for p in range(BLOCK):
        rest = left - accepted
        if _squared_norm(Z[:rest], p) <= uniforms[3 * p + 2] * bound[p]:
            continue
        out[k - rest] = items[p]
        if rest == 1:
            return 0
        v = reflectors[accepted]
        v[:] = 0.0
        taus[accepted] = householder(Z[:rest], p, v)
        reflect(Z[:rest], v, taus[accepted], p + 1, row)
        accepted += 1
    reflect_many(W[:left], reflectors, taus[:accepted], Y, columns)
    return left - accepted


@njit(nogil=True, cache=True)
def identity(k):
    """Return W at the beginning of a draw."""
    W = np.zeros((k, k))
    for c in range(k):
        W[c, c] = 1.0
    return W


@njit(nogil=True, cache=True)
def select_items(V, mass, J, key, draw, block, out):
    """Fill `out` with the items of the projection DPP of V[:, J]; return False if that fails.

    `block` is where the random numbers of this draw go on. The bound on proposals is one that an
    orthonormal V exceeds with probability below e^-90.
    """
    k = J.size
    W, X, scratch = identity(k), np.empty((k, BLOCK)), workspace(k)
    uniforms = np.empty(3 * BLOCK)
    items, columns = np.empty(BLOCK, np.uint64), np.empty(BLOCK, np.uint64)
    left = k
    for _ in range(100 * k // BLOCK + 100):
        block = fill_uniform(key, draw, block, uniforms)
        choose_columns(J, uniforms, columns)
        locate(V, mass, columns, uniforms[1::3], items)
        _gather(V, J, items, X)
        left = accept(items, X, uniforms, W, left, scratch, out)
        if left == 0:
            return True
    return False


@njit(nogil=True, cache=True)
def draw_fixed(V, mass, log_e, key, start, out):
    """Fill row t of `out` with draw start + t of a k-DPP; return how many rows succeeded."""
    k = out.shape[1]
    J, uniforms = np.empty(k, np.uint64), np.empty(k)
    for t in range(out.shape[0]):
        draw = np.uint64(start + t)
        block = fill_uniform(key, draw, 0, uniforms)
        select_k(log_e, k, uniforms, J)
        if not select_items(V, mass, J, key, draw, block, out[t]):
            return t
    return out.shape[0]


@njit(nogil=True, cache=True)
def draw_any(V, mass, probabilities, key, draw, out):
    """Fill the front of `out` with one draw of a DPP; return its size, or -1 if that fails."""
    J, uniforms = np.empty(probabilities.size, np.uint64), np.empty(probabilities.size)
    block = fill_uniform(key, np.uint64(draw), 0, uniforms)
    k = select_any(probabilities, uniforms, J)
    if k > 0 and not select_items(V, mass, J[:k], key, np.uint64(draw), block, out[:k]):
        return -1
    return k
