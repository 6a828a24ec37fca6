"""The default sampler: exact, compiled, and as fast for a million items as for a thousand."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dmsgd.errors import SamplingError
from dmsgd.inputs.arrays import FloatArray, IntArray
from dmsgd.polynomials.symmetric import log_polynomials
from dmsgd.samplers.parallel import fill
from dmsgd.samplers.protocol import Draw, Eigenpairs

#: What it means if a draw cannot be completed.
NOT_ORTHONORMAL = "the vectors of the spectrum are not orthonormal; build it with dmsgd.exact"


def rejection(spectrum: Eigenpairs, k: int) -> Draw:
    """Return what draws from the k-DPP of `spectrum`.

    Set-up O(n r + r k); a draw costs about 4k³ operations and k² log k look-ups, whatever n is.
    For features that are read in blocks, draws are made together (`dmsgd.samplers.blocks`).
    """
    return spectrum.held.rejection(spectrum.values, k)


def of_array(V: FloatArray, values: FloatArray, k: int) -> Draw:
    """Return what draws from the k-DPP with these eigenvectors, in memory, and eigenvalues."""
    from dmsgd.samplers.compiled.kdpp import draw_fixed

    mass, log_e = mass_table(V), log_polynomials(values, k)

    def draw(key: int, start: int, size: int, workers: int) -> IntArray:
        def rows(first: int, out: IntArray) -> int:
            return int(draw_fixed(V, mass, log_e, np.uint64(key), np.uint64(first), out))

        return fill(rows, start, size, k, workers, NOT_ORTHONORMAL)

    return Draw("rejection", draw)


def of_any_size(V: FloatArray, probabilities: FloatArray) -> Callable[[int, int], IntArray]:
    """Return the function (key, t) -> items of draw t of the DPP that takes each eigenvector
    with its own probability."""
    from dmsgd.samplers.compiled.kdpp import draw_any

    mass = mass_table(V)

    def draw(key: int, t: int) -> IntArray:
        out = np.empty(probabilities.size, dtype=np.int64)
        k = draw_any(V, mass, probabilities, np.uint64(key), np.uint64(t), out)
        if k < 0:
            raise SamplingError(f"draw {t} was not completed: {NOT_ORTHONORMAL}")
        return out[:k]

    return draw


def mass_table(V: FloatArray) -> FloatArray:
    """Return the running sums of V² down each column at every 8th row, shape (r, ceil(n / 8)).

    The table is an eighth of V: within eight rows the sampler adds up squares on the fly.
    """
    from dmsgd.samplers.compiled.kdpp import ROWS, block_squares

    n, r = V.shape
    table = np.empty((r, -(-n // ROWS)))
    block_squares(V, table)
    np.cumsum(table, axis=1, out=table)
    table /= table[:, -1:].copy()
    return table
