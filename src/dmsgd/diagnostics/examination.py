"""A first look at data before anything is trained: what batches would hold, for several w.

Where the eigendecompositions of all items would take long, they are made of a random sample
(`dmsgd.diagnostics.sample`); the result says that it is one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, final

from dmsgd.designs import Stratified, Uniform, suggest_scale
from dmsgd.designs.options import DesignOptions, as_design_options
from dmsgd.designs.stream import fixed_seed
from dmsgd.diagnostics.bench import Bench, Made, classes_of
from dmsgd.diagnostics.diversity import Room, room
from dmsgd.diagnostics.facts import facts
from dmsgd.diagnostics.prospects import Classes, Prospect, prospect
from dmsgd.diagnostics.sample import rows_for, taken
from dmsgd.features import Features, anneal, as_features, standardize
from dmsgd.features.convert import split_label_column
from dmsgd.inputs.labels import as_labels
from dmsgd.inputs.scalars import OF_A_FRACTION, Seed, as_batch_size, as_fraction, as_function

#: The w that are tried beside the one asked for.
WS = (0.0, 0.3, 0.5, 0.7, 0.9)
#: What the paper does to word counts: every shared word counts almost alike.
WORD_POWER = 0.1
#: Classes this even need no help, and items this evenly drawn are drawn evenly.
EVEN = 0.95
#: Columns are in different units where the largest standard deviation is this many medians.
UNITS = 10.0
#: A linear kernel with fewer dimensions than this times k leaves the batch no choice.
SPARE_RANK = 1.25


@final
@dataclass(frozen=True, eq=False)
class Examination:
    """What `examine` found.

    sampled:    items that designs were made of, n if all.
    counted:    items among which lengths, duplicates and empty rows were counted, n as a rule.
    classes:    number of items by class, {} without labels.
    lengths:    squared row lengths of the longest tenth over those of the shortest.
    scales:     largest standard deviation of a column over the median of those that vary.
    duplicates: items that are copies of another.
    empty:      items whose features are all zero.
    words:      whether the features look like counts of words: sparse and not negative.
    settings:   those that were asked for.
    room:       of their kernel without labels.
    prospects:  uniform batches, the k-DPPs with these settings and several w (those that exist),
                stratified batches if there are labels.
    candidate:  the k-DPP that `advise` takes apart: without labels, rows of length 1 or, where a
                linear kernel has too few dimensions for k, an RBF kernel with `suggest_scale`;
                words annealed, columns in different units (`scales` above 10) standardized.
                DesignOptions with kernel="rbf" or a target are kept as they are. None where classes
                are uneven, which strata are for, and where its rank is below k.
    """

    n: int
    d: int
    k: int
    sampled: int
    counted: int
    classes: dict[Any, int] = field(repr=False)
    lengths: float
    scales: float
    duplicates: int
    empty: int
    words: bool
    settings: DesignOptions
    room: Room
    prospects: tuple[Prospect, ...] = field(repr=False)
    candidate: Prospect | None = field(repr=False)


def as_examination(value: Any) -> Examination:
    """Return `value`, which `examine` has returned."""
    if not isinstance(value, Examination):
        raise TypeError(
            f"found must be what dmsgd.diagnostics.examine returns, got {type(value).__name__}"
        )
    return value


def examine(
    X: Any,
    k: int,
    labels: Any = None,
    settings: DesignOptions | None = None,
    *,
    ws: tuple[float, ...] = WS,
    made: Made = MappingProxyType({}),
    seed: Seed = 0,
    progress: Callable[[float], None] = lambda fraction: None,
) -> Examination:
    """Return what batches of k items would hold: uniform, from k-DPPs of several w, stratified.

    X, labels: (n, d) features and (n,) classes, as `diversify` takes them.
    settings:  of the k-DPPs, by default those of `diversify`. What is predicted for them is what
               `diversify` gives with the same arguments.
    ws:        w to look at beside that of the settings; without labels or with a target, none.
    made:      spectra that are known already, of the items that `sample_rows` chooses, with the
               seconds that each took.

    One eigendecomposition for each w, and one more where classes are even or there are none and
    the settings are not those that would be advised.

    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(200, 20))
    >>> y = np.repeat(["common", "rare"], [190, 10])
    >>> found = examine(X, 8, y, DesignOptions(normalize=True), ws=(0.0, 0.9))
    >>> {each.name: round(each.shares["rare"], 2) for each in found.prospects}
    {'uniform': 0.05, 'w = 0': 0.05, 'w = 0.9': 0.16, 'stratified': 0.5}
    """
    settings = as_design_options(settings)
    as_function(progress, "progress", OF_A_FRACTION)
    if not isinstance(made, Mapping):
        raise TypeError(f"made must map DesignOptions to (Spectrum, seconds), got {made!r}")
    if not isinstance(ws, tuple | list):
        raise TypeError(f"ws must be a tuple of numbers in [0, 1], got {ws!r}")
    ws = tuple(as_fraction(w, "ws") for w in ws)
    X, labels = split_label_column(X, labels)
    X = as_features(X)
    n = X.n
    k = as_batch_size(k, n)
    seed = fixed_seed(seed)
    y = None if labels is None else as_labels(labels, n)
    rows = rows_for(X, k, y, settings, seed)
    bench = Bench(taken(X, rows), k, None if y is None else y[rows], made)
    known = X if X.resident else bench.X
    unlabelled = room(bench.unlabelled(replace(settings, w=0.0, target=None)), k)
    everybody = _comparable(y, bench)
    size = n if everybody is None else everybody[1].size
    uniform = prospect("uniform", None, Uniform(size, k), everybody)
    several = y is not None and settings.target is None  # a target is prescribed anew for each w
    asked = [replace(settings, w=w) for w in sorted({settings.w, *(ws if several else ())})]
    known_facts = facts(known, n, y)
    units = settings.standardize or in_units(X, known_facts["scales"])
    alike = known_facts["duplicates"] == known_facts["counted"] - 1
    uneven = uniform.evenness < EVEN
    bench, advised = _to_advise(X, y, bench, settings, uneven, units, alike, seed)
    progress(0.2)
    found: dict[DesignOptions, Prospect] = {}
    everyone = list(dict.fromkeys([*asked, *([] if advised is None else [advised])]))
    for number, each in enumerate(everyone):
        one = bench.prospect(each, asked=each == settings, required=each == advised)
        if one is not None:
            found[each] = one
        progress(0.2 + 0.8 * (number + 1) / len(everyone))
    prospects = [uniform, *(found[each] for each in asked if each in found)]
    if everybody is not None:
        prospects.append(prospect("stratified", None, Stratified(everybody[1], k), everybody))
    return Examination(
        k=k,
        sampled=bench.X.n,
        words=X.words(),
        settings=settings,
        room=unlabelled,
        prospects=tuple(prospects),
        candidate=None if advised is None else found.get(advised),
        **known_facts,
    )


def _comparable(y: Any, bench: Bench) -> Classes | None:
    """Return the classes that need no kernel to be counted: all, if the sample has every one.

    Otherwise those of the sample, or shares of other classes would be compared.
    """
    if y is None or bench.X.n == len(y):
        return bench.classes
    everyone = classes_of(y)
    assert bench.classes is not None
    return everyone if len(everyone[0]) == len(bench.classes[0]) else bench.classes


def _to_advise(
    X: Features,
    y: Any,
    bench: Bench,
    settings: DesignOptions,
    uneven: bool,
    units: bool,
    alike: bool,
    seed: Seed,
) -> tuple[Bench, DesignOptions | None]:
    """Return the items to look at, fewer for an RBF kernel, and the settings of the candidate.

    There is none where classes are uneven, and where all items are alike and k is above 1.
    """
    if settings.target is not None:
        return bench, settings
    if uneven:
        return bench, None
    if settings.kernel == "rbf":
        return bench, replace(settings, w=0.0)
    rho = WORD_POWER if X.words() and settings.rho is None else settings.rho
    unit = DesignOptions(normalize=True, rho=rho, standardize=units)
    if alike:
        return bench, unit if bench.k == 1 else None
    if bench.unlabelled(unit).rank >= min(SPARE_RANK * bench.k, bench.X.n):
        return bench, unit
    rows = rows_for(X, bench.k, y, DesignOptions(kernel="rbf"), seed)
    bench = Bench(taken(X, rows), bench.k, None if y is None else y[rows], {})
    F: Any = bench.X if rho is None else anneal(bench.X, rho)
    F = standardize(F) if units else F
    scale = float(f"{suggest_scale(F, bench.k, seed):.4g}")  # digits that people can copy
    return bench, DesignOptions(kernel="rbf", scale=scale, rho=rho, standardize=units)


def in_units(X: Features, scales: float) -> bool:
    """Return whether columns look as if they were in different units; words never do."""
    return scales > UNITS and not X.words()
