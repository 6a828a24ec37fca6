"""Values for the rows of a table, and items that are named, matched by index or by position."""

from __future__ import annotations

from typing import Any

import numpy as np

from dmsgd.errors import InputError
from dmsgd.inputs.arrays import IntArray, as_items, to_numpy
from dmsgd.inputs.messages import counted, few


def aligned(values: Any, X: Any, name: str, of: str = "X") -> Any:
    """Return `values`, one per row of X, in the order of the rows; those of a Series as an array.

    A pandas Series is matched with a frame by index, and raises InputError if the two have
    different labels. If X has no index, its rows have the numbers 0, 1, ...: a Series with these
    numbers in another order raises, too, because it could be matched by index or by position; any
    other is matched by position. Lengths that differ are left to the caller.
    """
    index, rows = _index(values), _index(X)
    if index is None:
        return values
    if rows is None and X is not None and _is_shuffled(np.asarray(index)):
        raise InputError(
            f"{name} has an index that numbers the rows of {of} in another order, but {of} has no "
            f"index; pass {name}.sort_index() to match by index, or {name}.to_numpy() to match by "
            f"position"
        )
    if rows is not None and len(index) == len(rows) and not index.equals(rows):
        order = index.get_indexer(rows) if index.is_unique and rows.is_unique else np.array([-1])
        if order.min() < 0 or not index[order].equals(rows):
            first = next((i for i in range(len(rows)) if str(index[i]) != str(rows[i])), 0)
            raise InputError(
                f"{name} and {of} have different indexes: row {first} is {rows[first]} in {of} and "
                f"{index[first]} in {name}; give both the same index, or pass {name}.to_numpy() to "
                f"match by position"
            )
        values = values.iloc[order]
    return to_numpy(values, name)


def as_named_items(value: Any, X: Any, n: int, name: str) -> IntArray:
    """Return the item numbers that `value` names, sorted, each once.

    value: None, item numbers, a set of them, or a mask of length n; a Series is `aligned`. If X is
           a DataFrame, labels of its index, too; an `Index` holds labels.

    Raises InputError if numbers could be both.
    """
    if value is None or (isinstance(value, tuple) and not value):
        return np.empty(0, dtype=np.int64)
    value = list(value) if isinstance(value, set | frozenset) else value
    given, index = to_numpy(value, name), _index(X)
    if given.dtype == bool:
        if given.shape != (n,):
            raise InputError(f"{name} is a mask of shape {given.shape} for {counted(n, 'item')}")
        return np.flatnonzero(aligned(value, X, name))
    if index is not None and given.size and not np.array_equal(index, np.arange(n)):
        if not index.is_unique:
            raise InputError(
                f"the index of X has repeated labels, so {name} is ambiguous; pass "
                f"X.reset_index(drop=True), and item numbers"
            )
        places, whole = index.get_indexer(given), given
        if given.dtype == object and all(isinstance(each, int) for each in given.flat):
            whole = np.asarray(given.tolist())
        numbers = whole.dtype.kind in "iu" and not hasattr(value, "get_indexer")
        if numbers and whole.min() >= 0 and whole.max() < n:
            if (places >= 0).any():
                raise InputError(
                    f"{name} could be item numbers or labels of the index of X; pass "
                    f"X.index[items] for item numbers, as select returns them, or "
                    f"pandas.Index(labels)"
                )
        elif (places >= 0).all():
            given = places
        else:
            unknown = given[places < 0].tolist()
            raise InputError(
                f"{name} names {counted(len(unknown), 'label')} that the index of X does not have, "
                f"such as {few(unknown)}; pass item numbers, or labels of the index"
            )
    return np.unique(as_items(given, n, name, 1))


def _index(value: Any) -> Any:
    """Return the index of a Series or frame of pandas, and None for anything else."""
    index = None if isinstance(value, type) else getattr(value, "index", None)
    return index if hasattr(index, "get_indexer") and hasattr(value, "iloc") else None


def _is_shuffled(index: Any) -> bool:
    """Return whether these are the numbers 0, 1, ... in another order."""
    every = np.arange(index.size)
    whole = index.dtype.kind in "iu" and not np.array_equal(index, every)
    return whole and np.array_equal(np.sort(index), every)
