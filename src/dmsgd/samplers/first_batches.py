"""The first batches of a process in NumPy, so that a few batches do not wait for the compiler.

They are the batches of `compiled/kdpp.py: draw`: the same random numbers make the same decisions,
up to rounding. As soon as more is asked for than takes LIMIT seconds, loops are compiled.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from threading import Lock

import numpy as np

from dmsgd.inputs.arrays import FloatArray, IntArray
from dmsgd.polynomials import log_polynomials
from dmsgd.samplers.contract import PreparedSampler

#: Seconds that batches may take in NumPy, in each process; the compiler takes several.
LIMIT = 0.3
#: Proposals that are decided together.
BLOCK = 32

_spent = 0.0


def with_first_batches(
    V: FloatArray, values: FloatArray, k: int, make: Callable[[], PreparedSampler]
) -> PreparedSampler:
    """Return a sampler of the k-DPP of V that draws a few batches itself, the others by `make()`.

    `make` is called when it is first needed, and once. Nothing compiled is loaded before.
    """
    lock, made = Lock(), list[PreparedSampler]()
    estimate = 5e-4 + k * (1e-4 + 2e-8 * len(V) + 4e-9 * k * k)  # seconds per batch

    def sample(key: int, start: int, size: int, workers: int) -> IntArray:
        global _spent
        loaded = made or "dmsgd.compiled.kdpp" in sys.modules
        if not loaded and _spent + size * estimate < LIMIT:
            began, out = time.perf_counter(), np.empty((size, k), dtype=np.int64)
            log_e = log_polynomials(values, k)
            done = all(_fill(V, log_e, key, start + t, out[t]) for t in range(size))
            _spent += time.perf_counter() - began
            if done:
                return out
        with lock:
            if not made:
                made.append(make())
        return made[0].sample(key, start, size, workers)

    return PreparedSampler("rejection", sample)


def _fill(V: FloatArray, log_e: FloatArray, key: int, draw: int, out: IntArray) -> bool:
    """Fill `out` with the items of one draw; return whether there were enough proposals."""
    k, first = out.size, (out.size + 1) // 2
    J, Q = _choose(log_e, k, uniforms(key, draw, 0, k)), np.empty((0, k))
    sums: dict[int, FloatArray] = {}
    for block in range(100 * k // BLOCK + 100):
        where = uniforms(key, draw, first + block * (3 * BLOCK // 2), 3 * BLOCK).reshape(BLOCK, 3)
        columns = J[(where[:, 0] * k).astype(np.int64)]
        items = np.empty(BLOCK, dtype=np.int64)
        for p, (j, u) in enumerate(zip(columns.tolist(), where[:, 1], strict=True)):
            if j not in sums:
                sums[j] = np.cumsum(V[:, j] ** 2)
            items[p] = np.searchsorted(sums[j][:-1], u * sums[j][-1], side="right")
        X = V[items[:, None], J]
        limits = where[:, 2] * np.einsum("pc,pc->p", X, X)
        X -= X @ Q.T @ Q
        for p in range(BLOCK):
            if X[p] @ X[p] > limits[p]:
                out[len(Q)] = items[p]
                rest = X[p] - X[p] @ Q.T @ Q  # once more, so that it is orthogonal to rounding
                Q = np.vstack([Q, rest / np.sqrt(rest @ rest)])
                if len(Q) == k:
                    return True
                X -= np.outer(X @ Q[-1], Q[-1])
    return False


def _choose(log_e: FloatArray, k: int, numbers: FloatArray) -> IntArray:
    """Return the k eigenvectors of a draw, as `compiled/kdpp.py: select_eigenvectors`."""
    J, n = np.empty(k, dtype=np.int64), log_e.shape[1] - 1
    for left in range(k, 0, -1):
        target = log_e[left, n] + np.log(numbers[k - left])
        n = left - 1 + int(np.searchsorted(log_e[left, left:n], target))
        J[k - left] = n
    return J


def uniforms(key: int, draw: int, block: int, size: int) -> FloatArray:
    """Return `size` uniforms of `draw` from number 2 * block on, as `compiled/philox.py`."""
    low, half, most = np.uint64(2**32 - 1), np.uint64(32), -(-size // 2)
    a, b = np.arange(block, block + most, dtype=np.uint64), np.zeros(most, np.uint64)
    c, d = (np.full(most, part, np.uint64) for part in (draw & (2**32 - 1), draw >> 32))
    keys = [key & (2**32 - 1), key >> 32]
    for _ in range(10):
        one, two = np.uint64(0xD2511F53) * a, np.uint64(0xCD9E8D57) * c
        a, b = (two >> half) ^ b ^ np.uint64(keys[0]), two & low
        c, d = (one >> half) ^ d ^ np.uint64(keys[1]), one & low
        keys = [(keys[0] + 0x9E3779B9) & (2**32 - 1), (keys[1] + 0xBB67AE85) & (2**32 - 1)]
    pairs = np.stack([(a << np.uint64(20)) | (b >> np.uint64(12)),
                      (c << np.uint64(20)) | (d >> np.uint64(12))], axis=1)  # fmt: skip
    return ((pairs.astype(np.float64) + 0.5) * 2.0**-52).ravel()[:size]
