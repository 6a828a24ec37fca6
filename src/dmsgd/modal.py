"""A query strategy for modAL, which it takes as a function."""

from __future__ import annotations

from typing import Any

import numpy as np

from dmsgd.features.rows import stack
from dmsgd.inputs.arrays import IntArray
from dmsgd.selection.select import How, select
from dmsgd.selection.uncertainty import Uncertainty, uncertainty


def query(
    classifier: Any,
    X: Any,
    n_instances: int = 1,
    *,
    how: How = "cover",
    method: Uncertainty = "margin",
    **predict_proba_kwargs: Any,
) -> IntArray:
    """Return rows of the pool X to label: uncertain, diverse and unlike the labelled ones.

    For `ActiveLearner(estimator, query_strategy=dmsgd.modal.query, ...)` of modAL. Rows that the
    learner has learnt from count as `given`.

    how:    as in `dmsgd.select`.
    method: of `dmsgd.uncertainty`: "margin", "entropy" or "least confidence".

    See also `select`, `uncertainty`.
    """
    rows, known = X, classifier.X_training
    if known is not None:
        rows = stack([X, known])
    if classifier.on_transformed:
        rows = classifier.transform_without_estimating(rows)
    n, quality = X.shape[0], np.zeros(rows.shape[0])
    fitted = known is not None
    P = classifier.predict_proba(X, **predict_proba_kwargs) if fitted else None
    quality[:n] = 1.0 if P is None or P.shape[1] < 2 else uncertainty(P, method)
    if not quality.any():
        quality[:n] = 1.0
    return select(
        rows, n_instances, quality=quality, given=tuple(range(n, rows.shape[0])), how=how, seed=0
    )
