"""The k-DPP, P(Y) = det(L_Y) / e_k(λ) over sets of k items (the paper's eq. 2)."""

from __future__ import annotations

from functools import cached_property
from typing import Any, final

import numpy as np

from dmsgd.designs.contract import ClosedForm
from dmsgd.designs.options import DesignOptions
from dmsgd.errors import SamplingError
from dmsgd.inputs.arrays import FloatArray, IntArray, as_given, on_host
from dmsgd.inputs.fingerprint import digest
from dmsgd.inputs.messages import counted
from dmsgd.inputs.scalars import as_part
from dmsgd.kernels import exact
from dmsgd.kernels.conditioned import conditional
from dmsgd.kernels.precomputed import kernel_of
from dmsgd.polynomials import eigenvector_inclusion, eigenvector_joint, log_polynomial
from dmsgd.runtime.pieces import slices
from dmsgd.runtime.progress import Progress, announce
from dmsgd.samplers import PreparedSampler, Sampler, rejection
from dmsgd.samplers.contract import as_sampler, name_of
from dmsgd.spectra.eigenpairs import Spectrum
from dmsgd.spectra.rounding import TIED, WARN_ABOVE

#: Numbers shuffled at a time.
PIECE = 2**20
#: Second word of the Philox key for the order within a row; items use another.
ORDER = 0x67697665
#: Safety factor on the estimated rounding error of b.
MARGIN = 64.0
#: Remaining lengths are known to TIED only above this share of the initial ones.
PRECISE = 1e-4


def as_spectrum(L: Any, name: str = "L") -> Spectrum:
    """Return the spectrum of L: an (n, n) array, a Kernel, or its Spectrum already."""
    return L if isinstance(L, Spectrum) else exact(kernel_of(L, name))


@final
class KDPP(ClosedForm):
    """Batches of k items with probability proportional to det(L_Y): similar items repel.

    L:       The kernel: an (n, n) array, a Kernel, or the Spectrum of one.
    sampler: How batches are drawn: a function (spectrum, k) -> PreparedSampler. It must be defined
             in a module, so that designs can be pickled.

    A batch takes about k log k proposals and 3k³ operations, whatever n is. The first one also
    makes tables, in O(n r) for a kernel of rank r. `inclusion` takes O(n r), `joint` O(r²) per
    pair, and `log_prob` O(r k²) per batch.

    Raises `RankError` if k is larger than the rank of L; warns with `KernelWarning` if rounding is
    visible. See also `diversify` for features, `DPP` for batches of any size, `Weighted`.

    >>> KDPP(np.eye(4), k=2).inclusion()
    array([0.5, 0.5, 0.5, 0.5])
    """

    #: The options of `diversify`, with the kernel that was chosen, and what its `repr` adds.
    options: DesignOptions | None = None
    made: str = ""

    def __init__(self, L: Any, k: int, sampler: Sampler = rejection) -> None:
        self.spectrum = as_spectrum(L)
        self.sampler = as_sampler(sampler)
        self.n = self.spectrum.n
        self.k = as_part(k, "k", self.n)
        self.spectrum.require_rank(self.k)
        self.spectrum.warn_rounding(self.k)

    @property
    def kernel(self) -> str:
        """The kernel in words: which one `diversify` chose; "" for a spectrum made by hand."""
        return self.spectrum.kernel

    @property
    def chunk(self) -> int:
        return self._prepared.chunk

    @cached_property
    def _prepared(self) -> PreparedSampler:
        found = self.sampler(self.spectrum, self.k)
        if not isinstance(found, PreparedSampler):
            raise TypeError(
                f"sampler {name_of(self.sampler)} returned {found!r}, not a PreparedSampler"
            )
        return found

    def _draw(self, key: int, start: int, size: int, workers: int) -> IntArray:
        return self._prepared.sample(key, start, size, workers)

    @cached_property
    def _inclusion(self) -> FloatArray:
        """b_i = Σ_n V_in² π_n. O(nr + rk)."""
        return self.spectrum.eigenvectors.weighted_squares(
            eigenvector_inclusion(self.spectrum.values, self.k)
        )

    def inclusion(self) -> FloatArray:
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
        for part in slices(i.size, step):
            x, y = (self.spectrum.eigenvectors.rows(items[part]) for items in (i, j))
            out[part] = np.einsum("pm,pm->p", (x * x) @ self._pairs, y * y)
            out[part] -= np.einsum("pm,pm->p", (x * y) @ self._pairs, x * y)
        return np.maximum(out, 0.0)

    def _log_prob(self, batches: IntArray) -> FloatArray:
        """log det(L_Y) - log e_k(λ). O(r k²) per batch."""
        log_e = log_polynomial(self.spectrum.values, self.k)
        return np.asarray(self.spectrum.log_det(batches) - log_e)

    def given(self, items: Any) -> Conditioned:
        """Return this k-DPP given that `items` are in every batch.

        P(Y | items) ∝ det(L_Y): k counts the given items, and the others repel them and each other.
        O(n r²), or O(r³) for features in blocks. The result has `given`, too, for more items.
        Raises ValueError if no batch contains all of `items`. Without some of the items:
        `KDPP(kernel.subset(others), k)`, whose item numbers are positions in `others`.

        >>> L = [[1.0, 0.9, 0.0], [0.9, 1.0, 0.0], [0.0, 0.0, 2.0]]
        >>> KDPP(L, k=2).given([0]).inclusion().round(3)
        array([1.   , 0.087, 0.913])
        """
        return Conditioned(self, as_given(items, self.n, self.k))

    def greedy_map(self) -> IntArray:
        """Return one batch with a large det(L_Y), found greedily: k item numbers, best first.

        Each item is the one that makes the determinant largest together with those before it, and
        of ties (to 1e-9) the first; so the first j items are the answer for k = j. The determinant
        is at least 1/(k!)² of the largest (Çivril and Magdon-Ismail 2009). O(n r k).

        >>> import dmsgd
        >>> dmsgd.KDPP([[1.0, 0.9, 0.0], [0.9, 1.0, 0.0], [0.0, 0.0, 2.0]], k=2).greedy_map()
        array([2, 0])
        """
        return largest_determinant(self.spectrum, self.k)

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
        of = {"kernel": self.spectrum.kernel, "data": self.spectrum.data}
        return super().provenance() | of | {"sampler": name_of(self.sampler)}

    def __repr__(self) -> str:
        return f"KDPP(k={self.k}, {self.spectrum!r}{self.made}, sampler={name_of(self.sampler)})"


@final
class Conditioned(ClosedForm):
    """A k-DPP conditioned on some items, which stand anywhere in a row; made by `KDPP.given`."""

    def __init__(self, whole: KDPP, items: IntArray) -> None:
        self.n, self.k = whole.n, whole.k
        #: The items that are in every batch, sorted.
        self.given_items = items
        self._whole, left = whole, whole.k - items.size
        rest = conditional(whole.spectrum, items)
        #: The k-DPP of the others; None if all k items are given.
        self._rest = KDPP(rest, left, whole.sampler) if left else None

    @property
    def chunk(self) -> int:
        return self._rest.chunk if self._rest else 1

    def given(self, items: Any) -> Conditioned:
        """Return this k-DPP given more items that are in every batch."""
        return self._whole.given(np.union1d(self.given_items, as_given(items, self.n)))

    def _draw(self, key: int, start: int, size: int, workers: int) -> IntArray:
        rest: IntArray = np.empty((size, 0), dtype=np.int64)
        if self._rest:
            rest = on_host(self._rest._draw(key, start, size, workers))
        out = np.empty((size, self.k), dtype=np.int64)
        step = max(1, PIECE // self.k)
        for first in range(0, size, step):
            piece = rest[first : first + step]
            if np.isin(piece, self.given_items).any():
                raise SamplingError(
                    "a given item was drawn again, because of rounding: the kernel's eigenvalues "
                    "span too much; use a smaller k"
                )
            given = np.broadcast_to(self.given_items, (len(piece), self.given_items.size))
            orders = _random_orders(key, start + first, len(piece), self.k)
            out[first : first + step] = np.take_along_axis(np.hstack([given, piece]), orders, 1)
        return out

    @cached_property
    def _inclusion(self) -> FloatArray:
        """b of the other items; exactly 0 for duplicates of given ones, where rounding remains."""
        b = np.zeros(self.n)
        if self._rest:
            b = self._rest.inclusion()
            error = min(MARGIN * self._rest.spectrum.inclusion_error(self._rest.k), WARN_ABOVE)
            b[b <= error**2 * self._whole.inclusion()] = 0.0
        b[self.given_items] = 1.0
        return b

    def inclusion(self) -> FloatArray:
        return self._inclusion.copy()

    def _joint(self, i: IntArray, j: IntArray) -> FloatArray:
        b, always = self._inclusion, np.zeros(self.n, dtype=bool)
        always[self.given_items] = True
        others = self._rest._joint(i, j) if self._rest else 0.0
        return np.where(always[i] | always[j], b[i] * b[j], others)

    def _log_prob(self, batches: IntArray) -> FloatArray:
        """log det(L_Y) - log det(L_G) - log e_{k-|G|}(λ'); -inf without all given items."""
        complete = np.isin(batches, self.given_items).sum(axis=1) == self.given_items.size
        logs = np.where(complete, 0.0, -np.inf)
        if not self._rest:
            return logs
        log_det = self._whole.spectrum.log_det
        logs[complete] = log_det(batches[complete]) - log_det(self.given_items[None])
        return np.asarray(logs - log_polynomial(self._rest.spectrum.values, self._rest.k))

    def greedy_map(self) -> IntArray:
        """Return the given items and k - |given| others added greedily, as `KDPP.greedy_map`."""
        if not self._rest:
            return self.given_items.copy()
        return np.append(self.given_items, self._rest.greedy_map())

    def fingerprint(self) -> str:
        return digest("Conditioned", self._whole.fingerprint(), self.given_items)

    def provenance(self) -> dict[str, str]:
        return {**self._whole.provenance(), "design": repr(self)}

    def __repr__(self) -> str:
        return f"{self._whole!r}.given({counted(self.given_items.size, 'item')})"


def _random_orders(key: int, start: int, size: int, k: int) -> IntArray:
    """Return a random order of the k items of each of the batches start..start+size."""
    blocks = -(-k // 4)  # Philox makes four numbers at a time
    stream = np.random.Philox(key=[key, ORDER], counter=start * blocks)
    numbers = np.random.Generator(stream).random((size, 4 * blocks))[:, :k]
    return np.argsort(numbers, axis=1, kind="stable")


def largest_determinant(spectrum: Spectrum, k: int, least: float = 0.0) -> IntArray:
    """Return k items, each with the largest det(L_Y) that one more item can give, in that order.

    least: end where no item multiplies the determinant by more than this.

    Fast greedy MAP inference (Chen, Zhang, Zhou 2018): with a_i row i of V Λ^(1/2) and q an
    orthonormal basis of the items taken, item i adds the factor d_i = |a_i|² - Σ_q (a_i q)².
    O(n r) per item, or a pass over features that are read in blocks.
    """
    chosen = np.empty(k, dtype=np.int64)
    what = f"a greedy set of {k:,} of {spectrum.n:,} items"
    advice = "design.sample(1) draws a set instead, at once"
    announce(float(spectrum.n) * spectrum.rank * k, spectrum.n, what, advice)
    progress, done = Progress(what), 0
    while done < k:  # start again from the conditional kernel when little is left of every item
        here = conditional(spectrum, chosen[:done])
        roots = np.sqrt(here.values)
        left = here.eigenvectors.weighted_squares(here.values).copy()
        left[chosen[:done]] = 0.0
        if left.max() <= least:
            break
        enough, directions = max(PRECISE * left.max(), least), np.empty((0, here.rank))
        while done < k and left.max() > enough:
            best = int(np.argmax(left >= (1 - TIED) * left.max()))
            row = here.eigenvectors.rows(np.array([best]))[0] * roots
            for _ in range(2):  # orthogonalising once leaves rounding errors
                row -= directions.T @ (directions @ row)
            row /= np.linalg.norm(row)
            directions = np.vstack([directions, row])
            chosen[done] = best
            done += 1
            left -= here.eigenvectors.times(roots * row) ** 2
            left[best] = 0.0
            progress(done / k)
    return chosen[:done]
