"""The kinds of arguments: which values of `given` must do, must not, and may either."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import given
import numpy as np
from given import Size

from dmsgd.samplers import reference, rejection

Makers = dict[str, Callable[[Size], Any]]


@dataclass(frozen=True)
class Kind:
    """What an argument may be: makers of values that must do, must not, and may either."""

    good: Makers
    bad: Makers
    odd: Makers = field(default_factory=dict)

    def having(self, **good):
        """Return this kind where these values must do."""
        bad, odd = (
            {k: v for k, v in part.items() if k not in good} for part in (self.bad, self.odd)
        )
        return Kind({**self.good, **good}, bad, odd)

    def without(self, *names):
        """Return this kind without these values."""
        parts = (self.good, self.bad, self.odd)
        return Kind(*({k: v for k, v in part.items() if k not in names} for part in parts))

    def optional(self):
        """Return this kind where None must do."""
        return self.having(**{"None": lambda s: None})


def named(*names):
    """Return the kind of an argument that is one of these words."""
    bad = {**given.NOTHING_LIKE_IT, "another": lambda s: "another", "empty": lambda s: ""}
    return Kind({name: lambda s, name=name: name for name in names}, bad)


NONE = {"None": lambda s: None}
DENSE = Kind(given.FEATURES_GOOD, given.FEATURES_BAD, given.FEATURES_ODD)
X = Kind({**given.FEATURES_GOOD, **given.FEATURES_SPARSE}, given.FEATURES_BAD, given.FEATURES_ODD)
POSITIVE_X = Kind(
    {"counts": lambda s: s.counts, "array": lambda s: abs(s.X), "frame": lambda s: abs(s.counts)},
    given.FEATURES_BAD,
    {**given.FEATURES_ODD, **given.FEATURES_SPARSE},
)
LABELS = Kind(given.LABELS_GOOD, {**given.LABELS_BAD, **NONE}, given.LABELS_ODD)
#: Labels whose number is that of the items, whatever it is.
ALL_LABELS = LABELS.without("too short", "too long")
BATCH_SIZE = Kind(
    {"k": lambda s: s.k, "np.int8": lambda s: np.int8(s.k), "uint64": lambda s: np.uint64(s.k)},
    {**given.COUNT_BAD, **NONE, "above n": lambda s: s.n + 1},
    {"n": lambda s: s.n, "1": lambda s: 1},
)
COUNT = Kind(given.COUNT_GOOD, {**given.COUNT_BAD, **NONE}, {"1": lambda s: 1})
COUNT_OR_ZERO = COUNT.having(zero=lambda s: 0)
START = COUNT_OR_ZERO.having(late=lambda s: 2**40)
FRACTION = Kind(
    {
        "0.5": lambda s: 0.5,
        "np.float32": lambda s: np.float32(0.5),
        "fraction": lambda s: Fraction(1, 4),
    },
    {**given.REAL_BAD, **NONE, "1.1": lambda s: 1.1},
    {"0": lambda s: 0, "1": lambda s: 1, "1e-300": lambda s: 1e-300},
)
POSITIVE = Kind(
    {"1.5": lambda s: 1.5, "2": lambda s: 2, "np.float32": lambda s: np.float32(0.5)}
    | {"fraction": lambda s: Fraction(3, 2)},
    {**given.REAL_BAD, **NONE, "zero": lambda s: 0.0},
    {"1e-300": lambda s: 1e-300, "1e300": lambda s: 1e300},
)
SEED = Kind(given.SEED_GOOD, given.SEED_BAD)
WORKERS = Kind({"1": lambda s: 1, "3": lambda s: 3}, {**given.COUNT_BAD, **NONE}).having(
    **{"-1": lambda s: -1}
)
ITEMS = Kind(
    given.ITEMS_GOOD,
    {**given.ITEMS_BAD, "2-D": lambda s: [[0, 1]], "0-D": lambda s: 1},
    {"none": lambda s: []},
)
ITEMS_OF_ANY_SHAPE = Kind(
    {"number": lambda s: 1, "one": lambda s: [1], "2-D": lambda s: [[0], [1]]},
    given.ITEMS_BAD,
    {"three": lambda s: [0, 1, 2], "four": lambda s: [0, 1, 2, 3], "none": lambda s: []},
)
GIVEN_ITEMS = Kind(
    {"none": lambda s: np.zeros(0, int), "one": lambda s: [0], "uint8": lambda s: np.uint8([1])},
    {**ITEMS.bad, "twice": lambda s: [0, 0], "too many": lambda s: range(s.k + 1)},
    {"two": lambda s: [1, 0]},
)
LANDMARKS = Kind(
    {"2": lambda s: 2, "np.int8": lambda s: np.int8(3), "items": lambda s: [0, 2]},
    {
        **ITEMS.bad,
        "zero": lambda s: 0,
        "many": lambda s: s.n + 1,
        "-1": lambda s: -1,
        "empty": lambda s: [],
    },
).without("0-D")
BATCHES = Kind(
    {
        "rows": lambda s: np.arange(2 * s.k).reshape(2, s.k) % s.n,
        "one": lambda s: np.arange(s.k),
        "list": lambda s: [list(range(s.k))],
    },
    {
        **given.ITEMS_BAD,
        "too long": lambda s: np.zeros((1, s.k + 1), int),
        "0-D": lambda s: 1,
        "3-D": lambda s: np.zeros((1, 1, s.k), int),
    },
    {"twice the same": lambda s: np.zeros(s.k, int), "none": lambda s: np.zeros((0, s.k), int)},
)
BATCHES_OF_ANY_SIZE = Kind(
    {"list": lambda s: [[0], [1, 2], []], "rows": lambda s: np.array([[0, 1]])},
    {**{k: lambda s, v=v: [v(s)] for k, v in given.ITEMS_BAD.items()}, "number": lambda s: 3}
    | {"numbers": lambda s: [0, 1], **NONE, "text": lambda s: "01"},
    {"twice the same": lambda s: [[0, 0]], "none": lambda s: [], "all": lambda s: [range(s.n)]},
)
FLAG = Kind({"True": lambda s: True, "np.False_": lambda s: np.False_}, given.FLAG_BAD)
OPTIONAL_FLAG = Kind(
    {**FLAG.good, "None": lambda s: None},
    {name: make for name, make in FLAG.bad.items() if name != "None"},
)
TEXT = Kind({"text": lambda s: "text", "empty": lambda s: ""}, given.NOTHING_LIKE_IT)
NUMBERS = Kind(given.NUMBERS_GOOD, given.NUMBERS_BAD, given.WEIGHTS_ODD)
WEIGHTS = Kind(given.NUMBERS_GOOD, given.WEIGHTS_BAD, given.WEIGHTS_ODD)
TARGET = WEIGHTS.having(uniform=lambda s: "uniform")
INCLUSION = Kind(
    {"equal": lambda s: np.full(s.n, s.k / s.n), "list": lambda s: [s.k / s.n] * s.n},
    given.WEIGHTS_BAD,
    {
        "above 1": lambda s: np.r_[1.5, np.full(s.n - 1, (s.k - 1.5) / (s.n - 1))],
        "another sum": lambda s: np.full(s.n, 0.9),
    },
)
KERNEL_NAME = named("linear", "rbf")
KERNEL = Kind(given.KERNEL_GOOD, given.KERNEL_BAD, given.KERNEL_ODD)
SPECTRUM = Kind(given.SPECTRUM_GOOD, given.SPECTRUM_BAD, given.SPECTRUM_ODD)
L = Kind(
    {**given.SPECTRUM_GOOD, **given.KERNEL_GOOD, "matrix": lambda s: s.X @ s.X.T},
    {k: v for k, v in given.SPECTRUM_BAD.items() if k != "kernel"},
    {**given.SPECTRUM_ODD, **given.KERNEL_ODD},
)
#: Where nothing is stored.
PATH = Kind({"None": lambda s: None}, given.PATH_BAD).optional()
SAMPLER = Kind(
    {"rejection": lambda s: rejection, "reference": lambda s: reference},
    {**NONE, "text": lambda s: "rejection", "number": lambda s: 3, "len": lambda s: len},
)
#: Designs with closed forms must do.
CLOSED = Kind(given.DESIGN_GOOD, given.DESIGN_BAD, {**given.DESIGN_ODD, **given.DESIGN_EDGE})
#: Whatever draws batches of a fixed size must do.
DRAWN = Kind(
    {**given.DESIGN_GOOD, **{k: v for k, v in given.DESIGN_ODD.items() if k != "DPP"}},
    {**given.DESIGN_BAD, "DPP": given.DESIGN_ODD["DPP"]},
    given.DESIGN_EDGE,
)
