"""How often items and classes are drawn: class shares, correlations, counts; a label weight."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dmsgd.designs.build import diversify
from dmsgd.designs.design import ClosedForm, inclusion_of
from dmsgd.designs.dpp import DPP
from dmsgd.designs.stream import Source, check_design
from dmsgd.features.convert import split_label_column
from dmsgd.inputs.arrays import TINY, FloatArray, as_items, as_numbers
from dmsgd.inputs.labels import as_classes
from dmsgd.inputs.scalars import Seed, as_count, as_flag, as_fraction
from dmsgd.spectra.strength import entropy

#: Batches counted at a time.
PIECE = 1000


def estimate_inclusion(
    design: Source, draws: int, seed: Seed = None, *, workers: int = 1
) -> FloatArray:
    """Return how often each item is in a batch among batches 0..draws, shape (n,); sums to k.

    For designs without closed forms, such as `SwapChain`. With independent batches the standard
    error is sqrt(b (1 - b) / draws). An item that was not drawn gets 0.

    >>> from dmsgd import Uniform
    >>> estimate_inclusion(Uniform(n=4, k=2), draws=10_000, seed=0).round(1)
    array([0.5, 0.5, 0.5, 0.5])
    """
    check_design(design)
    draws, stream = as_count(draws, "draws"), design.stream(seed)
    counts = np.zeros(design.n, dtype=np.int64)
    for first in range(0, draws, PIECE):
        batches = stream.sample(min(PIECE, draws - first), first, workers)
        counts += np.bincount(batches.ravel(), minlength=design.n)
    return counts / draws


def correlation(design: ClosedForm | DPP, i: Any, j: Any) -> FloatArray:
    """Return C_ij = E[m_i m_j] / (b_i b_j) - 1 for broadcast item numbers (the paper's eq. for C).

    Negative: the two items avoid each other, as all pairs of a k-DPP or a DPP do (both are strongly
    Rayleigh; Borcea, Brändén, Liggett 2009). Items that are never drawn give NaN. The shape is that
    of i and j broadcast; the cost is that of `design.joint`.

    >>> from dmsgd import Uniform
    >>> float(correlation(Uniform(3, 2), 0, 1))
    -0.25
    """
    if not isinstance(design, ClosedForm | DPP):
        raise TypeError(
            f"correlation needs a design with joint probabilities, got {type(design).__name__}; "
            f"of others, count pairs in sample(draws, seed)"
        )
    joint, b = design.joint(i, j), design.inclusion()
    product = b[as_items(i, design.n, "i")] * b[as_items(j, design.n, "j")]
    return np.asarray(joint / np.where(product > TINY, product, np.nan) - 1)


def class_shares(design: Source, labels: Any) -> dict[Any, float]:
    """Return each class's expected share of a batch, by class; they sum to 1. O(n).

    >>> from dmsgd import Uniform
    >>> class_shares(Uniform(n=4, k=2), ["a", "a", "a", "b"])
    {'a': 0.75, 'b': 0.25}
    """
    inclusion = inclusion_of(design)
    names, codes = as_classes(labels, inclusion.size)
    shares = np.bincount(codes, inclusion) / inclusion.sum()
    return dict(zip(names.tolist(), shares.tolist(), strict=True))


def evenness(shares: Mapping[Any, float]) -> float:
    """Return exp(entropy of the shares) / number of classes: 1 if all are equal.

    >>> evenness({"a": 0.5, "b": 0.5}), evenness({"a": 1.0, "b": 0.0})
    (1.0, 0.5)
    """
    if not isinstance(shares, Mapping):
        raise TypeError(f"shares must map classes to numbers, got a {type(shares).__name__}")
    given = as_numbers(list(shares.values()), "shares")
    if given.min() < 0 or given.max() == 0:
        raise ValueError("shares must be at least 0, and one of them above it")
    return float(np.exp(entropy(given)) / len(shares))


def suggest_w(
    X: Any,
    k: int,
    labels: Any,
    balance: float = 0.8,
    *,
    standardize: bool = False,
    normalize: bool = False,
) -> float:
    """Return the smallest w of 0, 0.1, ..., 1 whose expected class shares are even enough.

    The w is for `diversify` with the same `standardize` and `normalize`: where columns or rows are
    scaled it is another one.
    `balance` is the least `evenness`. Labels have as many directions as classes, so w = 1 is tried
    only for k up to that number, and with k far above it no w may do; then `Stratified` will.
    At most eleven set-ups of `diversify`.

    >>> X = np.random.default_rng(0).normal(size=(100, 8))
    >>> y = np.repeat(["common", "rare"], [90, 10])
    >>> suggest_w(X, 4, y, balance=0.9, normalize=True)
    0.9
    """
    balance = as_fraction(balance, "balance")
    standardize, normalize = as_flag(standardize, "standardize"), as_flag(normalize, "normalize")
    X, labels = split_label_column(X, labels)
    classes, k = as_classes(labels)[0].size, as_count(k, "k")
    last, reached = (1.0 if k <= classes else 0.9), 0.0  # at w = 1 the rank is that of the labels
    for w in np.arange(round(10 * last) + 1) / 10:
        used = labels if w > 0 else None
        design = diversify(X, k, used, float(w), standardize=standardize, normalize=normalize)
        reached = evenness(class_shares(design, labels))
        if reached >= balance:
            return float(w)
    raise ValueError(
        f"no w makes the classes as even as {balance} at k={k} (w={last:g} reaches {reached:.2f}); "
        f"lower k or balance, {'' if normalize else 'pass normalize=True, '}or use dmsgd.Stratified"
    )
