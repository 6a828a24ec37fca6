"""The epochs of a sampler: which pass is under way, and where the next one begins."""

from __future__ import annotations

import warnings

from dmsgd.torch.passes import Pass


class Course:
    """Passes in their order: every one is the next epoch, unless another is named or loaded.

    epoch:      of the pass under way or, once it is named or loaded, of the next one.
    next_place: epoch and position (indices already consumed by this process) of the next pass.
    under_way:  the pass that was begun last, None once another epoch is named or loaded.
    """

    def __init__(self, epoch: int = 0, position: int = 0) -> None:
        self.epoch, self.next_place = epoch, (epoch, position)
        self.under_way: Pass | None = None
        self._named = False  # whether the epoch of the next pass was said, or only counted up
        self._loaded = False  # whether the next pass goes on from a loaded state

    def name(self, epoch: int) -> None:
        """Make `epoch` that of the next pass; a position just loaded for it is kept."""
        planned = self.next_place[0]
        if self._loaded and epoch < planned:
            raise ValueError(
                f"the loaded state stands in epoch {planned}, and now epoch {epoch} is "
                f"named; go on with set_epoch({planned}), in Accelerate that of the "
                f"prepared loader. Fabric counts from 0 in every run: there, go through the loader "
                f"itself, without setup_dataloaders"
            )
        if epoch != planned:
            self.next_place = epoch, 0
        self.epoch, self._named = epoch, True
        if self.under_way is not None and self.under_way.epoch != epoch:
            self.under_way = None  # what is saved from now on is the epoch that was named

    def load(self, epoch: int, position: int, length: int) -> None:
        """Go on from a place at the next pass; at the end of an epoch, with the one after it."""
        finished = position >= length
        self.epoch = epoch + finished
        self.next_place = self.epoch, 0 if finished else position
        self._named = self._loaded = True
        self.under_way = None

    def begin(self, new: Pass, epoch: int) -> None:
        """Note that a pass begins."""
        self.under_way, self.epoch, self.next_place = new, epoch, (epoch + 1, 0)
        self._named = self._loaded = False

    def place(self, length: int) -> tuple[int, int]:
        """Return where the pass under way stands, or where the next one begins."""
        now = self.under_way
        return now.place if now and now.position < length else self.next_place

    def warn_of_an_epoch_left_early(self, length: int, named_by_loader: bool) -> None:
        """Warn if the last pass was not ended, and nobody but a loader has named the next one."""
        last = self.under_way
        if last and last.position < length and (named_by_loader or not self._named):
            warnings.warn(
                f"epoch {last.epoch} was left after {last.position} of {length} indices, and this "
                f"pass is epoch {self.next_place[0]}: a look at a batch and a second loader use up "
                f"epochs too. Call set_epoch before each pass to say which epoch it is",
                stacklevel=4,
            )

    def copied(self, length: int) -> Course:
        """Return a course that stands where this one does, without the pass under way."""
        copy = Course(*self.place(length))
        copy._named, copy._loaded = self._named, self._loaded
        return copy
