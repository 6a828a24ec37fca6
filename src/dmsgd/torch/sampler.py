"""A flat torch sampler whose consecutive k indices are one draw of the design.

It is flat, and not a batch sampler, because that is what training frameworks wrap correctly.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from torch.utils.data import BatchSampler, DistributedSampler

from dmsgd.designs.design import Design
from dmsgd.designs.source import FIXED_K, Source
from dmsgd.inputs.scalars import as_count
from dmsgd.inputs.seeding import Seed, key_of
from dmsgd.torch import accelerated
from dmsgd.torch.other_data import refuse_other_data
from dmsgd.torch.passes import Pass
from dmsgd.torch.ranks import (
    Shard,
    of_first_rank,
    part_of_draw,
    refuse_disagreement,
    refuse_misfit,
    refuse_unjoined,
)
from dmsgd.training.draws import fixed_seed


class DiverseSampler(DistributedSampler[Any]):
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
    memory is that of some 10,000 indices.

    What its base class has is there, in torch's words: `dataset` (a stand-in with the length of the
    data), `num_replicas`, `rank`, `epoch`, `seed`, `num_samples` (indices of this process in an
    epoch), `total_size` (of all), `shuffle` and `drop_last` (true: the order is random, and there
    are only whole draws).

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
        if not (hasattr(design, "sample") and isinstance(getattr(design, "k", None), int)):
            raise TypeError(
                f"DiverseSampler needs {FIXED_K} or a Schedule, got {type(design).__name__}"
            )
        if shard not in (True, False, "auto"):
            raise ValueError(f"shard must be True, False or 'auto', got {shard!r}")
        if (rank is None) != (num_replicas is None):
            raise ValueError("num_replicas and rank belong together; pass both or neither")
        if rank is not None and num_replicas is not None:
            rank = as_count(rank, "rank", least=0)
            num_replicas = as_count(num_replicas, "num_replicas")
            if rank >= num_replicas:
                raise ValueError(f"rank must be one of 0..{num_replicas - 1}, got {rank}")
        own = getattr(design, "seed", None)
        if own is not None and not (isinstance(seed, int | np.integer) and seed in (0, own)):
            raise ValueError(
                f"this schedule is already drawn, with seed {own}; leave the seed out, or "
                f"presample another schedule"
            )
        self.design = design
        self.steps = as_count(max(design.n // design.k, 1) if steps is None else steps, "steps")
        # The base class's own constructor is not called: it asks for a dataset, and for processes
        # that a Trainer may start only later.
        self.dataset: Any = range(design.n)
        self.shuffle = self.drop_last = True
        self.total_size = self.steps * design.k
        self.draw_seed: Seed = fixed_seed(design, seed)
        self._key = key_of(self.draw_seed)  # tells samplers apart, whatever kind the seed is
        given = self.draw_seed
        self.seed = self._key if isinstance(given, np.random.SeedSequence) else int(given)
        self.shard: Shard = shard
        self._replica = rank, num_replicas
        #: Items of a draw in a forward pass over all ranks, where `loader` has settled it.
        self.pass_size: int | None = None
        self._epoch = 0
        self._next_epoch = 0
        self._next_position = 0
        self._named = False  # whether the epoch of the next pass was said, or only counted up
        self._loaded = False  # whether the next pass goes on from a loaded state
        self.under_way: Pass | None = None
        self._printed: tuple[Source | None, str] = None, ""
        self.part()
        self._refuse_beyond(0)

    def part(self) -> tuple[int, int]:
        """Return (part, parts): this process takes part number `part` of each draw."""
        part, parts = part_of_draw(self.shard, *self._replica)
        if self.design.k % parts:
            raise ValueError(
                f"k={self.design.k} cannot be cut into {parts} equal parts, one per rank; "
                f"choose k as a multiple of {parts}"
            )
        return part, parts

    def _refuse_beyond(self, epoch: int) -> None:
        """Raise if a schedule does not have all draws of this epoch."""
        if getattr(self.design, "seed", None) is not None:
            self.design.sample(0, self.draw_seed, start=(epoch + 1) * self.steps)

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
        return self._epoch

    @epoch.setter
    def epoch(self, epoch: int) -> None:
        self.set_epoch(epoch)

    @property
    def next_place(self) -> tuple[int, int]:
        """Epoch and position (indices already consumed by this process) of the next pass."""
        return self._next_epoch, self._next_position

    def set_epoch(self, epoch: int) -> None:
        """Make `epoch` the epoch of the next pass; a position just loaded for it is kept.

        An epoch before that of a state just loaded is refused: it would undo the load.
        """
        epoch = as_count(epoch, "epoch", least=0)
        if self._loaded and epoch < self._next_epoch:
            raise ValueError(
                f"the loaded state stands in epoch {self._next_epoch}, and now epoch {epoch} is "
                f"named; go on with set_epoch({self._next_epoch}), in Accelerate that of the "
                f"prepared loader. Fabric counts from 0 in every run: there, go through the loader "
                f"itself, without setup_dataloaders"
            )
        if epoch != self._next_epoch:
            self._next_epoch, self._next_position = epoch, 0
        self._epoch, self._named = epoch, True
        if self.under_way is not None and self.under_way.epoch != epoch:
            self.under_way = None  # what is saved from now on is the epoch that was named

    def __len__(self) -> int:
        """Return the number of indices this process takes in an epoch."""
        return self.steps * (self.design.k // self.part()[1])

    def __iter__(self) -> Iterator[int]:
        caller = sys._getframe(1).f_locals.get("self")  # nobody tells a sampler its batch size
        of_torchdata = type(caller).__module__.startswith("torchdata.")
        return Pass(self, caller if of_torchdata or isinstance(caller, BatchSampler) else None)

    def claim(self, new: Pass) -> tuple[int, int]:
        """Return the place where a pass begins, now that its first item is asked for."""
        refuse_other_data(self, self.design.n)
        drive = accelerated.drive(self)
        if drive is not None:
            self.set_epoch(drive.epoch)
        refuse_unjoined(self.shard, self._replica[1])
        batch_size = getattr(new.reader, "batch_size", None)
        if batch_size is not None:
            ranks = drive.ranks if drive else self.part()[1]
            split = drive is not None and drive.split
            refuse_misfit(self.design.k, batch_size, ranks, self.pass_size, split)
        self._refuse_beyond(self._next_epoch)
        last, again = self.under_way, drive is not None  # Accelerate repeats an epoch left early
        if last and last.position < len(self) and (again or not self._named):
            warnings.warn(
                f"epoch {last.epoch} was left after {last.position} of {len(self)} indices, and "
                f"this pass is epoch {self._next_epoch}: a look at a batch and a second loader use "
                f"up epochs too. Call set_epoch before each pass to say which epoch it is",
                stacklevel=3,
            )
        place = self.next_place
        self._begun(new, place[0])
        return place

    def taken_up(self, loaded: Pass) -> None:
        """Note that a pass was loaded; what is named for the next one stays named."""
        if self._next_epoch == loaded.epoch:
            self._begun(loaded, loaded.epoch)

    def _begun(self, new: Pass, epoch: int) -> None:
        self.under_way, self._epoch = new, epoch
        self._next_epoch, self._next_position = epoch + 1, 0
        self._named = self._loaded = False

    def update(self, X: Any) -> None:
        """Draw from new features, or from another design of the same size, from the next pass on.

        X: (n, d) features, for example `embed(model, dataset)`, which are put through the
           `diversify` call that made the present design, with its labels, w and kernel; or a
           design. The cost is one set-up of `diversify`.

        Under torch.distributed all ranks must call it. Rank 0's features count, so that the others
        may pass None; designs are compared, and refused if they differ.
        """
        design = X if isinstance(X, Design) else self._rebuilt(of_first_rank(X))
        if (design.n, design.k) != (self.design.n, self.design.k):
            raise ValueError(
                f"the new design has n={design.n}, k={design.k}; "
                f"this sampler needs n={self.design.n}, k={self.design.k}"
            )
        refuse_disagreement(self._fingerprint(design))
        self.design = design

    def _rebuilt(self, X: Any) -> Source:
        recipe = getattr(self.design, "_recipe", None)
        if recipe is None:
            raise TypeError(
                "this sampler's design was not made by dmsgd.diversify from features, so it "
                "cannot be made again from new ones; pass update() a design"
            )
        design: Source = recipe(X)
        return design

    def _fingerprint(self, design: Source) -> str:
        """Return the hash of what is drawn from, "" if a source of the user's own has none."""
        if self._printed[0] is not design:
            record = getattr(design, "record", None)  # of a Schedule
            find = getattr(design, "fingerprint", str)
            self._printed = design, record.fingerprint if record else find()
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
            place = self._place()
            if self.under_way is not None:
                self.under_way.refuse_read_ahead()
        (epoch, position), now = place, self.under_way
        within = now is not None and epoch == now.epoch and 0 < position < len(self)
        return {
            "epoch": epoch,
            "consumed": position * self.part()[1],  # over all ranks
            "steps": self.steps,
            "k": self.design.k,
            "n": self.design.n,
            "seed": self._key,
            "design": self._fingerprint(now.design if now and within else self.design),
        }

    def _place(self) -> tuple[int, int]:
        """Return where the present pass stands, or where the next one begins."""
        now = self.under_way
        return now.place if now and now.position < len(self) else self.next_place

    def place_of(self, state: dict[str, Any]) -> tuple[int, int]:
        """Return (epoch, position) of a state of this very sampler; refuse any other."""
        mine = self.state_dict(self.next_place)
        for name in ("n", "k", "steps", "seed"):
            if state.get(name) != mine[name]:
                raise ValueError(
                    f"the state is of another sampler: {name} {state.get(name)}, not {mine[name]}"
                )
        theirs, own = str(state.get("design")), self._fingerprint(self.design)
        if theirs != own:
            raise ValueError(
                f"the state is of another design, with fingerprint {theirs[:8]}, not {own[:8]}; "
                f"build the design from the same data, and after an update() of the features, "
                f"update() with those of that time before loading"
            )
        epoch = as_count(state.get("epoch"), "epoch", least=0)
        return epoch, as_count(state.get("consumed"), "consumed", least=0) // self.part()[1]

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from `state` at the next pass; O(1), whatever the step."""
        epoch, position = self.place_of(state)
        finished = position >= len(self)
        self._epoch = self._next_epoch = epoch + finished
        self._next_position = 0 if finished else position
        self._named = self._loaded = True
        self.under_way = None

    def __getstate__(self) -> dict[str, Any]:
        epoch, position = self._place()
        here = {"_epoch": epoch, "_next_epoch": epoch, "_next_position": position}
        return {**self.__dict__, **here, "under_way": None, "_printed": (None, "")}
