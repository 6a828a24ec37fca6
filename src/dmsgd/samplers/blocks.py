"""Draws from features that are read in blocks: a whole schedule in two passes over the data.

Proposals are independent given the eigenvectors of a draw (see `dmsgd.compiled.kdpp`), so
the proposals of many draws are made at once. Which block of the data a proposal falls into follows
from the blocks' masses; each block then answers its proposals with row numbers and their k
coordinates, and draws are accepted or rejected from these alone. One round is one pass. The first
round has enough proposals for nearly all draws; those that lack an item go on in the next.

The draws are those that the features would give in memory, up to rounding.
"""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from dmsgd.errors import SamplingError
from dmsgd.inputs.arrays import FloatArray, IntArray, Matrix
from dmsgd.inputs.memory import memory_limit
from dmsgd.polynomials import eigenvector_inclusion, log_polynomials, weighted_squares
from dmsgd.samplers.computed_rows import find_sparse
from dmsgd.samplers.parallel import parallel_map
from dmsgd.samplers.protocol import BlockEigenvectors, PreparedSampler
from dmsgd.samplers.rejection import choose_eigenvectors, dense_tables

#: Proposals of all draws at a time take at most this many bytes, or an 8th of the memory.
PROPOSAL_BYTES = 2**29

#: Proposals of a round are k (1 + 1/2 + ... + 1/k + EXTRA): about e^-EXTRA of the draws go on.
#: Of a thousand draws none goes on most of the time, which saves a pass over the data.
EXTRA = (8, 30, 60)


def block_sampler(V: BlockEigenvectors, values: FloatArray, k: int) -> PreparedSampler:
    """Return what draws from the k-DPP with eigenvectors V that are made block by block.

    Every call reads the data once or twice, however many draws it makes, as long as their proposals
    fit in memory (`draws_per_pass`); the first call finds b, for `inclusion`, on the way.
    """
    log_e, pi = log_polynomials(values, k), eigenvector_inclusion(values, k)
    masses = V.masses(pi)
    sums = np.zeros((masses.shape[1], masses.shape[0] + 1))
    np.cumsum(masses.T, axis=1, out=sums[:, 1:])
    step = draws_per_pass(k)

    def draw(key: int, start: int, size: int, workers: int) -> IntArray:
        out = np.empty((size, k), dtype=np.int64)
        for first in range(0, size, step):
            numbers = np.arange(start + first, start + min(first + step, size), dtype=np.uint64)
            together = _together(V, pi, log_e, sums, np.uint64(key), numbers, k, workers)
            out[first : first + step] = together
        return out

    return PreparedSampler("rejection", draw, step)


def draws_per_pass(k: int) -> int:
    """Return how many draws are made in one go: as many as their proposals leave room for."""
    budget = min(PROPOSAL_BYTES, memory_limit() // 8)
    return max(1, int(budget) // (8 * _proposals(k, EXTRA[0]) * (k + 4)))


def _proposals(k: int, extra: float) -> int:
    from dmsgd.compiled.simd import BLOCK

    expected = k * ((1 / np.arange(1, k + 1)).sum() + extra)
    return -(-int(expected) // BLOCK) * BLOCK


def _together(
    V: BlockEigenvectors,
    pi: FloatArray,
    log_e: FloatArray,
    sums: FloatArray,
    key: np.uint64,
    draws: npt.NDArray[np.uint64],
    k: int,
    workers: int,
) -> IntArray:
    """Return the draws with these numbers, in a few rounds of proposals."""
    from dmsgd.compiled.blocks import decide
    from dmsgd.compiled.kdpp import room_for_draws
    from dmsgd.compiled.projection import room_for_W
    from dmsgd.compiled.simd import BLOCK

    J = choose_eigenvectors(log_e, int(key), int(draws[0]), draws.size)
    out = np.empty((draws.size, k), dtype=np.int64)
    pending = np.arange(draws.size)
    W = np.empty((draws.size, room_for_W(k)))  # touched only where a draw lacks items
    left = np.full(draws.size, k)
    first = 0
    for extra in EXTRA:
        count = _proposals(k, extra)
        items, X = _answers(V, pi, sums, key, draws[pending], J[pending], first, count)
        rows = out[pending]
        parts = [
            (
                items[p],
                X[p],
                key,
                draws[pending[p]],
                first,
                left[p],
                W[p],
                *room_for_draws(k),
                rows[p],
            )
            for p in _parts(pending.size, workers)
        ]
        parallel_map(lambda part: decide(*part), parts, workers)
        out[pending] = rows
        lacking = left > 0
        pending, W, left = pending[lacking], W[lacking], left[lacking]
        first += count // BLOCK
        if not pending.size:
            return out
    raise SamplingError(
        f"draw {draws[pending[0]]} was not completed: the data changed since set-up"
    )


def _parts(size: int, workers: int) -> list[slice]:
    bounds = np.linspace(0, size, min(workers, size) + 1).astype(int).tolist()
    return [slice(a, b) for a, b in pairwise(bounds)]


def _answers(
    V: BlockEigenvectors,
    pi: FloatArray,
    sums: FloatArray,
    key: np.uint64,
    draws: npt.NDArray[np.uint64],
    J: IntArray,
    first: int,
    count: int,
) -> tuple[IntArray, FloatArray]:
    """Return the items that `count` proposals of each draw fall on, and their coordinates."""
    from dmsgd.compiled.blocks import plan
    from dmsgd.compiled.simd import BLOCK

    columns = np.empty((draws.size, count), dtype=np.int64)
    blocks = np.empty((draws.size, count), dtype=np.int64)
    rests = np.empty((draws.size, count))
    totals = np.ascontiguousarray(sums[:, -1])
    plan(J, sums, totals, key, draws, first, np.empty(3 * BLOCK), columns, blocks, rests)
    order = np.argsort(blocks, axis=None, kind="stable")
    bounds = np.searchsorted(blocks.ravel()[order], np.arange(sums.shape[1]))
    arguments: list[Any] = []
    for a, b in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        mine = order[a:b]
        owners, draw = np.unique(mine // count, return_inverse=True)
        small = (columns.ravel()[mine], J[owners], draw)  # 4 bytes each are enough to send
        question = (rests.ravel()[mine], *(part.astype(np.uint32) for part in small))
        arguments.append(question if mine.size else None)
    del columns, blocks, rests
    items = np.empty(draws.size * count, dtype=np.int64)
    X = np.empty((draws.size * count, J.shape[1]))
    unknown = not V.knows(pi) and all(argument is not None for argument in arguments)
    weighed = []
    work = partial(answer_block, basis=V.basis, pi=pi if unknown else None)
    for block, part in enumerate(V.features.run(work, "answer", arguments)):
        if part is not None:
            mine = order[bounds[block] : bounds[block + 1]]
            items[mine] = part[0] + V.features.bounds[block]
            X[mine] = part[1]
            weighed.append(part[2])
    if unknown:
        V.remember(pi, np.concatenate(weighed))
    shape = (draws.size, count)
    return items.reshape(shape), X.reshape(*shape, -1)


def answer_block(block: Matrix, question: Any, basis: FloatArray, pi: FloatArray | None) -> Any:
    """Return the rows of one block of the data that proposals fall on, and their coordinates.

    And Σ_n V_in² π_n of all its rows, if π is given.
    """
    if sparse.issparse(block):
        return find_sparse(block, basis, question, pi)
    from dmsgd.compiled.blocks import answer
    from dmsgd.compiled.jit import address

    rests, columns, J, draw = question
    V = np.ascontiguousarray(block @ basis)
    items = np.empty(columns.size, dtype=np.int64)
    X = np.empty((columns.size, J.shape[1]))
    columns, J, draw = (part.astype(np.int64) for part in (columns, J, draw))
    tables = dense_tables(V)
    plan, _ = tables.arguments(J.shape[1])
    answer(address(plan, np.int64), columns, rests, J, draw, items, X)
    return items, X, None if pi is None else weighted_squares(V, pi)
