"""From features to a design in one call: `diversify`, and `make_design` for `DesignOptions`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from dmsgd.designs.contract import Design
from dmsgd.designs.greedy import greedy_set
from dmsgd.designs.kdpp import KDPP
from dmsgd.designs.options import DesignOptions, KernelName, QualityName, SpectrumName, TargetName
from dmsgd.designs.scale import suggest_scale
from dmsgd.designs.stratified import Stratified, Uniform
from dmsgd.designs.weighted import Weighted
from dmsgd.errors import RankError, warn_kernel
from dmsgd.features import Features, as_features
from dmsgd.features.convert import split_label_column
from dmsgd.features.maps import Anneal, Normalize, column_moments, concat_labels, standardize_map
from dmsgd.inputs.alignment import aligned
from dmsgd.inputs.arrays import as_quality
from dmsgd.inputs.labels import as_classes, as_labels
from dmsgd.inputs.messages import counted
from dmsgd.inputs.scalars import as_part
from dmsgd.kernels import RBF, Kernel, Linear, exact, nystrom, pivoted_cholesky
from dmsgd.kernels.feature_kernels import Mixed, Quality
from dmsgd.kernels.landmarks import GrowingLandmarks
from dmsgd.kernels.precomputed import looks_like_kernel_matrix
from dmsgd.runtime.progress import one_work
from dmsgd.spectra import Spectrum
from dmsgd.spectra.rounding import WARN_ABOVE
from dmsgd.targets import prescribe

#: A linear kernel with fewer directions than this times k leaves the batch no choice; eigenvalues
#: up to this share of the largest are no directions.
SPARE, NO_DIRECTION = 1.25, 1e-6
#: A fitted scale is halved at most this often, and suits items of which others leave more than this
#: share.
HALVINGS, LEFT = 20, 1e-4
#: A column with this share of the kernel's trace is nearly all of it.
WHOLE = 0.95
#: Up to this many items the spectrum of an RBF kernel is exact by default; default rank of an
#: approximate one (or 3 k if that is more).
EXACT_ITEMS, FACTOR_RANK = 5000, 1600
#: An approximation that changes at most this share of the items of a batch does not warn; the
#: estimated share is to be below AIM times as much.
SMALL_ERROR, AIM = 0.01, 0.9
#: To get there the rank may grow to GROWTH times the default, but not above two thirds of the
#: items, where all of them cost no more, nor to eigenvectors of more than LARGEST numbers (1 GB).
GROWTH, LARGEST = 3, 2**27
#: Multiplications n m² of m landmarks that are not worth saving.
QUICK = 2.0**33
#: Up to this many items a warning names spectrum="exact", too.
EXACT_POSSIBLE = 20_000
#: A repulsion below this leaves a k-DPP within 5 % (total variation) of uniform batches.
NEARLY_UNIFORM = 0.05


class Array(Protocol):
    """Numbers that NumPy can read: an array, a column of a frame, a tensor, but not text."""

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
    """Return a k-DPP: a distribution over batches of k items that are unlike each other.

    X:         The features, shape (n, d), with a row for each item: an array, a CSR matrix, a
               frame, a memory map or a torch tensor, or the path of an .npz, .csv, .tsv or .jsonl
               file. A .npy, .zarr or .parquet path, a folder of sparse .npz files, and a Zarr array
               are read in blocks where they do not fit in memory. A Dask array or frame stays in
               blocks.
    k:         The number of items per batch, at most n.
    labels, w: The class of each item, shape (n,), or the name of a column of a frame or table
               (.csv, .tsv, .parquet, .jsonl), which is then not a feature. The weight w mixes them
               into the features, F = [(1-w)X, wH] for one-hot classes H, or into an RBF kernel S
               as (1-w)² S + w² H Hᵀ. With w = 0 they are ignored, with a warning; with w = 1 the
               features are ignored. A pandas Series, as labels, quality or target, is matched with
               a frame by index.
    quality:   How much each item is worth: n numbers, none below 0. The kernel S becomes
               L_ij = q_i S_ij q_j, so that better items are drawn more often. "length" takes the
               lengths of the rows, which makes the linear kernel that of the paper, L = X Xᵀ.
    diversity: The weight of diversity against quality. At 0.5 quality counts as it is given,
               towards 0 only quality counts, and at 1 only diversity.
    kernel:    "linear" is L = F Fᵀ, and "rbf" is exp(-distance² / (2 scale²)) of X. "auto" takes
               linear where X has at least 1.25 k columns and as many directions, otherwise RBF;
               `repr` and `design.kernel` show which. Pass your own kernel to `KDPP(kernel, k)`.
    rho:       The power that features are raised to first. The paper takes 0.1 for word counts.
    standardize: Whether the columns of X are then scaled to mean 0 and standard deviation 1. Use it
               for columns in different units, where the largest numbers would decide alone.
    normalize: Whether the rows of X are then scaled to length 1, so that only directions count. The
               default is True for the linear kernel, which would draw long rows more often, and
               False for RBF.
    scale:     The length scale of the RBF kernel. The default is that of
               `dmsgd.designs.suggest_scale`, halved until k items are independent.
    target:    The inclusion probabilities, if they are not to follow from the kernel: "uniform"
               (plain averages over batches are unbiased), or one number per item, scaled to sum
               to k. The design is the closest k-DPP that has them (`dmsgd.targets.prescribe`).
    spectrum:  "exact" computes all eigenvalues; "nystrom" and "pivoted_cholesky" approximate the
               kernel with rank `rank`, by default max(1600, 3 k). "auto" is exact, except for an
               RBF kernel of more than 5,000 items: there landmarks are added as in "nystrom", from
               few up to three times that rank, until the error (`Spectrum.batch_error`) is below
               1 %. `repr` shows the error, and a larger one warns.

    Set-up takes O(n d min(n, d)) operations for a linear kernel of rank r. The design keeps 8 n r
    bytes, and up to three times as much while it is made. A batch takes about 3k³ operations,
    whatever n is.

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
    labels = None if labels is None else as_labels(labels, F.n)
    if labels is not None and not options.uses_labels:
        warn_kernel("labels are given, but w=0 ignores them", w=0.7)
    return kdpp_of(options, F, k, labels, quality, target)


def make_design(
    options: DesignOptions, X: Any, k: int, labels: Any = None, quality: Any = None
) -> Design:
    """Return the design that `options` describe; labels that it does not use are ignored.

    quality: (n,) numbers, if not that of the options.
    X may be None for "uniform" and "stratified" batches, if there are labels.
    """
    X, labels = split_label_column(X, labels)
    if options.batches in ("k-DPP", "weighted"):
        worth = options.quality if quality is None else aligned(quality, X, "quality")
        F = as_features(X, takes_labels=True)
        labels = as_labels(labels, F.n) if options.w > 0 and labels is not None else None
        design = kdpp_of(options, F, k, labels, worth, options.target)
        return Weighted.like(design) if options.batches == "weighted" else design
    n = None
    if X is not None:
        n = X.shape[0] if hasattr(X, "shape") else as_features(X, takes_labels=True).n
    if options.batches == "stratified":
        return Stratified(as_labels(labels, n), k)
    return Uniform(len(as_labels(labels)) if n is None else n, k)


def kdpp_of(
    options: DesignOptions, F: Features, k: int, labels: Any, quality: Any, target: Any
) -> KDPP:
    """Return the k-DPP of these features; a kernel or a scale that is not given is chosen.

    labels: (n,) classes, or None; with w = 0 they are ignored.
    quality, target: a name, (n,) numbers, or None.
    """
    w, diversity, name = options.w, options.diversity, ""
    if w > 0 and labels is None:
        raise ValueError(f"w={w} mixes in labels, but labels is None; pass labels= or w=0")
    if quality is None and diversity != DesignOptions.diversity:
        raise ValueError(f"diversity={diversity:g} is for quality, which is not given")
    if quality is not None and target is not None:
        raise ValueError("a target fixes how often items are drawn; leave quality out")
    k = as_part(k, "k", F.n)
    if w == 1 and k > (classes := np.unique(labels).size):
        found = f"the labels have {counted(classes, 'class')}, and w=1 uses nothing else"
        raise RankError(k, classes, found, rbf=False)
    if isinstance(quality, str):  # the lengths of the rows
        lengths = replace(options, normalize=False, quality=None)
        quality = np.sqrt(prepared(lengths, F).row_norms2())
        name = f"length {diversity.hex()}"
    q = None if quality is None else as_quality(quality, F.n, diversity)

    def finished(kernel: Kernel) -> Kernel:
        """Return a kernel of features with the classes and the quality of the items."""
        if w > 0 and isinstance(kernel, RBF):
            kernel = Mixed(kernel, as_classes(labels, F.n)[1], w)
        return kernel if q is None else Quality(kernel, q, name)

    options, spectrum = _choose(options, F, k, labels, finished)
    if options.kernel == "rbf":
        spectrum.require_rank(k)
        if options.spectrum == "auto":
            _warn_unsuitable_scale(spectrum, k)
    chosen, shown = spectrum, ""
    if target is not None:
        # It keeps the words for the kernel that was scaled, and the error of an approximation.
        tilted = exact(prescribe(spectrum, k, target))
        chosen = tilted.replaced(trace_error=spectrum.trace_error, kernel=spectrum.kernel)
        given = repr(target) if isinstance(target, str) else f"{F.n:,} given numbers"
        shown = f", target={given}"
    elif spectrum.trace_error:
        shown = f", batch error at most {spectrum.batch_error(k):.2%}"
    design = KDPP(chosen, k)
    design.options, design.made = options, shown
    linear, values = options.kernel == "linear", spectrum.values
    # A linear kernel's largest eigenvalue has at least the share of any column.
    may_dominate = not linear or values.max() >= WHOLE * values.sum()
    if target is None and w < 1 and F.d > 1 and may_dominate:
        effect = "batches are diverse in little else"
        warn_dominating_column(prepared(options, F), effect, linear)
    return design


def _choose(
    options: DesignOptions, F: Features, k: int, labels: Any, finished: Callable[[Kernel], Kernel]
) -> tuple[DesignOptions, Spectrum]:
    """Return the options that name the kernel of these features, and its spectrum.

    finished: adds classes and quality to a kernel of features.
    "auto" is linear if both the columns and the directions of the kernel are SPARE k at least,
    and with w = 1, where only labels count.
    """
    asked, w, enough = options.kernel, options.w, min(math.ceil(SPARE * k), F.n)
    if asked == "linear" or (asked == "auto" and (F.d >= enough or w == 1)):
        options = replace(options, kernel="linear")
        rows = prepared(options, F)
        kernel = finished(Linear(concat_labels(rows, labels, w) if w > 0 else rows))
        try:
            spectrum = spectrum_for(options, kernel, k)
        except ValueError:
            if asked == "linear" or kernel.diag().any():
                raise  # else all items are zero, and alike as any equal ones are to RBF
        else:
            directions = np.count_nonzero(spectrum.values > NO_DIRECTION * spectrum.values[0])
            enough = min(enough, options.rank or enough)
            if asked == "linear" or w == 1 or directions >= enough:
                return options, spectrum
    options = replace(options, kernel="rbf")
    rows = prepared(options, F)
    if options.scale is None:
        return options, _fitted(options, rows, k, finished)
    return options, spectrum_for(options, finished(RBF(rows, options.scale)), k)


def _fitted(
    options: DesignOptions, rows: Features, k: int, finished: Callable[[Kernel], Kernel]
) -> Spectrum:
    """Return the spectrum of the RBF kernel of a scale at which k items are independent."""
    try:
        scale = suggest_scale(rows, k)
    except ValueError:  # all items are alike
        scale = 1.0
    for halvings in range(HALVINGS):
        rbf = RBF(rows, scale)
        rbf.named_scale = f"suggested for {k}, halved {halvings} times"
        kernel = finished(rbf)
        spectrum = spectrum_for(options, kernel, k)
        enough = spectrum.rank >= k and spectrum.inclusion_error(k) <= WARN_ABOVE
        if enough or options.spectrum in ("nystrom", "pivoted_cholesky"):
            break
        if halvings == 0:
            worth = kernel.q if isinstance(kernel, Quality) else np.ones(rows.n)
            items, independent = greedy_set(rows, worth, k, least=LEFT)
            if items.size < k:
                rank = max(items.size, spectrum.rank)
                found = f"the data has {counted(rank, 'distinct item')}"
                found += " of quality above 0" * bool(worth.min() == 0)
                raise RankError(k, rank, found, rbf=False)
            scale = min(scale, 2 * independent)
        scale /= 2
    return spectrum


def prepared(options: DesignOptions, F: Features, like: Features | None = None) -> Features:
    """Return the features with `rho`, `standardize` and `normalize` applied, without labels.

    like: features that F is to be compared with, whose columns decide how F's are standardized.
    """
    if options.rho is not None:
        anneal = Anneal(options.rho)
        F, like = F.mapped(anneal), None if like is None else like.mapped(anneal)
    if options.standardize:
        F = F.mapped(standardize_map(F if like is None else like))
    return F.mapped(Normalize()) if options.unit_rows else F


def spectrum_for(options: DesignOptions, kernel: Kernel, k: int) -> Spectrum:
    """Return the spectrum of the kernel, exact or not, as the options say."""
    by_size = options.kernel == "linear" or kernel.n <= EXACT_ITEMS
    if options.spectrum == "exact" or (options.spectrum == "auto" and by_size):
        return exact(kernel)
    rank = options.rank or min(max(FACTOR_RANK, 3 * k), kernel.n)
    if options.spectrum == "pivoted_cholesky":
        return pivoted_cholesky(kernel, rank)
    if options.spectrum == "nystrom":
        return nystrom(kernel, rank, how="pivots")
    with one_work():
        return _spectrum_of_few(kernel, k, rank)


def _spectrum_of_few(kernel: Kernel, k: int, usual: int) -> Spectrum:
    """Return the spectrum of as few landmarks as make `batch_error` small, or of `usual`.

    Of no fewer than take about a second, which makes the error smaller still.
    """
    most = max(usual, min(GROWTH * usual, 2 * kernel.n // 3, LARGEST // kernel.n))
    least = min(usual, int((QUICK / kernel.n) ** 0.5))
    # What identifies it is not the number of landmarks, which rounding may decide.
    method = f"landmarks(k={k}, least={least}, usual={usual}, most={most}, error={SMALL_ERROR})"
    landmarks, goal = GrowingLandmarks(kernel, least, usual, most), AIM * SMALL_ERROR
    while True:
        is_enough = landmarks.grow(k, goal)
        found = landmarks.spectrum().replaced(method=method)
        if not is_enough or landmarks.count == most or found.rank < k:
            return found
        if (error := found.batch_error(k)) <= SMALL_ERROR:
            return found
        del found  # its eigenvectors
        goal *= AIM * SMALL_ERROR / error  # the estimate was too low


def _warn_unsuitable_scale(spectrum: Spectrum, k: int) -> None:
    """Warn of an RBF kernel that is too narrow, or approximated with too large an error."""
    if spectrum.trace_error and (error := spectrum.batch_error(k)) > SMALL_ERROR:
        possible = "spectrum='exact', " * (spectrum.n <= EXACT_POSSIBLE)
        problem = (
            f"{spectrum.rank:,} of the {spectrum.n:,} items stand for all, and more would hardly "
            f"help or take long: up to {error:.1%} of the items of a batch are others than the "
            f"exact kernel would draw; a larger scale, {possible}or spectrum='nystrom' with a "
            f"larger rank, makes it less"
        )
    elif k > 1 and spectrum.repulsion(k) < NEARLY_UNIFORM:
        problem = (
            "no two items look alike: batches are nearly uniform; choose a larger scale "
            "(dmsgd.designs.suggest_scale(X, k) finds one)"
        )
    else:
        return
    warn_kernel(f"{spectrum.kernel}: {problem}")


def warn_dominating_column(
    F: Features, effect: str, linear: bool = False, names: Sequence[str] = ()
) -> None:
    """Warn if one column makes nearly all squared distances of rows (linear: of their products).

    effect: what follows from it; names: those of all columns, if they have any.
    """
    origin, means, deviations = column_moments(F)
    squares = deviations**2 + (origin + means) ** 2 * linear
    widest, total = int(np.argmax(squares)), float(squares.sum())
    share = float(squares[widest]) / total if total else 0.0
    if share >= WHOLE:
        name = repr(names[widest]) if len(names) == F.d else f"{widest} of X (from 0)"
        verb, what = ("is", "the kernel") if linear else ("makes", "all squared distances")
        warn_kernel(
            f"column {name} {verb} {share:.2%} of {what}, so {effect}: drop it if it is no "
            f"feature, or standardize if columns are in different units",
            standardize=True,
        )
