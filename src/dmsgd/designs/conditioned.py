"""A k-DPP given some items of every batch."""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple, final

import numpy as np

from dmsgd.designs.design import ClosedForm
from dmsgd.designs.greedy import greedy_set
from dmsgd.errors import SamplingError
from dmsgd.inputs.arrays import FloatArray, IntArray, as_items, on_host
from dmsgd.inputs.fingerprint import digest
from dmsgd.inputs.messages import counted
from dmsgd.polynomials import log_polynomial
from dmsgd.spectra.rounding import WARN_ABOVE
from dmsgd.spectra.spectrum import Spectrum

#: Numbers shuffled at a time.
PIECE = 2**20
#: Second word of the Philox key for the order within a row; items use another.
PLACES = 0x67697665
#: Safety factor on the estimated rounding error of b.
MARGIN = 64.0


def as_given(value: Any, n: int, k: int) -> IntArray:
    """Return the distinct items of `value`, sorted, fewer than k."""
    items = np.sort(as_items(value, n, "items", 1))
    twice = items[1:][items[1:] == items[:-1]]
    if twice.size:
        raise ValueError(f"items must be distinct, but {twice[0]} is given more than once")
    if items.size >= k:
        raise ValueError(
            f"k={k} counts the {counted(items.size, 'given item')} too, so a batch has no place "
            f"for others; increase k or give fewer"
        )
    return items


class Parts(NamedTuple):
    """The k-DPP, its spectrum, the conditional spectrum, and the k-DPP of the other items."""

    whole: ClosedForm
    spectrum: Spectrum
    left: Spectrum
    rest: ClosedForm


@final
class Conditioned(ClosedForm):
    """A k-DPP conditioned on some items; `design.given(items)` makes it.

    P(Y) ∝ det(L_Y) over the sets that contain the given items, which are in every batch (b_i = 1),
    at any place of a row.

    >>> import dmsgd
    >>> design = dmsgd.diversify([[1.0, 0.0], [1.0, 0.1], [0.0, 3.0]], k=2).given([0])
    >>> design.inclusion().round(3)
    array([1.   , 0.001, 0.999])
    """

    def __init__(self, parts: Parts, items: IntArray) -> None:
        self._parts = parts
        self.n, self.k = parts.whole.n, parts.whole.k
        #: The items that are in every batch, sorted.
        self.given = items

    @property
    def chunk(self) -> int:
        """Number of batches that `sample` makes for the price of one; 1 if each has its own."""
        return self._parts.rest.chunk

    def _draw(self, key: int, start: int, size: int, workers: int) -> IntArray:
        rest = on_host(self._parts.rest._draw(key, start, size, workers))
        out = np.empty((size, self.k), dtype=np.int64)
        step = max(1, PIECE // self.k)
        for first in range(0, size, step):
            piece = rest[first : first + step]
            if np.isin(piece, self.given).any():
                raise SamplingError(
                    "a given item was drawn again, because of rounding: the kernel's eigenvalues "
                    "span too much; use a smaller k"
                )
            given = np.broadcast_to(self.given, (len(piece), self.given.size))
            places = _places(key, start + first, len(piece), self.k)
            out[first : first + step] = np.take_along_axis(np.hstack([given, piece]), places, 1)
        return out

    @cached_property
    def _inclusion(self) -> FloatArray:
        """b of the other items; exactly 0 for duplicates of given ones, where rounding remains."""
        whole, _, left, rest = self._parts
        b = rest.inclusion()
        error = min(MARGIN * left.inclusion_error(rest.k), WARN_ABOVE)
        b[b <= error**2 * whole.inclusion()] = 0.0
        b[self.given] = 1.0
        return b

    def inclusion(self) -> FloatArray:
        """Return P(i in Y | given), shape (n,); 1 for the given items. They sum to k."""
        return self._inclusion.copy()

    def _joint(self, i: IntArray, j: IntArray) -> FloatArray:
        b, always = self._inclusion, np.zeros(self.n, dtype=bool)
        always[self.given] = True
        return np.where(always[i] | always[j], b[i] * b[j], self._parts.rest._joint(i, j))

    def _log_prob(self, batches: IntArray) -> FloatArray:
        """log det(L_Y) - log det(L_G) - log e_{k-|G|}(λ'); -inf without all given items."""
        _, spectrum, left, rest = self._parts
        held = np.isin(batches, self.given).sum(axis=1) == self.given.size
        logs = np.full(len(batches), -np.inf)
        logs[held] = spectrum.log_det(batches[held]) - spectrum.log_det(self.given[None])
        return logs - log_polynomial(left.values, rest.k)

    def greedy_map(self) -> IntArray:
        """Return the given items and k - |given| others added greedily, as `KDPP.greedy_map`."""
        others = greedy_set(self._parts.left, self._parts.rest.k, self.given)
        return np.concatenate([self.given, others])

    def fingerprint(self) -> str:
        """Return the hash of the k-DPP and the given items."""
        return digest("Conditioned", self._parts.whole.fingerprint(), self.given)

    def provenance(self) -> dict[str, str]:
        """Return where batches come from, in words: design, kernel, its fingerprint, sampler."""
        return {**self._parts.whole.provenance(), "design": repr(self)}

    def __repr__(self) -> str:
        return f"{self._parts.whole!r}.given({counted(self.given.size, 'item')})"


def _places(key: int, start: int, size: int, k: int) -> IntArray:
    """Return a random order of k places for each of the batches start..start+size."""
    blocks = -(-k // 4)  # Philox makes four numbers at a time
    stream = np.random.Philox(key=[key, PLACES], counter=start * blocks)
    numbers = np.random.Generator(stream).random((size, 4 * blocks))[:, :k]
    return np.argsort(numbers, axis=1, kind="stable")
