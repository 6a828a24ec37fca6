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
from dmsgd.errors import InputError, KernelWarning, warn_kernel
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

#: Up to this many items the spectrum of an RBF kernel is exact by default.
EXACT_ITEMS = 5000
#: Default rank of an approximate spectrum (or 10 k if that is more).
FACTOR_RANK = 1500
#: An approximation within this total variation of the exact distribution does not warn.
AS_GOOD_AS_EXACT = 1e-6
#: A repulsion below this leaves a k-DPP within 5 % (total variation) of uniform batches.
NEARLY_UNIFORM = 0.05
#: A column with this share of the kernel's trace is nearly all of it.
WHOLE = 0.95
#: Labels with less than this share of the trace hardly count; rows of this mean square are long.
SWAMPED, LONG = 0.002, 100.0


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

    X:         (n, d) features: array, CSR, frame, memory map or torch tensor; or, to be read in
               blocks, a path (.npy, .zarr, .parquet, a folder of sparse .npz), a Zarr array, a Dask
               array or frame, a list of delayed CSR; or the path of an .npz, .csv or .tsv file.
    labels, w: (n,) classes, or the name of a column of a frame, .csv, .tsv or .parquet file, which
               is then no feature; mixed in as F = [(1-w)X, wH]. w = 0 ignores them (with a warning
               unless the target uses them), w = 1 ignores the features.
    kernel:    "linear" (L = F Fᵀ) or "rbf" (on F, with `scale` or the median heuristic). A kernel
               of your own goes to `KDPP(kernel, k)`.
    rho:       raise features to this power first; the paper takes 0.1 for word counts.
    standardize: scale the columns of X to mean 0 and standard deviation 1 then: for columns in
               different units, where those with the largest numbers would decide alone.
    normalize: scale the rows of X to length 1 then. A linear kernel draws long rows more often,
               and w needs X and labels of similar size: say yes for embeddings, counts and images,
               no when length is importance.
    target:    inclusion probabilities, if not those of the kernel: "uniform" (plain averages over
               batches are unbiased), "balanced" (every class has the same share), "density" (more
               where items are sparse: `dmsgd.targets.density`), or one number per item, scaled to
               sum to k. The design is the closest k-DPP with them (`dmsgd.targets.prescribe`).
    spectrum:  "exact"; "nystrom" or "pivoted_cholesky", approximations of rank `rank`, by default
               max(1500, 10 k); "auto" is exact, except for "rbf" with more than 5,000 items, where
               it is "nystrom" and a warning states its error. Other factorisations of a kernel
               go to `KDPP(spectrum, k)`.

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
    return _k_dpp(options, F, k, labels, named or target)


def make_design(options: DesignOptions, X: Any, k: int, labels: Any = None) -> Design:
    """Return the design that `options` describe; labels that it does not use are ignored.

    X may be None for "uniform" and "stratified" batches, if there are labels.
    """
    X, labels = split_label_column(X, labels)
    if options.batches in ("stratified", "uniform"):
        n = X.shape[0] if hasattr(X, "shape") else None if X is None else as_features(X).n
        if options.batches == "stratified":
            return Stratified(as_labels(labels, n), k)
        return Uniform(len(as_labels(labels)) if n is None else n, k)
    design = make_kdpp(options, X, k, labels)
    if options.batches == "weighted":
        return Weighted.like(design)
    return Partition(design) if options.batches == "partition" else design


def make_kdpp(options: DesignOptions, X: Any, k: int, labels: Any = None) -> KDPP:
    """Return the k-DPP of these options, whatever their `batches`; unused labels are ignored."""
    X, labels = split_label_column(X, labels)
    used = labels if options.w > 0 or options.target == "balanced" else None
    return _k_dpp(options, as_features(X), k, used, options.target)


def remake(design: Any, X: Any) -> KDPP:
    """Return the k-DPP that `diversify` makes from X with the options and labels of `design`."""
    if not isinstance(design, KDPP) or design.options is None:
        raise TypeError(
            "this design was not made by dmsgd.diversify, so it cannot be made again from new "
            "features; pass a design instead"
        )
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
    if options.scale is not None and options.kernel != "rbf":
        raise InputError("scale changes nothing in a linear kernel", kernel="rbf")
    labels = None if labels is None else as_labels(labels, F.n)
    rows = rows_for(options, F)
    F = concat_labels(rows, labels, w) if w > 0 else rows
    kernel = RBF(F, options.scale) if options.kernel == "rbf" else Linear(F)
    k = as_batch_size(k, kernel.n)
    if target is None:
        design = KDPP(_spectrum(options, kernel, k), k)
        if options.kernel == "linear":
            concern = _dominating_part(rows, w, design.spectrum.values)
            if concern:
                warn_kernel(concern)
    else:
        origin = kernel if _is_exact(options, kernel) else _spectrum(options, kernel, k)
        design = KDPP(_prescribed(origin, k, target, F, labels), k)
    design.options, design._labels, design._target = options, labels, target
    return design


def _is_exact(options: DesignOptions, kernel: Kernel) -> bool:
    by_size = options.kernel == "linear" or kernel.n <= EXACT_ITEMS
    return options.spectrum == "exact" or (options.spectrum == "auto" and by_size)


def _spectrum(options: DesignOptions, kernel: Linear | RBF, k: int) -> Spectrum:
    """Return the spectrum of the kernel, exact or approximate; warn of an unsuitable RBF scale."""
    rank = options.rank or min(max(FACTOR_RANK, 10 * k), kernel.n)
    if _is_exact(options, kernel):
        spectrum = exact(kernel)
    elif options.spectrum == "pivoted_cholesky":
        spectrum = pivoted_cholesky(kernel, rank)
    else:
        spectrum = nystrom(kernel, rank, how="pivots")
    if options.spectrum == "auto" and isinstance(kernel, RBF):
        concern = _concern(spectrum, k)
        if concern:
            at = f"at the RBF scale {kernel.scale:.3g} "
            warn_kernel(f"{at}{concern} (dmsgd.designs.suggest_scale(X, k) finds one)")
    return spectrum


def _prescribed(origin: Kernel | Spectrum, k: int, target: Any, X: Any, labels: Any) -> Spectrum:
    """Return the spectrum of the tilted kernel; one made from a factor keeps the factor's error."""
    if not isinstance(target, str):
        kernel = prescribe(origin, k, target)
    else:
        b = named_target(target, X, labels, origin.n, k)
        if target == "density":  # hashed by what it is a function of
            kernel = scale_to_target(origin, k, b, digest(target, X.fingerprint()))
        else:
            kernel = prescribe(origin, k, b)
    return changed(exact(kernel), trace_error=getattr(origin, "trace_error", 0.0))


def _concern(spectrum: Spectrum, k: int) -> str | None:
    """Return what is wrong with the scale of an RBF kernel, if anything."""
    if spectrum.rank < k:
        return f"all items look alike: rank {spectrum.rank} for k={k}; choose a smaller scale"
    if spectrum.total_variation_bound(k) > AS_GOOD_AS_EXACT:
        return (
            f"an approximation of rank {spectrum.rank} that leaves out {spectrum.trace_error:.2%} "
            f"of the trace stands for the kernel of {spectrum.n:,} items: the distribution of "
            f"batches is off by up to {spectrum.total_variation_bound(k):.1g} (total variation). "
            f"Pass spectrum='exact', or spectrum='nystrom' with a larger rank; a larger scale "
            f"makes it better"
        )
    if k > 1 and spectrum.repulsion(k) < NEARLY_UNIFORM:
        return "no two items look alike, so batches are nearly uniform; choose a larger scale"
    return None


def _dominating_part(X: Features, w: float, values: FloatArray) -> KernelWarning | None:
    """Return a warning about what carries nearly the whole kernel of [(1-w)X, wH], or None.

    values: the kernel's eigenvalues. The largest is at least the share of any column, so X is read
    again only if one may dominate.
    """
    if w == 1:
        return None
    trace = float(values.sum())
    share = w * w * X.n / trace
    length = (trace / X.n - w * w) / (1 - w) ** 2
    if w > 0 and share < SWAMPED and length > LONG:
        return KernelWarning(
            f"labels are {share:.1g} of the kernel at w={w:g} and hardly count, because the rows "
            f"of X are long (mean square {length:.3g}): scale them to length 1, or use a larger w",
            normalize=True,
        )
    if X.d == 1 or values.max() < WHOLE * trace:
        return None
    origin, means, deviations = column_moments(X)
    squares = (origin + means) ** 2 + deviations**2
    widest = int(np.argmax(squares))
    if squares[widest] < WHOLE * squares.sum():
        return None
    return KernelWarning(
        f"column {widest} of X (from 0) is {squares[widest] / squares.sum():.2%} of the kernel, so "
        f"batches are diverse in little else: drop it if it is no feature, such as an id, or "
        f"standardize if columns are in different units",
        standardize=True,
    )
