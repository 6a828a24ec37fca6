"""From features to a design in one call: `diversify`, and `make_design` for `DesignOptions`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from dmsgd.designs.chosen_spectrum import (
    eigenvalues_of,
    is_exact,
    prescribed_spectrum,
    spectrum_for,
    warn_unsuitable_scale,
)
from dmsgd.designs.contract import Design
from dmsgd.designs.greedy import greedy_set
from dmsgd.designs.kdpp import KDPP
from dmsgd.designs.options import DesignOptions, KernelName, QualityName, SpectrumName, TargetName
from dmsgd.designs.partition import Partition
from dmsgd.designs.scale import suggest_scale
from dmsgd.designs.stratified import Stratified, Uniform
from dmsgd.designs.weighted import Weighted
from dmsgd.errors import RankError, warn_kernel
from dmsgd.features import Features, as_features
from dmsgd.features.convert import split_label_column
from dmsgd.features.map_types import Anneal, Normalize
from dmsgd.features.maps import column_moments, concat_labels, standardize_map
from dmsgd.inputs.alignment import aligned
from dmsgd.inputs.arrays import FloatArray, as_quality
from dmsgd.inputs.labels import as_classes, as_labels
from dmsgd.inputs.messages import counted
from dmsgd.inputs.scalars import as_batch_size
from dmsgd.kernels import RBF, Kernel, Linear, exact
from dmsgd.kernels.mixed import Mixed
from dmsgd.kernels.precomputed import looks_like_kernel_matrix
from dmsgd.kernels.quality import Quality
from dmsgd.spectra import Spectrum
from dmsgd.spectra.rounding import WARN_ABOVE

#: A linear kernel with fewer directions than this times k leaves the batch no choice; eigenvalues
#: up to this share of the largest are no directions.
SPARE, NO_DIRECTION = 1.25, 1e-6
#: A fitted scale is halved at most so often.
HALVINGS = 20
#: A column with this share of the kernel's trace is nearly all of it.
WHOLE = 0.95


class Array(Protocol):
    """What NumPy can read: an array, a column of a frame, a tensor; text is none."""

    def __array__(self) -> Any: ...


def diversify(
    X: Any,
    k: int,
    labels: Any = None,
    w: float = 0.0,
    *,
    quality: QualityName | Sequence[float] | Array | None = None,
    diversity: float = 0.5,
    kernel: KernelName = "auto",
    rho: float | None = None,
    standardize: bool = False,
    normalize: bool | None = None,
    scale: float | None = None,
    target: TargetName | Sequence[float] | Array | None = None,
    spectrum: SpectrumName = "auto",
    rank: int | None = None,
) -> KDPP:
    """Return a k-DPP: batches of k items, diverse in X and, with weight w, in the labels.

    X:         (n, d) features: array, CSR, frame, memory map or torch tensor; the path of an .npz,
               .csv, .tsv or .jsonl file; or, to be read in blocks, a path (.npy, .zarr, .parquet,
               a folder of sparse .npz), a Zarr array, a Dask array or frame, a list of delayed CSR.
    k:         items per batch, at most n.
    labels, w: (n,) classes, or the name of a column of a frame or table (.csv, .tsv, .parquet,
               .jsonl), which is then not a feature; mixed in as F = [(1-w)X, wH], or for an RBF
               kernel S as (1-w)² S + w² H Hᵀ. w = 0 ignores them (with a warning unless the target
               uses them), w = 1 ignores the features. A pandas Series, as labels, quality or
               target, is matched with a frame by index.
    quality:   (n,) numbers >= 0, how much each item is worth: L_ij = q_i S_ij q_j for the kernel S,
               so better items are drawn more often. "length" takes the lengths of the rows, which
               makes the linear kernel that of the paper, L = X Xᵀ.
    diversity: weight of diversity against quality: 0.5 takes quality as it is, towards 0 only
               quality counts, and at 1 only diversity.
    kernel:    "linear" (L = F Fᵀ), "rbf" (exp(-distance² / (2 scale²)) of X), or "auto": linear
               where X has at least 1.25 k columns and as many directions, otherwise RBF. `repr` and
               `design.kernel` show which. A kernel of your own goes to `KDPP(kernel, k)`.
    rho:       raise features to this power first; the paper takes 0.1 for word counts.
    standardize: then scale the columns of X to mean 0 and standard deviation 1: for columns in
               different units, where those with the largest numbers would decide alone.
    normalize: then scale the rows of X to length 1, so that only directions count. By default True
               for the linear kernel, which would draw long rows more often, and False for RBF.
    scale:     length scale of the RBF kernel; by default that of `dmsgd.designs.suggest_scale`,
               halved until k items are independent.
    target:    inclusion probabilities, if not those of the kernel: "uniform" (plain averages over
               batches are unbiased), "balanced" (every class has the same share), "density" (more
               where items are sparse: `dmsgd.targets.density`), or one number per item, scaled to
               sum to k. The design is the closest k-DPP with them (`dmsgd.targets.prescribe`).
    spectrum:  "exact"; "nystrom" or "pivoted_cholesky", approximations of rank `rank`, by default
               max(1600, 3 k). "auto" is exact, except for "rbf" with more than 5,000 items: there
               landmarks are added as in "nystrom", from few up to three times that rank, until
               the error (`Spectrum.batch_error`) is below 1 %. `repr` shows it; a larger one warns.

    Set-up is O(n d min(n, d)) for a linear kernel of rank r; it keeps 8 n r bytes and needs up to
    three times as much while it runs. A batch costs about 3k³ operations, independent of n.

    Raises `RankError` if fewer than k items are independent and `TargetError` if no k-DPP has the
    target; warns with `KernelWarning` if the kernel is unlikely to be the one you want.
    See also `KDPP`, `select`, `Stratified`, `Weighted`, `Partition`.

    >>> import numpy as np
    >>> design = diversify(np.random.default_rng(0).normal(size=(500, 20)), k=10)
    >>> design.sample(3, seed=0).shape
    (3, 10)
    """
    options = DesignOptions(
        w=w,
        rho=rho,
        kernel=kernel,
        standardize=standardize,
        normalize=normalize,
        scale=scale,
        quality=quality if isinstance(quality, str) else None,
        diversity=diversity,
        target=target if isinstance(target, str) else None,
        spectrum=spectrum,
        rank=rank,
    )
    X, labels = split_label_column(X, labels)
    quality, target = aligned(quality, X, "quality"), aligned(target, X, "target")
    F = as_features(X, takes_labels=True)
    if options.kernel == "auto" and looks_like_kernel_matrix(F):
        warn_kernel(
            f"X is a symmetric matrix of {F.n} x {F.n}, as kernels are, and is taken for features; "
            f"if it is a kernel, use dmsgd.KDPP(X, k), and if not",
            kernel="linear",
        )
    if labels is not None and not options.uses_labels:
        as_labels(labels, F.n)
        warn_kernel("labels are given, but w=0 ignores them", w=0.7, target="balanced")
        labels = None
    return _k_dpp(options, F, k, labels, target, quality)


def make_design(
    options: DesignOptions, X: Any, k: int, labels: Any = None, quality: Any = None
) -> Design:
    """Return the design that `options` describe; labels that it does not use are ignored.

    quality: (n,) numbers, if not that of the options.
    X may be None for "uniform" and "stratified" batches, if there are labels.
    """
    if options.batches not in ("stratified", "uniform"):
        design = make_kdpp(options, X, k, labels, quality)
        if options.batches == "weighted":
            return Weighted.like(design)
        return Partition(design) if options.batches == "partition" else design
    X, labels = split_label_column(X, labels)
    n = (
        X.shape[0]
        if hasattr(X, "shape")
        else None
        if X is None
        else as_features(X, takes_labels=True).n
    )
    if options.batches == "stratified":
        return Stratified(as_labels(labels, n), k)
    return Uniform(len(as_labels(labels)) if n is None else n, k)


def make_kdpp(
    options: DesignOptions, X: Any, k: int, labels: Any = None, quality: Any = None
) -> KDPP:
    """Return the k-DPP of these options, whatever their `batches`; unused labels are ignored."""
    X, labels = split_label_column(X, labels)
    used = labels if options.w > 0 or options.target == "balanced" else None
    worth = options.quality if quality is None else aligned(quality, X, "quality")
    F = as_features(X, takes_labels=True)
    return _k_dpp(options, F, k, used, options.target, worth)


def remake(design: Any, X: Any) -> KDPP:
    """Return the k-DPP that `diversify` makes from X with the other arguments of `design`.

    So a kernel or a scale that was not given is chosen again.
    """
    if not isinstance(design, KDPP) or design.options is None:
        raise TypeError("this design was not made by dmsgd.diversify; pass a design, not features")
    F, options = as_features(X), replace(design.options, kernel=design._asked_kernel)
    if F.n != design.n:
        raise ValueError(f"X has {F.n} rows for the {design.n} items of the design")
    try:
        return _k_dpp(options, F, design.k, design._labels, design._target, design._quality)
    except ValueError:
        if rows_for(options, F).row_norms2().any():
            raise
        raise RankError(design.k, 0, "all features are zero", rbf=False) from None


def rows_for(options: DesignOptions, F: Features, like: Features | None = None) -> Features:
    """Return the features with `rho`, `standardize` and `normalize` applied, without labels.

    like: features that F is to be compared with, whose columns decide how F's are standardized.
    """
    if options.rho is not None:
        anneal = Anneal(options.rho)
        F, like = F.mapped(anneal), None if like is None else like.mapped(anneal)
    if options.standardize:
        F = F.mapped(standardize_map(F if like is None else like))
    return F.mapped(Normalize()) if options.unit_rows else F


def _k_dpp(
    options: DesignOptions, F: Features, k: int, labels: Any, target: Any, quality: Any
) -> KDPP:
    """Return the k-DPP of features; `target` and `quality` are names, numbers, or None."""
    if options.w > 0 and labels is None:
        raise ValueError(f"w={options.w} mixes in labels, but labels is None; pass labels= or w=0")
    if quality is None and options.diversity != DesignOptions.diversity:
        raise ValueError(f"diversity={options.diversity:g} is for quality, which is not given")
    if quality is not None and target is not None:
        raise ValueError("a target fixes how often items are drawn; leave quality out")
    labels = None if labels is None else as_labels(labels, F.n)
    k = as_batch_size(k, F.n)
    if options.w == 1 and k > (classes := np.unique(labels).size):
        found = f"the labels have {counted(classes, 'class')}, and w=1 uses nothing else"
        raise RankError(k, classes, found, rbf=False)
    plain, asked = target is None, options.kernel
    options, kernel, spectrum = _choose_kernel(options, F, k, labels, quality, plain)
    if spectrum is None and (plain or not is_exact(options, kernel)):
        spectrum = spectrum_for(options, kernel, k)
    if spectrum is not None and options.kernel == "rbf":
        spectrum.require_rank(k)
        if options.spectrum == "auto":
            warn_unsuitable_scale(spectrum, k)
    if target is None:
        assert spectrum is not None
        design = KDPP(spectrum, k)
    else:
        origin = kernel if is_exact(options, kernel) or spectrum is None else spectrum
        design = KDPP(prescribed_spectrum(origin, k, target, kernel.features, labels), k)
    if target is None and options.w < 1 and F.d > 1:
        _warn_dominating_column(options, F, design.spectrum.values)
    design.options, design._labels, design._target = options, labels, target
    design._quality, design._asked_kernel = quality, asked
    return design


def _choose_kernel(
    options: DesignOptions, F: Features, k: int, labels: Any, quality: Any, plain: bool
) -> tuple[DesignOptions, Kernel, Spectrum | None]:
    """Return the options with the name of the kernel, the kernel, and its spectrum if it was made.

    If not `plain`, an exact spectrum of an RBF kernel is not needed and has eigenvalues alone.

    "auto" is linear if both the columns and the directions of the kernel are SPARE k at least, and
    with w = 1, where only labels count.
    """
    enough = min(math.ceil(SPARE * k), F.n)
    wide = F.d >= enough or options.w == 1
    if options.kernel == "linear" or (options.kernel == "auto" and wide):
        linear = replace(options, kernel="linear")
        rows = rows_for(linear, F)
        mixed = concat_labels(rows, labels, linear.w) if linear.w > 0 else rows
        kernel = _rated(linear, Linear(mixed), F, quality)
        if options.kernel == "linear":
            return linear, kernel, None
        try:
            spectrum = exact(kernel)
        except ValueError:
            if kernel.diag().any():
                raise  # else all items are zero, and alike as any equal ones are to RBF
        else:
            directions = np.count_nonzero(spectrum.values > NO_DIRECTION * spectrum.values[0])
            if directions >= enough or options.w == 1:
                return linear, kernel, spectrum
    options = replace(options, kernel="rbf")
    rows, classes = rows_for(options, F), None if options.w == 0 else as_classes(labels, F.n)[1]

    def finished(kernel: RBF) -> Kernel:
        mixed = kernel if classes is None else Mixed(kernel, classes, options.w)
        return _rated(options, mixed, F, quality)

    if options.scale is not None:
        return options, finished(RBF(rows, options.scale)), None
    return options, *_fitted_rbf(options, rows, k, finished, plain)


def _rated(options: DesignOptions, kernel: Kernel, F: Features, quality: Any) -> Kernel:
    """Return the kernel with the quality of the items; "length" is that of the rows of F."""
    if quality is None:
        return kernel
    if isinstance(quality, str):
        plain = replace(options, normalize=False, quality=None)
        lengths = np.sqrt(rows_for(plain, F).row_norms2())
        name = f"length {options.diversity.hex()}"
        return Quality(kernel, as_quality(lengths, F.n, options.diversity), name)
    return Quality(kernel, as_quality(quality, F.n, options.diversity))


def _fitted_rbf(
    options: DesignOptions,
    rows: Features,
    k: int,
    finished: Callable[[RBF], Kernel],
    plain: bool,
) -> tuple[Kernel, Spectrum]:
    """Return the kernel `finished` from RBF at which k items are independent, and its spectrum."""
    try:
        scale = suggest_scale(rows, k)
    except ValueError:  # all items are alike
        scale = 1.0
    for halvings in range(HALVINGS):
        name = f"suggested for {k}, halved {halvings} times"
        kernel = finished(RBF.fitted(rows, scale, name))
        if plain or not is_exact(options, kernel):
            spectrum = spectrum_for(options, kernel, k)
        else:
            spectrum = eigenvalues_of(kernel)
        enough = spectrum.rank >= k and spectrum.inclusion_error(k) <= WARN_ABOVE
        if enough or options.spectrum in ("nystrom", "pivoted_cholesky"):
            break
        if halvings == 0:
            worth = kernel.q if isinstance(kernel, Quality) else np.ones(rows.n)
            items, independent = greedy_set(rows, worth, k)
            if items.size < k:
                rank = max(items.size, spectrum.rank)
                found = f"the data has {counted(rank, 'distinct item')}"
                found += " of quality above 0" * bool(worth.min() == 0)
                raise RankError(k, rank, found, rbf=False)
            scale = min(scale, 2 * independent)
        scale /= 2
    return kernel, spectrum


def _warn_dominating_column(options: DesignOptions, F: Features, values: FloatArray) -> None:
    """Warn if one column of X carries nearly the whole kernel: what it adds to products of rows,
    or to squared distances for RBF.

    values: the kernel's eigenvalues. A linear kernel's largest is at least the share of any column,
    so X is read again only if one may dominate.
    """
    linear = options.kernel == "linear"
    if linear and values.max() < WHOLE * values.sum():
        return
    origin, means, deviations = column_moments(rows_for(options, F))
    squares = deviations**2 + (origin + means) ** 2 * linear
    widest = int(np.argmax(squares))
    if squares[widest] >= WHOLE * squares.sum() > 0:
        warn_kernel(
            f"column {widest} of X (from 0) is {squares[widest] / squares.sum():.2%} of "
            f"{'the kernel' if linear else 'all squared distances'}, so batches are diverse in "
            f"little else: drop it if it is no feature, or standardize if columns are in different "
            f"units",
            standardize=True,
        )
