"""What `DiverseSampler.update` draws from next: a design of new features or weights."""

from __future__ import annotations

import math
from typing import Any

from dmsgd.designs.build import SPARE, remake
from dmsgd.designs.contract import Design
from dmsgd.errors import RankError, warn_kernel
from dmsgd.torch import distributed


def new_design(design: Any, X: Any, weights: Any) -> Any:
    """Return the design of rank 0's new features X or weights, or X if it is a design.

    Raises `RankError` or `TargetError` where `diversify` makes no k-DPP of the features.
    """
    if isinstance(X, Design) and weights is not None:
        raise TypeError("update takes a design or weights, not both; the design has its own")
    new = X
    if not isinstance(X, Design):
        X, weights = distributed.broadcast_from_rank_0((X, weights))
        if (X is None) == (weights is None):
            raise TypeError("update needs features, a design or weights=, and one of them only")
        new = remake(design, X) if weights is None else _with_weights(design, weights)
    if (new.n, new.k) != (design.n, design.k):
        raise ValueError(
            f"the new design has n={new.n}, k={new.k}; this sampler needs n={design.n}, "
            f"k={design.k}"
        )
    return new


def _with_weights(design: Any, weights: Any) -> Any:
    if not hasattr(design, "with_weights"):
        raise TypeError(
            f"a {type(design).__name__} design has no weights of items; to draw by weight from now "
            f"on, pass a design: update(dmsgd.Weighted(weights=weights, k={design.k}))"
        )
    return design.with_weights(weights)


def warn_features_kept(design: Any, error: Exception) -> None:
    """Warn that the features of `design` stay in use, because new ones raise `error`."""
    k = design.k
    problem = f"{error.found}; batches of {k} need {k}" if isinstance(error, RankError) else error
    columns, other = math.ceil(SPARE * k), ""
    if design._asked_kernel == "linear":
        other = ', or pass kernel="auto" to diversify, which can then change to RBF'
    elif design.options.scale is not None:
        other = ", or leave out scale, so that diversify fits it to the features"
    warn_kernel(
        f"update: {problem}. Training goes on with the last features, and later updates like this "
        f"one do not warn. Embed with a layer of at least {columns} columns, before its "
        f"ReLU{other}"
    )
