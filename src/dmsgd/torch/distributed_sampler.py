"""What torch's DistributedSampler has: frameworks leave such a sampler alone, and read these."""

from __future__ import annotations

from typing import Any

from torch.utils.data import DistributedSampler

from dmsgd.inputs.scalars import MOST, as_count
from dmsgd.torch.course import Course
from dmsgd.torch.ranks import Shard, as_replica, as_shard, part_of_draw


class Distributed(DistributedSampler[Any]):
    """Torch's words for a sampler of n items that shares draws of k between processes.

    The base class's own constructor is not called: it asks for a dataset, and for processes that a
    Trainer may start only later.
    """

    def __init__(
        self, n: int, k: int, steps: int, shard: Shard, rank: int | None, num_replicas: int | None
    ) -> None:
        self.dataset: Any = range(n)
        self.shuffle = self.drop_last = True
        if steps * k > MOST:
            raise ValueError(f"steps={steps} draws of k={k} are more items than 63 bits count")
        self.steps, self.total_size = steps, steps * k
        self.shard: Shard = as_shard(shard)
        #: Number of this process and of all, where the user has said so.
        self.replica = as_replica(rank, num_replicas)
        self.course = Course()
        self._k = k
        self.part()

    def part(self) -> tuple[int, int]:
        """Return (part, parts): this process takes part number `part` of each draw."""
        part, parts = part_of_draw(self.shard, *self.replica)
        if self._k % parts:
            raise ValueError(
                f"k={self._k} cannot be cut into {parts} equal parts, one per rank; "
                f"choose k as a multiple of {parts}"
            )
        return part, parts

    def __len__(self) -> int:
        """Return the number of indices this process takes in an epoch."""
        return self.total_size // self.part()[1]

    @property
    def num_replicas(self) -> int:  # type: ignore[override]
        """Number of processes that share each draw here; 1 where each takes all of it."""
        return self.part()[1]

    @property
    def rank(self) -> int:  # type: ignore[override]
        """Which part of each draw this process takes."""
        return self.part()[0]

    @property
    def num_samples(self) -> int:  # type: ignore[override]
        """Number of indices this process takes in an epoch."""
        return len(self)

    @property
    def epoch(self) -> int:
        """The epoch of the pass under way or, once it is named or loaded, of the next one."""
        return self.course.epoch

    @epoch.setter
    def epoch(self, epoch: int) -> None:
        self.set_epoch(epoch)

    def set_epoch(self, epoch: int) -> None:
        """Make `epoch` the epoch of the next pass; a position just loaded for it is kept.

        An epoch before that of a state just loaded is refused: it would undo the load.
        """
        self.course.name(self.as_epoch(epoch))

    def as_epoch(self, value: Any) -> int:
        """Return `value`, the number of an epoch whose draws have numbers."""
        epoch = as_count(value, "epoch", least=0)
        if (epoch + 1) * self.steps > MOST:
            raise ValueError(
                f"epoch {epoch} has draws beyond number 2**63, as an epoch is {self.steps} draws; "
                f"count epochs from 0"
            )
        return epoch

    @property
    def next_place(self) -> tuple[int, int]:
        """Epoch and position (indices already consumed by this process) of the next pass."""
        return self.course.next_place
