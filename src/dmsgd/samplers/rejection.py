"""The default sampler: exact, compiled, and as fast for a million items as for a thousand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

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
    draw_items, log_e = items_of(V), log_polynomials(values, k)

    def draw(key: int, start: int, size: int, workers: int) -> IntArray:
        def rows(first: int, out: IntArray) -> int:
            J = eigenvectors(log_e, key, first, out.shape[0])
            return draw_items(J, key, first, (k + 1) // 2, out)

        return fill(rows, start, size, k, workers, NOT_ORTHONORMAL)

    return Draw("rejection", draw)


def of_any_size(V: FloatArray, probabilities: FloatArray) -> Callable[[int, int], IntArray]:
    """Return the function (key, t) -> items of draw t of the DPP that takes each eigenvector
    with its own probability."""
    from dmsgd.samplers.compiled.jit import address
    from dmsgd.samplers.compiled.kdpp import choose_any

    draw_items, rank = items_of(V), probabilities.size

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
    from dmsgd.samplers.compiled.jit import address
    from dmsgd.samplers.compiled.kdpp import choose_fixed

    k, rank = log_e.shape[0] - 1, log_e.shape[1] - 1
    J, uniforms = np.empty((size, k), dtype=np.int64), np.empty(k)
    number, table = (np.uint64(key), np.uint64(start)), address(log_e, float)
    choose_fixed(table, rank, *number, size, k, address(uniforms, float), address(J, np.int64))
    return J


def items_of(V: FloatArray) -> Callable[[IntArray, int, int, int, IntArray], int]:
    """Return (J, key, start, block, out) -> how many rows of `out` were filled, all if all is well.

    Row t is a draw of the projection DPP of V[:, J[t]], by the random numbers of draw start + t
    from `block` on.
    """
    from dmsgd.samplers.compiled.jit import address
    from dmsgd.samplers.compiled.kdpp import draw, room_for_draws

    mass, guides, shares = tables_of(V)
    sizes = (*V.shape, shares.shape[1], guides.shape[1] - 1)

    def fill_rows(J: IntArray, key: int, start: int, block: int, out: IntArray) -> int:
        size, k = out.shape
        doubles, integers = room_for_draws(k)
        return int(
            draw(
                *sizes, address(V, float), address(mass, float), address(guides, np.uint32),
                address(shares, np.uint64), address(J, np.int64), k, np.uint64(key),
                np.uint64(start), block, address(doubles, float), address(integers, np.int64),
                address(out, np.int64), size,
            )
        )  # fmt: skip

    return fill_rows


def tables_of(V: FloatArray) -> tuple[FloatArray, Any, Any]:
    """Return what finds the item at which a column's squares reach a sum: mass, guides, shares.

    They take 17/64 of V; see `dmsgd.samplers.compiled.tables`.
    """
    from dmsgd.samplers.compiled.tables import ROWS, STRETCHES

    stretches = -(-V.shape[0] // ROWS)
    shares = np.empty((V.shape[1], stretches), dtype=np.uint64)
    return *_sums(V, -(-stretches // STRETCHES), shares), shares


def running_sums(V: FloatArray) -> FloatArray:
    """Return the mass table alone, for a few look-ups by `search`."""
    return _sums(V, 1, None)[0]


def _sums(V: FloatArray, last: int, shares: Any) -> tuple[FloatArray, Any]:
    """Return the mass table and last + 1 guides a column; fill the shares, if any."""
    from dmsgd.samplers.compiled.jit import address
    from dmsgd.samplers.compiled.tables import BEYOND, ROWS, TILE, add_up, fill_stretches

    n, r = V.shape
    stretches = -(-n // ROWS)
    mass, guides = np.empty((r, stretches + BEYOND)), np.empty((r, last + 1), np.uint32)
    sums, words = np.empty((ROWS + TILE, r)), np.empty((TILE, r), np.uint64)
    where = 0 if shares is None else address(shares, np.uint64)
    scratch = address(sums, float), address(words, np.uint64)
    fill_stretches(address(V, float), n, r, address(mass, float), where, *scratch)
    add_up(address(mass, float), r, stretches, address(guides, np.uint32), last)
    return mass, guides
