"""The swap chain on the entries of a kernel: a first set, and steps from one set to the next."""

from __future__ import annotations

from typing import Any

import numpy as np

from dmsgd.inputs.arrays import FloatArray, IntArray, on_host
from dmsgd.runtime.progress import Progress

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


def advance(
    kernel: Any, Y: IntArray, key: int, draw: int, block: int, steps: int
) -> tuple[int, float]:
    """Make steps from the set Y, in place; return how many were moves, and log det(L_Y).

    The random numbers are those of (key, draw) from number 2 * block on. Each piece of steps takes
    the block of the kernel of the set and of all that is proposed next.
    """
    from dmsgd.compiled.philox import fill_uniform
    from dmsgd.compiled.swap import factor, walk

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
        factor(L, local, R)
        moves += walk(L, local, R, uniforms, proposals)
        Y[:] = known[local]
        tell((done + count) / steps)
    L = np.ascontiguousarray(kernel.block(Y, Y), dtype=np.float64)
    return moves, factor(L, np.arange(Y.size), R)
