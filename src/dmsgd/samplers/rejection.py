"""The default sampler: exact, and as fast for a million items as for a thousand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any, final

import numpy as np

from dmsgd.errors import SamplingError
from dmsgd.inputs.arrays import FloatArray, IntArray
from dmsgd.polynomials import log_polynomials
from dmsgd.samplers.parallel import draw_in_parallel
from dmsgd.samplers.protocol import Eigenpairs, PreparedSampler, RowCallbacks, RowSource

#: Why a draw may not be completed.
NOT_ORTHONORMAL = "the vectors of the spectrum are not orthonormal; build it with dmsgd.exact"

#: Rows of V with this many columns or more are also kept as int8; shorter ones gain nothing.
INT8_COLUMNS = 128


def rejection(spectrum: Eigenpairs, k: int) -> PreparedSampler:
    """Return the default sampler of the k-DPP of `spectrum`.

    Set-up is O(n r + r k); a batch takes about 3k³ operations and k² log k look-ups, whatever n is.
    For features that are read in blocks, many batches are drawn together (`samplers/blocks.py`).
    """
    return spectrum.held.rejection(spectrum.values, k)


def kdpp_sampler(source: RowSource, values: FloatArray, k: int) -> PreparedSampler:
    """Return the sampler of the k-DPP with these eigenvalues and the eigenvectors of `source`."""
    fill_rows, log_e = items_sampler(source), log_polynomials(values, k)

    def sample(key: int, start: int, size: int, workers: int) -> IntArray:
        def rows(first: int, out: IntArray) -> int:
            J = choose_eigenvectors(log_e, key, first, out.shape[0])
            return fill_rows(J, key, first, (k + 1) // 2, out)

        return draw_in_parallel(rows, start, size, k, workers, NOT_ORTHONORMAL)

    return PreparedSampler("rejection", sample)


def dpp_sampler(source: RowSource, probabilities: FloatArray) -> Callable[[int, int], IntArray]:
    """Return (key, t) -> items of draw t of the DPP that takes each eigenvector independently."""
    from dmsgd.compiled.jit import address
    from dmsgd.compiled.kdpp import choose_any

    fill_rows, rank = items_sampler(source), probabilities.size

    def draw(key: int, t: int) -> IntArray:
        J, uniforms = np.empty(rank, dtype=np.int64), np.empty(rank)
        given, scratch = address(probabilities, float), address(uniforms, float)
        k = choose_any(given, rank, np.uint64(key), np.uint64(t), scratch, address(J, np.int64))
        out: IntArray = np.empty((1, k), dtype=np.int64)
        if k and not fill_rows(J[None, :k], key, t, (rank + 1) // 2, out):
            raise SamplingError(f"draw {t} was not completed: {NOT_ORTHONORMAL}")
        return out.ravel()

    return draw


def choose_eigenvectors(log_e: FloatArray, key: int, start: int, size: int) -> IntArray:
    """Return the eigenvectors of draws start to start + size of a k-DPP, shape (size, k)."""
    from dmsgd.compiled.jit import address
    from dmsgd.compiled.kdpp import choose_fixed

    k, rank = log_e.shape[0] - 1, log_e.shape[1] - 1
    J, uniforms = np.empty((size, k), dtype=np.int64), np.empty(k)
    number, table = (np.uint64(key), np.uint64(start)), address(log_e, float)
    choose_fixed(table, rank, *number, size, k, address(uniforms, float), address(J, np.int64))
    return J


def items_sampler(source: RowSource) -> Callable[[IntArray, int, int, int, IntArray], int]:
    """Return (J, key, start, block, out) -> number of rows of `out` that were filled.

    Row t is a draw of the projection DPP of V[:, J[t]] by the random numbers of draw start + t,
    from number 2 * block on.
    """
    from dmsgd.compiled.jit import address, address_of
    from dmsgd.compiled.kdpp import draw, room_for_draws
    from dmsgd.compiled.projection import accept

    known = source.callbacks()
    parts = known.begin_draw, known.locate, known.gather, known.prefilter, address_of(accept)

    def fill_rows(J: IntArray, key: int, start: int, block: int, out: IntArray) -> int:
        size, k = out.shape
        doubles, integers = room_for_draws(k)
        scratch = address(doubles, float), address(integers, np.int64)
        chosen, number = address(J, np.int64), (np.uint64(key), np.uint64(start))
        (arguments, _buffers), filled = source.arguments(k), address(out, np.int64)
        where = address(arguments, np.int64)
        return int(draw(where, *parts, chosen, k, *number, block, *scratch, filled, size))

    return fill_rows


@final
@dataclass(frozen=True)
class DenseTables(RowSource):
    """V in memory with its search tables (`compiled/tables.py`), up to 3/8 of V in size."""

    V: FloatArray
    sums: FloatArray
    totals: FloatArray
    guides: Any
    int8_rows: Any

    def callbacks(self) -> RowCallbacks:
        """Return the compiled functions."""
        from dmsgd.compiled.jit import address_of
        from dmsgd.compiled.sieve import sift
        from dmsgd.compiled.tables import gather, locate

        prefilter = 0 if self.int8_rows is None else address_of(sift)
        return RowCallbacks(address_of(locate), address_of(gather), prefilter=prefilter)

    def arguments(self, k: int) -> tuple[IntArray, None]:
        """Return sizes and addresses."""
        from dmsgd.compiled.jit import address

        (groups, width), last = self.sums.shape[:2], self.guides.shape[1] - 1
        arrays = (self.totals, self.V, self.sums, self.guides, self.int8_rows)
        totals, *where = (0 if array is None else address(array, array.dtype) for array in arrays)
        numbers = [totals, *self.V.shape, groups, width, last, *where]
        return np.array(numbers, dtype=np.int64), None


def dense_tables(V: FloatArray) -> DenseTables:
    """Return the tables of V, which is contiguous."""
    from dmsgd.compiled.jit import address
    from dmsgd.compiled.simd import LANES
    from dmsgd.compiled.tables import ENTRY, GROUP, LINE, fill_coarse, fill_guides, fill_sums

    n, r = V.shape
    F = V if r >= LANES else np.pad(V, ((0, 0), (0, LANES - r)))
    width, whole, groups = F.shape[1], n // GROUP, -(-n // GROUP)
    rest = np.zeros((GROUP, width))
    rest[: n - whole * GROUP] = F[whole * GROUP :]
    sums = _aligned((groups, width, ENTRY), float, LINE)
    guides = np.empty((width, 2 * groups + 1), np.uint32)
    ends, filled = np.zeros((groups + 1, width)), np.zeros(width, np.int64)
    fill_sums(address(F, float), whole, width, address(ends, float), address(sums, float))
    if whole < groups:
        behind = address(ends[whole:], float), address(sums[whole:], float)
        fill_sums(address(rest, float), 1, width, *behind)
    counted = address(ends, float), address(filled, np.int64), address(guides, np.uint32)
    fill_guides(groups, width, 2 * groups, *counted)
    int8_rows = None
    if r >= INT8_COLUMNS:
        int8_rows = _aligned((n * r + 3,), np.int8, LINE)  # 4 bytes are read at a time
        fill_coarse(address(V, float), n, r, address(int8_rows, np.int8))
    return DenseTables(V, sums, ends[-1].copy(), guides, int8_rows)


def _aligned(shape: tuple[int, ...], kind: Any, line: int) -> Any:
    """Return an array that begins at a cache line, so that look-ups touch as few as possible."""
    size = prod(shape) * np.dtype(kind).itemsize
    room = np.empty(size + line, np.int8)
    start = -room.__array_interface__["data"][0] % line
    return room[start : start + size].view(kind).reshape(shape)
