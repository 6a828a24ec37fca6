"""How uncertain a classifier is of each item, from its class probabilities."""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np

from dmsgd.inputs.arrays import FloatArray, as_matrix
from dmsgd.inputs.scalars import as_choice, as_flag

#: How far the probabilities of an item may sum from 1: half precision rounds by so much.
ROUNDING = 1e-2
Uncertainty = Literal["margin", "entropy", "least confidence"]


def uncertainty(
    probabilities: Any,
    how: Uncertainty = "margin",
    *,
    logits: bool = False,
) -> FloatArray:
    """Return how uncertain each item is, from 0 (certain) to 1, shape (n,): `quality` of `select`.

    probabilities: (n, classes), such as scikit-learn's `predict_proba` gives, or a torch tensor.
    how:           "margin": 1 less the difference of the two largest probabilities. "entropy", and
                   "least confidence", 1 less the largest; both divided by their largest value.
    logits:        whether these are logits, such as torch's classifiers return, and become
                   probabilities by softmax.

    Raises ValueError if an item's probabilities do not sum to 1. See also `select`.

    >>> uncertainty([[0.5, 0.5, 0.0], [0.7, 0.1, 0.2], [1.0, 0.0, 0.0]])
    array([1. , 0.5, 0. ])
    """
    as_choice(how, "how", get_args(Uncertainty))
    P: Any = as_matrix(probabilities, "probabilities", allow_tiny=True, columns="classes")
    P = P if isinstance(P, np.ndarray) else P.toarray()
    if (classes := P.shape[1]) < 2:
        raise ValueError(
            "probabilities must have one column per class, two at least, got one column; if it is "
            "p of the second of two classes, pass np.column_stack([1 - p, p])"
        )
    if as_flag(logits, "logits"):
        P = np.exp(P - P.max(1, keepdims=True))
        P /= P.sum(1, keepdims=True)
    wrong = (P < -ROUNDING).any(1) | (abs(P.sum(1) - 1) > ROUNDING)
    if wrong.any():
        raise ValueError(
            f"probabilities must be >= 0 with sum 1 for each item, but item {np.argmax(wrong)} has "
            f"the sum {P[wrong][0].sum():.3g}; for logits pass logits=True"
        )
    if how == "margin":
        second, first = np.partition(P, -2, axis=1)[:, -2:].T
        found = 1 - (first - second)
    elif how == "entropy":
        found = -(P * np.log(np.maximum(P, 1e-300))).sum(1) / np.log(classes)
    else:
        found = (1 - P.max(1)) * classes / (classes - 1)
    return np.asarray(np.clip(found, 0.0, 1.0))
