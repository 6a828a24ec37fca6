"""Draws from DPPs by rejection: exact, and at a cost that does not depend on the number of items.

Given eigenvectors J (|J| = k), the items are a draw from the projection DPP of V_J. Its first item
has law Pr(i) = (1/k) Σ_{j∈J} V_ij², a mixture over j: pick j in J uniformly, then i from V_:j². For
the later items, propose i in the same way and accept with probability |W x|² / |x|², where x =
V[i, J] and the rows of W are an orthonormal basis of what the accepted items leave of R^k. About
k·(1 + 1/2 + ... + 1/k) proposals make a draw.

Proposals are independent given J, so they come in blocks (`dmsgd.samplers.compiled.basis`).
"""

from __future__ import annotations

import numpy as np

from dmsgd.inputs.arrays import FloatArray, IntArray
from dmsgd.samplers.compiled.basis import accept, begin, lay_out, room_for_basis
from dmsgd.samplers.compiled.jit import (
    DOUBLES,
    INT,
    INTS,
    NOTHING,
    WORD,
    compiled,
)
from dmsgd.samplers.compiled.random import uniforms_at
from dmsgd.samplers.compiled.registers import (
    BLOCK,
    doubles_at,
    ints_at,
    shift,
)
from dmsgd.samplers.compiled.tables import TABLES, locate, tables_at


@compiled(NOTHING(DOUBLES, INT, INT, DOUBLES, INTS))
def select_k(log_e, n, k, uniforms, J):
    """Choose the k eigenvectors of a k-DPP draw out of n, by k binary searches.

    With l left to choose among the first n, the next one is at most m with probability
    e_l^m / e_l^n, so it is the first m whose log e_l^m reaches log u + log e_l^n.
    """
    width = n + 1
    for left in range(k, 0, -1):
        target = log_e[left * width + n] + np.log(uniforms[k - left])
        below, reached = left - 1, n
        while reached - below > 1:
            middle = (below + reached) >> 1
            if log_e[left * width + middle] >= target:
                reached = middle
            else:
                below = middle
        n = reached - 1
        J[k - left] = n


@compiled(NOTHING(INTS, INT, DOUBLES, DOUBLES, INTS, DOUBLES))
def propose(J, k, uniforms, totals, columns, targets):
    """columns[p] = j uniform in J; targets[p] uniform below totals[j], the sum of V[:, j]².

    From the first and the second of the three uniforms of proposal p.
    """
    for p in range(BLOCK):
        columns[p] = J[np.int64(uniforms[3 * p] * k)]
        targets[p] = uniforms[3 * p + 1] * totals[columns[p]]


@compiled(NOTHING(TABLES, INTS, INT, INTS, DOUBLES))
def gather(tables, J, k, items, X):
    """X = V[items][:, J].T, in rows of BLOCK."""
    for c in range(k):
        for p in range(BLOCK):
            X[c * BLOCK + p] = tables.V[items[p] * tables.r + J[c]]


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


def room_for_draws(k: int) -> tuple[FloatArray, IntArray]:
    """Return the scratch of `draw` for batches of k."""
    doubles, integers = room_for_basis(k)
    return np.zeros(doubles + (k + 20) * BLOCK), np.zeros(integers + 2 * BLOCK, np.int64)


@compiled(INT(*[INT] * 11, WORD, WORD, *[INT] * 5), called_from_python=True)
def draw(
    n, r, groups, width, last, V, sums, totals, guides,
    J, k, key, start, block, doubles, integers, out, size,
):  # fmt: skip
    """Fill row t of `out` (size, k) with the items of the projection DPP of V[:, J[t]].

    Return how many rows succeeded. All but the numbers are addresses. The random numbers of draw
    start + t go on at `block`. The bound on proposals is one that an orthonormal V exceeds with
    probability below e^-90.
    """
    tables = tables_at(n, r, groups, width, last, V, sums, totals, guides)
    basis = lay_out(k, doubles_at(doubles), ints_at(integers))
    uniforms, targets = basis.end, shift(basis.end, 3 * BLOCK)
    X = shift(basis.end, 4 * BLOCK)
    items, columns = basis.stop, shift(basis.stop, BLOCK)
    for t in range(size):
        chosen, row = shift(ints_at(J), t * k), shift(ints_at(out), t * k)
        begin(basis)
        left, at = k, block
        for _ in range(100 * k // BLOCK + 100):
            at = uniforms_at(key, start + np.uint64(t), at, uniforms, 3 * BLOCK)
            propose(chosen, k, uniforms, tables.totals, columns, targets)
            locate(tables, columns, targets, items, BLOCK)
            gather(tables, chosen, k, items, X)
            left = accept(basis, items, X, uniforms, row)
            if left == 0:
                break
        if left > 0:
            return t
    return size
