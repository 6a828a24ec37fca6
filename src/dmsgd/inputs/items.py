"""Checks of what there is one of for each item, and of item numbers."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
import numpy.typing as npt

from dmsgd.inputs.arrays import FloatArray, IntArray, as_dense, as_floats
from dmsgd.inputs.texts import counted


def as_numbers(value: Any, name: str, n: int | None = None, of: str = "item") -> FloatArray:
    """Return `value`, one finite real number per item, as an array of its own, shape (n,).

    `of`: what there is a number of each of, in words.
    """
    given = as_dense(value, name)
    if given.ndim != 1 or given.size == 0 or given.size != (n or given.size):
        needed = "" if n is None else f", shape ({n},)"
        raise ValueError(
            f"{name} must have one number per {of}{needed}, got {what_is(value, given)}"
        )
    if given.dtype.kind == "b" or (given.dtype == object and _any_bool(given)):
        raise TypeError(
            f"{name} holds booleans; if 0 and 1 are meant, pass them as numbers (astype(float))"
        )
    found = np.array(as_floats(given, name))
    bad = np.flatnonzero(~np.isfinite(found))
    if bad.size:
        raise ValueError(
            f"{name} must be finite, but is {found[bad[0]]:g} for {of} {bad[0]} "
            f"({counted(bad.size, f'such {of}')})"
        )
    return found


def _any_bool(values: npt.NDArray[Any]) -> bool:
    return any(issubclass(kind, bool | np.bool_) for kind in set(map(type, values.flat)))


def what_is(value: Any, array: npt.NDArray[Any]) -> str:
    """Return in words what was given where an array of some shape was needed."""
    return f"a {type(value).__name__}" if array.ndim == 0 else f"shape {array.shape}"


def as_items(value: Any, n: int, name: str, ndim: int | None = None) -> IntArray:
    """Return `value` as int64 item numbers in [0, n), with `ndim` dimensions if given."""
    items = as_dense(value, name)
    if items.dtype == object and items.ndim and all(map(_is_integer, items.flat)):
        beyond = [entry for entry in items.flat if not 0 <= entry < n]
        if beyond:
            raise ValueError(f"{name} must lie in 0..{n - 1}, got {beyond[0]}")
    elif items.dtype.kind not in "iu" and (items.size or items.dtype == object):
        raise TypeError(f"{name} must hold item numbers (integers), got dtype {items.dtype}")
    if ndim is not None and items.ndim != ndim:
        raise ValueError(f"{name} must be a {ndim}-D list of items, got {what_is(value, items)}")
    if items.size and (items.min() < 0 or items.max() >= n):
        raise ValueError(f"{name} must lie in 0..{n - 1}, got {items.min()}..{items.max()}")
    return items.astype(np.int64)


def as_pairs(i: Any, j: Any, n: int) -> tuple[IntArray, IntArray]:
    """Return item numbers i and j, broadcast against each other."""
    i, j = as_items(i, n, "i"), as_items(j, n, "j")
    try:
        i, j = np.broadcast_arrays(i, j)
    except ValueError:
        raise ValueError(
            f"i and j must have shapes that fit each other, got {i.shape} and {j.shape}; all pairs "
            f"of two lists are i[:, None], j"
        ) from None
    return i, j


def _is_integer(entry: Any) -> bool:
    return isinstance(entry, numbers.Integral) and not isinstance(entry, bool)
