"""Values for the rows of a table, such as labels, matched by index or by position."""

from __future__ import annotations

from typing import Any

import numpy as np

from dmsgd.errors import InputError
from dmsgd.inputs.arrays import to_numpy


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


def _index(value: Any) -> Any:
    """Return the index of a Series or frame of pandas, and None for anything else."""
    index = None if isinstance(value, type) else getattr(value, "index", None)
    return index if hasattr(index, "get_indexer") and hasattr(value, "iloc") else None


def _is_shuffled(index: Any) -> bool:
    """Return whether these are the numbers 0, 1, ... in another order."""
    every = np.arange(index.size)
    whole = index.dtype.kind in "iu" and not np.array_equal(index, every)
    return whole and np.array_equal(np.sort(index), every)
