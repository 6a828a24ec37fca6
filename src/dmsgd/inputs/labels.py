"""Checks of labels: one class per item, none of them missing or infinite."""

from __future__ import annotations

import numbers
from decimal import Decimal
from operator import eq
from typing import Any

import numpy as np
import numpy.typing as npt

from dmsgd.inputs.arrays import IntArray, check_missing, describe, is_sparse, to_numpy
from dmsgd.inputs.messages import counted

#: More different numbers with a fraction than this are measurements, not classes.
FRACTIONS = 20
#: What missing labels become when a column is cast to text, and what divisions by zero leave.
MISSING, INFINITE = ("nan", "NaN", "NaT", "<NA>"), (float("inf"), float("-inf"))


def as_labels(value: Any, n: int | None = None, name: str = "labels") -> npt.NDArray[Any]:
    """Return `value` as a 1-D array of classes, of length `n` if given (see `as_classes`)."""
    names, codes = as_classes(value, n, name)
    return names[codes]


def as_classes(
    value: Any, n: int | None = None, name: str = "labels"
) -> tuple[npt.NDArray[Any], IntArray]:
    """Return the classes in sorted order, and the number of each item's class.

    Labels are all text, all numbers, all booleans or all of one other sortable type, such as
    dates; none is missing or infinite. Numbers with a fraction are classes only where there are
    few different ones.
    """
    labels = _as_one_type(value, name)
    if labels.ndim != 1:
        got = describe(value, labels)
        raise ValueError(f"{name} must be a 1-D array with one class per item, got {got}")
    if labels.size == 0:
        raise ValueError(f"{name} is empty")
    if n is not None and labels.size != n:
        raise ValueError(f"{name} has {labels.size} entries for {n} items; it needs one per item")
    try:
        names, codes = np.unique(labels, return_inverse=True)
    except TypeError:
        kind = type(labels[0]).__name__
        raise TypeError(f"{name} holds {kind} objects, which have no order; pass text") from None
    _check_classes(names, codes, name)
    return names, codes.astype(np.int64)


def _as_one_type(value: Any, name: str) -> npt.NDArray[Any]:
    """Return labels that can be compared with each other, none of which is missing."""
    if is_sparse(value):
        raise TypeError(f"{name} must be a 1-D array of classes, got a sparse matrix")
    if isinstance(value, list | tuple):  # np.asarray would turn numbers beside text into text
        labels = np.fromiter(value, dtype=object, count=len(value))
    else:
        labels = to_numpy(value, name)
    labels = labels[:, 0] if labels.ndim == 2 and labels.shape[1] == 1 else labels
    check_missing(labels, name)
    if labels.dtype.kind in "cV":
        raise TypeError(f"{name} must be text or numbers, got dtype {labels.dtype}")
    if labels.dtype != object or labels.ndim != 1:
        return labels
    examples = {_type_name(type(entry)): entry for entry in labels.flat}
    if len(examples) > 1:
        shown = ", ".join(repr(examples[each]) for each in sorted(examples))
        kinds = " and ".join(sorted(examples))
        raise TypeError(f"{name} mixes {kinds} ({shown}); make them one kind, such as text")
    for kind in set(map(type, examples.values())):
        if kind.__hash__ is None or issubclass(kind, tuple | complex | np.complexfloating):
            raise TypeError(f"{name} must be text or numbers, got {kind.__name__} objects")
    native = np.asarray(labels.tolist())
    same = native.shape == labels.shape and all(map(eq, native.tolist(), labels.tolist()))
    return native if same else labels


def _type_name(kind: type) -> str:
    if issubclass(kind, bool | np.bool_):
        return "booleans"
    if issubclass(kind, numbers.Real | Decimal):
        return "numbers"
    return "text" if issubclass(kind, str) else kind.__name__.removesuffix("_")


def _check_classes(names: npt.NDArray[Any], codes: IntArray, name: str) -> None:
    """Raise if a class is what remains of a missing label or a division, or is a measurement."""
    for kinds, wrong, what in (("UO", MISSING, "missing"), ("fO", INFINITE, "infinite")):
        found = [c for c, each in enumerate(names.tolist()) if each in wrong]
        if names.dtype.kind in kinds and found:
            count = counted(int(np.isin(codes, found).sum()), f"{what} entry")
            raise ValueError(f"{name} has {count} ({names[found[0]]!s}); drop or replace them")
    if names.dtype.kind == "f" and names.size > FRACTIONS and (names % 1).any():
        raise ValueError(
            f"{name} has {names.size:,} different numbers with fractions, which are no classes; "
            f"cut them into bins (np.digitize), or pass them as text"
        )


def commonest_and_rarest(sizes: Any, most: int) -> IntArray:
    """Return the numbers of the classes, the commonest first; of more than `most` the two ends."""
    order = np.argsort(-np.asarray(sizes, dtype=np.int64), kind="stable")
    return order if order.size <= most else np.append(order[: most // 2], order[-(most // 2) :])
