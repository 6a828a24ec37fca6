"""A query strategy for modAL, which it takes as a function."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from dmsgd.features.products import stack
from dmsgd.inputs.arrays import FloatArray, IntArray
from dmsgd.inputs.scalars import as_choice
from dmsgd.selection.select import How, select
from dmsgd.selection.uncertainty import Uncertainty, uncertainty


def query(
    classifier: Any,
    X: Any,
    n_instances: int = 1,
    *,
    how: How = "cover",
    method: Uncertainty = "margin",
    metric: Literal["euclidean", "cosine"] = "euclidean",
    diversity: float = 0.5,
    duplicates: float | None = None,
    workers: int = 1,
    **predict_proba_kwargs: Any,
) -> tuple[IntArray, FloatArray]:
    """Return rows of the pool X to label: uncertain, diverse and unlike the labelled ones.

    For `ActiveLearner(estimator, query_strategy=dmsgd.modal.query, ...)` of modAL. Rows that the
    learner has learnt from count as `given`. Returns row numbers and their uncertainties, as the
    strategies of modAL 0.4.2 do.

    how, metric, diversity, duplicates, workers: as in `dmsgd.select`, by way of the learner:
            `learner.query(X, n_instances=50, metric="cosine")`. With `duplicates` there may be
            fewer rows than n_instances.
    method: of `dmsgd.uncertainty`: "margin", "entropy" or "least confidence".

    All other arguments are for the learner's `predict_proba`. See also `select`, `uncertainty`.
    """
    as_choice(metric, "metric", ("euclidean", "cosine"))
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
    items = select(
        rows,
        n_instances,
        quality=quality,
        diversity=diversity,
        given=np.arange(n, rows.shape[0]),
        how=how,
        metric=metric,
        duplicates=duplicates,
        workers=workers,
    )
    return items, quality[items]
