"""Checks of labels: one class per item, none of them missing or infinite."""

from __future__ import annotations

import numbers
from decimal import Decimal
from operator import eq
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from dmsgd.inputs.arrays import IntArray, check_missing, to_numpy, what_is
from dmsgd.inputs.messages import counted

#: Numbers with a fraction may be labels up to this many different ones; more are measurements.
FRACTIONS = 20
#: What missing labels become when a column is cast to text; no class has such a name.
MISSING_WORDS = ("nan", "NaN", "NaT", "<NA>")
#: Numbers that are no classes: what divisions by zero leave behind.
INFINITE = (float("inf"), float("-inf"))


def as_labels(value: Any, n: int | None = None, name: str = "labels") -> npt.NDArray[Any]:
    """Return `value` as a 1-D array of classes, of length `n` if given (see `as_classes`)."""
    names, codes = as_classes(value, n, name)
    return names[codes]


def as_classes(
    value: Any, n: int | None = None, name: str = "labels"
) -> tuple[npt.NDArray[Any], IntArray]:
    """Return the classes in order, and the number of each item's class, for `n` items if given.

    Labels are all text, all numbers, all booleans or all of one other kind that has an order, as
    dates have; none is missing or infinite. Numbers with a fraction are classes only where there
    are few.
    """
    labels = _one_kind(value, name)
    if labels.ndim != 1:
        raise ValueError(
            f"{name} must be a 1-D array with one class per item, got {what_is(value, labels)}"
        )
    if labels.size == 0:
        raise ValueError(f"{name} is empty")
    if n is not None and labels.size != n:
        raise ValueError(f"{name} has {labels.size} entries for {n} items; it needs one per item")
    try:
        names, codes = np.unique(labels, return_inverse=True)
    except TypeError:
        raise TypeError(
            f"{name} holds {type(labels[0]).__name__} objects, which have no order; pass text or "
            f"numbers"
        ) from None
    _refuse_no_classes(names, codes, name)
    return names, codes.astype(np.int64)


def _one_kind(value: Any, name: str) -> npt.NDArray[Any]:
    """Return labels that are comparable with each other, and none of which is missing."""
    if sparse.issparse(value):
        raise TypeError(f"{name} must be a 1-D array of classes, got a sparse matrix")
    plain = isinstance(value, list | tuple)  # NumPy would make text of what is beside text
    labels = np.fromiter(value, dtype=object, count=len(value)) if plain else to_numpy(value, name)
    labels = labels[:, 0] if labels.ndim == 2 and labels.shape[1] == 1 else labels  # one column
    check_missing(labels, name)
    if labels.dtype.kind in "cV":
        raise TypeError(f"{name} must be text or numbers, got dtype {labels.dtype}")
    if labels.dtype != object or labels.ndim != 1:
        return labels
    examples = {_kind_of(type(entry)): entry for entry in labels.flat}
    if len(examples) > 1:
        kinds = " and ".join(sorted(examples))
        shown = ", ".join(repr(examples[kind]) for kind in sorted(examples))
        raise TypeError(
            f"{name} mixes {kinds} ({shown}); make them one kind, for example text: "
            f"[str(label) for label in {name}]"
        )
    for entry in examples.values():
        if isinstance(entry, list | tuple | np.ndarray):
            raise ValueError(
                f"{name} must be a 1-D array with one class per item, got a list of lists"
            )
        if type(entry).__hash__ is None or isinstance(entry, complex | np.complexfloating):
            raise TypeError(f"{name} must be text or numbers, got {type(entry).__name__} objects")
    native = np.asarray(labels.tolist())
    same = native.shape == labels.shape and all(map(eq, native.tolist(), labels.tolist()))
    return native if same else labels


def _kind_of(kind: type) -> str:
    if issubclass(kind, bool | np.bool_):
        return "booleans"
    if issubclass(kind, numbers.Real | Decimal):
        return "numbers"
    return "text" if issubclass(kind, str) else kind.__name__.removesuffix("_")


def _refuse_no_classes(names: npt.NDArray[Any], codes: IntArray, name: str) -> None:
    if names.dtype.kind in "UO":
        words = [code for code, entry in enumerate(names.tolist()) if entry in MISSING_WORDS]
        if words:
            raise ValueError(
                f"{name} has {counted(int(np.isin(codes, words).sum()), 'missing entry')} that "
                f"became the text {names[words[0]]!s}; drop or fill them"
            )
    if names.dtype.kind in "fO":
        infinite = [code for code, entry in enumerate(names.tolist()) if entry in INFINITE]
        if infinite:
            raise ValueError(
                f"{name} has {counted(int(np.isin(codes, infinite).sum()), 'infinite entry')}; "
                f"drop or replace them"
            )
    if names.dtype.kind == "f" and names.size > FRACTIONS and (names % 1).any():
        raise ValueError(
            f"{name} has {names.size:,} different numbers with fractions, which are measurements "
            f"and no classes; cut them into bins (np.digitize, pd.cut), or pass them as text if "
            f"each is a class of its own"
        )
