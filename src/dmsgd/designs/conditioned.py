"""A k-DPP given some of the items of its batches."""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple, final

import numpy as np

from dmsgd.designs.design import ClosedForm
from dmsgd.designs.determinants import log_determinants
from dmsgd.designs.greedy import greedy
from dmsgd.designs.repulsive import Repulsive
from dmsgd.errors import SamplingError
from dmsgd.inputs.arrays import FloatArray, IntArray, as_items, on_host
from dmsgd.inputs.fingerprint import digest
from dmsgd.inputs.messages import counted
from dmsgd.polynomials import log_polynomial
from dmsgd.spectra.conditional import Conditional
from dmsgd.spectra.doubt import SILENT, doubt
from dmsgd.spectra.spectrum import Spectrum

#: Numbers that are shuffled at a time.
PIECE = 2**20
#: What tells the random numbers of places from those of items.
PLACES = 0x67697665
#: Rounding in eigenvectors is at most so many times the estimated error of b.
MARGIN = 64.0


def as_given(value: Any, n: int, k: int) -> IntArray:
    """Return the distinct items of `value`, sorted, fewer than k."""
    items = np.sort(as_items(value, n, "items", 1))
    twice = items[1:][items[1:] == items[:-1]]
    if twice.size:
        raise ValueError(f"items must be distinct, but {twice[0]} is given more than once")
    if items.size >= k:
        raise ValueError(
            f"a batch of k={k} is to hold others besides the {counted(items.size, 'given item')}, "
            f"which k counts too; make it larger or give fewer"
        )
    return items


class Parts(NamedTuple):
    """The k-DPP, its spectrum, what is left of that, and the k-DPP of what is left."""

    whole: ClosedForm
    spectrum: Spectrum
    left: Conditional
    rest: ClosedForm


@final
class Conditioned(Repulsive):
    """Batches of k items of which some are given, and the others as a k-DPP draws them with these.

    P(Y) ∝ det(L_Y) over the sets that contain the given items, which are in every batch (b_i = 1),
    at any place of a row. `design.given(items)` makes it.

    >>> import dmsgd
    >>> design = dmsgd.diversify([[1.0, 0.0], [1.0, 0.1], [0.0, 3.0]], k=2).given([0])
    >>> design.inclusion().round(3)
    array([1.   , 0.001, 0.999])
    """

    def __init__(self, parts: Parts, items: IntArray) -> None:
        self._parts = parts
        self.n, self.k = parts.whole.n, parts.whole.k
        #: The items that are in every batch, sorted.
        self.items = items

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
            if np.isin(piece, self.items).any():
                raise SamplingError(
                    "an item that is given was drawn again, which rounding has made possible: the "
                    "kernel's eigenvalues span too much; use a smaller k"
                )
            given = np.broadcast_to(self.items, (len(piece), self.items.size))
            places = _places(key, start + first, len(piece), self.k)
            out[first : first + step] = np.take_along_axis(np.hstack([given, piece]), places, 1)
        return out

    @cached_property
    def _inclusion(self) -> FloatArray:
        """b of the rest, but for copies of given items, of which the square of rounding is left."""
        whole, _, left, rest = self._parts
        b = rest.inclusion()
        error = min(MARGIN * doubt(left.spectrum, rest.k), SILENT)
        b[b <= error**2 * whole.inclusion()] = 0.0
        b[self.items] = 1.0
        return b

    def inclusion(self) -> FloatArray:
        """Return P(i in Y | given), shape (n,); 1 for the given items. They sum to k."""
        return self._inclusion.copy()

    def _joint(self, i: IntArray, j: IntArray) -> FloatArray:
        b, sure = self._inclusion, np.zeros(self.n, dtype=bool)
        sure[self.items] = True
        return np.where(sure[i] | sure[j], b[i] * b[j], self._parts.rest._joint(i, j))

    def _log_prob(self, batches: IntArray) -> FloatArray:
        """log det(L_Y) - log det(L_G) - log e_{k-|G|}(λ'); -inf without all given items."""
        _, spectrum, left, rest = self._parts
        held = np.isin(batches, self.items).sum(axis=1) == self.items.size
        logs = np.full(len(batches), -np.inf)
        logs[held] = log_determinants(spectrum, batches[held]) - left.log_determinant
        return logs - log_polynomial(left.spectrum.values, rest.k)

    def most_likely(self) -> IntArray:
        """Return the given items and k - |given| others that are added greedily, as `KDPP` does."""
        others = greedy(self._parts.left.spectrum, self._parts.rest.k, self.items)
        return np.concatenate([self.items, others])

    def fingerprint(self) -> str:
        """Return the hash of the k-DPP and the given items."""
        return digest("Conditioned", self._parts.whole.fingerprint(), self.items)

    def provenance(self) -> dict[str, str]:
        """Return where draws come from, in words: design, kernel, its fingerprint, sampler."""
        return {**self._parts.whole.provenance(), "design": repr(self)}

    def __repr__(self) -> str:
        return f"{self._parts.whole!r}.given({counted(self.items.size, 'item')})"


def _places(key: int, start: int, size: int, k: int) -> IntArray:
    """Return a random order of k places for each of the draws start..start+size."""
    blocks = -(-k // 4)  # Philox makes four numbers at a time
    stream = np.random.Philox(key=[key, PLACES], counter=start * blocks)
    numbers = np.random.Generator(stream).random((size, 4 * blocks))[:, :k]
    return np.argsort(numbers, axis=1, kind="stable")
