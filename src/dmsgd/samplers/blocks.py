"""Draws from features that are read in blocks: a whole schedule in two passes over the data.

Proposals are independent given the eigenvectors of a draw (see `compiled/kdpp.py`), so the
proposals of many draws are made together. The masses of blocks tell which block of the data a
proposal falls into; each block then returns the row numbers of its proposals and their k
coordinates, which is all that `decide` of `compiled/kdpp.py` needs. One round is one pass. The
first round has enough proposals for nearly all draws; those that lack an item go on in the next.

The draws are those from the same features in memory, up to rounding.
"""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from dmsgd.errors import SamplingError
from dmsgd.inputs.arrays import FloatArray, IntArray, Matrix
from dmsgd.polynomials import eigenvector_inclusion, log_polynomials, weighted_squares
from dmsgd.runtime.memory import memory_limit
from dmsgd.runtime.pieces import slices
from dmsgd.runtime.threads import parallel_map
from dmsgd.samplers.contract import PreparedSampler
from dmsgd.samplers.factored_rows import find_sparse
from dmsgd.samplers.plain import choose_eigenvectors
from dmsgd.samplers.rejection_sampling import DenseTables

#: The proposals of a call take at most this many bytes, or an 8th of the memory.
PROPOSAL_BYTES = 2**29

#: A round has k (1 + 1/2 + ... + 1/k + EXTRA) proposals per draw: about e^-EXTRA of the draws go on
#: to the next. Of a thousand draws mostly none does, which saves a pass over the data.
EXTRA = (8, 30, 60)

#: Proposals that a block of the data looks up at a time.
STEP = 1024


def block_sampler(V: Any, values: FloatArray, k: int) -> PreparedSampler:
    """Return the sampler of the k-DPP with eigenvectors V = F basis for features F in blocks.

    V is a `dmsgd.spectra.eigenvectors.Projected`. Every call reads the data once or twice, however
    many draws it makes, as long as their proposals fit in memory; the first call also finds the
    inclusion probabilities.
    """
    log_e, pi = log_polynomials(values, k), eigenvector_inclusion(values, k)
    masses = V.masses(pi)
    sums = np.zeros((masses.shape[1], masses.shape[0] + 1))
    np.cumsum(masses.T, axis=1, out=sums[:, 1:])
    budget = int(min(PROPOSAL_BYTES, memory_limit() // 8))
    step = max(1, budget // (8 * _proposals(k, EXTRA[0]) * (k + 4)))

    def sample(key: int, start: int, size: int, workers: int) -> IntArray:
        out = np.empty((size, k), dtype=np.int64)
        for first in range(0, size, step):
            numbers = np.arange(start + first, start + min(first + step, size), dtype=np.uint64)
            out[first : first + step] = _draw(V, pi, log_e, sums, key, numbers, workers)
        return out

    return PreparedSampler("rejection", sample, step)


def _proposals(k: int, extra: float) -> int:
    from dmsgd.compiled.llvm import BLOCK

    expected = k * ((1 / np.arange(1, k + 1)).sum() + extra)
    return -(-int(expected) // BLOCK) * BLOCK


def _draw(
    V: Any,
    pi: FloatArray,
    log_e: FloatArray,
    sums: FloatArray,
    key: int,
    draws: npt.NDArray[np.uint64],
    workers: int,
) -> IntArray:
    """Return the draws with these numbers, in a few rounds of proposals."""
    k = log_e.shape[0] - 1
    uniforms, out = np.empty((draws.size, k)), np.empty((draws.size, k), dtype=np.int64)
    after = _fill(key, draws, 0, uniforms)
    J, pending = np.empty(uniforms.shape, dtype=np.int64), np.arange(draws.size)
    for t, row in enumerate(uniforms):
        J[t] = choose_eigenvectors(log_e, row)
    known: list[Any] = []  # of the proposals of earlier rounds: items, coordinates, thresholds
    for extra in EXTRA:
        uniforms = np.empty((pending.size, _proposals(k, extra), 3))
        after = _fill(key, draws[pending], after, uniforms)
        found = [*_find_rows(V, pi, sums, J[pending], uniforms), uniforms[:, :, 2].copy()]
        if known:
            found = [np.concatenate(both, axis=1) for both in zip(known, found, strict=True)]
        known = found
        rows, left = out[pending], np.empty(pending.size, dtype=np.int64)
        parts = np.linspace(0, pending.size, min(workers, pending.size) + 1).astype(int).tolist()
        work = partial(_decide, k, (*known, left, rows))
        parallel_map(work, [slice(a, b) for a, b in pairwise(parts)], workers)
        out[pending] = rows
        lacking = left > 0
        pending, known = pending[lacking], [each[lacking] for each in known]
        if not pending.size:
            return out
    raise SamplingError(
        f"draw {draws[pending[0]]} was not completed: the data changed since set-up"
    )


def _fill(key: int, draws: npt.NDArray[np.uint64], block: int, out: FloatArray) -> int:
    """Fill out[t] with the uniforms of draw draws[t], from number 2 block on; return the next."""
    from dmsgd.compiled.philox import fill_uniform

    after = block
    for number, row in zip(draws.tolist(), out, strict=True):
        after = fill_uniform(key, number, block, row)
    return after


def _decide(k: int, arrays: tuple[Any, ...], part: slice) -> None:
    """Decide on the proposals of these draws, from the first on."""
    from dmsgd.compiled.kdpp import decide
    from dmsgd.compiled.llvm import BLOCK
    from dmsgd.compiled.projection import Workspace

    blocks = arrays[0].shape[1] // BLOCK
    decide(Workspace(k).fields, part.stop - part.start, blocks, *(each[part] for each in arrays))


def _find_rows(
    V: Any, pi: FloatArray, sums: FloatArray, J: IntArray, uniforms: FloatArray
) -> tuple[IntArray, FloatArray]:
    """Return the items of the proposals with these uniforms, and their coordinates."""
    (size, count, _), k = uniforms.shape, J.shape[1]
    columns = J[np.arange(size)[:, None], (uniforms[:, :, 0] * k).astype(np.int64)].ravel()
    rests = (uniforms[:, :, 1] * sums[:, -1][columns].reshape(size, count)).ravel()
    blocks = _bisect(sums, columns, rests)
    rests -= sums[columns, blocks]
    order = np.argsort(blocks, kind="stable")
    bounds = np.searchsorted(blocks[order], np.arange(sums.shape[1]))
    arguments: list[Any] = []
    for a, b in pairwise(bounds.tolist()):
        mine = order[a:b]
        owners, draw = np.unique(mine // count, return_inverse=True)
        small = (columns[mine], J[owners], draw)  # 4 bytes each are enough to send
        question = (rests[mine], *(part.astype(np.uint32) for part in small))
        arguments.append((question,) if mine.size else None)
    del columns, blocks, rests
    items, X = np.empty(size * count, dtype=np.int64), np.empty((size * count, k))
    unknown = not V.knows(pi) and all(argument is not None for argument in arguments)
    weighted = []
    work = partial(answer_block, basis=V.basis, pi=pi if unknown else None)
    for block, part in enumerate(V.features.map_blocks(work, "answer", arguments)):
        if part is not None:
            mine = order[bounds[block] : bounds[block + 1]]
            items[mine] = part[0] + V.features.bounds[block]
            X[mine] = part[1]
            weighted.append(part[2])
    if unknown:
        V.remember(pi, np.concatenate(weighted))
    return items.reshape(size, count), X.reshape(size, count, k)


def _bisect(sums: FloatArray, columns: IntArray, targets: FloatArray) -> IntArray:
    """Return for each target the last block whose sum before it, sums[column, block], is below."""
    found, left = np.zeros(columns.size, dtype=np.int64), sums.shape[1] - 1
    while left > 1:
        half = left >> 1
        found += half * (sums[columns, found + half] <= targets)
        left -= half
    return found


def answer_block(block: Matrix, question: Any, basis: FloatArray, pi: FloatArray | None) -> Any:
    """Return the rows of one block of the data that proposals fall on, and their coordinates.

    And Σ_n V_in² π_n of all its rows, if π is given.
    """
    if not isinstance(block, np.ndarray):
        return find_sparse(block, basis, question, pi)
    from dmsgd.compiled.tables import locate

    rests, columns, J, draw = question
    columns, V = columns.astype(np.int64), np.ascontiguousarray(block @ basis)
    items, X = np.empty(columns.size, dtype=np.int64), np.empty((columns.size, J.shape[1]))
    tables = DenseTables(V).arguments(J.shape[1])
    for part in slices(columns.size, STEP):
        locate(tables.record, columns[part], rests[part], items[part], items[part].size)
        X[part] = V[items[part, None], J[draw[part]]]
    return items, X, None if pi is None else weighted_squares(V, pi)
