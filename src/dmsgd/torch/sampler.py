"""A flat torch sampler whose consecutive k indices are one draw of the design.

It is flat, and not a batch sampler, because that is what training frameworks wrap correctly.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from torch.utils.data import DistributedSampler

from dmsgd.designs.stream import Source, Stream, check_design
from dmsgd.errors import RankError, TargetError
from dmsgd.inputs.arrays import IntArray
from dmsgd.inputs.scalars import Seed, as_count, seed_key
from dmsgd.torch import distributed
from dmsgd.torch.epochs import EpochIterator, Origin, Place, as_epoch, as_state
from dmsgd.torch.prefetch import Prefetcher
from dmsgd.torch.update import new_design, warn_features_kept


class DiverseSampler(DistributedSampler[Any]):
    """A sampler of item numbers: each training step, over all ranks, gets one batch of a design.

    design: A Design, or a Schedule, which has its own seed and an end. Its k is ranks x batch_size
            x gradient accumulation: give a plain DataLoader batch_size=k, or that part of it.
    steps:  The draws per epoch. The default is n // k.
    seed:   Draw t of epoch e is row e * steps + t of design.sample(..., seed). So all ranks agree
            without communication, and any step can be resumed at once.
    shard:  Whether to take this rank's part of each draw. "auto" does so under torch.distributed
            (plain DDP, Lightning), but not under Accelerate, which cuts draws by itself.
    num_replicas, rank: The number of processes, and the number of this one. By default
            torch.distributed is asked for them whenever they are needed.

    Every pass over the sampler is the next epoch, unless `set_epoch` names it; it warns if the pass
    before was left early. A pass is steps * k / num_replicas ints, the draws' rows one after the
    other, each cut in num_replicas equal parts. Draws are made ahead, some 65,000 indices at most.
    It has the attributes of torch's DistributedSampler, with a stand-in for `dataset`.
    Raises ValueError if k is not a multiple of the number of ranks. See also `loader`.

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
        shard: distributed.Shard = "auto",
        num_replicas: int | None = None,
        rank: int | None = None,
    ) -> None:
        # The base class's own constructor is not called: it asks for a dataset, and for processes
        # that a Trainer may start only later.
        check_design(design)
        self.design, self.stream = design, design.stream(seed)
        own = self.stream.seed
        given = isinstance(seed, int | np.integer) and seed in (0, own)
        if self.stream.steps is not None and not given:
            raise ValueError(f"this schedule is already drawn, with seed {own}; leave it out")
        self._key = seed_key(own)  # tells samplers apart, whatever kind the seed is
        self.seed = self._key if isinstance(own, np.random.SeedSequence) else int(own)
        self.dataset: Any = range(design.n)
        self.shuffle = self.drop_last = True
        self.steps = as_count(max(design.n // design.k, 1) if steps is None else steps, "steps")
        self.total_size = as_count(self.steps * design.k, "steps x k")
        self.shard: distributed.Shard = distributed.as_shard(shard)
        #: Number of this process and of all, where the user has said so.
        self.replica = distributed.as_replica(rank, num_replicas)
        #: Items of a draw in a forward pass over all ranks, where `loader` has settled it.
        self.pass_size: int | None = None
        self.place = Place()
        self._warned = False  # of new features that cannot be used
        self._prefetcher: Prefetcher | None = None
        self.part()
        self._check_end(0)

    def __iter__(self) -> EpochIterator:
        """Return the next pass; its epoch is chosen when the first index is asked for."""
        return EpochIterator(self)

    def part(self) -> tuple[int, int]:
        """Return (part, parts): this process takes part number `part` of each draw."""
        part, parts = distributed.part_of_draw(self.shard, *self.replica)
        if self.design.k % parts:
            problem = f"k={self.design.k} cannot be cut into one part for each of {parts} ranks"
            raise ValueError(f"{problem}; choose a multiple of {parts}")
        return part, parts

    def __len__(self) -> int:
        """Return the number of indices this process takes per epoch."""
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
        """Number of indices this process takes per epoch."""
        return len(self)

    @property
    def epoch(self) -> int:
        """The epoch of the pass under way or, once it is named or loaded, of the next one."""
        place = self.place
        return place.after.epoch if place.after and place.origin == "counted" else place.epoch

    @epoch.setter
    def epoch(self, epoch: int) -> None:
        self.set_epoch(epoch)

    def set_epoch(self, epoch: int) -> None:
        """Choose the epoch of the next pass; a position just loaded for it is kept.

        An epoch before that of a state just loaded raises ValueError: it would undo the load.
        """
        distributed.check_accelerate(self)
        epoch, place = as_epoch(epoch, self.steps), self.place
        if place.origin == "loaded" and epoch < place.epoch:
            raise ValueError(
                f"the loaded state stands in epoch {place.epoch}, and now epoch {epoch} is named; "
                f"go on with set_epoch({place.epoch}), in Accelerate that of the prepared loader, "
                f"and in Fabric without setup_dataloaders"
            )
        self._check_end(epoch)
        position = place.position if epoch == place.epoch else 0
        origin: Origin = "named" if place.origin == "counted" else place.origin
        # Without `after`, what is saved from now on is the epoch that was named.
        after = place.after if place.after and place.after.epoch == epoch else None
        self.place = Place(epoch, position, origin, after)

    def resume(self, state: dict[str, Any]) -> None:
        """Begin the next pass where `state`, of a `Loader` or an iterator, stands; O(1)."""
        place = self.place_in(state)
        over = place.position == len(self)
        self.place = replace(place, epoch=place.epoch + 1, position=0) if over else place

    def update(self, X: Any = None, *, weights: Any = None) -> bool:
        """Draw from new features, weights, or another design of the same size, from the next pass.

        X:       (n, d) features, for example `embed(model, dataset)`, which are put through the
                 `diversify` call that made the present design, with its labels and options. A
                 kernel chosen by "auto" is chosen again (`sampler.design.kernel`). Or a design.
        weights: (n,) new weights of a `Weighted` design, for example the latest losses; O(n).

        Returns whether they are in use. Where the features allow no such k-DPP (`RankError`,
        `TargetError`), as when units of a network die, it warns, once, and returns False: training
        goes on with the last features. The cost is one set-up of `diversify`.

        Under torch.distributed all ranks must call it. Rank 0's features or weights count, so that
        the others may pass None; designs are compared, and different ones raise ValueError.
        """
        try:
            new = new_design(self.design, X, weights)
        except (RankError, TargetError) as error:
            if not self._warned:
                warn_features_kept(self.design, error)
            self._warned = True
            distributed.check_same_design(self.stream.fingerprint)
            return False
        stream = new.stream(self.stream.seed)
        distributed.check_same_design(stream.fingerprint)
        self.design, self.stream = new, stream
        return True

    def state(self, epoch: int, position: int, stream: Stream) -> dict[str, Any]:
        """Return the state of a pass: its epoch, this process's indices consumed, its draws."""
        within = 0 < position < len(self)  # else `update` counts already
        return {
            "epoch": epoch,
            "consumed": position * self.part()[1],  # over all ranks
            "steps": self.steps,
            "k": int(self.design.k),
            "n": int(self.design.n),
            "seed": self._key,
            "design": (stream if within else self.stream).fingerprint,
        }

    def next_state(self) -> dict[str, Any]:
        """Return the state of the next pass."""
        return self.state(self.place.epoch, self.place.position, self.stream)

    def place_in(self, value: Any) -> Place:
        """Return the place in a state of this sampler; raise ValueError for another's."""
        mine = self.state(0, 0, self.stream)
        state = as_state(value, mine)
        for name, own in mine.items():
            if type(state[name]) is not type(own):
                raise TypeError(f"{name} of the state must be like {own!r}, got {state[name]!r}")
            if name not in ("epoch", "consumed") and state[name] != own:
                raise ValueError(
                    f"the state is of another sampler or design: {name} is {state[name]}, not "
                    f"{own}; build the design from the same data, and repeat its last update()"
                )
        epoch = as_epoch(state["epoch"], self.steps, "epoch of the state")
        parts, consumed = self.part()[1], state["consumed"]
        if not 0 <= consumed <= self.total_size or consumed % parts:
            raise ValueError(
                f"the state's consumed is {consumed} items into an epoch, which {parts} ranks do "
                f"not divide, or not 0..{self.total_size}; go on with as many ranks as before"
            )
        self._check_end(epoch if consumed else epoch - 1)  # what follows a schedule's last epoch
        return Place(epoch, consumed // parts, "loaded")

    def begin(self) -> Place:
        """Return the place where a pass begins; called for its first index."""
        epoch = distributed.check_accelerate(self)
        if epoch is not None:
            self.set_epoch(epoch)
        distributed.check_initialized(self.shard, self.replica[1])
        place, last = self.place, self.place.after
        self._check_end(place.epoch)
        # Accelerate repeats an epoch that was left early, so its naming one means nothing.
        unnamed = epoch is not None or place.origin == "counted"
        if last and last.position < len(self) and unnamed:
            why = "a look at a batch and a second loader use up epochs too; call set_epoch first"
            warnings.warn(
                f"epoch {last.epoch} was left after {last.position} of {len(self)} indices, and "
                f"this pass is epoch {place.epoch}: {why if epoch is None else distributed.RESUME}",
                stacklevel=4,
            )
        return place

    def began(self, new: EpochIterator) -> None:
        """Note the pass under way, unless another epoch was named for the next one."""
        if self.place.origin == "counted" or self.place.epoch == new.epoch:
            self.place = Place(new.epoch + 1, after=new)

    def draws(self, stream: Stream, first: int, last: int, width: int) -> Iterator[IntArray]:
        """Yield draws first..last; of each, this process uses `width` columns."""
        prefetcher, self._prefetcher = self._prefetcher, None  # no other pass takes the same draws
        if prefetcher is None or not prefetcher.goes_on(stream, first):
            prefetcher = Prefetcher(stream, first, width)
        for rows in prefetcher.until(last):
            if prefetcher.first == last:
                self._prefetcher = prefetcher  # what is left goes on in the next epoch
            yield rows

    def _check_end(self, epoch: int) -> None:
        """Raise if a schedule does not have all draws of this epoch."""
        if self.stream.steps is not None:
            self.stream.sample(0, (epoch + 1) * self.steps)

    def __getstate__(self) -> dict[str, Any]:
        """Copy all but the pass under way: a copy begins the next one."""
        return {**vars(self), "place": replace(self.place, after=None), "_prefetcher": None}
