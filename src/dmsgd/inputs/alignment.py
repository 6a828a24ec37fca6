"""Values for the rows of a table, such as labels: matched by position, never in another order."""

from __future__ import annotations

from typing import Any

from dmsgd.errors import InputError
from dmsgd.inputs.arrays import to_numpy


def aligned(values: Any, X: Any, name: str, of: str = "X") -> Any:
    """Return `values`, one per row of X; those of a pandas Series as an array.

    Raises InputError if values and X both have an index and these differ: values match by
    position, as in scikit-learn. Lengths that differ are left to the caller.
    """
    index, rows = _index(values), _index(X)
    if index is None:
        return values
    if rows is not None and len(index) == len(rows) and not index.equals(rows):
        first = next((i for i in range(len(rows)) if str(index[i]) != str(rows[i])), 0)
        raise InputError(
            f"{name} and {of} have different indexes: row {first} is {rows[first]} in {of} and "
            f"{index[first]} in {name}; pass {name}.loc[{of}.index] to match by index, or "
            f"{name}.to_numpy() to match by position"
        )
    return to_numpy(values, name)


def _index(value: Any) -> Any:
    """Return the index of a Series or frame of pandas, and None for anything else."""
    index = None if isinstance(value, type) else getattr(value, "index", None)
    return index if hasattr(index, "get_indexer") and hasattr(value, "iloc") else None
