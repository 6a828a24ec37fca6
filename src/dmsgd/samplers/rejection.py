"""The default sampler: exact, compiled, and as fast for a million items as for a thousand."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dmsgd.errors import SamplingError
from dmsgd.inputs.arrays import FloatArray, IntArray
from dmsgd.polynomials import log_polynomials
from dmsgd.samplers.parallel import fill
from dmsgd.samplers.protocol import Draw, Eigenpairs, Tables

#: What it means if a draw cannot be completed.
NOT_ORTHONORMAL = "the vectors of the spectrum are not orthonormal; build it with dmsgd.exact"


def rejection(spectrum: Eigenpairs, k: int) -> Draw:
    """Return what draws from the k-DPP of `spectrum`.

    Set-up O(n r + r k); a draw costs about 3k³ operations and k² log k look-ups, whatever n is.
    For features that are read in blocks, draws are made together (`dmsgd.samplers.blocks`).
    """
    return spectrum.held.rejection(spectrum.values, k)


def of_tables(tables: Tables, values: FloatArray, k: int) -> Draw:
    """Return what draws from the k-DPP with the eigenvectors of these tables, and eigenvalues."""
    draw_items, log_e = items_of(tables), log_polynomials(values, k)

    def draw(key: int, start: int, size: int, workers: int) -> IntArray:
        def rows(first: int, out: IntArray) -> int:
            J = eigenvectors(log_e, key, first, out.shape[0])
            return draw_items(J, key, first, (k + 1) // 2, out)

        return fill(rows, start, size, k, workers, NOT_ORTHONORMAL)

    return Draw("rejection", draw)


def of_any_size(tables: Tables, probabilities: FloatArray) -> Callable[[int, int], IntArray]:
    """Return the function (key, t) -> items of draw t of the DPP that takes each eigenvector
    with its own probability."""
    from dmsgd.compiled.jit import address
    from dmsgd.samplers.compiled.kdpp import choose_any

    draw_items, rank = items_of(tables), probabilities.size

    def draw(key: int, t: int) -> IntArray:
        J, uniforms = np.empty(rank, dtype=np.int64), np.empty(rank)
        given, scratch = address(probabilities, float), address(uniforms, float)
        k = choose_any(given, rank, np.uint64(key), np.uint64(t), scratch, address(J, np.int64))
        out: IntArray = np.empty((1, k), dtype=np.int64)
        if k and not draw_items(J[None, :k], key, t, (rank + 1) // 2, out):
            raise SamplingError(f"draw {t} was not completed: {NOT_ORTHONORMAL}")
        return out.ravel()

    return draw


def eigenvectors(log_e: FloatArray, key: int, start: int, size: int) -> IntArray:
    """Return which eigenvectors the draws start..start+size of a k-DPP take, shape (size, k)."""
    from dmsgd.compiled.jit import address
    from dmsgd.samplers.compiled.kdpp import choose_fixed

    k, rank = log_e.shape[0] - 1, log_e.shape[1] - 1
    J, uniforms = np.empty((size, k), dtype=np.int64), np.empty(k)
    number, table = (np.uint64(key), np.uint64(start)), address(log_e, float)
    choose_fixed(table, rank, *number, size, k, address(uniforms, float), address(J, np.int64))
    return J


def items_of(tables: Tables) -> Callable[[IntArray, int, int, int, IntArray], int]:
    """Return (J, key, start, block, out) -> how many rows of `out` were filled, all if all is well.

    With V that of the tables, row t is a draw of the projection DPP of V[:, J[t]], by the random
    numbers of draw start + t from `block` on.
    """
    from dmsgd.compiled.jit import address, address_of
    from dmsgd.samplers.compiled.basis import accept
    from dmsgd.samplers.compiled.kdpp import draw, room_for_draws

    known = tables.functions()
    parts = known.ready, known.locate, known.gather, known.sift, address_of(accept)

    def fill_rows(J: IntArray, key: int, start: int, block: int, out: IntArray) -> int:
        size, k = out.shape
        doubles, integers = room_for_draws(k)
        scratch = address(doubles, float), address(integers, np.int64)
        chosen, number = address(J, np.int64), (np.uint64(key), np.uint64(start))
        (plan, _scratch), filled = tables.plan(k), address(out, np.int64)
        where = address(plan, np.int64)
        return int(draw(where, *parts, chosen, k, *number, block, *scratch, filled, size))

    return fill_rows
