"""Approximations of a kernel by a few of its items: `nystrom`, `coreset`, `GrowingLandmarks`."""

from __future__ import annotations

import numbers
from typing import Any, final

import numpy as np
from scipy import linalg

from dmsgd.features import Features, as_features
from dmsgd.features.products import gram
from dmsgd.inputs.arrays import FloatArray, IntArray, as_items, on_host, random_rows
from dmsgd.inputs.fingerprint import digest
from dmsgd.inputs.messages import counted, require
from dmsgd.inputs.scalars import Seed, as_choice, as_part, seed_key
from dmsgd.kernels.contract import Kernel, as_kernel, pivoted_factor, recorded
from dmsgd.kernels.pivoted_cholesky import PartialCholesky, factor, low_rank_spectrum
from dmsgd.polynomials import ratios
from dmsgd.runtime.progress import announce, run_interruptible
from dmsgd.spectra.decompose import eigenvalues, like
from dmsgd.spectra.eigenpairs import Spectrum, truncate
from dmsgd.spectra.rounding import Rounding, lost_by_factor

#: Pivots are chosen among this many items, or four per pivot if that is more.
SAMPLE = 20_000
#: Up to this many items, the factor that chooses growing landmarks is that of all of them. Of more,
#: it is that of a sample, and of HELD others, which tell what is left of the rest.
WHOLE, HELD = 100_000, 10_000
#: Passes of k-means over all items, and over three items per cluster before it begins, about.
PASSES, STARTS = 5, 9


def nystrom(kernel: Kernel, landmarks: Any, how: str = "uniform", seed: Seed = 0) -> Spectrum:
    """Return an approximate spectrum of a kernel L: that of L̂ = C W⁺ Cᵀ (Affandi et al. 2013).

    landmarks: The number of landmark items, or the items themselves. C holds their columns of L,
               and W their block.
    how:       How a number of landmarks is chosen: "uniform" takes them at random, "pivots" from a
               randomly pivoted Cholesky of 20,000 items, which finds rare groups too, and "kmeans"
               takes the items nearest to k-means centres.

    It takes n m kernel entries and O(n m²) operations for m landmarks. Draws are exact for L̂ <= L,
    and `trace_error` is the share of the trace of L that L̂ leaves out. For an RBF kernel over
    features in blocks, C is computed block by block and never stored. Raises ValueError if there
    are more landmarks than items. See also `pivoted_cholesky`, `exact`.

    >>> import dmsgd
    >>> nystrom(dmsgd.kernels.RBF([[0.0], [1.0], [2.0]], scale=2.0), [0, 2])
    Spectrum(RBF(3 items, scale=2), rank 2, route='Nyström, 2 landmarks (given)', trace error 1.02%)
    """
    as_kernel(kernel, "nystrom")
    as_choice(how, "how", ("pivots", "uniform", "kmeans"))
    key = seed_key(seed)
    if isinstance(landmarks, numbers.Integral):
        count = as_part(landmarks, "landmarks", kernel.n)
        items = np.unique(_choose_landmarks(kernel, count, how, key))
        method = f"nystrom({landmarks}, {how}, seed={key})"
    else:
        items, how = np.unique(as_items(landmarks, kernel.n, "landmarks", ndim=1)), "given"
        if items.size == 0:
            raise ValueError("landmarks is empty; give at least one item")
        method = f"nystrom({digest(items)})"
    return landmark_spectrum(kernel, items, how, method)


def landmark_spectrum(
    kernel: Kernel, items: IntArray, how: str, method: str, F: Features | None = None
) -> Spectrum:
    """Return the spectrum for these landmarks, from features F with F Fᵀ = L̂ if there are some."""
    if F is None:
        L = _landmark_block(kernel, items)
        order, T = pivoted_factor(L, lost_by_factor(len(L), float(L.diagonal().max())))
        rank = T.shape[1]
        F = kernel.landmark_features(items[order[:rank]], T[:rank])
    route = f"Nyström, {items.size} landmarks ({how})"
    return low_rank_spectrum(kernel, F, route, method)


@final
class GrowingLandmarks:
    """The pivots of a randomly pivoted Cholesky factor that grows: no landmark is chosen again.

    least: landmarks that are added whatever the error is.
    usual: landmarks that are added without asking whether more can be enough.
    most:  landmarks that are never exceeded.
    count: landmarks that are used.
    """

    def __init__(self, kernel: Kernel, least: int, usual: int, most: int) -> None:
        self.kernel, self.least, self.most = kernel, least, most
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
        """Return what `count` landmarks would leave out if it goes on falling at the same power."""
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
        method = f"landmarks({self.count} of {self.items.size})"
        return landmark_spectrum(self.kernel, self.items[pivots], "pivots", method, factor)


def coreset(kernel: Kernel, cores: int = 100, seed: Seed = 0) -> Spectrum:
    """Return an approximate spectrum of a kernel, in which one core item replaces each cluster.

    It is that of L̂ = Z L_core Zᵀ, where row i of Z picks the core of item i: the item nearest to
    its k-means centre (Li et al. 2015). It comes from a matrix of size `cores`, which is also the
    largest possible rank: items of one cluster never share a batch. Its `trace_error` is
    Σ_i |φ_i - φ_core(i)|² / trace(L), by how far items are moved in feature space.
    Raises TypeError for a kernel without features. See also `nystrom`.

    >>> import dmsgd
    >>> coreset(dmsgd.kernels.RBF(np.repeat([[0.0], [1.0], [3.0]], 5, axis=0)), cores=3).rank
    3
    """
    count, key = as_part(cores, "cores", as_kernel(kernel, "coreset").n), seed_key(seed)
    code, core = _cluster(kernel, count, key)
    sizes = np.bincount(code)
    L = _landmark_block(kernel, core)
    values, vectors = linalg.eigh(np.sqrt(np.outer(sizes, sizes)) * L, check_finite=False)
    V = (vectors / np.sqrt(sizes)[:, None])[code]
    to_core, diagonal = np.empty(kernel.n), kernel.diag()  # L[i, core(i)], by clusters
    for c, item in enumerate(core):
        members = np.flatnonzero(code == c)
        to_core[members] = kernel.block(members, [item])[:, 0]
    moved = np.maximum(diagonal - 2 * to_core + L.diagonal()[code], 0.0)
    spectrum = truncate(values, V, f"coreset, {core.size} cores", Rounding(1.0, core.size))
    method, error = f"coreset(cores={count}, seed={key})", float(moved.sum() / diagonal.sum())
    return recorded(spectrum, kernel, method, trace_error=error)


def _choose_landmarks(kernel: Kernel, count: int, how: str, key: int) -> IntArray:
    rng = np.random.default_rng(key)
    if how == "uniform":
        return rng.choice(kernel.n, count, replace=False)
    if how == "kmeans":
        return _cluster(kernel, count, key)[1]
    items = random_rows(kernel.n, max(SAMPLE, 4 * count), rng)
    return items[factor(kernel.subset(items), count, 0.0, int(rng.integers(2**63)))[1]]


def _landmark_block(kernel: Kernel, items: IntArray) -> FloatArray:
    """Return L at the landmarks, which must not all be zero."""
    L = kernel.block(items, items)
    if not L.diagonal().any():
        raise ValueError(
            f"all features of the {counted(items.size, 'item')} that stand for the others are zero "
            f"(the first is item {items[0]}); choose more items, or other ones"
        )
    return L


def _cluster(kernel: Kernel, count: int, key: int) -> tuple[IntArray, IntArray]:
    """Return (cluster of each item, item nearest to each centre) of k-means on the features."""
    points = kernel.features
    if points is None:
        raise TypeError(
            f"k-means needs a kernel with features, {type(kernel).__name__} has none; "
            f"choose landmarks uniformly or give them"
        )
    means = k_means(points, count, key)
    from sklearn.metrics import pairwise_distances_argmin

    used, code = np.unique(means.labels_, return_inverse=True)
    nearest = pairwise_distances_argmin(means.cluster_centers_[used], points.to_memory().matrix)
    return code.astype(np.int64), nearest.astype(np.int64)


def k_means(X: Features, count: int, key: int) -> Any:
    """Return scikit-learn's k-means of all rows, in mini-batches, with `labels_` and centres."""
    require("sklearn", "k-means")
    from sklearn.cluster import MiniBatchKMeans

    products = (PASSES * X.n + STARTS * count * np.log2(2 * count)) * float(count * X.d)
    what = f"k-means of {X.n:,} items x {X.d:,} features in {count:,} clusters"
    announce(products, X.n * X.d + 3 * count * X.d, what, "fewer clusters take less")
    state = np.random.RandomState(key % 2**32)
    means = MiniBatchKMeans(n_clusters=count, random_state=state, n_init=3)
    rows = X.to_memory().matrix
    return run_interruptible(lambda: means.fit(rows), products, what)
