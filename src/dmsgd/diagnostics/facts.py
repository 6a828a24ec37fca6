"""Facts about the data that no design changes: classes, near-duplicates, columns, dimension."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np
from scipy import sparse

from dmsgd.diagnostics.frequency import evenness
from dmsgd.errors import KernelWarning
from dmsgd.features import Features, as_features
from dmsgd.features.maps import column_moments, standardize_map
from dmsgd.features.products import gram, product
from dmsgd.inputs.arrays import TINY, FloatArray, IntArray, as_array, check_nonzero, random_rows
from dmsgd.inputs.fingerprint import row_hashes
from dmsgd.inputs.scalars import Seed, seed_key
from dmsgd.selection.duplicates import Metric, NearDuplicates, near_duplicates
from dmsgd.spectra.eigenpairs import entropy

#: Columns are in different units where the largest standard deviation is this many medians.
UNITS = 10.0
#: Cosines mean little where the mean row has this share of the mean square, or with few columns.
SAME_WAY, FEW = 0.9, 8
#: Near-duplicates are at least this similar, and are searched for at most so many minutes.
NEAR, MINUTES = 0.995, 0.5
#: Items that are looked at: all, or so many, or as many as have so many numbers.
ITEMS, NUMBERS = 100_000, 2**24
#: Multiplications for a covariance, and its rows and columns, at most.
PRODUCTS, SIDE = 1e10, 2000


@final
@dataclass(frozen=True, eq=False)
class DataFacts:
    """Facts about the data that no design changes.

    n, d:         items and columns.
    rows:         numbers of the items that the facts are of, sorted: all, or a random sample.
    classes:      number of items by class, {} without labels.
    deviations:   (d,) standard deviations of columns; column_ratio: the largest one over the median
                  of those that vary.
    norm_ratio:   squared row norms of the longest tenth over those of the shortest.
    equal:        items that are equal to another one.
    empty:        items whose features are all zero.
    has_counts:   whether the features look like counts of words: sparse and not negative.
    standardized: whether near-duplicates and dimension are those of standardized columns, as they
                  are where columns are in different units.
    duplicates:   the `near_duplicates` of `rows`.
    variances:    along principal directions, largest first; of `measured` items.
    """

    n: int
    d: int
    rows: IntArray = field(repr=False)
    classes: dict[Any, int] = field(repr=False)
    deviations: FloatArray = field(repr=False)
    column_ratio: float
    norm_ratio: float
    equal: int
    empty: int
    has_counts: bool
    standardized: bool
    duplicates: NearDuplicates
    variances: FloatArray = field(repr=False)
    measured: int

    @property
    def evenness(self) -> float:
        """exp(entropy of the classes) over their number, 1 if all have as many items."""
        return evenness(self.classes) if self.classes else 1.0

    @property
    def different_units(self) -> bool:
        """Whether columns look as if they were in different units; word counts never do."""
        return self.column_ratio > UNITS and not self.has_counts

    @property
    def constant(self) -> int:
        """How many columns do not vary."""
        return int(np.sum(self.deviations == 0))

    @property
    def dimension(self) -> float:
        """The effective dimension: exp(entropy) of the variances along principal directions."""
        return float(np.exp(entropy(self.variances))) if self.variances.any() else 0.0

    def directions(self, share: float = 0.9) -> int:
        """Return how many principal directions hold this share of the variance."""
        sums = np.cumsum(self.variances)
        return int(np.searchsorted(sums, share * sums[-1]) + 1) if self.dimension else 0


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
    has_counts, tiny = X.has_counts(), (deviations > 0) & (deviations < TINY)
    varying = deviations[deviations > 0]
    ratio = float(varying.max() / np.median(varying)) if varying.size else 1.0
    units = standardize or (ratio > UNITS and not has_counts)
    apart = bool(units and not tiny.any())  # of tiny deviations too few digits are known
    U = F.mapped(standardize_map(F)) if apart else F
    scale = float(max(np.abs(origin + means).max(), deviations.max()))  # squares may overflow
    centre, spread = (origin + means) / scale, deviations / scale
    share = centre @ centre / (centre @ centre + spread @ spread)
    cosines = F.d >= FEW and not apart and (has_counts or share < SAME_WAY)
    metric: Metric = "cosine" if cosines else "euclidean"
    with warnings.catch_warnings():  # `searched` tells the same
        warnings.simplefilter("ignore", KernelWarning)
        near = near_duplicates(U, NEAR, metric=metric, minutes=MINUTES)
    hashes = np.concatenate([row_hashes(each) for each in F.blocks()])
    equal = F.n - np.unique(hashes).size
    variances, measured = _variances(U, rng)
    return DataFacts(
        X.n, X.d, rows, dict(zip(names.tolist(), counts.tolist(), strict=True)), deviations,
        ratio, float(norm_ratio), equal, int(np.sum(squares == 0)), has_counts, apart, near,
        variances, measured,
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
