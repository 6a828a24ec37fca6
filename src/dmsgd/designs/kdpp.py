"""The k-DPP: P(Y) = det(L_Y) / e_k(λ) over sets of k items (the paper's eq. 2)."""

from __future__ import annotations

from functools import cached_property
from typing import Any, final

import numpy as np

from dmsgd.designs.conditioned import Conditioned, Parts, as_given
from dmsgd.designs.design import ClosedForm, Design
from dmsgd.designs.greedy import greedy_set
from dmsgd.designs.options import DesignOptions
from dmsgd.inputs.arrays import FloatArray, IntArray
from dmsgd.inputs.fingerprint import digest
from dmsgd.inputs.scalars import as_batch_size
from dmsgd.kernels import Kernel, Precomputed, exact
from dmsgd.polynomials import eigenvector_inclusion, eigenvector_joint, log_polynomial
from dmsgd.samplers import PreparedSampler, Sampler, rejection
from dmsgd.samplers.protocol import as_sampler, name_of
from dmsgd.spectra.conditional import conditional
from dmsgd.spectra.spectrum import Spectrum


def as_spectrum(L: Any) -> Spectrum:
    """Return the spectrum of L: an (n, n) array, a Kernel, or its Spectrum already."""
    if isinstance(L, Spectrum):
        return L
    if isinstance(L, str | Design) or L is None:
        raise TypeError(f"a k-DPP needs an (n, n) array, a Kernel or a Spectrum, got {L!r}")
    return exact(L if isinstance(L, Kernel) else Precomputed(L))


@final
class KDPP(ClosedForm):
    """Batches of k items with probability proportional to det(L_Y): similar items repel.

    A batch takes about k log k proposals and 3k³ operations, whatever n is; tables are made at the
    first, in O(n r) for a kernel of rank r. `inclusion` is O(n r), `joint` O(r²) per pair and
    `log_prob` O(r k²) per batch.

    L:       an (n, n) array, a Kernel, or the Spectrum of one.
    sampler: (spectrum, k) -> Draw; a function of a module, so that designs can be pickled.

    >>> KDPP(np.eye(4), k=2).inclusion()
    array([0.5, 0.5, 0.5, 0.5])
    """

    def __init__(self, L: Any, k: int, sampler: Sampler = rejection) -> None:
        spectrum = as_spectrum(L)
        as_sampler(sampler)
        self.n = spectrum.n
        self.k = as_batch_size(k, self.n)
        spectrum.require_rank(self.k)
        spectrum.warn_rounding(self.k)
        self.spectrum = spectrum
        self.sampler = sampler
        #: What `diversify` was called with; None for a k-DPP made by hand.
        self.options: DesignOptions | None = None
        #: Labels, and the target as a name or as numbers, that `diversify` was called with.
        self._labels: Any = None
        self._target: Any = None

    @property
    def chunk(self) -> int:
        """Number of batches that `sample` makes for the price of one; 1 if each has its own."""
        return self._prepared.chunk

    @cached_property
    def _prepared(self) -> PreparedSampler:
        found = self.sampler(self.spectrum, self.k)  # or a plain function
        if isinstance(found, PreparedSampler):
            return found
        if not callable(found):
            raise TypeError(
                f"sampler {name_of(self.sampler)} returned {found!r}, not a PreparedSampler"
            )
        return PreparedSampler(name_of(self.sampler), found)

    def _draw(self, key: int, start: int, size: int, workers: int) -> IntArray:
        return self._prepared.sample(key, start, size, workers)

    @cached_property
    def _inclusion(self) -> FloatArray:
        """b_i = Σ_n V_in² π_n."""
        return self.spectrum.eigenvectors.weighted_squares(
            eigenvector_inclusion(self.spectrum.values, self.k)
        )

    def inclusion(self) -> FloatArray:
        """Return b_i in closed form, shape (n,); they sum to k. O(nr + rk)."""
        return self._inclusion.copy()

    @cached_property
    def _pairs(self) -> FloatArray:
        pairs = eigenvector_joint(self.spectrum.values, self.k)
        np.fill_diagonal(pairs, 0.0)
        return pairs

    def _joint(self, i: IntArray, j: IntArray) -> FloatArray:
        """Σ_{n≠m} π_nm (V_in² V_jm² - V_in V_im V_jn V_jm). O(r²) per pair, O(r²k) once."""
        out = np.empty(i.size)
        step = max(1, 2**22 // self.spectrum.rank)
        for first in range(0, i.size, step):
            part = slice(first, first + step)
            x, y = (self.spectrum.eigenvectors.rows(items[part]) for items in (i, j))
            out[part] = np.einsum("pm,pm->p", (x * x) @ self._pairs, y * y)
            out[part] -= np.einsum("pm,pm->p", (x * y) @ self._pairs, x * y)
        return np.maximum(out, 0.0)

    def _log_prob(self, batches: IntArray) -> FloatArray:
        """log det(L_Y) - log e_k(λ). O(r k²) per batch."""
        return self.spectrum.log_det(batches) - log_polynomial(self.spectrum.values, self.k)

    def given(self, items: Any) -> Conditioned:
        """Return this k-DPP conditioned on `items`, fewer than k, being in every batch.

        P(Y | items ⊂ Y) ∝ det(L_Y): k counts the given items, and the others repel them and each
        other. Set-up is O(n r²) for eigenvectors in memory, and O(r³) for features in blocks.

        >>> import dmsgd
        >>> design = dmsgd.diversify([[1.0, 0.0], [1.0, 0.1], [0.0, 3.0]], k=2)
        >>> float(design.given([0]).inclusion()[2].round(3))
        0.999
        """
        known = as_given(items, self.n, self.k)
        left = conditional(self.spectrum, known)
        rest = KDPP(left, self.k - known.size, self.sampler)
        return Conditioned(Parts(self, self.spectrum, left, rest), known)

    def greedy_map(self) -> IntArray:
        """Return one batch with a large det(L_Y), found greedily: k item numbers, best first.

        It is the same every time, and no random draw: it has no inclusion probabilities. Each item
        is the one that makes the determinant largest together with those before it, and of ties
        (to 1e-9) the first; so the first j items are the answer for k = j. Finding the largest
        determinant is NP-hard; this set has at least 1/(k!)² of it (Çivril and Magdon-Ismail 2009),
        usually far more. O(n r k).

        >>> import dmsgd
        >>> dmsgd.diversify([[1.0, 0.0], [1.0, 0.1], [0.0, 3.0]], k=2).greedy_map()
        array([2, 0])
        """
        return greedy_set(self.spectrum, self.k)

    def _pair_moment(self, Y: FloatArray) -> float:
        """Σ_{n≠m} π_nm (u_nᵀu_m - |t_nm|²), u_n = Σ_i V_in² y_i, t_nm = Σ_i V_in V_im y_i.

        O(n r² min(n, p)): only inner products of the y_i matter, so p > n columns become n.
        """
        if Y.shape[1] > Y.shape[0]:
            Y = np.asarray(np.linalg.qr(Y.T, mode="r")).T.copy()
        V, pairs = np.asarray(self.spectrum.vectors), self._pairs
        U = (V * V).T @ Y
        total = np.einsum("np,np->", pairs @ U, U)
        for n in range(V.shape[1] - 1):  # t_nm = t_mn, so m > n is enough
            T = V[:, n + 1 :].T @ (V[:, n, None] * Y)
            total -= 2 * pairs[n, n + 1 :] @ np.einsum("mp,mp->m", T, T)
        return float(total)

    def fingerprint(self) -> str:
        """Return the hash of the spectrum and k; the sampler does not change the distribution."""
        return digest("KDPP", self.k, self.spectrum.fingerprint())

    def provenance(self) -> dict[str, str]:
        """Return where batches come from, in words: design, kernel, its fingerprint, sampler."""
        spectrum = self.spectrum
        origin = {"kernel": spectrum.kernel, "data": spectrum.data}
        return {"design": repr(self), **origin, "sampler": name_of(self.sampler)}

    def _facts(self) -> dict[str, str]:
        facts = {**super()._facts(), "rank": f"{self.spectrum.rank:,}"}
        if self.options is not None:
            changed = [f"{name}={value!r}" for name, value in self.options.changed().items()]
            facts["options"] = ", ".join(changed) or "defaults of diversify"
        return facts

    def __repr__(self) -> str:
        target = ""
        if self._target is not None:
            named = isinstance(self._target, str)
            target = f", target={self._target!r}" if named else f", target={self.n:,} given numbers"
        return f"KDPP(k={self.k}, {self.spectrum!r}{target}, sampler={name_of(self.sampler)})"
