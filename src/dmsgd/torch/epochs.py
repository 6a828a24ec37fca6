"""Passes over a `DiverseSampler`: where the next one begins, and how far one is.

Both are kept in a state, a plain dict, from which training goes on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any, Literal, final

from dmsgd.inputs.messages import kind_of
from dmsgd.inputs.scalars import as_count

Origin = Literal["counted", "named", "loaded"]


@final
@dataclass(frozen=True)
class Place:
    """Where the next pass over a sampler begins.

    epoch, position: its epoch, and how many indices of it this process has consumed.
    origin: whether the epoch was counted up, named by `set_epoch`, or loaded with a state.
    after:  the pass that was begun last, None once another epoch is named or a state is loaded.
    """

    epoch: int = 0
    position: int = 0
    origin: Origin = "counted"
    after: EpochIterator | None = None


class EpochIterator(Iterator[int]):
    """The indices of one pass over a sampler for this process, and the state that resumes it.

    The epoch is chosen when the first index is asked for: loaders make iterators that they never
    use, and batches must not depend on it. torchdata saves and loads the state of the iterator.
    `stream` is what the epoch is drawn from, whatever `update` brings for the next.
    """

    def __init__(self, sampler: Any) -> None:
        self._sampler, self.stream = sampler, sampler.stream
        self._indices: Iterator[int] | None = None  # None: no epoch is chosen yet
        self.epoch = self.position = 0  # of which epoch how many indices this process has taken

    def __next__(self) -> int:
        indices = self._indices or self._begin(self._sampler.begin())
        index = next(indices)
        self.position += 1
        return index

    def _begin(self, place: Place) -> Iterator[int]:
        """Set and return the indices from this place on."""
        sampler = self._sampler
        self.stream, self.epoch, self.position = sampler.stream, place.epoch, place.position
        part, parts = sampler.part()
        width = self.stream.k // parts
        step, skip = divmod(place.position, width)
        first, last = place.epoch * sampler.steps + step, (place.epoch + 1) * sampler.steps
        mine = slice(part * width, (part + 1) * width)
        rows = sampler.draws(self.stream, first, last, width)
        indices = chain.from_iterable(chunk[:, mine].ravel().tolist() for chunk in rows)
        self._indices = islice(indices, skip, None) if skip else indices
        sampler.began(self)
        return self._indices

    def state_dict(self) -> dict[str, Any]:
        """Return where this pass stands: epoch, consumed items, and of which design."""
        if self._indices is None:
            return dict(self._sampler.next_state())
        return dict(self._sampler.state(self.epoch, self.position, self.stream))

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Stand exactly where `state` says, also at the end of an epoch."""
        self._begin(self._sampler.place_in(state))


def as_state(value: Any, names: Iterable[str]) -> Mapping[str, Any]:
    """Return `value`, a dict in which these names are."""
    if not isinstance(value, Mapping):
        raise TypeError(f"the state must be what state_dict() returned, got {kind_of(value)}")
    missing = ", ".join(name for name in names if name not in value)
    if missing:
        raise ValueError(f"the state has no {missing}; pass what state_dict() returned")
    return value


def as_epoch(value: Any, steps: int, name: str = "epoch") -> int:
    """Return the number of an epoch whose draws, `steps` of them, have numbers below 2^63."""
    epoch = as_count(value, name, least=0)
    as_count((epoch + 1) * steps, f"(1 + {name}) x {steps} steps, the number of draws,")
    return epoch
