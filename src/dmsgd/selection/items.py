"""Which items a user names: by numbers, a mask, a set, or labels of a frame's index."""

from __future__ import annotations

from typing import Any

import numpy as np

from dmsgd.errors import InputError
from dmsgd.inputs.alignment import aligned
from dmsgd.inputs.arrays import IntArray, as_items, to_numpy
from dmsgd.inputs.messages import counted, few


def as_named_items(value: Any, X: Any, n: int, name: str) -> IntArray:
    """Return the item numbers that `value` names, sorted, each once.

    value: None, item numbers, a set of them, or a mask of length n; a Series is `aligned`. If X is
           a DataFrame whose index is not 0 to n - 1, labels of that index instead of numbers.
    """
    if value is None or (isinstance(value, tuple) and not value):
        return np.empty(0, dtype=np.int64)
    value = list(value) if isinstance(value, set | frozenset) else value
    given = to_numpy(value, name)
    if given.dtype == bool:
        if given.shape != (n,):
            raise InputError(f"{name} is a mask of shape {given.shape} for {counted(n, 'item')}")
        return np.flatnonzero(aligned(value, X, name))
    labels = _index(X, n)
    if labels is not None and given.size:
        places = {label: place for place, label in enumerate(labels.tolist())}
        if len(places) < n:
            raise InputError(
                f"the index of X has repeated labels, so {name} is ambiguous; pass "
                f"X.reset_index(drop=True), and item numbers"
            )
        unknown = [each for each in given.tolist() if each not in places]
        if unknown:
            raise InputError(
                f"{name} names {counted(len(unknown), 'label')} that the index of X does not have, "
                f"such as {few(unknown)}; pass labels of the index, or X.to_numpy() with numbers"
            )
        given = np.array([places[each] for each in given.tolist()], dtype=np.int64)
    return np.unique(as_items(given, n, name, 1))


def _index(X: Any, n: int) -> Any:
    """Return the index of a DataFrame, None if there is none or it is 0 to n - 1."""
    index = getattr(X, "index", None)
    if index is None or callable(index) or not hasattr(X, "columns"):
        return None
    labels = to_numpy(index, "the index of X")
    plain = labels.dtype.kind in "iu" and np.array_equal(labels, np.arange(n))
    return None if plain else labels
