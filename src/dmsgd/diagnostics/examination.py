"""A first look at data before anything is trained: what batches would hold, for several w.

Where the eigendecompositions of all items would take long, they are made of a random sample. A
copy of every item leaves the law of eigenvectors and the class shares as they are, so those of a
sample are close to those of the data; the result says that it is one.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, final

import numpy as np

from dmsgd.designs import KDPP, ClosedForm, Stratified, Uniform, suggest_scale
from dmsgd.designs.tuning import class_shares, evenness
from dmsgd.diagnostics.diversity import Room, room
from dmsgd.diagnostics.exposure import coverage, effective_batch, effective_items
from dmsgd.diagnostics.settings import Settings
from dmsgd.errors import KernelWarning, RankError
from dmsgd.features import Features, anneal, concat, normalize, recognise
from dmsgd.features.interface import InMemory
from dmsgd.inputs.arrays import IntArray, as_batch_size, as_labels
from dmsgd.inputs.seeding import Seed, key_of
from dmsgd.kernels import Linear
from dmsgd.spectra import Spectrum, exact, repulsion

#: The w that are tried beside the one asked for.
WS = (0.0, 0.3, 0.5, 0.7, 0.9)
#: What the paper does to word counts: every shared word counts almost alike.
WORD_POWER = 0.1
#: About as many floating point operations are spent on one eigendecomposition.
OPERATIONS = 2.5e10
#: Sizes of samples to choose from.
SAMPLES = (100_000, 50_000, 20_000, 10_000, 5000, 3000, 2000, 1500)
#: Classes this even need no help.
EVEN = 0.95
#: A linear kernel with fewer dimensions than this times k leaves the batch no choice.
SPARE_RANK = 1.25
#: Batches drawn to see what one costs.
TIMED_DRAWS = 20


@final
@dataclass(frozen=True, eq=False)
class Prospect:
    """What one design would do: its batches by class, in closed form.

    name:     "uniform", "w = 0.7", "stratified".
    settings: of the k-DPP, None for the others.
    shares:   by class, {} without labels; evenness is theirs, 1 if all are equal.
    seen:     expected fraction of the items seen in one epoch of n/k batches.
    effective_batch: what a batch counts with unbiased weights, at most k.
    effective_items: (Σ b)² / Σ b² as a share of the items, 1 if all are equally likely.
    repulsion: log-distance from uniform batches in nats, 0 for those without repulsion.
    seconds:  measured for one draw.
    """

    name: str
    settings: Settings | None
    shares: dict[Any, float] = field(repr=False)
    evenness: float
    seen: float
    effective_batch: float
    effective_items: float
    repulsion: float
    seconds: float


@final
@dataclass(frozen=True, eq=False)
class Examination:
    """What `examine` found.

    sampled:    items that designs were made of, n if all.
    counted:    items among which lengths, duplicates and empty rows were counted, n as a rule.
    classes:    number of items by class, {} without labels.
    lengths:    squared row lengths of the longest tenth over those of the shortest.
    duplicates: items that are copies of another.
    empty:      items whose features are all zero.
    words:      whether the features look like counts of words: sparse and not negative.
    settings:   those that were asked for.
    room:       of their kernel without labels.
    prospects:  uniform batches, the k-DPPs with these settings and several w (those that exist),
                stratified batches if there are labels.
    candidates: the k-DPPs that `advise` chooses from: rows of length 1 or, where a linear kernel
                has too few dimensions for k, an RBF kernel with `suggest_scale`; words annealed.
                With several w where classes are uneven, else with w = 0 alone. Settings with
                kernel="rbf" or a target are kept as they are.
    """

    n: int
    d: int
    k: int
    sampled: int
    counted: int
    classes: dict[Any, int] = field(repr=False)
    lengths: float
    duplicates: int
    empty: int
    words: bool
    settings: Settings
    room: Room
    prospects: tuple[Prospect, ...] = field(repr=False)
    candidates: tuple[Prospect, ...] = field(repr=False)


def examine(
    X: Any,
    k: int,
    labels: Any = None,
    settings: Settings | None = None,
    *,
    ws: tuple[float, ...] = WS,
    made: Mapping[Settings, Spectrum] = MappingProxyType({}),
    seed: Seed = 0,
    progress: Callable[[float], None] = lambda fraction: None,
) -> Examination:
    """Return what batches of k items would hold: uniform, from k-DPPs of several w, stratified.

    X, labels: (n, d) features as `diversify` takes them, (n,) classes.
    settings:  of the k-DPPs, by default those of `diversify`. What is predicted for them is what
               `diversify` gives with the same arguments.
    ws:        w to look at beside that of the settings; without labels or with a target, none.
    made:      spectra that are known already, of the items that `sample_rows` chooses.

    One eigendecomposition for each w; where the settings are not those that would be advised, one
    more, or as many again if classes are uneven.

    >>> X = np.random.default_rng(0).normal(size=(200, 20))
    >>> y = np.repeat(["common", "rare"], [190, 10])
    >>> found = examine(X, 8, y, Settings(normalize=True), ws=(0.0, 0.9))
    >>> {each.name: round(each.shares["rare"], 2) for each in found.prospects}
    {'uniform': 0.05, 'w = 0': 0.05, 'w = 0.9': 0.16, 'stratified': 0.5}
    """
    settings = settings or Settings()
    X = recognise(X)
    n, d = X.shape
    k = as_batch_size(k, n)
    y = None if labels is None else as_labels(labels, n)
    words = X.words()
    rbf = settings.kernel == "rbf"
    rows = sample_rows(n, n if rbf else d, k, seed, n if X.resident else SAMPLES[0])
    S, s = taken(X, rows), None if y is None else y[rows]
    known = X if X.resident else S
    plain = replace(settings, w=0.0, target=None)
    made = dict(made)
    if plain not in made:
        made[plain] = _unlabelled(plain, S, k)
    unlabelled = room(made[plain], k)
    several = y is not None and settings.target is None  # a target is prescribed anew for each w
    tried = sorted({settings.w, *(ws if several else ())})
    asked = [replace(settings, w=w) for w in tried]
    advised = asked
    uniform = prospect("uniform", None, Uniform(n, k), y)
    if not rbf and settings.target is None:
        rho = WORD_POWER if words and settings.rho is None else settings.rho
        unit = Settings(normalize=True, rho=rho)
        if unit not in made:
            made[unit] = _unlabelled(unit, S, k)
        balanced = several and uniform.evenness < EVEN
        advised = [replace(unit, w=w) for w in (tried if balanced else [0.0])]
        if made[unit].rank < min(SPARE_RANK * k, S.shape[0]):
            rows, made = sample_rows(n, n, k, seed), {}
            S, s = taken(X, rows), None if y is None else y[rows]
            advised = [_rbf(S, k, s, each.w, rho, seed) for each in advised]
    progress(0.2)
    found = {}
    everyone = list(dict.fromkeys([*asked, *advised]))
    for number, each in enumerate(everyone):
        design = _design(each, S, k, s, made, each == settings, required=advised is asked)
        if design is not None:
            found[each] = prospect(f"w = {each.w:g}", each, design, s)
        progress(0.2 + 0.8 * (number + 1) / len(everyone))
    prospects = [uniform, *(found[each] for each in asked if each in found)]
    if y is not None:
        prospects.append(prospect("stratified", None, Stratified(y, k), y))
    return Examination(
        k=k,
        sampled=S.shape[0],
        words=words,
        settings=settings,
        room=unlabelled,
        prospects=tuple(prospects),
        candidates=tuple(found[each] for each in advised if each in found),
        **facts(known, n, y),
    )


def _unlabelled(settings: Settings, S: Features, k: int) -> Spectrum:
    """Return the spectrum of the kernel alone, which a linear one has for any k."""
    if settings.kernel == "rbf":
        return settings.design(S, k).spectrum
    F: Any = S if settings.rho is None else anneal(S, settings.rho)
    return exact(Linear(normalize(F) if settings.normalize else F))


def _design(
    settings: Settings,
    S: Features,
    k: int,
    s: Any,
    made: Mapping[Settings, Spectrum],
    asked: bool,
    required: bool,
) -> KDPP | None:
    """Return the k-DPP, None where its rank is below k.

    If there is nothing else to advise, the RankError of the one that was asked for is the answer.
    """
    with nullcontext() if asked else unasked():
        try:
            return KDPP(made[settings], k) if settings in made else settings.design(S, k, s)
        except RankError:
            if asked and required:
                raise
            return None


@contextmanager
def unasked() -> Iterator[None]:
    """Keep designs silent that are shown beside the one that was asked for."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", KernelWarning)
        yield


def taken(X: Features, rows: IntArray) -> InMemory:
    """Return these rows of X in memory."""
    return X.whole() if rows.size == X.n else recognise(X.take(rows), part=True).whole()


def facts(X: Features, n: int, y: Any) -> dict[str, Any]:
    """Return what an `Examination` says of the data alone, from all or some of its n items."""
    squares = np.sort(X.row_squares())
    tenth = max(X.shape[0] // 10, 1)
    shortest = squares[squares > 0][:tenth].mean()
    names, counts = ([], []) if y is None else np.unique(y, return_counts=True)
    return {
        "n": n,
        "counted": int(X.shape[0]),
        "d": int(X.shape[1]),
        "classes": dict(zip(np.asarray(names).tolist(), np.asarray(counts).tolist(), strict=True)),
        "lengths": float(squares[-tenth:].mean() / shortest),
        "duplicates": _duplicates(X),
        "empty": int(np.sum(squares == 0)),
    }


def sample_rows(n: int, d: int, k: int, seed: Seed = 0, most: int | None = None) -> IntArray:
    """Return the items to look at, sorted: all, or as many as are quick to decompose.

    most: read no more than this many, whatever it costs to decompose them.
    """
    for size in (n if most is None else min(n, most), *SAMPLES):
        least = min(size, d)
        affordable = least * least * max(size, d) + 10 * least**3 <= OPERATIONS
        if size <= n and (affordable or size <= max(SAMPLES[-1], 5 * k)):
            break
    if size >= n:
        return np.arange(n)
    return np.sort(np.random.default_rng(key_of(seed)).choice(n, size, replace=False))


def _rbf(S: Features, k: int, s: Any, w: float, rho: float | None, seed: Seed) -> Settings:
    """Return the settings with the suggested scale, in digits that people can copy."""
    F: Any = S if rho is None else anneal(S, rho)
    F = concat(F, s, w) if w > 0 else F
    return Settings(w, "rbf", scale=float(f"{suggest_scale(F, k, seed):.4g}"), rho=rho)


def prospect(name: str, settings: Settings | None, design: ClosedForm, labels: Any) -> Prospect:
    """Return what `design` would do, with the time of a few draws."""
    shares = {} if labels is None else class_shares(design, labels)
    design.sample(2, seed=0)  # compiling is no part of a draw
    began = time.perf_counter()
    design.sample(TIMED_DRAWS, seed=0)
    seconds = (time.perf_counter() - began) / TIMED_DRAWS
    epoch = math.ceil(design.n / design.k)
    return Prospect(
        name=name,
        settings=settings,
        shares=shares,
        evenness=evenness(shares) if shares else 1.0,
        seen=float(coverage(design, epoch)),
        effective_batch=effective_batch(design),
        effective_items=effective_items(design) / design.n,
        repulsion=repulsion(design.spectrum, design.k) if isinstance(design, KDPP) else 0.0,
        seconds=seconds,
    )


def _duplicates(X: Features) -> int:
    """Return how many rows equal an earlier one: equal rows have equal projections."""
    rng = np.random.default_rng(0)
    projected = X.times(rng.normal(size=(X.d, 2)))
    projected = np.round(projected / np.abs(projected).max(), 12)
    return int(X.shape[0] - np.unique(projected, axis=0).shape[0])
