"""What an exchange chain needs of a kernel: a first set, and steps from one set to the next."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dmsgd.inputs.arrays import FloatArray, IntArray
from dmsgd.inputs.progress import Progress
from dmsgd.kernels import RBF, Kernel, Linear, Precomputed

#: advance(Y, key, draw, block, steps) -> (next block, moves, log det); Y changes in place.
Advance = Callable[[IntArray, int, int, int, int], tuple[int, int, float]]

#: Factors that are made anew in steps that are made in one go, so that Ctrl-C is heard.
PIECE = 64

#: Steps for which a kernel without features is asked at a time: at least this many, or k.
LEAST_STEPS = 128


def pivots(kernel: Kernel, k: int, uniforms: FloatArray | None = None) -> IntArray:
    """Return k items with a positive determinant, or as many as there are: a partial Cholesky.

    Each is drawn in proportion to what the items before it leave of the diagonal, by its uniform;
    without `uniforms` the largest is taken. Nothing is multiplied up, so that sets of any size
    and kernels of any scale work. n·k kernel entries, O(n k²) operations, an (n, k) array.
    """
    from dmsgd.samplers.compiled.swap import DEPENDENT

    diagonal = kernel.diag()
    noise, left = DEPENDENT * diagonal, diagonal.copy()
    F = np.empty((kernel.n, k), order="F")
    items, tell = np.empty(k, dtype=np.int64), Progress("the first set of a chain")
    for m in range(k):
        left[left <= noise] = 0.0
        if not left.any():
            return items[:m]
        items[m] = j = _largest_or_drawn(left, None if uniforms is None else uniforms[m])
        column = kernel.columns([j])[:, 0] - F[:, :m] @ F[j, :m]
        F[:, m] = column / np.sqrt(left[j])
        left -= F[:, m] ** 2
        left[j] = 0.0
        tell(((m + 1) / k) ** 2)  # later items take longer
    return items


def _largest_or_drawn(weights: FloatArray, uniform: float | None) -> int:
    if uniform is None:
        return int(weights.argmax())
    mass = np.cumsum(weights)
    # A uniform that rounds up to the whole mass gives the last item that has any.
    found = np.searchsorted(mass, uniform * mass[-1], side="right")
    return int(min(found, np.flatnonzero(weights)[-1]))


def stepper(kernel: Kernel) -> Advance:
    """Return the fastest way to make steps with this kernel.

    Compiled throughout for dense features and matrices. Any other kernel is asked for the block of
    L among the present set and the next proposals, and a stretch of steps is made on that.
    """
    points = kernel.points()
    X = None if points is None else points.dense()
    if isinstance(kernel, Precomputed):
        return _compiled(kernel, "MATRIX", kernel.matrix, 0.0)
    if isinstance(kernel, Linear) and X is not None:
        return _compiled(kernel, "LINEAR", X, 0.0)
    if isinstance(kernel, RBF) and X is not None:
        return _compiled(kernel, "GAUSSIAN", X, 0.5 / kernel.scale**2)
    return _by_blocks(kernel)


def _compiled(kernel: Kernel, kind: str, X: FloatArray, gamma: float) -> Advance:
    from dmsgd.samplers.compiled import swap

    plan = (getattr(swap, kind), np.ascontiguousarray(X), gamma, kernel.diag())

    def advance(Y: IntArray, key: int, draw: int, block: int, steps: int) -> tuple[int, int, float]:
        tell, moves, level = Progress(f"{steps:,} steps of a chain"), 0, 0.0
        most = PIECE * swap.REFRESH  # cut where the factor is made anew, nothing changes
        for first in range(0, max(steps, 1), most):
            count = min(most, steps - first)
            number = np.uint64(key), np.uint64(draw), block
            block, moved, level = swap.advance(*plan, Y, *number, count)
            moves += moved
            tell(min(1.0, (first + most) / max(steps, 1)))
        return block, moves, level

    return advance


def _by_blocks(kernel: Kernel) -> Advance:
    from dmsgd.samplers.compiled.random import fill_uniform
    from dmsgd.samplers.compiled.swap import MATRIX, factor, propose, walk

    def advance(Y: IntArray, key: int, draw: int, block: int, steps: int) -> tuple[int, int, float]:
        most = 2 * (max(Y.size, LEAST_STEPS) // 2)  # even, as random numbers come in pairs
        R, moves = np.zeros((Y.size, Y.size)), 0
        tell = Progress(f"{steps:,} steps of a chain")
        for done in range(0, steps, most):
            count = min(most, steps - done)
            uniforms, thresholds = np.empty(3 * count), np.empty(count)
            places, items = np.empty(count, np.int64), np.empty(count, np.int64)
            block = fill_uniform(np.uint64(key), np.uint64(draw), block, uniforms)
            propose(kernel.n, Y.size, uniforms, places, items, thresholds)
            known, where = np.unique(np.concatenate([Y, items]), return_inverse=True)
            local, proposals = where[: Y.size].copy(), where[Y.size :]
            L = np.ascontiguousarray(kernel.block(known, known), dtype=np.float64)
            plan = (MATRIX, L, 0.0, L.diagonal().copy(), local, R)
            factor(*plan)
            moves += walk(*plan, places, proposals, thresholds)
            Y[:] = known[local]
            tell((done + count) / steps)
        L = np.ascontiguousarray(kernel.block(Y, Y), dtype=np.float64)
        return block, moves, factor(MATRIX, L, 0.0, L.diagonal().copy(), np.arange(Y.size), R)

    return advance
