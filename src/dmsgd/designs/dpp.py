"""The DPP, P(Y) = det(L_Y) / det(L + I): diverse batches of random size (the paper's eq. 1)."""

from __future__ import annotations

import numbers
from functools import cached_property
from typing import Any, final

import numpy as np
from scipy import linalg

from dmsgd.designs.contract import check_range
from dmsgd.designs.kdpp import MARGIN, as_spectrum, largest_determinant
from dmsgd.features import as_features
from dmsgd.inputs.arrays import BoolArray, FloatArray, IntArray, as_given, as_items, as_pairs
from dmsgd.inputs.scalars import Seed, seed_key
from dmsgd.kernels.conditioned import conditional
from dmsgd.runtime.memory import reserve
from dmsgd.runtime.threads import parallel_map, thread_count
from dmsgd.spectra.decompose import log_det_of_rows
from dmsgd.spectra.eigenpairs import Spectrum
from dmsgd.spectra.rounding import DEPENDENT, TIED, WARN_ABOVE

#: Memory of an array besides its entries, in units of 8 bytes.
ARRAY = 31
#: Eigenvalues of a marginal kernel may be above 1 by this, from rounding.
EXCESS = 1e-8
#: Eigenvalues of a computed marginal kernel that are so close to 1 count as 1.
CERTAIN = 1e-12


@final
class DPP:
    """Batches of any size with probability det(L_Y) / det(L + I).

    L: The kernel: an (n, n) array, a Kernel, or the Spectrum of one. Multiplying it by a number
       above 1 makes batches larger. `DPP.from_marginal(K)` takes the marginal kernel instead.

    It has the methods of a `Design`, but no k: `sample` returns a list of arrays, and `log_prob`
    takes one. `expected_size` is the mean number of items. A batch of k items takes as long as
    one of a k-DPP, and O(r) more. See also `KDPP` for batches of one size.

    >>> DPP(np.eye(6)).expected_size
    3.0
    """

    def __init__(self, L: Any) -> None:
        spectrum = as_spectrum(L)
        spectrum.warn_rounding()
        odds = spectrum.values
        self._set(spectrum, odds / (1 + odds), 1 / (1 + odds), is_marginal=False)

    def _set(self, spectrum: Spectrum, p: FloatArray, rest: FloatArray, is_marginal: bool) -> DPP:
        #: Spectrum of L or, if `_is_marginal`, of K = L (L + I)^-1.
        self.spectrum, self.n, self._is_marginal = spectrum, spectrum.n, is_marginal
        #: Probability of each eigenvector, λ / (1 + λ), and 1 minus it, without cancellation.
        self._selection, self._rest = p, rest
        #: Mean number of items in a batch.
        self.expected_size = float(p.sum())
        return self

    @classmethod
    def from_marginal(cls, K: Any) -> DPP:
        """Return the DPP with P(A ⊂ Y) = det(K_A) for all sets A.

        K: The marginal kernel: an (n, n) array, a Kernel, or the Spectrum of one, with eigenvalues
           from 0 to 1. If all of them are 0 or 1 this is a projection DPP: every batch has as many
           items as K has rank. Eigenvalues within 1e-12 of 1 count as 1.

        For r orthonormal columns V, `from_marginal(dmsgd.kernels.Linear(V))` is the projection DPP
        of K = V Vᵀ, which is not formed: O(n r²). Raises ValueError for an eigenvalue above 1.

        >>> DPP.from_marginal([[0.5, 0.5], [0.5, 0.5]]).log_prob([[0], [1], [0, 1]]).round(3)
        array([-0.693, -0.693,   -inf])
        """
        spectrum = as_spectrum(K, "K")
        if spectrum.values[0] > 1 + EXCESS:
            raise ValueError(
                f"K has the eigenvalue {spectrum.values[0]:.6g}, but those of a marginal kernel "
                f"are at most 1; if P(Y) is proportional to det(L_Y), use DPP(L)"
            )
        return cls._from_marginal(spectrum)

    @classmethod
    def _from_marginal(cls, spectrum: Spectrum) -> DPP:
        p = np.minimum(spectrum.values, 1.0)
        if spectrum.rounding.power:  # values of a spectrum that the user made are exact
            p[p >= 1 - CERTAIN] = 1.0
        return cls.__new__(cls)._set(spectrum.replaced(values=p), p, 1 - p, is_marginal=True)

    def given(self, items: Any) -> DPP:
        """Return this DPP given that `items` are in every batch.

        O(n r²); with given items, all eigenvectors are kept in memory. Raises ValueError if no
        batch contains all of `items`. Without some of the items: `DPP(kernel.subset(others))`.

        >>> L = [[1.0, 0.9, 0.0], [0.9, 1.0, 0.0], [0.0, 0.0, 2.0]]
        >>> DPP(L).given([0]).inclusion().round(3)
        array([1.   , 0.16 , 0.667])
        """
        given = as_given(items, self.n)
        if not given.size:
            return self
        left, count = conditional(self.spectrum, given), given.size
        of_kernel = left.rank and not self._is_marginal
        others = DPP(left) if of_kernel else DPP._from_marginal(left)
        V = np.zeros((self.n, count + left.rank))  # given items are eigenvectors with p = 1
        V[given, np.arange(count)] = 1.0
        V[:, count:] = left.eigenvectors.columns(np.arange(left.rank))
        error = min(MARGIN * left.inclusion_error(), WARN_ABOVE) if left.rank else 0.0
        V[others.inclusion() <= error**2 * self.inclusion(), count:] = 0.0  # duplicates
        p = np.append(np.ones(count), others._selection)
        rest = np.append(np.zeros(count), others._rest)
        return DPP.__new__(DPP)._set(left.replaced(values=p, vectors=V), p, rest, is_marginal=True)

    @cached_property
    def _prepared(self) -> Any:
        return self.spectrum.eigenvectors.sampler_any_size(self._selection)

    def sample(
        self, size: int, seed: Seed = None, *, start: int = 0, workers: int = 1
    ) -> list[IntArray]:
        """Return batches start..start+size: int64 arrays of distinct items, some maybe empty."""
        size, start = check_range(size, start, int(self.expected_size + ARRAY))
        key, draws, draw = seed_key(seed), range(start, start + size), self._prepared
        return parallel_map(lambda t: draw(key, t), draws, thread_count(workers))

    def inclusion(self) -> FloatArray:
        """Return b_i = K_ii with K = L (L + I)^-1, shape (n,)."""
        return self.spectrum.eigenvectors.weighted_squares(self._selection).copy()  # of a cache

    def joint(self, i: Any, j: Any) -> FloatArray:
        """Return E[m_i m_j] = K_ii K_jj - K_ij² for broadcast item numbers; b_i for i = j.

        That of three or more items A is det(K_A), with K of `marginal_kernel`.
        """
        i, j = as_pairs(i, j, self.n)
        x, y = (self.spectrum.eigenvectors.rows(items) for items in (i, j))
        b = self.inclusion()
        K = np.einsum("...n,...n,n->...", x, y, self._selection, optimize=False)
        return np.asarray(np.where(i == j, b[i], np.maximum(b[i] * b[j] - K**2, 0.0)))

    def marginal_kernel(self) -> FloatArray:
        """Return K = L (L + I)^-1, shape (n, n): P(A ⊂ Y) = det(K_A), and b_i = K_ii.

        >>> DPP(np.eye(2)).marginal_kernel().tolist()
        [[0.5, 0.0], [0.0, 0.5]]
        """
        reserve(2 * self.n**2, f"a matrix over {self.n:,} items", "joint(i, j) gives single pairs")
        V = self.spectrum.eigenvectors.columns(np.arange(self.spectrum.rank))
        return np.asarray((V * self._selection) @ V.T)

    def size_distribution(self) -> FloatArray:
        """Return P(|Y| = j) for j = 0..r; no batch has more items than the rank r. O(r²).

        >>> DPP(np.eye(2)).size_distribution()
        array([0.25, 0.5 , 0.25])
        """
        chance = np.zeros(self.spectrum.rank + 1)
        chance[0] = 1.0
        for p, rest in zip(self._selection, self._rest, strict=True):
            chance[1:] = chance[1:] * rest + chance[:-1] * p
            chance[0] *= rest
        return chance

    def log_prob(self, batches: Any) -> FloatArray:
        """Return log P(Y) for each batch of a list of batches."""
        if not hasattr(batches, "__len__") or isinstance(batches, str | bytes | dict | set):
            raise TypeError(f"batches must be a list of batches, got a {type(batches).__name__}")
        if isinstance(next(iter(batches), None), numbers.Integral):
            raise ValueError("batches must be a list of batches; for one set pass [[0, 1, 2]]")
        rows = [as_items(batch, self.n, "each of batches", ndim=1) for batch in batches]
        always, out = self._rest == 0, np.empty(len(rows))
        odds = self._selection[~always] / self._rest[~always]
        for t, Y in enumerate(rows):
            possible = always.sum() <= Y.size <= always.size and np.unique(Y).size == Y.size
            out[t] = self._log_det(Y, always, np.sqrt(odds)) if possible else -np.inf
        return np.asarray(out - np.log1p(odds).sum())

    def _log_det(self, Y: IntArray, always: BoolArray, roots: FloatArray) -> float:
        """Return log det(L_Y); where p = 1 for eigenvectors U, without their infinite factors.

        That is det(U_YᵀU_Y) det(B L'_Y Bᵀ), L' being that of the other eigenvectors and B a basis
        of the complement of U_Y.
        """
        V = self.spectrum.eigenvectors.rows(Y)
        A, log_det, size = V[:, ~always] * roots, 0.0, None
        if always.any():
            B, R, _ = linalg.qr(V[:, always], pivoting=True)
            left, size = np.abs(R.diagonal()), np.linalg.norm(A)
            log_det = 2 * float(np.log(left).sum()) if (left > DEPENDENT).all() else -np.inf
            A = B[:, left.size :].T @ A
        rounded = self.spectrum.rounding.power > 0
        return log_det + (log_det_of_rows(A, rounded, size) if len(A) else 0.0)

    def greedy_map(self) -> IntArray:
        """Return one likely batch, found greedily: item numbers, best first.

        Each item is the one that makes the batch most likely together with those before it, and of
        ties (to 1e-9) the first. It ends where no item makes the batch more likely, so it may be
        empty. O(n r) per item. For batches of one size see `KDPP.greedy_map`.

        >>> DPP([[3.0, 2.9, 0.0], [2.9, 3.0, 0.0], [0.0, 0.0, 4.0]]).greedy_map()
        array([2, 0])
        """
        always, first = self._rest == 0, np.empty(0, dtype=np.int64)
        odds = self._selection[~always] / self._rest[~always]
        spectrum = self.spectrum.replaced(values=odds)
        if always.any():
            # As L = t U Uᵀ + W Wᵀ for t → ∞: items first span U, and W is what they leave of it.
            V = self.spectrum.eigenvectors.columns(np.arange(self.spectrum.rank))
            U, W = V[:, always], V[:, ~always] * np.sqrt(odds)
            first = largest_determinant(Spectrum(np.ones(U.shape[1]), U, check=False), U.shape[1])
            W -= U @ np.linalg.solve(U[first], W[first])
            W[first] = 0.0
            if not W.any():  # as of a projection
                return first
            spectrum = as_features(W, allow_tiny=True).spectrum(overwrite=True)
        return np.append(first, largest_determinant(spectrum, spectrum.rank, least=1 + TIED))

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_prepared"}

    def __repr__(self) -> str:
        return f"DPP(expected size {self.expected_size:.3g}, {self.spectrum!r})"
