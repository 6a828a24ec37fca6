"""Landmarks that grow from few until their error is small."""

from __future__ import annotations

from typing import final

import numpy as np

from dmsgd.features import as_features
from dmsgd.features.products import gram
from dmsgd.inputs.arrays import on_host, random_rows
from dmsgd.inputs.scalars import seed_key
from dmsgd.kernels.contract import Kernel
from dmsgd.kernels.landmarks import SAMPLE, landmark_spectrum
from dmsgd.kernels.pivoted_cholesky import PartialCholesky
from dmsgd.polynomials import ratios
from dmsgd.spectra.decompose import eigenvalues, like
from dmsgd.spectra.eigenpairs import Spectrum
from dmsgd.spectra.rounding import lost_by_factor

#: Up to this many items, the factor that chooses landmarks is that of all of them. Of more, it is
#: that of a sample, as in `nystrom`, and of HELD others, which tell what is left of the rest.
WHOLE, HELD = 100_000, 10_000


@final
class GrowingLandmarks:
    """The pivots of a randomly pivoted Cholesky factor that grows: no landmark is chosen again.

    least: landmarks that are added whatever the error is.
    usual: landmarks that are added without asking whether more can be enough.
    most:  landmarks that are never exceeded.
    count: landmarks that are used.
    """

    def __init__(self, kernel: Kernel, least: int, usual: int, most: int) -> None:
        self.kernel, self.least, self.usual, self.most = kernel, least, usual, most
        self.count = 0
        rng = np.random.default_rng(seed_key(0))
        self.items, held = np.arange(kernel.n), np.arange(0)
        if kernel.n > WHOLE:
            self.items = random_rows(kernel.n, max(SAMPLE, 4 * most), rng)
            others = np.setdiff1d(np.arange(kernel.n), self.items)
            held = others[random_rows(others.size, HELD, rng)]
        size, self._is_whole = self.items.size, self.items.size == kernel.n
        part = kernel if self._is_whole else kernel.subset(np.append(self.items, held))
        weight = (kernel.n - size) / max(held.size, 1)
        self._weights = np.repeat([1.0, weight], [size, held.size])
        self._factor = PartialCholesky(part, usual, int(rng.integers(2**63)), eligible=size)
        #: The trace that the first m landmarks leave out of all items, for m = 0, 1, ...
        self._left = np.array([float(self._weights @ part.diag())])

    def grow(self, k: int, goal: float) -> bool:
        """Grow until `batch_error(k)` is about `goal`; False if it stays above.

        The trace left out may then be goal / (1 - goal) k e_k / e_{k-1}. That is goal / (1 - goal)
        times the whole trace or less, so eigenvalues are not computed before.
        """
        odds, least = goal / (1 - goal), max(k, self.least)
        allowed = odds * self._left[0]
        while True:
            self.count = self._factor.pivots.size
            if self.count >= least and self._left[-1] <= allowed:
                allowed = odds * k * self._ratio(k)
                if self._left[-1] <= allowed:
                    self.count = max(least, int(np.argmax(self._left <= allowed)))
                    return True
            if self.count == self._factor.columns < self.most:
                if self._expected(self.most) > odds * k * self._ratio(k):
                    self.most = self.count
                else:
                    self._factor.widen(self.most)
            if not self._factor.grow():
                self.most = self.count
                return False
            new = self._factor.F[:, self.count :]
            taken = on_host(like(new, self._weights) @ new**2)
            self._left = np.append(self._left, self._left[-1] - np.cumsum(taken))

    def _ratio(self, k: int) -> float:
        """Return e_k / e_{k-1} of the eigenvalues, estimated from some rows; 0 for fewer than k."""
        F = self._factor.F
        rows = F[:: max(1, len(F) // SAMPLE)]
        values = eigenvalues(gram(rows))[::-1] * (self.kernel.n / len(rows))
        return float(ratios(values, k)[-1, k]) if values.size >= k else 0.0

    def _expected(self, count: int) -> float:
        """Return what so many would leave out if that goes on to fall by the power it did."""
        left = np.maximum(self._left, lost_by_factor(self.count, self._left[0]))
        half = (self.count + 1) // 2
        power = np.log(left[half] / left[-1]) / np.log(self.count / half)
        return float(left[-1] * (self.count / count) ** power)

    def spectrum(self) -> Spectrum:
        """Return the spectrum of all items for `count` landmarks."""
        pivots, factor = self._factor.pivots[: self.count], None
        if self._is_whole:
            F = self._factor.F[:, : self.count]
            if self.count < self.most and isinstance(F, np.ndarray):
                F = F.copy()  # the factor may grow on
            factor = as_features(F, allow_tiny=True)
        method = f"landmarks({self.count}, usual={self.usual}, of={self.items.size})"
        return landmark_spectrum(self.kernel, self.items[pivots], "pivots", method, factor)
