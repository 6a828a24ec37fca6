"""Facts about the data that no design changes: classes, near-duplicates, columns, dimension."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, final

import numpy as np
from scipy import sparse

from dmsgd.features import Features, as_features
from dmsgd.features.maps import column_moments, standardize_map
from dmsgd.features.products import gram, product
from dmsgd.inputs.arrays import TINY, FloatArray, IntArray, as_array, check_nonzero, random_rows
from dmsgd.inputs.fingerprint import row_hashes
from dmsgd.inputs.scalars import Seed, seed_key
from dmsgd.selection.duplicates import Metric, NearDuplicates, duplicates_among
from dmsgd.spectra.eigenpairs import entropy

#: Columns are in different units where the largest standard deviation is this many medians.
UNITS = 10.0
#: Cosines mean little where the mean row has this share of the mean square, or with few columns.
SAME_WAY, FEW = 0.9, 8
#: Near-duplicates are at least this similar. They are searched for among this many items at most,
#: which takes up to half a minute on two cores.
NEAR, SEARCHED = 0.995, 200_000
#: At most this many items are examined, or as many as hold this many numbers.
ITEMS, NUMBERS = 100_000, 2**24
#: Limits of a covariance matrix: multiplications, and rows or columns.
PRODUCTS, SIDE = 1e10, 2000


@final
@dataclass(frozen=True, eq=False)
class DataFacts:
    """Facts about the data that no design changes."""

    n: int  # items
    d: int  # columns
    rows: IntArray = field(repr=False)  # items that the facts are of, sorted: all, or a sample
    classes: dict[Any, int] = field(repr=False)  # number of items by class, {} without labels
    evenness: float  # exp(entropy of the classes) over their number, 1 if all have as many items
    deviations: FloatArray = field(repr=False)  # (d,) standard deviations of columns
    constant: int  # columns that do not vary
    column_ratio: float  # the largest deviation over the median of columns that vary
    different_units: bool  # columns look as if they were in different units; word counts never do
    norm_ratio: float  # squared row norms of the longest tenth over those of the shortest
    equal: int  # items that are equal to another one
    empty: int  # items whose features are all zero
    standardized: bool  # duplicates and dimension are of standardized columns, as units differ
    duplicates: NearDuplicates  # of `rows`
    variances: FloatArray = field(repr=False)  # along principal directions, largest first
    measured: int  # items that the variances are of
    dimension: float  # the effective dimension: exp(entropy) of the variances

    def directions(self, share: float = 0.9) -> int:
        """Return how many principal directions hold this share of the variance."""
        sums = np.cumsum(self.variances)
        return int(np.searchsorted(sums, share * sums[-1]) + 1) if self.dimension else 0

    def missed(self, k: int) -> dict[Any, float]:
        """Return the share of shuffled batches of k that hold no item of a class, by class."""
        left = self.n - np.arange(k)  # items to draw from, before each draw of a batch
        sizes = self.classes.items()
        return {each: float(np.prod(np.maximum(1 - size / left, 0.0))) for each, size in sizes}


def find_facts(X: Features, labels: Any, standardize: bool, seed: Seed) -> DataFacts:
    """Return facts about X, of all items where they are in memory and not too many.

    standardize: near-duplicates and dimension are those of standardized columns in any case.
    """
    rng = np.random.default_rng(seed_key(seed))
    rows = random_rows(X.n, X.readable_rows(max(ITEMS, NUMBERS // X.d)), rng)
    F = take_rows(X, rows)
    squares = np.sort(F.row_norms2())
    check_nonzero(bool(squares[-1] > 0))
    tenth = max(F.n // 10, 1)
    with np.errstate(over="ignore"):
        norm_ratio = squares[-tenth:].mean() / squares[squares > 0][:tenth].mean()
    origin, means, deviations = column_moments(F)
    names, counts = np.unique([] if labels is None else labels, return_counts=True)
    classes = dict(zip(names.tolist(), counts.tolist(), strict=True))
    evenness = float(np.exp(entropy(counts.astype(np.float64)))) / names.size if classes else 1.0
    varying = deviations[deviations > 0]
    has_counts = F.sparse_rows and bool((F.matrix.data >= 0).all())  # as those of words
    ratio = float(varying.max() / np.median(varying)) if varying.size else 1.0
    units = ratio > UNITS and not has_counts
    # Of tiny deviations too few digits are known.
    apart = bool((standardize or units) and (varying >= TINY).all())
    U = F.mapped(standardize_map(F)) if apart else F
    scale = float(max(np.abs(origin + means).max(), deviations.max()))  # squares may overflow
    centre, spread = (origin + means) / scale, deviations / scale
    share = centre @ centre / (centre @ centre + spread @ spread)
    cosines = F.d >= FEW and not apart and (has_counts or share < SAME_WAY)
    metric: Metric = "cosine" if cosines else "euclidean"
    near = duplicates_among(U, NEAR, metric, SEARCHED)
    hashes = np.concatenate([row_hashes(each) for each in F.blocks()])
    variances, measured = _variances(U, rng)
    return DataFacts(
        X.n, X.d, rows, classes, evenness,
        deviations, deviations.size - varying.size, ratio, units, float(norm_ratio),
        F.n - np.unique(hashes).size, int(np.sum(squares == 0)), apart, near,
        variances, measured, float(np.exp(entropy(variances))) if variances.any() else 0.0,
    )  # fmt: skip


def _variances(F: Features, rng: np.random.Generator) -> tuple[FloatArray, int]:
    """Return the variances along principal directions, largest first, and of how many items."""
    most = SIDE if F.d > SIDE else max(SIDE, int(PRODUCTS / F.d**2))
    rows = F.take(random_rows(F.n, most, rng))
    n, values = rows.shape[0], rows.data if sparse.issparse(rows) else rows
    rows = rows / (float(np.abs(values).max(initial=0.0)) or 1.0)
    if not sparse.issparse(rows):
        rows = (rows - rows.mean(0)).astype(np.float32)
    if F.d > SIDE:
        products = product(rows, rows.T).astype(np.float64)
        products -= products.mean(0)
        products -= products.mean(1)[:, None]
    else:
        mean = np.asarray(rows.mean(0), dtype=np.float64).ravel()
        products = as_array(gram(rows)).astype(np.float64) - n * np.outer(mean, mean)
    found = np.linalg.eigvalsh(products)[::-1] / n
    return np.where(found > 1e-7 * found[0], found, 0.0), n


def take_rows(X: Features, rows: IntArray) -> Features:
    """Return these rows of X in memory."""
    if rows.size == X.n:
        return X.to_memory()
    return as_features(X.take(rows), allow_tiny=True).to_memory()
