"""Sets drawn from a k-DPP of an RBF kernel: from its spectrum, or from many items by a walk."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import final

import numpy as np

from dmsgd.designs.greedy import greedy_items
from dmsgd.designs.kdpp import KDPP
from dmsgd.errors import InputError, warn_kernel
from dmsgd.features import Features, as_features
from dmsgd.features.median import median_square
from dmsgd.inputs.arrays import BoolArray, FloatArray, IntArray, random_rows
from dmsgd.kernels import RBF, Kernel, exact, pivoted_cholesky
from dmsgd.kernels.given import Given
from dmsgd.kernels.quality import Quality
from dmsgd.selection.walk import DEPENDENT, ERROR, Walk
from dmsgd.spectra import Spectrum
from dmsgd.spectra.eigenvalues import Eigenvalues
from dmsgd.spectra.rounding import EPS, Rounding

#: Up to this many items, or TIMES k where that is at most MOST, the spectrum is exact: a walk
#: through sets of more than a third of the items takes longer.
EXACT_ITEMS, TIMES, MOST = 2000, 3, 10_000
#: Rounding may move no inclusion probability by more than this, as estimated.
VISIBLE = 1e-3
#: Given items of which the others leave no more than this share are left out, or, where rounding is
#: then visible, than DEPENDENT.
ALIKE = 1e-10
#: A factor of low rank serves sets of up to FEW items, the given ones among them. It has at most
#: RANK columns, and NUMBERS in all (2 GB).
FEW, RANK, NUMBERS = 500, 4000, 2**28
#: A factor is tried first where a walk of s items accepts fewer proposals than OFTEN s / n; one is
#: given up where it accepts fewer than SELDOM s³, which takes some hours. Between these bounds.
OFTEN, OFTEN_BOUNDS = 1 / 8, (1 / 1024, 1 / 64)
SELDOM, SELDOM_BOUNDS = 5e-14, (1 / 4096, 1 / 16)
#: A smaller scale is searched on so many items, or so many for each of a set, to this precision.
SAMPLE, EACH, CLOSE = 1000, 4, 1.1
#: At this share of the scale all items that are not alike are independent.
LEAST = 2.0**-100


def draw_set(
    F: Features, q: FloatArray, k: int, known: IntArray, free: BoolArray, key: int
) -> IntArray:
    """Return k of the free items from the k-DPP given the known ones, in random order.

    Fewer if all others are duplicates of these, or of quality 0. Where the k-DPP cannot be computed
    at the median scale, that is reduced by as little as needed, with a warning.
    """
    pool = np.flatnonzero(free & (q > 0))
    if pool.size < k:
        return greedy_items(F, q, k, known, free)
    pool = np.union1d(pool, known)
    rows = F.to_memory() if pool.size == F.n else as_features(F.take(pool), allow_tiny=True)
    given, worth = np.searchsorted(pool, known), q[pool] / q[pool].max()
    worth[given] = 1.0  # quality is asked of new items only
    target, square = Target(rows, worth, given, k, key), median_square(F)
    drawn, smaller, step = target.draw(square), square, CLOSE
    if drawn is None:
        smaller = target.smaller(square)
    if smaller == 0:  # the sample may lack the few that differ
        chosen = greedy_items(F, q, k, known, free)
        if chosen.size < k:
            return chosen
        smaller = target.smaller(square, np.searchsorted(pool, chosen))
    while drawn is None and smaller >= LEAST * square:
        drawn = target.draw(smaller)
        if drawn is None:  # all items need a bit less than the sample
            smaller, step = smaller / step, step**2
    if drawn is None:
        chosen = greedy_items(F, q, k, known, free)
        worst = chosen[np.argmin(q[chosen])]
        share = q[worst] / q[free].max()
        raise InputError(
            f"the k-DPP of {k} items needs item {worst}, but its quality is {share:.1g} of the "
            f"largest, too little for double precision; reduce k, or let diversity count more",
            how="greedy",
        )
    if smaller < square:
        warn_kernel(
            f"at m, the median squared distance, too few items are independent for the k-DPP of "
            f"{k} items (few columns, near-duplicates, or low quality); similarity is exp(-d²/m') "
            f"instead, with m' = {smaller / square:.2g} m; fewer items need no smaller m"
        )
    return np.asarray(pool[drawn])


@final
@dataclass(frozen=True)
class Target:
    """The k-DPP of `rows` with these qualities, given some of them, at any scale."""

    rows: Features
    q: FloatArray
    given: IntArray
    k: int
    key: int

    @property
    def size(self) -> int:
        """The items of a set, with those that are given."""
        return self.k + int(self.given.size)

    @property
    def few(self) -> bool:
        """Whether all eigenvalues can be computed."""
        return self.rows.n <= max(EXACT_ITEMS, min(TIMES * self.size, MOST))

    def draw(self, square: float) -> IntArray | None:
        """Return k items, or None if they cannot be drawn at this scale."""
        if self.few:
            return self._from(square, exact)
        if self.size <= FEW:
            often = float(np.clip(OFTEN * self.size / self.rows.n, *OFTEN_BOUNDS))
            walk = self._walk(square, often)
            if walk.complete:
                return walk.run()
            if (drawn := self._from(square, self._factor)) is not None:
                return drawn
        walk = self._walk(square)
        return walk.run() if walk.complete else None

    def smaller(self, square: float, also: IntArray | None = None) -> float:
        """Return the largest scale below `square` at which the k-DPP can be computed; 0 if none.

        Where eigenvalues tell, those of a sample do, which `also` are in.
        """
        works = self._walks
        if self.few or self.size <= FEW:
            most = max(SAMPLE, EACH * self.size)
            some = random_rows(self.rows.n, most, np.random.default_rng(0))
            works = self._part(some if also is None else np.union1d(some, also))._computable
        low, high, step = LEAST * square, square, 2.0
        if not works(low):
            return 0.0
        while high > low * step and not works(high / step):
            high, step = high / step, step**2
        low = max(low, high / step)
        while high > CLOSE * low:
            middle = float(np.sqrt(low)) * float(np.sqrt(high))
            low, high = (middle, high) if works(middle) else (low, middle)
        return low

    def _part(self, items: IntArray) -> Target:
        """Return the k-DPP of these items and the given ones alone."""
        items = np.union1d(items, self.given)
        rows = as_features(self.rows.take(items), allow_tiny=True)
        return replace(self, rows=rows, q=self.q[items], given=np.searchsorted(items, self.given))

    def _computable(self, square: float) -> bool:
        return any(self._sound(kernel, kernel.eigenvalues()) for kernel in self._kernels(square))

    def _walks(self, square: float) -> bool:
        return self._walk(square).complete

    def _walk(self, square: float, least: float | None = None) -> Walk:
        """Return the walk, with its first set unless fewer proposals than this are accepted."""
        if least is None:
            least = float(np.clip(SELDOM * float(self.size) ** 3, *SELDOM_BOUNDS))
        worth = self.q**2
        worth[self.given] = 0.0
        return Walk(self.rows, worth, self.k, self.given, square, self.key, least)

    def _kernels(self, square: float) -> Iterator[Kernel]:
        """Yield the kernel, and one that leaves out more of the given items if they are alike."""
        kernel: Kernel = RBF(self.rows, float(np.sqrt(square / 2)))
        kernel = kernel if (self.q == 1).all() else Quality(kernel, self.q)
        if self.given.size == 0:
            yield kernel
            return
        for least in (ALIKE, DEPENDENT):
            left = Given(kernel, self.given, least)
            if left.diag().any():  # some items are no duplicates of these
                yield left

    def _from(self, square: float, find: Callable[[Kernel], Spectrum]) -> IntArray | None:
        """Return k items by a spectrum of the kernel, or None if it is not close enough."""
        for kernel in self._kernels(square):
            spectrum = find(kernel)
            if self._sound(kernel, spectrum):
                design = KDPP(spectrum.replaced(rounding=Rounding()), self.k)
                return np.asarray(design.sample(1, self.key)[0])
        return None

    def _factor(self, kernel: Kernel) -> Spectrum:
        """Return the spectrum of a factor with as few columns as are needed, or as may be."""
        most = min(kernel.n, RANK, max(NUMBERS // kernel.n, 1))
        rank = 2 * self.size
        while True:
            found = pivoted_cholesky(kernel, min(rank, most), seed=self.key, oversampling=1.0)
            if rank >= most or found.rank < rank or self._sound(kernel, found):
                return found
            rank *= 2

    def _sound(self, kernel: Kernel, spectrum: Eigenvalues) -> bool:
        """Return whether neither rounding nor what is left out of the kernel changes sets."""
        larger = kernel.rounding if isinstance(kernel, Given) else 1.0
        rounding = replace(spectrum.rounding, power=1.0, scale=larger)
        seen = spectrum.replaced(rounding=rounding)
        if seen.rank < self.k or seen.inclusion_error(self.k) > VISIBLE:
            return False
        if not (seen.trace_error or rounding.hidden):  # nothing but rounding, of k eigenvectors
            largest = float(rounding.relative_error(seen.values).max()) * rounding.noise / EPS
            if self.k * largest <= ERROR:
                return True
        return seen.total_variation_bound(self.k) <= ERROR
