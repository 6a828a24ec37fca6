"""The pieces of a draw whose items are found block by block of the data.

The random numbers are those of `draw_fixed`, used for the same things, so the draws are the same.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from dmsgd.samplers.compiled.kdpp import (
    BLOCK,
    accept,
    block_squares,
    choose_columns,
    identity,
    locate,
    select_k,
    workspace,
)
from dmsgd.samplers.compiled.random import fill_uniform

#: Blocks of random numbers that a block of proposals takes: three numbers each, two a block.
STRIDE = 3 * BLOCK // 2


@njit(nogil=True, cache=True)
def choose_eigenvectors(log_e, key, draws, J):
    """Fill row t of J with the eigenvectors of draw number draws[t]."""
    k = J.shape[1]
    uniforms = np.empty(k)
    for t in range(draws.size):
        fill_uniform(key, draws[t], 0, uniforms)
        select_k(log_e, k, uniforms, J[t])


@njit(nogil=True, cache=True)
def plan(J, sums, key, draws, first, columns, blocks, rests):
    """Say for each proposal which eigenvector it follows, and where in the data it falls.

    sums[j, b] is Σ V_ij² over the items before block b of the data. Proposal p of row t, counted
    from the proposal block `first` of its draw, is in the block blocks[t, p] of the data, where
    V[:, columns[t, p]]² has added up to rests[t, p].
    """
    k, count = J.shape[1], sums.shape[1] - 1
    uniforms = np.empty(3 * BLOCK)
    begin = (k + 1) // 2  # after the numbers that chose J
    for t in range(draws.size):
        for q in range(columns.shape[1] // BLOCK):
            fill_uniform(key, draws[t], begin + (first + q) * STRIDE, uniforms)
            part = slice(q * BLOCK, (q + 1) * BLOCK)
            choose_columns(J[t], uniforms, columns[t, part])
            for p in range(BLOCK):
                row = sums[columns[t, q * BLOCK + p]]
                target = uniforms[3 * p + 1] * row[count]
                below, above = 0, count
                while above - below > 1:
                    middle = (below + above) >> 1
                    if row[middle] <= target:
                        below = middle
                    else:
                        above = middle
                blocks[t, q * BLOCK + p] = below
                rests[t, q * BLOCK + p] = target - row[below]


@njit(nogil=True, cache=True)
def answer(V, mass, columns, rests, J, draw, items, X):
    """Find the rows of a block of the data that proposals fall on, and their coordinates.

    X[p] = V[items[p]] at the eigenvectors of the draw that the proposal belongs to.
    """
    locate(V, mass, columns, rests, items)
    for p in range(items.size):
        row, chosen = V[items[p]], J[draw[p]]
        for c in range(chosen.size):
            X[p, c] = row[chosen[c]]


@njit(nogil=True, cache=True)
def decide(items, X, key, draws, first, W, left, out):
    """Accept or reject the proposals of each draw in order; `left` says how many items it lacks.

    W[t] and left[t] carry a draw over to its next proposals; W[t] of a new draw is the identity.
    """
    k = out.shape[1]
    scratch, uniforms = workspace(k), np.empty(3 * BLOCK)
    part = np.empty((k, BLOCK))
    begin = (k + 1) // 2
    for t in range(draws.size):
        for q in range(items.shape[1] // BLOCK):
            if left[t] == 0:
                break
            fill_uniform(key, draws[t], begin + (first + q) * STRIDE, uniforms)
            for p in range(BLOCK):
                for c in range(k):
                    part[c, p] = X[t, q * BLOCK + p, c]
            rows = items[t, q * BLOCK : (q + 1) * BLOCK]
            left[t] = accept(rows, part, uniforms, W[t], left[t], scratch, out[t])


__all__ = ["BLOCK", "answer", "block_squares", "choose_eigenvectors", "decide", "identity", "plan"]
