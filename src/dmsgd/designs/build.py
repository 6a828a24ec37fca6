"""From features to a design in one call: `diversify`, and `make_design` for `DesignOptions`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from dmsgd.designs.contract import Design
from dmsgd.designs.kdpp import KDPP
from dmsgd.designs.options import DesignOptions, KernelName, QualityName, SpectrumName, TargetName
from dmsgd.designs.recipe import kdpp_of
from dmsgd.designs.stratified import Stratified, Uniform
from dmsgd.designs.weighted import Weighted
from dmsgd.errors import warn_kernel
from dmsgd.features import as_features
from dmsgd.features.convert import split_label_column
from dmsgd.inputs.alignment import aligned
from dmsgd.inputs.labels import as_labels
from dmsgd.kernels.precomputed import looks_like_kernel_matrix


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
        labels = None
    return kdpp_of(options, F, k, labels, quality, target)


def make_design(
    options: DesignOptions, X: Any, k: int, labels: Any = None, quality: Any = None
) -> Design:
    """Return the design that `options` describe; labels that it does not use are ignored.

    quality: (n,) numbers, if not that of the options.
    X may be None for "uniform" and "stratified" batches, if there are labels.
    """
    if options.batches not in ("stratified", "uniform"):
        design = make_kdpp(options, X, k, labels, quality)
        return Weighted.like(design) if options.batches == "weighted" else design
    X, labels = split_label_column(X, labels)
    n = None
    if X is not None:
        n = X.shape[0] if hasattr(X, "shape") else as_features(X, takes_labels=True).n
    if options.batches == "stratified":
        return Stratified(as_labels(labels, n), k)
    return Uniform(len(as_labels(labels)) if n is None else n, k)


def make_kdpp(
    options: DesignOptions, X: Any, k: int, labels: Any = None, quality: Any = None
) -> KDPP:
    """Return the k-DPP of these options, whatever their `batches`; unused labels are ignored."""
    X, labels = split_label_column(X, labels)
    worth = options.quality if quality is None else aligned(quality, X, "quality")
    F = as_features(X, takes_labels=True)
    labels = as_labels(labels, F.n) if options.w > 0 and labels is not None else None
    return kdpp_of(options, F, k, labels, worth, options.target)
