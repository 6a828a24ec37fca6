"""Quantities of any design: the paper's correlations and unbiased weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from dmsgd.designs.design import ClosedForm
from dmsgd.designs.dpp import DPP
from dmsgd.designs.stream import Source
from dmsgd.inputs.arrays import TINY, FloatArray, as_items
from dmsgd.inputs.messages import counted


def correlation(design: ClosedForm | DPP, i: Any, j: Any) -> FloatArray:
    """Return C_ij = E[m_i m_j] / (b_i b_j) - 1 for broadcast item numbers (the paper's eq. for C).

    Negative: the two items avoid each other. The paper allows for positive C_ij between dissimilar
    items, but k-DPPs and DPPs are strongly Rayleigh measures (Borcea, Brändén, Liggett 2009), so
    that C_ij <= 0 for all i != j. Items that are never drawn give NaN. The shape is that of i and j
    broadcast; the cost is that of `design.joint`.

    >>> import dmsgd
    >>> float(correlation(dmsgd.Uniform(3, 2), 0, 1))
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


def inclusion_of(design: Source | DPP) -> FloatArray:
    """Return b_i, the probability that item i is in a batch, shape (n,)."""
    if isinstance(design, type) or not hasattr(design, "sample"):
        kind = f"the class {design.__name__}" if isinstance(design, type) else type(design).__name__
        raise TypeError(f"design must be a design of dmsgd or a Schedule, got {kind}")
    try:
        find = design.inclusion  # type: ignore[union-attr]
    except AttributeError as error:
        raise TypeError(f"this needs a design that knows its inclusion: {error}") from None
    b: FloatArray = find()
    return b


def unbiased_weights(design: Source | DPP) -> FloatArray:
    """Return 1 / (N b_i), so that the weighted sum over a batch estimates the mean over the data.

    The paper's (1/k) Σ g/b has expectation N/k times the mean gradient; these weights give
    E[Σ_{i in batch} weight_i g_i] = (1/N) Σ_i g_i exactly. Shape (n,); O(n) beside `inclusion`.

    >>> import dmsgd
    >>> unbiased_weights(dmsgd.Stratified(["a", "a", "b"], k=2))
    array([0.66666667, 0.66666667, 0.33333333])
    """
    b = inclusion_of(design)
    never = np.flatnonzero(b < TINY)
    if never.size:
        raise ValueError(
            f"b_i is {b[never[0]]:g} for {counted(never.size, 'item')} never drawn (the first is "
            f"item {never[0]}), so no weights make their gradients count; give them features, or "
            f"drop them"
        )
    return 1 / (design.n * b)
