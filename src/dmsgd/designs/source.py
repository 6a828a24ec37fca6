"""Where batches come from, as training code sees it: a design, or a schedule drawn from one."""

from __future__ import annotations

from typing import Protocol

from dmsgd.inputs.arrays import FloatArray, IntArray
from dmsgd.inputs.seeding import Seed

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


def known(source: Source) -> KnownSource:
    """Return a source that knows how often items are drawn; one that does not says what to do."""
    source.inclusion  # type: ignore[attr-defined]  # noqa: B018
    return source  # type: ignore[return-value]
