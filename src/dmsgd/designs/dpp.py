"""The DPP, P(Y) = det(L_Y) / det(L + I): diverse batches of random size (the paper's eq. 1)."""

from __future__ import annotations

from functools import cached_property
from typing import Any, final

import numpy as np

from dmsgd.designs.design import check_range
from dmsgd.designs.html import html_repr
from dmsgd.designs.kdpp import as_spectrum
from dmsgd.inputs.arrays import FloatArray, IntArray, as_items, as_pairs
from dmsgd.inputs.scalars import Seed, seed_key
from dmsgd.inputs.threads import thread_count
from dmsgd.samplers.parallel import parallel_map

#: Memory of an array besides its entries, in units of 8 bytes.
ARRAY = 31


@final
class DPP:
    """Batches of any size with probability det(L_Y) / det(L + I).

    L: an (n, n) array, a Kernel, or the Spectrum of one; scaling it up makes batches larger.

    It has the methods of a `Design`, but no k: `sample` returns a list of arrays and `log_prob`
    takes one. A batch of k items costs as much as from a k-DPP, and O(r) more.

    >>> DPP(np.eye(6)).expected_size
    3.0
    """

    def __init__(self, L: Any) -> None:
        self.spectrum = as_spectrum(L)
        self.n = self.spectrum.n
        self.spectrum.warn_rounding()
        #: Probability of each eigenvector, λ / (1 + λ), and mean number of items in a batch.
        self._selection = self.spectrum.values / (1 + self.spectrum.values)
        self.expected_size = float(self._selection.sum())

    @cached_property
    def _prepared(self) -> Any:
        return self.spectrum.eigenvectors.sampler_any_size(self._selection)

    def sample(
        self, size: int, seed: Seed = None, *, start: int = 0, workers: int = 1
    ) -> list[IntArray]:
        """Return batches start..start+size, each an int64 array of distinct items, maybe empty."""
        size, start = check_range(size, start, int(self.expected_size + ARRAY))
        key, draws, draw = seed_key(seed), range(start, start + size), self._prepared
        return parallel_map(lambda t: draw(key, t), draws, thread_count(workers))

    def inclusion(self) -> FloatArray:
        """Return b_i = K_ii with K = L (L + I)^-1, shape (n,)."""
        return self.spectrum.eigenvectors.weighted_squares(self._selection).copy()  # of a cache

    def joint(self, i: Any, j: Any) -> FloatArray:
        """Return E[m_i m_j] = K_ii K_jj - K_ij² for broadcast item numbers; b_i for i = j."""
        i, j = as_pairs(i, j, self.n)
        x, y = (self.spectrum.eigenvectors.rows(items) for items in (i, j))
        b = self.inclusion()
        K = np.einsum("...n,...n,n->...", x, y, self._selection, optimize=False)
        return np.asarray(np.where(i == j, b[i], b[i] * b[j] - K**2))

    def log_prob(self, batches: Any) -> FloatArray:
        """Return log P(Y) for each batch of a list of batches."""
        if not hasattr(batches, "__len__") or isinstance(batches, str | bytes | dict | set):
            raise TypeError(f"batches must be a list of batches, got a {type(batches).__name__}")
        rows = [as_items(batch, self.n, "each of batches", ndim=1) for batch in batches]
        normaliser = np.log1p(self.spectrum.values).sum()
        out = np.empty(len(rows))
        for t, Y in enumerate(rows):
            possible = Y.size <= self.spectrum.rank and np.unique(Y).size == Y.size
            log_det = self.spectrum.log_det(Y[None])[0] if possible and Y.size else 0.0
            out[t] = log_det - normaliser if possible else -np.inf
        return out

    def _repr_html_(self) -> str:
        """Return what notebooks show: size, origin, and how evenly items are drawn."""
        rows = {"items": f"{self.n:,}", "expected size": f"{self.expected_size:.3g}"}
        return html_repr("DPP", rows | {"kernel": self.spectrum.kernel}, self.inclusion())

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_prepared"}

    def __repr__(self) -> str:
        return f"DPP(expected size {self.expected_size:.3g}, {self.spectrum!r})"
