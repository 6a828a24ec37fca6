"""`compare`: several designs side by side on the same items, before anything is trained."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np

from dmsgd.designs.build import make_design
from dmsgd.designs.kdpp import KDPP
from dmsgd.designs.options import Batches, DesignOptions, TargetName, as_design_options
from dmsgd.designs.stream import fixed_seed
from dmsgd.designs.weighted import Weighted
from dmsgd.diagnostics.comparison import Comparison, DesignSummary
from dmsgd.diagnostics.data import PRESCRIBED, DataSummary, Sample, summarize
from dmsgd.diagnostics.frequency import coverage, effective_batch, effective_items, evenness
from dmsgd.diagnostics.similarity import Estimate, removed_noise
from dmsgd.errors import KernelWarning, RankError
from dmsgd.features import Features, as_features
from dmsgd.features.convert import split_label_column
from dmsgd.inputs.arrays import on_host
from dmsgd.inputs.labels import as_labels
from dmsgd.inputs.scalars import OF_A_FRACTION, Seed, as_batch_size, as_fraction, as_function

#: The label weights that are compared beside the requested one.
WS = (0.0, 0.3, 0.5, 0.7, 0.9)
#: The power that the paper raises word counts to: every shared word counts almost alike.
WORD_POWER = 0.1
#: Classes with this evenness need no help, and items drawn this evenly are drawn evenly.
EVEN = 0.95
#: Draws that are timed and that repulsion is estimated from: at most, and at least.
DRAWS = (200, 20)
#: About as many floating point operations are spent on the draws of one design.
OPERATIONS = 1e9
#: Batches that are kept as examples.
EXAMPLES = 3
#: Items that targets are prescribed for with a linear kernel, at most.
TARGET_ITEMS = 5000


def compare(
    X: Any,
    k: int,
    labels: Any = None,
    options: DesignOptions | None = None,
    *,
    ws: tuple[float, ...] = WS,
    ks: tuple[int, ...] = (),
    targets: tuple[TargetName | None, ...] = (),
    seed: Seed = 0,
    progress: Callable[[float], None] = lambda fraction: None,
) -> Comparison:
    """Return what batches of several designs hold: uniform, k-DPPs by w and target, stratified.

    X, labels: (n, d) features and (n,) classes, as `diversify` takes them.
    options:   of the k-DPPs, by default those of `diversify`; the figures are those of the design
               that `diversify` makes with the same arguments.
    ws:        label weights beside that of the options; none without labels or with a target.
    ks:        other batch sizes, for all but the targets; those beyond a kernel's rank are dropped.
    targets:   beside that of the options, None for none, on at most 5,000 of the items.

    One eigendecomposition for each w, and one for the candidate. Where that would take long they
    are made of a random sample of the items, and figures are those of the sample.
    See also `recommend`, `dmsgd.report.build`.

    >>> X = np.random.default_rng(0).normal(size=(200, 20))
    >>> y = np.repeat(["common", "rare"], [190, 10])
    >>> found = compare(X, 8, y, ws=(0.0, 0.9))
    >>> {each.name: round(each.shares["rare"], 2) for each in found.summaries}
    {'uniform': 0.05, 'w = 0': 0.05, 'w = 0.9': 0.16, 'stratified': 0.5}
    """
    options = as_design_options(options)
    as_function(progress, "progress", OF_A_FRACTION)
    if not isinstance(ws, tuple | list):
        raise TypeError(f"ws must be a tuple of numbers in [0, 1], got {ws!r}")
    ws = tuple(as_fraction(w, "ws") for w in ws)
    X, labels = split_label_column(X, labels)
    X = as_features(X, takes_labels=True)
    k = as_batch_size(k, X.n)
    sizes = (k, *(as_batch_size(each, X.n) for each in ks if each != k))
    seed, y = fixed_seed(seed), None if labels is None else as_labels(labels, X.n)
    sample = Sample.of(X, k, y, options, seed)
    data = summarize(X if X.readable_rows(0) == X.n else sample.X, X.n, y, X.has_counts())
    asked = options
    with quiet_kernel_warnings(options.w > 0 or options.target is not None):
        options, sample = _with_kernel(options, X, k, y, sample, seed)
    plain = replace(options, w=0.0, target=None)
    with quiet_kernel_warnings(plain != options):
        sample.unlabelled(plain, k)
        with quiet_kernel_warnings():
            candidate, sample = _candidate(X, k, y, data, sample, asked, seed)
        spectrum = sample.unlabelled(plain, k)
    progress(0.2)
    several = y is not None and options.target is None  # a target is prescribed anew for each w
    wanted = [replace(options, w=w) for w in sorted({options.w, *(ws if several else ())})]
    everyone = list(dict.fromkeys([*wanted, *([] if candidate is None else [candidate])]))
    found: dict[DesignOptions, list[DesignSummary]] = {}
    unavailable: dict[DesignOptions, Exception] = {}
    design = None
    for number, each in enumerate(everyone):
        try:
            with quiet_kernel_warnings(each != options):
                kdpp = sample.kdpp(each, k)
                possible = [size for size in sizes[1:] if size <= kdpp.spectrum.rank]
                others = possible if each in wanted else []
                designs = [kdpp, *(KDPP(kdpp.spectrum, size) for size in others)]
                name = f"w = {each.w:g}"
                found[each] = [_summary(name, each, made, sample, seed) for made in designs]
                design = kdpp if each == options else design
        except RankError as error:
            # Without another candidate the requested design's error is the result.
            if each == options == candidate:
                raise
            unavailable[each] = error
        progress(0.2 + 0.6 * (number + 1) / len(everyone))
    rows = [_baselines("uniform", sample, data, sizes, seed)]
    rows += [found[each] for each in wanted if each in found]
    narrow = options.kernel == "linear" and sample.X.d <= PRESCRIBED
    part = sample.part(max(TARGET_ITEMS if narrow else PRESCRIBED, 5 * k), seed)
    for target in targets:
        each = replace(options, target=target)
        name = f"target {target}" if target else "no target"
        if each not in found and not (target == "balanced" and y is None):
            try:
                with quiet_kernel_warnings():
                    rows.append([_summary(name, each, part.kdpp(each, k), part, seed)])
            except (ValueError, ImportError) as error:  # infeasible, or of a missing extra
                unavailable[each] = error
    if y is not None:
        rows.append(_baselines("stratified", sample, data, sizes, seed))
    progress(1.0)
    summaries = [each for size in sizes for row in rows for each in row if each.k == size]
    return Comparison(
        k=k,
        options=options,
        data=data,
        rows=sample.rows,
        names=sample.names,
        codes=sample.codes,
        summaries=tuple(summaries),
        requested=found[options][0] if options in found else None,
        candidate=found[candidate][0] if candidate in found else None,
        unavailable=unavailable,
        spectrum=spectrum,
        design=design,
    )


@contextmanager
def quiet_kernel_warnings(quiet: bool = True) -> Iterator[None]:
    """Silence warnings about designs that the user did not request."""
    with warnings.catch_warnings():
        if quiet:
            warnings.simplefilter("ignore", KernelWarning)
        yield


def _candidate(
    X: Features,
    k: int,
    y: Any,
    data: DataSummary,
    sample: Sample,
    options: DesignOptions,
    seed: Seed,
) -> tuple[DesignOptions | None, Sample]:
    """Return the options of the candidate, and the items to compare: fewer for an RBF kernel."""
    if options.target is not None:
        return options, sample
    if data.classes and evenness(data.classes) < EVEN:
        return None, sample
    if options.kernel == "rbf":
        return replace(options, w=0.0), sample
    rho = WORD_POWER if data.has_counts and options.rho is None else options.rho
    units = options.standardize or data.different_units
    if data.duplicates == data.counted - 1 and k > 1:  # all items are equal
        return None, sample
    return _with_kernel(DesignOptions(rho=rho, standardize=units), X, k, y, sample, seed)


def _with_kernel(
    options: DesignOptions, X: Features, k: int, y: Any, sample: Sample, seed: Seed
) -> tuple[DesignOptions, Sample]:
    """Return the options with the kernel that "auto" chooses, and items: fewer for RBF."""
    if options.kernel != "auto":
        return options, sample
    try:
        options = replace(options, kernel=sample.auto_kernel(options, k))
    except RankError:  # there are not k distinct items
        options = replace(options, kernel="linear")
    rows = sample.rows.size
    smaller = Sample.of(X, k, y, options, seed)
    return options, smaller if smaller.rows.size < rows else sample


def _baselines(
    batches: Batches, sample: Sample, data: DataSummary, sizes: tuple[int, ...], seed: Seed
) -> list[DesignSummary]:
    """Return the summaries of uniform or stratified batches of all sizes."""
    options = DesignOptions(batches=batches)
    designs = [make_design(options, sample.X, k, sample.codes) for k in sizes]
    found = [_summary(batches, options, each, sample, seed) for each in designs]
    if batches == "uniform" and 0 < len(data.classes) == len(sample.names):
        shares = {name: size / data.n for name, size in data.classes.items()}  # of all items
        found = [replace(each, shares=shares, evenness=evenness(shares)) for each in found]
    return found


def _summary(
    name: str, options: DesignOptions, design: Any, sample: Sample, seed: Seed
) -> DesignSummary:
    """Return the summary of a design of the sample's items."""
    from threadpoolctl import threadpool_limits

    noise, b = Estimate(0.0, 0.0, 0), design.inclusion()
    draws = int(np.clip(OPERATIONS / (4 * design.k**3), DRAWS[1], DRAWS[0]))
    with threadpool_limits(1):  # draws are timed on one thread; small matrices need no more
        if isinstance(design, KDPP):
            import_module("dmsgd.compiled.kdpp")  # or NumPy would make the first batches
        design.sample(1, seed)  # compiles, and makes tables
        began = time.perf_counter()
        batches = on_host(design.sample(draws, seed))
        seconds = (time.perf_counter() - began) / draws
        if isinstance(design, KDPP):
            control = Weighted.like(design).sample(draws, seed)
            noise = removed_noise(design.spectrum, batches, control)
    shares: dict[Any, float] = {}
    if sample.codes is not None:
        by_class = np.bincount(sample.codes, b, minlength=len(sample.names)) / b.sum()
        shares = dict(zip(sample.names, by_class.tolist(), strict=True))
    return DesignSummary(
        name=name,
        options=options,
        k=design.k,
        inclusion=b,
        shares=shares,
        evenness=evenness(shares) if shares else 1.0,
        coverage=float(coverage(design, math.ceil(design.n / design.k))),
        effective_items=effective_items(design) / design.n,
        effective_batch=effective_batch(design),
        repulsion=noise,
        seconds_per_batch=seconds,
        examples=batches[:EXAMPLES],
    )
