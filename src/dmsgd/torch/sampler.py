"""A flat torch sampler whose consecutive k indices are one draw of the design.

It is flat, and not a batch sampler, because that is what training frameworks wrap correctly.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from dmsgd.designs.stream import Source, check_design
from dmsgd.inputs.scalars import Seed, as_count, seed_key
from dmsgd.torch import accelerated
from dmsgd.torch.ahead import Ahead
from dmsgd.torch.distributed_sampler import Distributed
from dmsgd.torch.passes import Pass
from dmsgd.torch.ranks import Shard, refuse_disagreement, refuse_misfit, refuse_unjoined
from dmsgd.torch.reader import reader
from dmsgd.torch.state import fingerprint_of, place_of
from dmsgd.torch.updates import updated


class DiverseSampler(Distributed):
    """Item numbers, draw after draw: each global step of training sees exactly one draw.

    design: a Design, or a Schedule, which has its own seed and an end; k = ranks x batch_size x
            gradient accumulation.
    steps:  draws in an epoch, by default n // k.
    seed:   draw t of epoch e is row e * steps + t of design.sample(..., seed): all ranks agree
            without talking, and any step can be resumed at once.
    shard:  whether to take this rank's part of each draw. "auto" does so under torch.distributed
            (plain DDP, Lightning), but not under Accelerate, which cuts by itself.
    num_replicas, rank: number of processes and number of this one, by default as
            torch.distributed knows them whenever they are needed.

    Every pass over the sampler is the next epoch, claimed when its first index is asked for;
    `set_epoch` names the epoch of the next pass, and without it one that follows a pass left early
    warns. A batch size that cuts draws is refused. A pass is steps * k / num_replicas ints, the
    draws' rows one after the other, each cut in num_replicas equal parts. The cost is that of the
    draws, made ahead in the background, on the cores that torch leaves free if there are any;
    memory is that of some 65,000 indices.

    What torch's DistributedSampler has is there, in its words: `dataset` (a stand-in with the
    length of the data), `num_replicas`, `rank`, `epoch`, `seed`, `num_samples` (indices of this
    process in an epoch), `total_size` (of all), `shuffle` and `drop_last` (true: the order is
    random, and there are only whole draws).

    >>> import dmsgd
    >>> sampler = DiverseSampler(dmsgd.Uniform(n=100, k=8), steps=5, num_replicas=2, rank=0)
    >>> len(list(sampler)), sampler.num_samples, sampler.total_size, len(sampler.dataset)
    (20, 20, 40, 100)
    """

    def __init__(
        self,
        design: Source,
        steps: int | None = None,
        seed: Seed = 0,
        *,
        shard: Shard = "auto",
        num_replicas: int | None = None,
        rank: int | None = None,
    ) -> None:
        check_design(design)
        self.design = design
        steps = as_count(max(design.n // design.k, 1) if steps is None else steps, "steps")
        super().__init__(design.n, design.k, steps, shard, rank, num_replicas)
        own = getattr(design, "seed", None)
        if own is not None and not (isinstance(seed, int | np.integer) and seed in (0, own)):
            raise ValueError(
                f"this schedule is already drawn, with seed {own}; leave the seed out, or "
                f"presample another schedule"
            )
        self.draw_seed: Seed = design.stream(seed).seed
        self._key = seed_key(self.draw_seed)  # tells samplers apart, whatever kind the seed is
        given = self.draw_seed
        self.seed = self._key if isinstance(given, np.random.SeedSequence) else int(given)
        #: Items of a draw in a forward pass over all ranks, where `loader` has settled it.
        self.pass_size: int | None = None
        self.ahead = Ahead()
        self._printed: tuple[Source | None, str] = None, ""
        self._refuse_beyond(0)

    def _refuse_beyond(self, epoch: int) -> None:
        """Raise if a schedule does not have all draws of this epoch."""
        if getattr(self.design, "seed", None) is not None:
            self.design.sample(0, self.draw_seed, start=(epoch + 1) * self.steps)

    def __iter__(self) -> Iterator[int]:
        return Pass(self, reader(sys._getframe(1)))

    def claim(self, new: Pass) -> tuple[int, int]:
        """Return the place where a pass begins, now that its first item is asked for."""
        drive = accelerated.drive(self, self.design.n)
        if drive is not None:
            self.set_epoch(drive.epoch)
        refuse_unjoined(self.shard, self.replica[1])
        batch_size = getattr(new.reader, "batch_size", None)
        if batch_size is not None:
            ranks = drive.ranks if drive else self.part()[1]
            split = drive is not None and drive.split
            refuse_misfit(self.design.k, batch_size, ranks, self.pass_size, split)
        place = self.next_place
        self._refuse_beyond(place[0])
        # Accelerate repeats an epoch left early, so that its naming one says nothing
        self.course.warn_of_an_epoch_left_early(len(self), named_by_loader=drive is not None)
        self.course.begin(new, place[0])
        return place

    def taken_up(self, loaded: Pass) -> None:
        """Note that a pass was loaded; what is named for the next one stays named."""
        if self.next_place[0] == loaded.epoch:
            self.course.begin(loaded, loaded.epoch)

    def update(self, X: Any) -> None:
        """Draw from new features, or from another design of the same size, from the next pass on.

        X: (n, d) features, for example `embed(model, dataset)`, which are put through the
           `diversify` call that made the present design, with its labels, w and kernel; or a
           design. The cost is one set-up of `diversify`.

        Under torch.distributed all ranks must call it. Rank 0's features count, so that the others
        may pass None; designs are compared, and refused if they differ.
        """
        design = updated(self.design, X)
        refuse_disagreement(self._fingerprint(design))
        self.design = design

    def _fingerprint(self, design: Source) -> str:
        """Return the hash of what is drawn from, kept: a state may be asked for with each batch."""
        if self._printed[0] is not design:
            self._printed = design, fingerprint_of(design)
        return self._printed[1]

    def state_dict(self, place: tuple[int, int] | None = None) -> dict[str, Any]:
        """Return where the present pass stands, or the next one if that was named since.

        `place` is (epoch, indices of this process that training has consumed). By default it is
        what was taken from the sampler. A plain DataLoader takes more than training has consumed,
        to the end of an epoch early on, so that it is refused until `set_epoch` names the next one;
        `Loader` and torchdata's StatefulDataLoader count by themselves. The state is a plain dict
        of ints, and the design's fingerprint.
        """
        if place is None:
            place = self.course.place(len(self))
            if self.course.under_way is not None:
                self.course.under_way.refuse_read_ahead()
        (epoch, position), now = place, self.course.under_way
        within = now is not None and epoch == now.epoch and 0 < position < len(self)
        return {
            "epoch": epoch,
            "consumed": position * self.part()[1],  # over all ranks
            "steps": self.steps,
            "k": int(self.design.k),
            "n": int(self.design.n),
            "seed": self._key,
            "design": self._fingerprint(now.design if now and within else self.design),
        }

    def place_of(self, state: dict[str, Any]) -> tuple[int, int]:
        """Return (epoch, position) of a state of this very sampler; refuse any other."""
        epoch, consumed = place_of(state, self.state_dict(self.next_place))
        ranks = self.part()[1]
        if consumed % ranks:
            raise ValueError(
                f"the state is {consumed} items into an epoch, which {ranks} ranks do not divide; "
                f"go on with as many as it was saved with, or save between draws"
            )
        return self.as_epoch(epoch), consumed // ranks

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a state at the next pass; O(1), whatever the step."""
        self.course.load(*self.place_of(state), len(self))

    def __getstate__(self) -> dict[str, Any]:
        fresh = {"course": self.course.copied(len(self)), "ahead": Ahead(), "_printed": (None, "")}
        return {**self.__dict__, **fresh}
