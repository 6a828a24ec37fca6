"""A flat torch sampler whose consecutive k indices are one draw of the design.

It is flat, and not a batch sampler, because that is what training frameworks wrap correctly.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from itertools import chain, islice
from typing import Any, Literal, NamedTuple, final

from torch.utils.data import DistributedSampler

from dmsgd.designs.stream import Chunks, Source, check_design
from dmsgd.inputs.arrays import IntArray
from dmsgd.inputs.messages import kind_of
from dmsgd.inputs.scalars import Seed, as_count, seed_key
from dmsgd.torch import distributed

#: What to do where a saved state differs, in the order in which differences are looked for: another
#: k or n changes the steps, and all of them change the design.
REMEDIES = {
    "k": "build the design with the k of the saved run",
    "n": "build the design from the same data as when it was saved",
    "steps": "pass the steps of the saved run",
    "seed": "pass the seed of the saved run",
    "design": "build it from the same data, with the same options, as when it was saved",
}


class Place(NamedTuple):
    """Where a pass stands: in which epoch, after how many of its own indices."""

    epoch: int
    position: int


@final
class EpochIterator(Iterator[int]):
    """The indices of one pass over a sampler for this process, and the state that resumes it.

    The epoch is chosen when the first index is asked for: loaders make iterators that they never
    use, and batches must not depend on it. torchdata saves and loads the state of the iterator.
    """

    def __init__(self, sampler: DiverseSampler) -> None:
        self._sampler = sampler
        self._indices: Iterator[int] | None = None  # None: no epoch is chosen yet

    def __next__(self) -> int:
        index = next(self._indices or self._begin(self._sampler._place_to_begin()))
        self.position += 1
        return index

    def _begin(self, place: Place) -> Iterator[int]:
        """Set and return the indices from this place on."""
        sampler = self._sampler
        self.epoch, self.position = place
        part, parts = sampler.part()
        width = sampler.design.k // parts
        step, skip = divmod(self.position, width)
        first, last = self.epoch * sampler.steps + step, (self.epoch + 1) * sampler.steps
        mine = slice(part * width, (part + 1) * width)
        rows = sampler._draws(first, last, width)
        indices = chain.from_iterable(chunk[:, mine].ravel().tolist() for chunk in rows)
        self._indices = islice(indices, skip, None) if skip else indices
        sampler._began(self)
        return self._indices

    def state_dict(self) -> dict[str, Any]:
        """Return where this pass stands: epoch, consumed items, and of which design."""
        begun = self._indices is not None
        place = Place(self.epoch, self.position) if begun else self._sampler.place
        return self._sampler.state(place)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Stand exactly where `state` says, also at the end of an epoch."""
        self._begin(self._sampler.place_in(state))


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
    other, each cut in num_replicas equal parts. Some 65,000 indices are drawn at a time, at most.
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
        self.design, self._stream = design, design.stream(seed)
        if self._stream.steps is not None and seed != 0:
            self._stream.design.sample(0, seed)  # raises unless it is the seed of the schedule
        self.seed: Any = self._stream.seed
        self._key = seed_key(self.seed)  # tells samplers apart, whatever kind the seed is
        self.dataset: Any = range(design.n)
        self.shuffle = self.drop_last = True
        self.steps = as_count(max(design.n // design.k, 1) if steps is None else steps, "steps")
        self.total_size = as_count(self.steps * design.k, "steps x k")
        self.shard: distributed.Shard = distributed.as_shard(shard)
        #: Number of this process and of all, where the user has said so.
        self.replica = distributed.as_replica(rank, num_replicas)
        #: Items of a draw in a forward pass over all ranks, where `loader` has settled it.
        self.pass_size: int | None = None
        self.place = Place(0, 0)  #: Where the next pass begins.
        #: Whether its epoch was counted up, named by `set_epoch`, or loaded with a state.
        self._origin: Literal["counted", "named", "loaded"] = "counted"
        #: The pass that was begun last, None once another epoch is named or a state is loaded.
        self.last: EpochIterator | None = None
        self._chunks: Chunks | None = None  # the draws after the pass that ended last
        self.part()
        self._as_epoch(0, "epoch")

    def __iter__(self) -> EpochIterator:
        """Return the next pass; its epoch is chosen when the first index is asked for."""
        return EpochIterator(self)

    def part(self) -> tuple[int, int]:
        """Return (part, parts): this process takes part number `part` of each draw."""
        part, parts = distributed.part_of_draw(self.shard, self.replica)
        if self.design.k % parts:
            problem = f"k={self.design.k} cannot be cut into one part for each of {parts} ranks"
            raise ValueError(f"{problem}; choose a multiple of {parts}")
        return part, parts

    def __len__(self) -> int:
        """Return the number of indices this process takes per epoch."""
        return self.total_size // self.part()[1]

    num_samples = property(__len__)

    @property
    def num_replicas(self) -> int:  # type: ignore[override]
        """Number of processes that share each draw here; 1 where each takes all of it."""
        return self.part()[1]

    @property
    def rank(self) -> int:  # type: ignore[override]
        """Which part of each draw this process takes."""
        return self.part()[0]

    @property
    def epoch(self) -> int:
        """The epoch of the pass under way or, once it is named or loaded, of the next one."""
        return self.last.epoch if self.last else self.place.epoch

    @epoch.setter
    def epoch(self, epoch: int) -> None:
        self.set_epoch(epoch)

    def set_epoch(self, epoch: int) -> None:
        """Choose the epoch of the next pass; a position just loaded for it is kept.

        An epoch before that of a state just loaded raises ValueError: it would undo the load.
        """
        distributed.check_accelerate(self)
        epoch, place = self._as_epoch(epoch, "epoch"), self.place
        if self._origin == "loaded" and epoch < place.epoch:
            raise ValueError(
                f"the loaded state stands in epoch {place.epoch}, and now epoch {epoch} is named; "
                f"go on with set_epoch({place.epoch}), in Accelerate that of the prepared loader, "
                f"and in Fabric without setup_dataloaders"
            )
        if epoch != place.epoch:
            self.place = Place(epoch, 0)
        if self._origin == "counted":
            self._origin = "named"
        if self.last and self.last.epoch != epoch:
            self.last = None  # what is saved from now on is the epoch that was named

    def resume(self, state: dict[str, Any]) -> None:
        """Begin the next pass where `state`, of a `Loader` or an iterator, stands; O(1)."""
        place = self.place_in(state)
        self.place = Place(place.epoch + 1, 0) if place.position == len(self) else place
        self._origin, self.last = "loaded", None

    def state(self, place: Place) -> dict[str, Any]:
        """Return the state of a pass that stands there."""
        return {
            "epoch": place.epoch,
            "consumed": place.position * self.part()[1],  # over all ranks
            "steps": self.steps,
            "k": int(self.design.k),
            "n": int(self.design.n),
            "seed": self._key,
            "design": self._stream.fingerprint,
        }

    def place_in(self, state: Any) -> Place:
        """Return the place in a state of this sampler; raise ValueError for another's."""
        if not isinstance(state, Mapping):
            raise TypeError(f"the state must be what state_dict() returned, got {kind_of(state)}")
        expected = self.state(Place(0, 0))
        for name, own in expected.items():
            if type(found := state.get(name)) is not type(own):
                problem = f"{name} of the state must be like {own!r}, got {found!r}"
                raise ValueError(f"{problem}; pass what state_dict() returned")
        for name, remedy in REMEDIES.items():
            if (found := state[name]) != (own := expected[name]):
                is_key = name in ("seed", "design")  # numbers and names that say nothing to users
                what = f"saved with {name}={found}, this one has {name}={own}"
                problem = f"{name} differs" if is_key else what
                raise ValueError(f"the state is of another sampler or design: {problem}; {remedy}")
        parts, consumed = self.part()[1], state["consumed"]
        if not 0 <= consumed <= self.total_size or consumed % parts:
            raise ValueError(
                f"the state's consumed is {consumed} items into an epoch, which {parts} ranks do "
                f"not divide, or not 0..{self.total_size}; go on with as many ranks as before"
            )
        # A state may stand after a schedule's last epoch.
        epoch = self._as_epoch(state["epoch"], "epoch of the state", begun=consumed > 0)
        return Place(epoch, consumed // parts)

    def _place_to_begin(self) -> Place:
        """Return the place where a pass begins; called for its first index."""
        epoch = distributed.check_accelerate(self)
        if epoch is not None:
            self.set_epoch(epoch)
        if self.shard is not False and self.replica is None:
            distributed.check_initialized()
        place, last = self.place, self.last
        self._as_epoch(place.epoch, "epoch")
        # Accelerate repeats an epoch that was left early, so its naming one means nothing.
        unnamed = epoch is not None or self._origin == "counted"
        if last and last.position < len(self) and unnamed:
            why = "a look at a batch and a second loader use up epochs too; call set_epoch first"
            warnings.warn(
                f"epoch {last.epoch} was left after {last.position} of {len(self)} indices, and "
                f"this pass is epoch {place.epoch}: {why if epoch is None else distributed.RESUME}",
                stacklevel=3,
            )
        return place

    def _began(self, new: EpochIterator) -> None:
        """Note the pass under way, unless another epoch was named for the next one."""
        if self._origin == "counted" or self.place.epoch == new.epoch:
            self.place = Place(new.epoch + 1, 0)
            self._origin, self.last = "counted", new

    def _draws(self, first: int, last: int, width: int) -> Iterator[IntArray]:
        """Yield draws first..last; of each, this process uses `width` columns."""
        chunks, self._chunks = self._chunks, None  # no other pass takes the same draws
        if not chunks or chunks.first != first:
            chunks = Chunks(self._stream, first, width)
        while chunks.first < last:
            rows = chunks.take(last)
            if chunks.first == last:
                self._chunks = chunks  # what is left goes on in the next epoch
            yield rows

    def _as_epoch(self, value: Any, name: str, begun: bool = True) -> int:
        """Return the number of an epoch whose draws a schedule has, or have numbers below 2^63.

        begun: whether draws of this epoch are needed, or only those of the epochs before.
        """
        epoch = as_count(value, name, least=0)
        as_count((epoch + 1) * self.steps, f"(1 + {name}) x {self.steps} steps, the draws,")
        if self._stream.steps is not None:
            self._stream.sample(0, (epoch + begun) * self.steps)
        return epoch

    def __getstate__(self) -> dict[str, Any]:
        """Copy all but the pass under way: a copy begins the next one."""
        return {**vars(self), "last": None, "_chunks": None}
