"""The pieces of a draw whose items are found block by block of the data.

The random numbers are those of `draw_fixed`, used for the same things, so the draws are the same.
"""

from __future__ import annotations

from dmsgd.compiled.jit import (
    INT,
    NOTHING,
    REAL,
    WORD,
    compiled,
    to_fill,
    to_read,
)
from dmsgd.compiled.kdpp import propose
from dmsgd.compiled.philox import uniforms_at
from dmsgd.compiled.pointers import ints_at, pointer_to, shift
from dmsgd.compiled.projection import accept, begin, lay_out, resume, suspend
from dmsgd.compiled.simd import BLOCK
from dmsgd.compiled.tables import find_parts, locate, tables_at

#: Blocks of random numbers that a block of proposals takes: three numbers each, two a block.
STRIDE = 3 * BLOCK // 2


@compiled(
    NOTHING(
        to_read(INT), to_read(REAL), to_read(REAL, 1), WORD, to_read(WORD, 1), INT,
        to_fill(REAL, 1), to_fill(INT),
        to_fill(INT), to_fill(REAL),
    ),
    called_from_python=True,
)  # fmt: skip
def plan(J, sums, totals, key, draws, first, uniforms, columns, blocks, rests):
    """Say for each proposal which eigenvector it follows, and where in the data it falls.

    sums[j, b] is Σ V_ij² over the items before block b of the data, and totals[j] over all.
    Proposal p of row t, counted from the proposal block `first` of its draw, is in the block
    blocks[t, p] of the data, where V[:, columns[t, p]]² has added up to rests[t, p]. `uniforms` is
    scratch.
    """
    k, count = J.shape[1], sums.shape[1] - 1
    begin = (k + 1) // 2  # after the numbers that chose J
    for t in range(draws.size):
        for q in range(columns.shape[1] // BLOCK):
            at = begin + (first + q) * STRIDE
            uniforms_at(key, draws[t], at, pointer_to(uniforms), 3 * BLOCK)
            place = t * columns.shape[1] + q * BLOCK
            part, targets = shift(pointer_to(columns), place), shift(pointer_to(rests), place)
            chosen = shift(pointer_to(J), t * k)
            propose(
                chosen,
                k,
                pointer_to(uniforms),
                pointer_to(totals),
                part,
                targets,
                pointer_to(uniforms),
            )
            found = shift(pointer_to(blocks), place)
            find_parts(pointer_to(sums), count, part, targets, found, BLOCK)
            for p in range(BLOCK):
                targets[p] -= sums[part[p], found[p]]


@compiled(
    NOTHING(
        INT, to_read(INT, 1), to_read(REAL, 1), to_read(INT), to_read(INT, 1), to_fill(INT, 1),
        to_fill(REAL),
    ),
    called_from_python=True,
)  # fmt: skip
def answer(plan, columns, rests, J, draw, items, X):
    """Find the rows of a block of the data that proposals fall on, and their coordinates.

    X[p] = V[items[p]] at the eigenvectors of the draw that the proposal belongs to, J[draw[p]].
    """
    plan = ints_at(plan)
    tables = tables_at(plan)
    for first in range(0, items.size, BLOCK):
        locate(
            plan, shift(pointer_to(columns), first), shift(pointer_to(rests), first),
            shift(pointer_to(items), first), min(BLOCK, items.size - first),
        )  # fmt: skip
    for p in range(items.size):
        for c in range(J.shape[1]):
            X[p, c] = tables.V[items[p] * tables.r + J[draw[p], c]]


@compiled(
    NOTHING(
        to_read(INT), to_read(REAL, 3), WORD, to_read(WORD, 1), INT, to_fill(INT, 1), to_fill(REAL),
        to_fill(REAL, 1), to_fill(INT, 1), to_fill(INT),
    ),
    called_from_python=True,
)  # fmt: skip
def decide(items, X, key, draws, first, left, W, doubles, integers, out):
    """Accept or reject the proposals of each draw in order; `left` says how many items it lacks.

    W[t] carries a draw that lacks some over to its next proposals.
    """
    count, k = items.shape[1], out.shape[1]
    basis = lay_out(k, pointer_to(doubles), pointer_to(integers))
    uniforms, part = basis.end, shift(basis.end, 3 * BLOCK)
    for t in range(draws.size):
        if left[t] == k:
            begin(basis)
        else:
            resume(basis, left[t], shift(pointer_to(W), t * W.shape[1]))
        for q in range(count // BLOCK):
            at = (k + 1) // 2 + (first + q) * STRIDE
            uniforms_at(key, draws[t], at, uniforms, 3 * BLOCK)
            for p in range(BLOCK):
                for c in range(k):
                    part[c * BLOCK + p] = X[t, q * BLOCK + p, c]
            rows = shift(pointer_to(items), t * count + q * BLOCK)
            for p in range(BLOCK):
                uniforms[p] = uniforms[3 * p + 2]
            left[t] = accept(
                k, pointer_to(doubles), pointer_to(integers), rows, part, uniforms, BLOCK,
                shift(pointer_to(out), t * k),
            )  # fmt: skip
            if left[t] == 0:
                break
        if left[t] > 0:
            suspend(basis, shift(pointer_to(W), t * W.shape[1]))
