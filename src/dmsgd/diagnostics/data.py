"""Facts about the data, and the random sample of items that designs are compared on."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any, final

import numpy as np

from dmsgd.designs.build import make_kdpp, rows_for
from dmsgd.designs.kdpp import KDPP
from dmsgd.designs.options import DesignOptions, KernelName
from dmsgd.features import Features, as_features
from dmsgd.features.maps import column_moments
from dmsgd.inputs.arrays import IntArray, check_nonzero, random_rows
from dmsgd.inputs.fingerprint import row_hashes
from dmsgd.inputs.labels import as_classes
from dmsgd.inputs.scalars import Seed, seed_key
from dmsgd.inputs.threads import one_blas_thread
from dmsgd.kernels import Linear, exact
from dmsgd.spectra import Spectrum

#: Columns are in different units where the largest standard deviation is this many medians.
UNITS = 10.0
#: About as many floating point operations are spent on one eigendecomposition.
OPERATIONS = 2.5e10
#: Up to this many are made with one BLAS thread: more would spin between short products.
ONE_THREAD = 1e10
#: Sizes of samples to choose from; of data that is not in memory no more rows than the first.
SAMPLES = (100_000, 50_000, 20_000, 10_000, 5000, 3000, 2000, 1500)
#: Sample size where there are more classes than this: tied eigenvalues cost more than others.
MANY_CLASSES = 1000
#: Items among which target="density" finds neighbours: it compares all pairs.
NEIGHBOURS = 10_000
#: Items that a target is prescribed for with an RBF kernel: each iteration decomposes the kernel.
PRESCRIBED = 500


@final
@dataclass(frozen=True)
class DataSummary:
    """Facts about the data that no design changes.

    counted:            items that the facts below are of; n, or fewer where X is not in memory.
    classes:            number of items by class, {} without labels.
    norm_ratio:         squared row norms of the longest tenth over those of the shortest.
    column_scale_ratio: largest standard deviation of a column over the median of those that vary.
    duplicates:         items that are equal to another one.
    empty:              items whose features are all zero.
    has_counts:         whether the features look like counts of words: sparse and not negative.
    """

    n: int
    d: int
    counted: int
    classes: dict[Any, int] = field(repr=False)
    norm_ratio: float
    column_scale_ratio: float
    duplicates: int
    empty: int
    has_counts: bool

    @property
    def different_units(self) -> bool:
        """Whether columns look as if they were in different units; word counts never do."""
        return self.column_scale_ratio > UNITS and not self.has_counts


def summarize(X: Features, n: int, labels: Any, has_counts: bool) -> DataSummary:
    """Return facts about X, which are all or some of n items."""
    squares = np.sort(X.row_norms2())
    tenth = max(X.n // 10, 1)
    check_nonzero(bool(squares[-1] > 0))
    with np.errstate(over="ignore"):
        norm_ratio = squares[-tenth:].mean() / squares[squares > 0][:tenth].mean()
    *_, deviations = column_moments(X)
    varying = deviations[deviations > 0]
    names, counts = np.unique([] if labels is None else labels, return_counts=True)
    hashes = [row_hashes(rows) for rows in X.to_memory().blocks()]  # of a GPU's features too
    return DataSummary(
        n=n,
        d=int(X.d),
        counted=int(X.n),
        classes=dict(zip(names.tolist(), counts.tolist(), strict=True)),
        norm_ratio=float(norm_ratio),
        column_scale_ratio=float(varying.max() / np.median(varying)) if varying.size else 1.0,
        duplicates=int(X.n - np.unique(np.concatenate(hashes)).size),
        empty=int(np.sum(squares == 0)),
        has_counts=has_counts,
    )


@final
@dataclass(eq=False)
class Sample:
    """The items that designs are compared on, in memory.

    rows:    their numbers among all items, sorted.
    labels:  as given, or None; `names` and `codes` are the classes of these items.
    spectra: those that `unlabelled` has made.
    chosen:  what `auto_kernel` has found, by options and k.
    """

    rows: IntArray
    X: Features
    labels: Any
    names: list[Any]
    codes: IntArray | None
    spectra: dict[DesignOptions, Spectrum] = field(default_factory=dict)
    chosen: dict[tuple[DesignOptions, int], KernelName] = field(default_factory=dict)

    @classmethod
    def of(cls, X: Features, k: int, labels: Any, options: DesignOptions, seed: Seed) -> Sample:
        """Return the items to compare designs with these options on: all, or a random sample.

        Every class adds a direction to the kernel where w > 0, so that thousands of classes are as
        costly as thousands of columns.
        """
        mixed = labels is not None and (options.target is None or options.w > 0)
        classes = np.unique(labels).size if mixed else 0
        most = X.readable_rows(SAMPLES[0])
        rbf = options.kernel == "rbf" or not (options.kernel == "linear" or X.d >= k)
        if options.target is not None and rbf:
            most = min(most, max(PRESCRIBED, 5 * k))
        if options.target == "density":
            most = min(most, NEIGHBOURS)
        if classes > MANY_CLASSES:
            most = min(most, max(MANY_CLASSES, 5 * k))
        size = sample_size(X.n, X.n if rbf else X.d + classes, k, most)
        rows = random_rows(X.n, size, np.random.default_rng(seed_key(seed)))
        if labels is None:
            return cls(rows, take_rows(X, rows), None, [], None)
        names, codes = as_classes(labels[rows])
        return cls(rows, take_rows(X, rows), labels[rows], names.tolist(), codes)

    def kdpp(self, options: DesignOptions, k: int) -> KDPP:
        """Return the k-DPP of these items; messages name classes as given."""
        if options in self.spectra:
            return KDPP(self.spectra[options], k)
        with self._threads(options):
            return make_kdpp(options, self.X, k, self.labels)

    def auto_kernel(self, options: DesignOptions, k: int) -> KernelName:
        """Return the kernel that "auto" chooses for these items, without labels."""
        options = replace(options, w=0.0, target=None)
        if (options, k) not in self.chosen:
            with self._threads(options):
                design = make_kdpp(options, self.X, k)
            assert design.options is not None
            self.spectra[design.options] = design.spectrum
            self.chosen[options, k] = design.options.kernel
        return self.chosen[options, k]

    def unlabelled(self, options: DesignOptions, k: int) -> Spectrum:
        """Return the spectrum of the kernel without labels; a linear one's rank may be below k."""
        if options not in self.spectra:
            with self._threads(options):
                if options.kernel == "linear":
                    self.spectra[options] = exact(Linear(rows_for(options, self.X)))
                else:
                    self.spectra[options] = make_kdpp(options, self.X, k).spectrum
        return self.spectra[options]

    def _threads(self, options: DesignOptions) -> AbstractContextManager[None]:
        """Return what limits the BLAS threads of an eigendecomposition, if that is small."""
        directions = self.X.n if options.kernel == "rbf" else self.X.d + len(self.names)
        return one_blas_thread if operations(self.X.n, directions) <= ONE_THREAD else nullcontext()

    def part(self, most: int, seed: Seed) -> Sample:
        """Return a random part of the items, at most `most`, sorted."""
        if self.rows.size <= most:
            return self
        kept = random_rows(self.rows.size, most, np.random.default_rng(seed_key(seed)))
        labels = None if self.labels is None else self.labels[kept]
        codes = None if self.codes is None else self.codes[kept]
        return Sample(self.rows[kept], take_rows(self.X, kept), labels, self.names, codes)


def sample_size(n: int, directions: int, k: int, most: int) -> int:
    """Return how many of n items, at most `most`, are quick to decompose."""
    least = max(SAMPLES[-1], 5 * k)
    sizes = (size for size in (min(n, most), *SAMPLES) if size <= n)
    return next(s for s in sizes if s <= least or operations(s, directions) <= OPERATIONS)


def operations(n: int, directions: int) -> float:
    """Return about how many floating point operations one eigendecomposition takes."""
    small, large = sorted((n, directions))
    return float(small * small * large + 10 * small**3)


def take_rows(X: Features, rows: IntArray) -> Features:
    """Return these rows of X in memory."""
    if rows.size == X.n:
        return X.to_memory()
    return as_features(X.take(rows), allow_tiny=True).to_memory()


def commonest_and_rarest(sizes: Any, most: int) -> IntArray:
    """Return the numbers of the classes, the commonest first; of more than `most` the two ends."""
    order = np.argsort(-np.asarray(sizes, dtype=np.int64), kind="stable")
    return order if order.size <= most else np.append(order[: most // 2], order[-(most // 2) :])
