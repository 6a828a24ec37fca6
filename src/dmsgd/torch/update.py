"""What `DiverseSampler.update` draws from next: a design of new features or weights."""

from __future__ import annotations

import math
from typing import Any

from dmsgd.designs.build import SPARE, prepared
from dmsgd.designs.contract import Design
from dmsgd.errors import RankError, warn_kernel
from dmsgd.features import as_features
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
        new = _with_features(design, X) if weights is None else _with_weights(design, weights)
    if (new.n, new.k) != (design.n, design.k):
        found, needed = (f"n={each.n}, k={each.k}" for each in (new, design))
        raise ValueError(f"the new design has {found}; this sampler needs {needed}")
    return new


def _with_features(design: Any, X: Any) -> Any:
    if (recipe := getattr(design, "recipe", None)) is None:
        raise TypeError("this design was not made by dmsgd.diversify; pass a design, not features")
    F = as_features(X)
    if F.n != design.n:
        raise ValueError(f"X has {F.n} rows for the {design.n} items of the design")
    try:
        return recipe.build(F, design.k)
    except ValueError:
        if prepared(recipe.options, F).row_norms2().any():
            raise
        raise RankError(design.k, 0, "all features are zero", rbf=False) from None


def _with_weights(design: Any, weights: Any) -> Any:
    if not hasattr(design, "with_weights"):
        problem = f"a {type(design).__name__} design has no weights of items"
        raise TypeError(f"{problem}; pass update(dmsgd.Weighted(weights=weights, k={design.k}))")
    return design.with_weights(weights)


def warn_features_kept(design: Any, error: Exception) -> None:
    """Warn that the features of `design` stay in use, because new ones raise `error`."""
    k = design.k
    problem = f"{error.found}; batches of {k} need {k}" if isinstance(error, RankError) else error
    warn_kernel(
        f"update: {problem}. Training goes on with the last features; this is said once. Embed "
        f"with a layer of at least {math.ceil(SPARE * k)} columns, before its ReLU, or let "
        f'diversify choose the kernel: pass kernel="auto" and leave out scale'
    )
