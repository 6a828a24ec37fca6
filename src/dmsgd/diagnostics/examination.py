"""A first look at data before anything is trained: what batches would hold for several weights w.

Where the eigendecompositions of all items would take long, they are made of a random sample. A
copy of every item leaves the law of eigenvectors and the class shares as they are, so those of a
sample are close to those of the data; the result says that it is one.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, final

import numpy as np

from dmsgd.designs import KDPP, Design, Stratified, Uniform, diversify, suggest_scale
from dmsgd.designs.tuning import class_shares, evenness
from dmsgd.diagnostics.diversity import Room, room
from dmsgd.diagnostics.exposure import coverage, effective_batch, effective_items
from dmsgd.features import Features, anneal, concat, normalize, recognise
from dmsgd.inputs.arrays import IntArray, Matrix, as_batch_size, as_labels
from dmsgd.inputs.seeding import Seed, key_of
from dmsgd.kernels import Linear
from dmsgd.spectra import exact

#: The weights of labels that are tried.
WEIGHTS = (0.0, 0.3, 0.5, 0.7, 0.9)
#: What the paper does to word counts: every shared word counts almost alike.
WORD_POWER = 0.1
#: About as many floating point operations are spent on one eigendecomposition.
OPERATIONS = 2.5e10
#: Sizes of samples to choose from.
SAMPLES = (100_000, 50_000, 20_000, 10_000, 5000, 3000, 2000, 1500)
#: A linear kernel with fewer dimensions than this times k leaves the batch no choice.
SPARE_RANK = 1.25
#: Batches drawn to see what one costs.
TIMED_DRAWS = 20


@final
@dataclass(frozen=True)
class Settings:
    """How a k-DPP is made of features: the arguments of `diversify`, and rho for `anneal`."""

    w: float
    kernel: str
    normalize: bool
    scale: float | None
    rho: float | None

    def design(self, X: Any, k: int, labels: Any = None) -> KDPP:
        """Return the k-DPP with these settings."""
        F = X if self.rho is None else anneal(X, self.rho)
        return diversify(
            F, k, labels, self.w, self.kernel, normalize=self.normalize, scale=self.scale
        )


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
    seconds:  measured for one draw.
    """

    name: str
    settings: Settings | None
    shares: dict[Any, float] = field(repr=False)
    evenness: float
    seen: float
    effective_batch: float
    effective_items: float
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
    rho:        the power they were annealed with, None if they were not.
    linear:     room of the linear kernel of normalised rows without labels.
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
    rho: float | None
    linear: Room
    prospects: tuple[Prospect, ...] = field(repr=False)


def examine(
    X: Any,
    k: int,
    labels: Any = None,
    *,
    weights: tuple[float, ...] = WEIGHTS,
    rho: float | None = None,
    seed: Seed = 0,
    progress: Callable[[float], None] = lambda fraction: None,
) -> Examination:
    """Return what batches of k items would hold: uniform, from k-DPPs of several w, stratified.

    The k-DPPs have a linear kernel of normalised rows or, where that has too few dimensions for k,
    an RBF kernel with `suggest_scale`. rho: power to anneal the features with; by default 0.1 for
    sparse features without negative ones, and none otherwise.
    """
    X = recognise(X)
    n, d = X.shape
    k = as_batch_size(k, n)
    y = None if labels is None else as_labels(labels, n)
    words = X.words()
    if rho is None and words:
        rho = WORD_POWER
    rows = sample_rows(n, d, k, seed, n if X.resident else SAMPLES[0])
    S, s = taken(X, rows), None if y is None else y[rows]
    known = X if X.resident else recognise(S)
    spectrum = exact(Linear(normalize(S if rho is None else anneal(S, rho))))
    progress(0.2)
    plain = Settings(0.0, "linear", True, None, rho)
    spacious = spectrum.rank >= min(SPARE_RANK * k, S.shape[0])
    if not spacious:  # an RBF kernel has as many dimensions as items
        rows = sample_rows(n, n, k, seed)
        S, s = taken(X, rows), None if y is None else y[rows]
    prospects = [prospect("uniform", None, Uniform(n, k), y)]
    tried = (0.0,) if y is None else weights
    for number, w in enumerate(tried):
        settings = replace(plain, w=w) if spacious else _rbf(S, k, s, w, rho, seed)
        design = KDPP(spectrum, k) if settings == plain else settings.design(S, k, s)
        prospects.append(prospect(f"w = {w:g}", settings, design, s))
        progress(0.2 + 0.8 * (number + 1) / len(tried))
    if y is not None:
        prospects.append(prospect("stratified", None, Stratified(y, k), y))
    return Examination(
        k=k,
        sampled=S.shape[0],
        words=words,
        rho=rho,
        linear=room(spectrum, k),
        prospects=tuple(prospects),
        **facts(known, n, y),
    )


def taken(X: Features, rows: IntArray) -> Matrix:
    """Return these rows of X in memory."""
    return X.whole().matrix if rows.size == X.n else X.take(rows)


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


def _rbf(S: Matrix, k: int, s: Any, w: float, rho: float | None, seed: Seed) -> Settings:
    F = S if rho is None else anneal(S, rho)
    F = F if s is None else concat(F, s, w)
    return Settings(w, "rbf", False, suggest_scale(F, k, seed), rho)


def prospect(name: str, settings: Settings | None, design: Design, labels: Any) -> Prospect:
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
        seconds=seconds,
    )


def _duplicates(X: Features) -> int:
    """Return how many rows equal an earlier one: equal rows have equal projections."""
    rng = np.random.default_rng(0)
    projected = X.times(rng.normal(size=(X.d, 2)))
    projected = np.round(projected / np.abs(projected).max(), 12)
    return int(X.shape[0] - np.unique(projected, axis=0).shape[0])
