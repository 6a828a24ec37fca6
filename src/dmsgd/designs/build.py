"""From features to a design in one call: `diversify`, and `make_design` for `DesignOptions`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from dmsgd.designs.design import Design
from dmsgd.designs.kdpp import KDPP
from dmsgd.designs.options import DesignOptions, KernelName, SpectrumName, TargetName
from dmsgd.designs.partition import Partition
from dmsgd.designs.stratified import Stratified, Uniform
from dmsgd.designs.weighted import Weighted
from dmsgd.errors import warn_kernel
from dmsgd.features import Features, as_features
from dmsgd.features.convert import split_label_column
from dmsgd.features.maps import column_moments, concat_labels, standardize_map
from dmsgd.features.row_maps import Anneal, Normalize
from dmsgd.inputs.arrays import FloatArray
from dmsgd.inputs.fingerprint import digest
from dmsgd.inputs.labels import as_labels
from dmsgd.inputs.scalars import as_batch_size
from dmsgd.kernels import RBF, Kernel, Linear, exact, nystrom, pivoted_cholesky
from dmsgd.spectra import Spectrum
from dmsgd.spectra.spectrum import changed
from dmsgd.targets import named_target, prescribe
from dmsgd.targets.prescribe import scale_to_target

#: Up to this many items the spectrum of an RBF kernel is exact by default; default rank of an
#: approximate one (or 10 k if that is more).
EXACT_ITEMS, FACTOR_RANK = 5000, 1500
#: An approximation within this total variation of the exact distribution does not warn.
AS_GOOD_AS_EXACT = 1e-6
#: A repulsion below this leaves a k-DPP within 5 % (total variation) of uniform batches.
NEARLY_UNIFORM = 0.05
#: A column with this share of the kernel's trace is nearly all of it, labels with less than that
#: share hardly count, and rows of this mean square are long.
WHOLE, SWAMPED, LONG = 0.95, 0.002, 100.0


class Array(Protocol):
    """What NumPy can read: an array, a column of a frame, a tensor; text is none."""

    def __array__(self) -> Any: ...


def diversify(
    X: Any,
    k: int,
    labels: Any = None,
    w: float = 0.0,
    kernel: KernelName = "linear",
    *,
    rho: float | None = None,
    standardize: bool = False,
    normalize: bool = False,
    scale: float | None = None,
    target: TargetName | Sequence[float] | Array | None = None,
    spectrum: SpectrumName = "auto",
    rank: int | None = None,
) -> KDPP:
    """Return the k-DPP whose batches are diverse in the features X and, with weight w, the labels.

    X:         (n, d) features: array, CSR, frame, memory map or torch tensor; the path of an .npz,
               .csv or .tsv file; or, to be read in blocks, a path (.npy, .zarr, .parquet, a folder
               of sparse .npz), a Zarr array, a Dask array or frame, a list of delayed CSR.
    labels, w: (n,) classes, or the name of a column of a frame, .csv, .tsv or .parquet file, which
               is then no feature; mixed in as F = [(1-w)X, wH]. w = 0 ignores them (with a warning
               unless the target uses them), w = 1 ignores the features.
    kernel:    "linear" (L = F Fᵀ) or "rbf" (on F, with `scale` or the median heuristic). A kernel
               of your own goes to `KDPP(kernel, k)`.
    rho:       raise features to this power first; the paper takes 0.1 for word counts.
    standardize: then scale the columns of X to mean 0 and standard deviation 1: for columns in
               different units, where those with the largest numbers would decide alone.
    normalize: then scale the rows of X to length 1: for embeddings, counts and images. A linear
               kernel draws long rows more often, and w needs X and labels of similar size.
    target:    inclusion probabilities, if not those of the kernel: "uniform" (plain averages over
               batches are unbiased), "balanced" (every class has the same share), "density" (more
               where items are sparse: `dmsgd.targets.density`), or one number per item, scaled to
               sum to k. The design is the closest k-DPP with them (`dmsgd.targets.prescribe`).
    spectrum:  "exact"; "nystrom" or "pivoted_cholesky", approximations of rank `rank`, by default
               max(1500, 10 k); "auto" is exact, except for "rbf" with more than 5,000 items, where
               it is "nystrom" and a warning states its error.

    Set-up is O(n d min(n, d)) for a linear kernel, with 8 n r bytes of eigenvectors of rank r and
    up to three times as much on the way; a batch costs about 3k³ operations, whatever n is.

    >>> import numpy as np
    >>> design = diversify(np.random.default_rng(0).normal(size=(500, 20)), k=10)
    >>> design.sample(3, seed=0).shape
    (3, 10)
    """
    named = target if isinstance(target, str) else None
    options = DesignOptions(
        "k-DPP", w, rho, kernel, standardize, normalize, scale, named, spectrum, rank
    )
    X, labels = split_label_column(X, labels)
    F = as_features(X)
    if labels is not None and not options.uses_labels:
        as_labels(labels, F.n)
        warn_kernel("labels are given, but w=0 ignores them", w=0.7, target="balanced")
        labels = None
    return _k_dpp(options, F, k, labels, target)


def make_design(options: DesignOptions, X: Any, k: int, labels: Any = None) -> Design:
    """Return the design that `options` describe; labels that it does not use are ignored.

    X may be None for "uniform" and "stratified" batches, if there are labels.
    """
    if options.batches not in ("stratified", "uniform"):
        design = make_kdpp(options, X, k, labels)
        if options.batches == "weighted":
            return Weighted.like(design)
        return Partition(design) if options.batches == "partition" else design
    X, labels = split_label_column(X, labels)
    n = X.shape[0] if hasattr(X, "shape") else None if X is None else as_features(X).n
    if options.batches == "stratified":
        return Stratified(as_labels(labels, n), k)
    return Uniform(len(as_labels(labels)) if n is None else n, k)


def make_kdpp(options: DesignOptions, X: Any, k: int, labels: Any = None) -> KDPP:
    """Return the k-DPP of these options, whatever their `batches`; unused labels are ignored."""
    X, labels = split_label_column(X, labels)
    used = labels if options.w > 0 or options.target == "balanced" else None
    return _k_dpp(options, as_features(X), k, used, options.target)


def remake(design: Any, X: Any) -> KDPP:
    """Return the k-DPP that `diversify` makes from X with the options and labels of `design`."""
    if not isinstance(design, KDPP) or design.options is None:
        raise TypeError("this design was not made by dmsgd.diversify; pass a design, not features")
    return _k_dpp(design.options, as_features(X), design.k, design._labels, design._target)


def rows_for(options: DesignOptions, F: Features) -> Features:
    """Return the features with `rho`, `standardize` and `normalize` applied, without labels."""
    if options.rho is not None:
        F = F.mapped(Anneal(options.rho))
    if options.standardize:
        F = F.mapped(standardize_map(F))
    return F.mapped(Normalize()) if options.normalize else F


def _k_dpp(options: DesignOptions, F: Features, k: int, labels: Any, target: Any) -> KDPP:
    """Return the k-DPP of features; `target` is a name, one number per item, or None."""
    w = options.w
    if w > 0 and labels is None:
        raise ValueError(f"w={w} mixes in labels, but labels is None; pass labels= or w=0")
    labels = None if labels is None else as_labels(labels, F.n)
    rows = rows_for(options, F)
    F = concat_labels(rows, labels, w) if w > 0 else rows
    kernel = RBF(F, options.scale) if options.kernel == "rbf" else Linear(F)
    k = as_batch_size(k, kernel.n)
    by_size = options.kernel == "linear" or kernel.n <= EXACT_ITEMS
    is_exact = options.spectrum == "exact" or (options.spectrum == "auto" and by_size)
    origin: Kernel | Spectrum = kernel
    if target is None or not is_exact:
        rank = options.rank or min(max(FACTOR_RANK, 10 * k), kernel.n)
        if is_exact:
            origin = exact(kernel)
        elif options.spectrum == "pivoted_cholesky":
            origin = pivoted_cholesky(kernel, rank)
        else:
            origin = nystrom(kernel, rank, how="pivots")
        if options.spectrum == "auto" and isinstance(kernel, RBF):
            _warn_unsuitable_scale(kernel.scale, origin, k)
    design = KDPP(origin if target is None else _prescribed(origin, k, target, F, labels), k)
    if target is None and options.kernel == "linear":
        _warn_dominating_part(rows, w, design.spectrum.values)
    design.options, design._labels, design._target = options, labels, target
    return design


def _prescribed(origin: Kernel | Spectrum, k: int, target: Any, X: Any, labels: Any) -> Spectrum:
    """Return the spectrum of the tilted kernel; one made from a factor keeps the factor's error."""
    named = isinstance(target, str)
    b = named_target(target, X, labels, origin.n, k) if named else target
    if named and target == "density":  # hashed by what it is a function of
        kernel = scale_to_target(origin, k, b, digest(target, X.fingerprint()))
    else:
        kernel = prescribe(origin, k, b)
    return changed(exact(kernel), trace_error=getattr(origin, "trace_error", 0.0))


def _warn_unsuitable_scale(scale: float, spectrum: Spectrum, k: int) -> None:
    """Warn of an RBF kernel that is too wide or narrow, or approximated with too large an error."""
    if spectrum.rank < k:
        problem = f"all items look alike: rank {spectrum.rank} for k={k}; choose a smaller scale"
    elif spectrum.total_variation_bound(k) > AS_GOOD_AS_EXACT:
        problem = (
            f"an approximation of rank {spectrum.rank} that leaves out {spectrum.trace_error:.2%} "
            f"of the trace stands for the kernel of {spectrum.n:,} items: the distribution of "
            f"batches is off by up to {spectrum.total_variation_bound(k):.1g} (total variation). "
            f"Pass spectrum='exact', or spectrum='nystrom' with a larger rank, or a larger scale"
        )
    elif k > 1 and spectrum.repulsion(k) < NEARLY_UNIFORM:
        problem = "no two items look alike, so batches are nearly uniform; choose a larger scale"
    else:
        return
    advice = "(dmsgd.designs.suggest_scale(X, k) finds one)"
    warn_kernel(f"at the RBF scale {scale:.3g} {problem} {advice}")


def _warn_dominating_part(X: Features, w: float, values: FloatArray) -> None:
    """Warn if rows that are long, or one column, carry nearly the whole kernel of [(1-w)X, wH].

    values: the kernel's eigenvalues. The largest is at least the share of any column, so X is read
    again only if one may dominate.
    """
    if w == 1:
        return
    trace = float(values.sum())
    share = w * w * X.n / trace
    length = (trace / X.n - w * w) / (1 - w) ** 2
    if w > 0 and share < SWAMPED and length > LONG:
        warn_kernel(
            f"labels are {share:.1g} of the kernel at w={w:g} and hardly count, because the rows "
            f"of X are long (mean square {length:.3g}): scale them to length 1, or use a larger w",
            normalize=True,
        )
    elif X.d > 1 and values.max() >= WHOLE * trace:
        origin, means, deviations = column_moments(X)
        squares = (origin + means) ** 2 + deviations**2
        widest = int(np.argmax(squares))
        if squares[widest] >= WHOLE * squares.sum():
            warn_kernel(
                f"column {widest} of X (from 0) is {squares[widest] / squares.sum():.2%} of the "
                f"kernel, so batches are diverse in little else: drop it if it is no feature, or "
                f"standardize if columns are in different units",
                standardize=True,
            )
