"""The default sampler: exact, and as fast for a million items as for a thousand."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import prod
from typing import Any, final

import numpy as np

from dmsgd.errors import SamplingError
from dmsgd.inputs.arrays import FloatArray, IntArray
from dmsgd.inputs.messages import counted
from dmsgd.polynomials import log_polynomials
from dmsgd.runtime.progress import run_interruptible
from dmsgd.runtime.threads import draw_in_parallel
from dmsgd.samplers.contract import PreparedSampler, RowArguments
from dmsgd.samplers.factored_rows import ComputedRows
from dmsgd.samplers.plain import NOT_ORTHONORMAL

#: Rows of V with this many columns or more are also kept as int8, in one cache line for each 64
#: columns: of a million rows draws are then up to a fifth faster. Shorter rows gain nothing.
INT8_COLUMNS = 64

#: Multiplications of a batch, in k³: 3 of many items, more where k is close to n.
PRODUCTS = 10.0

#: The scratch of batches up to this size, at most 32 MB a thread, is kept from call to call.
KEPT_UP_TO = 1024


def rejection(spectrum: Any, k: int) -> PreparedSampler:
    """Return the default sampler of the k-DPP of `spectrum`.

    Set-up is O(n r + r k); a batch takes about 3k³ operations and k² log k look-ups, whatever n is.
    For features that are read in blocks, many batches are drawn together (`samplers/blocks.py`).
    """
    sampler: PreparedSampler = spectrum.eigenvectors.sampler(spectrum.values, k)
    return sampler


def kdpp_sampler(source: DenseTables | ComputedRows, values: FloatArray, k: int) -> PreparedSampler:
    """Return the sampler of the k-DPP with these eigenvalues and the eigenvectors of `source`."""
    log_e = log_polynomials(values, k)
    free: list[Any] = []  # scratch that no thread uses now
    products, what = PRODUCTS * float(k) ** 3, f"a draw of {counted(k, 'item')}"

    def sample(key: int, start: int, size: int, workers: int) -> IntArray:
        def rows(first: int, out: IntArray) -> int:
            try:
                fill = free.pop()
            except IndexError:
                fill = _row_filler(source, k, (k + 1) // 2, log_e=log_e)
            work = partial(fill, out, key, first)
            done: int = run_interruptible(work, len(out) * products, what)
            if k <= KEPT_UP_TO:
                free.append(fill)
            return done

        return draw_in_parallel(rows, start, size, k, workers, NOT_ORTHONORMAL, products)

    return PreparedSampler("rejection", sample)


def dpp_sampler(
    source: DenseTables | ComputedRows, probabilities: FloatArray
) -> Callable[[int, int], IntArray]:
    """Return (key, t) -> items of draw t of the DPP that takes each eigenvector independently."""
    from dmsgd.compiled.philox import fill_uniform

    rank = probabilities.size

    def draw(key: int, t: int) -> IntArray:
        uniforms = np.empty(rank)
        block = fill_uniform(key, t, 0, uniforms)
        J = np.flatnonzero(uniforms < probabilities)
        out: IntArray = np.empty((1, J.size), dtype=np.int64)
        if J.size and not _row_filler(source, J.size, block, J=J)(out, key, t):
            raise SamplingError(f"draw {t} was not completed: {NOT_ORTHONORMAL}")
        return out.ravel()

    return draw


def _row_filler(
    source: DenseTables | ComputedRows,
    k: int,
    block: int,
    log_e: FloatArray | None = None,
    J: IntArray | None = None,
) -> Callable[[IntArray, int, int], int]:
    """Return `kdpp.fill_rows` with the scratch for draws of the projection DPP of V[:, J].

    With `log_e`, J is chosen anew for each draw. The random numbers begin at number 2 * block. It
    serves one thread at a time.
    """
    from dmsgd.compiled.kdpp import fill_rows
    from dmsgd.compiled.projection import WORK, Workspace

    rows, workspace = source.arguments(k), Workspace(k)
    WORK.fill(
        workspace.fields, **rows.callbacks, source=rows.record, totals=rows.totals, log_e=log_e,
        rank=0 if log_e is None else log_e.shape[1] - 1, first_block=block,
    )  # fmt: skip
    workspace.buffers = rows, log_e
    if J is not None:
        workspace.J[:] = J
    return partial(fill_rows, workspace)


@final
class DenseTables:
    """V, contiguous, with its search tables (`compiled/tables.py`), 3/8 or 1/2 of V in size."""

    def __init__(self, V: FloatArray) -> None:
        from dmsgd.compiled import tables
        from dmsgd.compiled.llvm import LANES, LINE_BYTES
        from dmsgd.compiled.microkernels import GROUP, TABLE_LINE

        n, r = V.shape
        F = V if r >= LANES else np.pad(V, ((0, 0), (0, LANES - r)))
        width, whole, groups = F.shape[1], n // GROUP, -(-n // GROUP)
        sums, ends = _aligned((groups, width, TABLE_LINE), float), np.zeros((groups + 1, width))
        tables.fill_sums(F, whole, width, ends, sums)
        if whole < groups:
            rest = np.zeros((GROUP, width))
            rest[: n - whole * GROUP] = F[whole * GROUP :]
            tables.fill_sums(rest, 1, width, ends[whole:], sums[whole:])
        self.sums, self.totals, hints = sums, ends[-1].copy(), _search_hints(ends)
        int8_rows, int8_width = None, -(-r // LINE_BYTES) * LINE_BYTES
        if r >= INT8_COLUMNS:
            int8_rows = _aligned((n * int8_width,), np.int8)
            tables.fill_int8(V, n, r, int8_width, int8_rows)
        record = tables.TABLES.new(
            V=V, n=n, r=r, width=width, sums=sums, groups=groups, totals=self.totals, hints=hints,
            last=hints.shape[1] - 1, int8_rows=int8_rows, int8_width=int8_width,
        )  # fmt: skip
        sieve = None if int8_rows is None else tables.prefilter
        callbacks = {"locate": tables.locate, "gather": tables.gather, "prefilter": sieve}
        buffers = V, sums, hints, int8_rows  # with `self` they would be a cycle
        self._arguments = RowArguments(callbacks, record, self.totals, buffers)

    def arguments(self, k: int) -> RowArguments:
        """Return what `compiled.kdpp.draw` needs."""
        return self._arguments


def _search_hints(ends: FloatArray) -> Any:
    """Return hints[j, g] = the first group that ends at or after g / last of the sum of column j.

    A hint may be early, never late: `locate` only walks forward. Its HINT_MARGIN is far more than
    the rounding here.
    """
    totals, groups = ends[-1], len(ends) - 1
    last, hints = 2 * groups, np.zeros((totals.size, 2 * groups + 1), np.uint32)
    scale = np.divide(last, totals, out=np.zeros_like(totals), where=totals > 0)
    for j, hint in enumerate(hints):
        places = (ends[1:, j] * scale[j]).astype(np.int64)
        hint[1:] = np.bincount(places, minlength=last)[:last].cumsum()
    return np.minimum(hints, groups - 1, out=hints)


def _aligned(shape: tuple[int, ...], kind: Any) -> Any:
    """Return an array that begins at a cache line, so that look-ups touch as few as possible."""
    from dmsgd.compiled.llvm import LINE_BYTES

    size = prod(shape) * np.dtype(kind).itemsize
    room = np.empty(size + LINE_BYTES, np.int8)
    start = -room.__array_interface__["data"][0] % LINE_BYTES
    return room[start : start + size].view(kind).reshape(shape)
