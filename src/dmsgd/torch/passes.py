"""One pass over a sampler: it has no epoch until its first item is asked for."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice
from typing import Any, Protocol

from dmsgd.designs.stream import Source
from dmsgd.inputs.scalars import Seed
from dmsgd.torch.ahead import Ahead


class Epochs(Protocol):
    """What a pass asks of its sampler."""

    design: Source
    steps: int
    ahead: Ahead

    @property
    def draw_seed(self) -> Seed:
        """The seed of all draws."""

    @property
    def next_place(self) -> tuple[int, int]:
        """Epoch and position of the next pass."""

    def part(self) -> tuple[int, int]:
        """Return (part, parts): which part of each draw this process takes."""

    def claim(self, new: Pass) -> tuple[int, int]:
        """Return the place where a pass begins, now that its first item is asked for."""

    def taken_up(self, loaded: Pass) -> None:
        """Note that a pass was loaded."""

    def state_dict(self, place: tuple[int, int] | None = None) -> dict[str, Any]:
        """Return the state of a place."""

    def place_of(self, state: dict[str, Any]) -> tuple[int, int]:
        """Return the place of a state."""


class Pass(Iterator[int]):
    """The indices of one epoch for this process, from a place on.

    The epoch is claimed at the first item: loaders make iterators that they never use, and batches
    must not depend on it. torchdata saves and loads the state of the pass beside the sampler's.

    epoch, position: the place: how many indices of which epoch this process has taken.
    design:          what the epoch is drawn from, whatever `update` brings for the next.
    reader:          the batch sampler that goes through it, if known.
    """

    def __init__(self, sampler: Epochs, reader: Any) -> None:
        self._sampler = sampler
        self._indices: Iterator[int] | None = None  # None: no epoch yet
        self.reader = reader
        self.design: Source = sampler.design
        self.epoch = self.position = 0

    @property
    def place(self) -> tuple[int, int]:
        """Epoch and position."""
        return self.epoch, self.position

    def refuse_read_ahead(self) -> None:
        """Raise if a loader without a state of its own has taken more than training has used."""
        if self.reader is not None and not hasattr(self.reader, "state_dict"):
            raise RuntimeError(
                "a DataLoader reads ahead, so that the sampler does not know what training has "
                "consumed; dmsgd.torch.loader and torchdata's StatefulDataLoader do. Under "
                "Accelerate save the epoch and the number of batches, and resume with "
                "loader.set_epoch(epoch) and accelerator.skip_first_batches(loader, batches). "
                "After an epoch, set_epoch(the next one) says that it is over"
            )

    def start(self, epoch: int, position: int) -> None:
        """Go to a place."""
        sampler = self._sampler
        self.design, self.epoch, self.position = sampler.design, epoch, position
        part, parts = sampler.part()
        width = self.design.k // parts
        step, skip = divmod(position, width)
        first, last = epoch * sampler.steps + step, (epoch + 1) * sampler.steps
        mine = slice(part * width, (part + 1) * width)
        rows = sampler.ahead.lots(self.design, sampler.draw_seed, first, last, width)
        indices = chain.from_iterable(lot[:, mine].ravel().tolist() for lot in rows)
        self._indices = islice(indices, skip, None) if skip else indices

    def __next__(self) -> int:
        if self._indices is None:
            self.start(*self._sampler.claim(self))
        index = next(self._indices)  # type: ignore[arg-type]
        self.position += 1
        return index

    def state_dict(self) -> dict[str, Any]:
        """Return the place, as the sampler would."""
        if self._indices is None:
            return self._sampler.state_dict(self._sampler.next_place)
        return self._sampler.state_dict(self.place)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Stand exactly where `state` says, at the end of an epoch too."""
        epoch, position = self._sampler.place_of(state)
        self.start(epoch, position)
        self._sampler.taken_up(self)
