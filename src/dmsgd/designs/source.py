"""Where batches come from, as training code sees it: a design, or a schedule drawn from one."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from dmsgd.inputs.arrays import FloatArray, IntArray
from dmsgd.inputs.scalars import Seed

#: What training and schedules can draw from, in words.
FIXED_K = "a design with a fixed k (diversify makes one; any design of dmsgd but DPP has one)"


class Source(Protocol):
    """Batches of k out of n items by number: any `Design` of fixed size, or a `Schedule`."""

    @property
    def n(self) -> int:
        """Number of items."""

    @property
    def k(self) -> int:
        """Number of items in a batch."""

    @property
    def seed(self) -> int | None:
        """The seed of batches that are drawn already; None if `sample` takes any."""

    @property
    def at_once(self) -> int | None:
        """How many draws are best asked for in one call; None if any number is as good."""

    def sample(self, size: int, seed: Seed = None, *, start: int = 0, workers: int = 1) -> IntArray:
        """Return draws number start..start+size, shape (size, k)."""


class KnownSource(Source, Protocol):
    """A source that knows how often each item is drawn, so that gradients can be weighed."""

    def inclusion(self) -> FloatArray:
        """Return b_i, the probability that item i is in a batch, shape (n,)."""


def as_source(value: Any) -> Source:
    """Return `value`, which draws batches of a fixed size."""
    sizes = () if isinstance(value, type) else (getattr(value, "n", 0), getattr(value, "k", 0))
    counted = all(isinstance(size, int | np.integer) and size > 0 for size in sizes)
    if not (sizes and counted and callable(getattr(value, "sample", None))):
        raise TypeError(f"design must be {FIXED_K} or a Schedule, got {_name_of(value)}")
    return value  # type: ignore[no-any-return]


def known(value: Any) -> KnownSource:
    """Return a source that knows how often items are drawn; one that does not says what to do."""
    if isinstance(value, type) or not hasattr(value, "sample"):
        raise TypeError(f"design must be a design of dmsgd or a Schedule, got {_name_of(value)}")
    try:
        value.inclusion  # noqa: B018
    except AttributeError as error:
        raise TypeError(f"this needs a design that knows its inclusion: {error}") from None
    return value  # type: ignore[no-any-return]


def _name_of(value: Any) -> str:
    return f"the class {value.__name__}" if isinstance(value, type) else type(value).__name__
