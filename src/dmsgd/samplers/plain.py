"""Draws in plain NumPy, to read: what `compiled/kdpp.py` does, and the algorithm of the paper.

`draw` and compiled loops make the same decisions from the same random numbers, so they draw the
same items, up to rounding. First k eigenvectors J are chosen. Then items are proposed, i with
probability (1/k) Σ_{j∈J} V_ij², and accepted with probability |x - Q Qᵀ x|² / |x|², where x = V[i,
J] and Q is an orthonormal basis of what the accepted items span.

`reference` is the algorithm of the paper's supplement, O(n k³) per batch. Use it to read, to teach
and to test; the default sampler has the same distribution.
"""

from __future__ import annotations

from typing import Any, NamedTuple, final

import numpy as np

from dmsgd.errors import SamplingError
from dmsgd.inputs.arrays import FloatArray, IntArray
from dmsgd.polynomials import log_polynomials, ratios
from dmsgd.runtime.threads import draw_in_parallel
from dmsgd.samplers.contract import PreparedSampler

#: Why a draw may not be completed.
NOT_ORTHONORMAL = (
    "the vectors of the spectrum are not orthonormal; build it with dmsgd.kernels.exact"
)

#: Proposals that are decided together.
BLOCK = 32
#: Rows of V whose squares are summed up before a search.
ROWS = 256


@final
class Tables(NamedTuple):
    """What draws need: V (n, r), log e_l^m (k + 1, r + 1), running sums of V² by blocks of rows."""

    V: FloatArray
    log_e: FloatArray
    sums: FloatArray

    @classmethod
    def of(cls, V: FloatArray, values: FloatArray, k: int) -> Tables:
        """Return the tables of the k-DPP with eigenvectors V and these eigenvalues."""
        blocks = (V[first : first + ROWS] for first in range(0, len(V), ROWS))
        squares = np.array([np.einsum("ij,ij->j", block, block) for block in blocks])
        return cls(V, log_polynomials(values, k), np.cumsum(squares.T, axis=1))


def seconds(k: int) -> float:
    """Return about how long a draw of k items takes."""
    return 5e-4 + 8e-5 * k + 1.3e-9 * k**3


def draw(tables: Tables, key: int, number: int) -> IntArray:
    """Return the items of draw `number`, shape (k,), in the order in which they were accepted."""
    V, log_e, sums = tables
    k = len(log_e) - 1
    J = choose_eigenvectors(log_e, uniforms(key, number, 0, k))
    items, Q, count = np.empty(k, dtype=np.int64), np.empty((k, k)), 0
    for block in range(100 * k // BLOCK + 100):
        begin = (k + 1) // 2 + block * (3 * BLOCK // 2)
        which, where, limits = uniforms(key, number, begin, 3 * BLOCK).reshape(BLOCK, 3).T
        columns = J[(which * k).astype(np.int64)]
        targets = where * sums[columns, -1]
        proposals = [locate(V, sums, *pair) for pair in zip(columns, targets, strict=True)]
        X = V[np.array(proposals)[:, None], J]
        limits = limits * np.einsum("pc,pc->p", X, X)
        X -= X @ Q[:count].T @ Q[:count]
        for p, item in enumerate(proposals):
            if X[p] @ X[p] > limits[p]:
                rest = X[p] - X[p] @ Q[:count].T @ Q[:count]  # again: orthogonal up to rounding
                Q[count], items[count] = rest / np.sqrt(rest @ rest), item
                count += 1
                if count == k:
                    return items
                X -= np.outer(X @ Q[count - 1], Q[count - 1])
    raise SamplingError(f"draw {number} was not completed: {NOT_ORTHONORMAL}")


def choose_eigenvectors(log_e: FloatArray, numbers: FloatArray) -> IntArray:
    """Return the k eigenvectors of a draw, as `compiled/kdpp.py: select_eigenvectors`."""
    k, n = numbers.size, log_e.shape[1] - 1
    J = np.empty(k, dtype=np.int64)
    for left in range(k, 0, -1):
        target = log_e[left, n] + np.log(numbers[k - left])
        n = left - 1 + int(np.searchsorted(log_e[left, left:n], target))
        J[k - left] = n
    return J


def locate(V: FloatArray, sums: FloatArray, column: int, target: float) -> int:
    """Return the row at which the running sum of V[:, column]² passes the target."""
    block = int(np.searchsorted(sums[column, :-1], target, side="right"))
    before, first = sums[column, block - 1] if block else 0.0, block * ROWS
    within = np.cumsum(V[first : first + ROWS, column] ** 2)
    return first + int(np.searchsorted(within[:-1], target - before, side="right"))


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


def reference(spectrum: Any, k: int) -> PreparedSampler:
    """Return the sampler of the k-DPP of `spectrum` by the supplement's algorithm."""
    R = ratios(spectrum.values, k)

    def sample(key: int, start: int, size: int, workers: int) -> IntArray:
        def rows(first: int, out: IntArray) -> int:
            for t in range(out.shape[0]):
                rng = np.random.default_rng([key, first + t])
                J = select_eigenvectors(spectrum.values, R, k, rng)
                out[t] = select_items(spectrum.eigenvectors.columns(J), rng)
            return len(out)

        return draw_in_parallel(rows, start, size, k, workers)

    return PreparedSampler("reference", sample)


def select_eigenvectors(
    values: FloatArray, R: FloatArray, k: int, rng: np.random.Generator
) -> list[int]:
    """Return the k chosen eigenvectors: n is taken with probability λ_n e_{l-1}^{n-1} / e_l^n."""
    J: list[int] = []
    for n in range(values.size, 0, -1):
        left = k - len(J)
        if left == 0:
            break
        if rng.random() <= values[n - 1] / (values[n - 1] + R[n - 1, left]):
            J.append(n - 1)
    return J


def select_items(V: FloatArray, rng: np.random.Generator) -> IntArray:
    """Return an item per column of V: pick i by squared row norm, then make V orthogonal to e_i."""
    Y = []
    while V.shape[1] > 0:
        probabilities = np.square(V).sum(axis=1)
        i = rng.choice(V.shape[0], p=probabilities / probabilities.sum())
        Y.append(i)
        pivot = np.argmax(np.abs(V[i]))
        column = V[:, pivot] / V[i, pivot]
        V = np.delete(V - np.outer(column, V[i]), pivot, axis=1)
        V, _ = np.linalg.qr(V)
    return np.array(Y, dtype=np.int64)
