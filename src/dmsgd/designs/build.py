"""From raw data to a design in one call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal, Protocol
from warnings import warn

from dmsgd.designs.kdpp import KDPP
from dmsgd.designs.proportions import disproportion
from dmsgd.designs.stratified import Stratified
from dmsgd.errors import InputError, KernelWarning
from dmsgd.features import as_features
from dmsgd.features.convert import split_label_column
from dmsgd.features.mapped_rows import UnitRows
from dmsgd.features.maps import unit_columns, with_labels
from dmsgd.inputs.fingerprint import digest
from dmsgd.inputs.labels import as_labels
from dmsgd.inputs.scalars import (
    Seed,
    as_batch_size,
    as_choice,
    as_count,
    as_flag,
    as_fraction,
    as_function,
    seed_key,
)
from dmsgd.kernels import RBF, Kernel, Linear
from dmsgd.spectra import Spectrum, exact, nystrom, repulsion
from dmsgd.spectra.doubt import distance
from dmsgd.spectra.landmarks import k_means
from dmsgd.spectra.spectrum import changed
from dmsgd.targets import named_target, prescribe
from dmsgd.targets.prescribe import scale_to_target

KernelName = Literal["linear", "rbf"]
"""The kernels that `diversify` makes from features, by name."""
TargetName = Literal["uniform", "balanced", "density"]
"""The inclusion probabilities that have a name (see `diversify`)."""

#: Up to this many items the spectrum of an RBF kernel is exact by default.
EXACT_ITEMS = 5000
#: Beyond, how many landmarks its factor has (or 10 k if that is more).
FACTOR_RANK = 1500
#: A factor whose law is this close to the kernel's (total variation) needs no word.
AS_GOOD_AS_EXACT = 1e-6
#: A repulsion below this leaves a k-DPP within 5 % (total variation) of uniform batches.
NEARLY_UNIFORM = 0.05


class Array(Protocol):
    """What NumPy can read: an array, a column of a frame, a tensor; text is none."""

    def __array__(self) -> Any: ...


def diversify(
    X: Any,
    k: int,
    labels: Any = None,
    w: float = 0.0,
    kernel: KernelName | Kernel = "linear",
    *,
    standardize: bool = False,
    normalize: bool = False,
    scale: float | None = None,
    target: TargetName | Sequence[float] | Array | None = None,
    spectrum: Callable[[Kernel], Spectrum] | None = None,
) -> KDPP:
    """Return the k-DPP whose batches are diverse in the features X and, with weight w, the labels.

    X:         (n, d) features: array, CSR, frame, memory map or torch tensor; or, to be read in
               blocks, a path (.npy, .zarr, .parquet, a folder of sparse .npz), a Zarr array, a Dask
               array or frame, a list of delayed CSR; or the path of an .npz, .csv or .tsv file.
    labels, w: (n,) classes, or the name of the column of a frame, a .csv, .tsv or .parquet file
               that holds them and is then no feature; mixed in as F = [(1-w)X, wH]; w = 0 ignores
               them (with a warning, unless the target counts them), w = 1 is stratified.
    kernel:    "linear" (L = F Fᵀ), "rbf" (on F, with `scale` or the median heuristic), or a
               Kernel of your own over the same n items (then X may be None).
    standardize: scale the columns of X to mean 0 and standard deviation 1 first (see
               `dmsgd.standardize`): for columns in different units, of which a kernel otherwise
               sees those with the largest numbers alone.
    normalize: scale the rows of X to length 1 then. A linear kernel draws long rows more often,
               and w only means something when X and the labels are of similar size: say yes for
               embeddings, counts and images, no when length is importance.
    target:    how often each item is to be seen, if not as the kernel gives it: "uniform" (plain
               averages over batches are unbiased), "balanced" (every class has the same share),
               "density" (more where items are sparse; see `density_target`), or one number per
               item, to which the inclusion probabilities are made proportional. The design is
               then the closest k-DPP that does so (see `prescribe`).
    spectrum:  how to get the kernel's spectrum: a function such as `exact` or
               partial(pivoted_cholesky, rank=2000). By default it is exact, but for "rbf" with
               more than 5,000 items, where it is a Nyström factor with max(1500, 10 k) landmarks
               and a warning states its trace error.

    Set-up is O(n d min(n, d)) for a linear kernel, with 8 n r bytes of eigenvectors of rank r that
    take up to three times as much on the way; a draw costs about 3k³ operations, whatever n is.

    >>> import numpy as np
    >>> design = diversify(np.random.default_rng(0).normal(size=(500, 20)), k=10)
    >>> design.sample(3, seed=0).shape
    (3, 10)
    """
    w, normalize = as_fraction(w, "w"), as_flag(normalize, "normalize")
    standardize = as_flag(standardize, "standardize")
    X, labels = split_label_column(X, labels)
    if spectrum is not None:
        as_function(spectrum, "spectrum", "from a kernel to its Spectrum, such as dmsgd.exact")
    if w > 0 and labels is None:
        raise ValueError(f"w={w} mixes in labels, but labels is None; pass labels= or w=0")
    if isinstance(kernel, Kernel):
        if w > 0 or standardize or normalize or scale is not None:
            raise ValueError(
                "a Kernel is used as it is: w, standardize, normalize and scale do not apply to it"
            )
        F, similarity = None if X is None else as_features(X), kernel
        if F is not None and F.n != kernel.n:
            raise ValueError(f"X has {F.n} items, the kernel {kernel.n}")
    else:
        as_choice(kernel, "kernel", ("linear", "rbf"), " or a dmsgd.Kernel")
        if scale is not None and kernel != "rbf":
            raise InputError("scale changes nothing in a linear kernel", kernel="rbf")
        F = as_features(X)
        labels = None if labels is None else as_labels(labels, F.n)
        F = F.mapped(unit_columns(F)) if standardize else F
        F = rows = F.mapped(UnitRows()) if normalize else F
        F = with_labels(F, labels, w) if w > 0 else F
        similarity = RBF(F, scale) if kernel == "rbf" else Linear(F)
    k = as_batch_size(k, similarity.n)
    if labels is not None and isinstance(kernel, Kernel):
        labels = as_labels(labels, kernel.n)
    if w == 0 and not _is(target, "balanced"):
        if labels is not None:
            _say_unused(kernel)
        labels = None
    make = spectrum or (partial(_rbf_spectrum, k=k) if kernel == "rbf" else exact)
    if target is None:
        design = KDPP(_made(make, similarity), k)
        concern = disproportion(rows, w, design.spectrum.values) if kernel == "linear" else None
        if concern:
            warn(concern, stacklevel=2)
    else:
        whole = spectrum is None and (kernel != "rbf" or similarity.n <= EXACT_ITEMS)
        origin = similarity if whole else _made(make, similarity)
        design = KDPP(_prescribed(origin, k, target, F, labels), k)
        design._target = repr(target) if isinstance(target, str) else f"{design.n:,} given numbers"
    if not isinstance(kernel, Kernel):
        design._recipe = partial(
            diversify, k=k, labels=labels, w=w, kernel=kernel, standardize=standardize,
            normalize=normalize, scale=scale, target=target, spectrum=spectrum,
        )  # fmt: skip
    return design


def _made(make: Callable[[Kernel], Spectrum], kernel: Kernel) -> Spectrum:
    """Return what a function that may be the user's makes of a kernel, if it is its spectrum."""
    found = make(kernel)
    if not isinstance(found, Spectrum) or found.n != kernel.n:
        what = f"one of {found.n}" if isinstance(found, Spectrum) else f"a {type(found).__name__}"
        raise TypeError(
            f"spectrum must return the Spectrum of a kernel of {kernel.n} items, such as "
            f"dmsgd.exact does, and returned {what}"
        )
    return found


def _is(target: Any, name: TargetName) -> bool:
    return isinstance(target, str) and target == name


def _say_unused(kernel: KernelName | Kernel) -> None:
    fixes: dict[str, object] = {} if isinstance(kernel, Kernel) else {"w": 0.7}
    warn(
        KernelWarning("labels are given, but w=0 ignores them", **fixes, target="balanced"),
        stacklevel=3,
    )


def _prescribed(origin: Kernel | Spectrum, k: int, target: Any, X: Any, labels: Any) -> Spectrum:
    """Return the spectrum of the tilted kernel; one made from a factor keeps the factor's error."""
    if _is(target, "density"):  # known by what it is a function of
        b = named_target(target, X, labels, origin.n, k)
        kernel = scale_to_target(origin, k, b, digest(target, X.fingerprint()))
    elif isinstance(target, str):
        kernel = prescribe(origin, k, named_target(target, X, labels, origin.n, k))
    else:
        kernel = prescribe(origin, k, target)
    return changed(exact(kernel), trace_error=getattr(origin, "trace_error", 0.0))


def _rbf_spectrum(kernel: Kernel, k: int) -> Spectrum:
    """Return the exact spectrum of a small kernel, and a factor's of a large one, with a word."""
    assert isinstance(kernel, RBF)
    if kernel.n <= EXACT_ITEMS:
        spectrum = exact(kernel)
    else:
        spectrum = nystrom(kernel, min(max(FACTOR_RANK, 10 * k), kernel.n), how="pivots")
    concern = _concern(spectrum, k)
    if concern:
        at = f"at the RBF scale {kernel.scale:.3g} "
        warn(f"{at}{concern} (dmsgd.suggest_scale(X, k) finds one)", KernelWarning, stacklevel=4)
    return spectrum


def _concern(spectrum: Spectrum, k: int) -> str | None:
    """Return what is wrong with the scale of an RBF kernel, if anything."""
    if spectrum.rank < k:
        return f"all items look alike: rank {spectrum.rank} for k={k}; choose a smaller scale"
    if distance(spectrum, k) > AS_GOOD_AS_EXACT:
        return (
            f"a factor of rank {spectrum.rank} that leaves out {spectrum.trace_error:.2%} of the "
            f"trace stands for the kernel of {spectrum.n:,} items: the law of batches is off by up "
            f"to {distance(spectrum, k):.1g} (total variation). Pass spectrum=exact, or choose the "
            f"approximation: spectrum=partial(nystrom, landmarks={2 * FACTOR_RANK}, how='pivots'); "
            f"a larger scale makes it better"
        )
    if k > 1 and repulsion(spectrum, k) < NEARLY_UNIFORM:
        return "no two items look alike, so batches are nearly uniform; choose a larger scale"
    return None


def clustered(X: Any, k: int, clusters: int | None = None, seed: Seed = 0) -> Stratified:
    """Return stratified sampling over k-means clusters of X: pre-clustering (Proposition 2).

    `clusters` defaults to k, one item of each cluster per batch. The features, shape (n, d), are
    taken into memory. O(n d clusters) for a pass of k-means over the data, of a few.

    >>> design = clustered([[0.0], [0.1], [5.0], [5.1], [5.2]], k=2)
    >>> [round(float(b), 3) for b in design.inclusion()]
    [0.5, 0.5, 0.333, 0.333, 0.333]
    """
    X = as_features(X)
    k = as_batch_size(k, X.n)
    count = as_count(k if clusters is None else clusters, "clusters")
    if count > X.n:
        raise ValueError(f"clusters={count} exceeds the number of items, {X.n}")
    return Stratified(k_means(X, count, seed_key(seed)).labels_, k)
