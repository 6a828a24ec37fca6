"""The swap chain on the entries of a kernel: a first set, and steps from one set to the next."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from dmsgd.inputs.arrays import FloatArray, IntArray, on_host
from dmsgd.runtime.progress import Progress

#: advance(Y, key, draw, block, steps) -> (next block, moves, log det); Y changes in place.
Advance = Callable[[IntArray, int, int, int, int], tuple[int, int, float]]

#: The factor is computed anew this often within one compiled call; more would delay Ctrl-C.
PIECE = 64

#: Steps per block of kernel entries: at least this many, or k.
LEAST_STEPS = 128


def pivots(kernel: Any, k: int, uniforms: FloatArray | None = None) -> IntArray:
    """Return k items with a positive determinant of a `Kernel`, or as many as the rank allows.

    A partial Cholesky decomposition: each pivot is drawn in proportion to the residual diagonal, by
    its uniform; without `uniforms` the largest is taken. No determinant is formed, so that it works
    for any k and any scale. n k kernel entries, O(n k²) operations, an (n, k) array.
    """
    from dmsgd.compiled.swap import DEPENDENT

    diagonal = kernel.diag()
    noise, left = DEPENDENT * diagonal, diagonal.copy()
    F = np.empty((kernel.n, k), order="F")
    items, tell = np.empty(k, dtype=np.int64), Progress("the first set of a chain")
    for m in range(k):
        left[left <= noise] = 0.0
        if not left.any():
            return items[:m]
        j = left.argmax()
        if uniforms is not None:
            mass = np.cumsum(left)
            j = np.searchsorted(mass, uniforms[m] * mass[-1], side="right")
            j = min(j, np.flatnonzero(left)[-1])  # a uniform may round up to the whole mass
        items[m] = j
        column = on_host(kernel.columns([j]))[:, 0] - F[:, :m] @ F[j, :m]
        F[:, m] = column / np.sqrt(left[j])
        left -= F[:, m] ** 2
        left[j] = 0.0
        tell(((m + 1) / k) ** 2)  # later items take longer
    return items


def compiled_steps(
    kind: Literal["LINEAR", "GAUSSIAN", "MATRIX"], X: FloatArray, gamma: float, diagonal: FloatArray
) -> Advance:
    """Return steps whose kernel entries are computed from X in compiled code.

    LINEAR: X Xᵀ; GAUSSIAN: exp(-gamma |x_i - x_j|²); MATRIX: X itself.
    """
    from dmsgd.compiled import swap

    plan = (getattr(swap, kind), np.ascontiguousarray(X), gamma, diagonal)

    def advance(Y: IntArray, key: int, draw: int, block: int, steps: int) -> tuple[int, int, float]:
        tell, moves, level = Progress(f"{steps:,} steps of a chain"), 0, 0.0
        most = PIECE * swap.REFRESH  # cuts where the factor is computed anew change nothing
        for first in range(0, max(steps, 1), most):
            count = min(most, steps - first)
            number = np.uint64(key), np.uint64(draw), block
            block, moved, level = swap.advance(*plan, Y, *number, count)
            moves += moved
            tell(min(1.0, (first + most) / max(steps, 1)))
        return block, moves, level

    return advance


def block_steps(kernel: Any) -> Advance:
    """Return steps for any kernel, by the block of L of the set and its next proposals."""
    from dmsgd.compiled.philox import fill_uniform
    from dmsgd.compiled.swap import MATRIX, factor, walk

    def advance(Y: IntArray, key: int, draw: int, block: int, steps: int) -> tuple[int, int, float]:
        most = 2 * (max(Y.size, LEAST_STEPS) // 2)  # even, as random numbers come in pairs
        R, moves = np.zeros((Y.size, Y.size)), 0
        tell = Progress(f"{steps:,} steps of a chain")
        for done in range(0, steps, most):
            count = min(most, steps - done)
            uniforms = np.empty(3 * count)
            block = fill_uniform(key, draw, block, uniforms)
            items = (uniforms[1::3] * kernel.n).astype(np.int64)
            known, where = np.unique(np.concatenate([Y, items]), return_inverse=True)
            local, proposals = where[: Y.size].copy(), where[Y.size :]
            L = np.ascontiguousarray(kernel.block(known, known), dtype=np.float64)
            plan = (MATRIX, L, 0.0, L.diagonal().copy(), local, R)
            factor(*plan)
            moves += walk(*plan, uniforms, proposals)
            Y[:] = known[local]
            tell((done + count) / steps)
        L = np.ascontiguousarray(kernel.block(Y, Y), dtype=np.float64)
        return block, moves, factor(MATRIX, L, 0.0, L.diagonal().copy(), np.arange(Y.size), R)

    return advance
