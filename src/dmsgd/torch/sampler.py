"""A flat torch sampler whose consecutive k indices are one draw of the design.

It is flat, and not a batch sampler, because that is what training frameworks wrap correctly.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
import torch
from torch.utils.data import DistributedSampler

from dmsgd.designs.design import Design
from dmsgd.designs.source import FIXED_K, Source
from dmsgd.inputs.arrays import as_count
from dmsgd.inputs.seeding import Seed, key_of
from dmsgd.inputs.threads import thread_count
from dmsgd.torch.ranks import Shard, part_of_draw
from dmsgd.training.draws import fixed_seed

#: Indices drawn ahead of the training loop at a time; at least this many draws for each thread.
AHEAD, EACH = 8192, 2

#: A draw costs about k³ operations. The first lot has about so many, some 100 ms, so that training
#: starts soon, and far less (a part) where the rest is drawn beside it. A thread is worth waking up
#: for so many.
FIRST, PART, WORTH = 2**30, 128, 2**26


class DiverseSampler(DistributedSampler[Any]):
    """Item numbers, draw after draw: each global step of training sees exactly one draw.

    design: a Design or a Schedule; k = ranks x batch_size x gradient accumulation.
    steps:  draws in an epoch, by default n // k.
    seed:   draw t of epoch e is row e * steps + t of design.sample(..., seed): all ranks agree
            without talking, and any step can be resumed at once.
    shard:  whether to take this rank's part of each draw. "auto" does so under torch.distributed
            (plain DDP, Lightning), but not under Accelerate, which cuts by itself.
    num_replicas, rank: number of processes and number of this one, by default as
            torch.distributed knows them whenever they are needed.

    Every pass over the sampler is the next epoch; `set_epoch` names the epoch of the next pass. A
    pass is steps * k / num_replicas ints, the draws' rows one after the other, each cut in
    num_replicas equal parts. The cost is that of the draws, made ahead in the background, on the
    cores that torch leaves free if there are any; memory is that of some 10,000 indices.

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
        if rank is not None and num_replicas is not None and not 0 <= rank < num_replicas:
            raise ValueError(f"rank must be one of 0..{num_replicas - 1}, got {rank}")
        self.design = design
        self.steps = as_count(max(design.n // design.k, 1) if steps is None else steps, "steps")
        # The base class's own constructor is not called: it asks for a dataset, and for processes
        # that a Trainer may start only later.
        self.dataset: Any = range(design.n)
        self.shuffle = self.drop_last = True
        self.total_size = self.steps * design.k
        self._draw_seed = fixed_seed(design, seed)
        self._key = key_of(self._draw_seed)  # tells samplers apart, whatever kind the seed is
        given = self._draw_seed
        self.seed = self._key if isinstance(given, np.random.SeedSequence) else int(given)
        self.shard: Shard = shard
        self._replica = rank, num_replicas
        self._epoch = 0
        self._next_epoch = 0
        self._next_position = 0
        self._stream: _Stream | None = None
        self._part()

    def _part(self) -> tuple[int, int]:
        part, parts = part_of_draw(self.shard, *self._replica)
        if self.design.k % parts:
            raise ValueError(
                f"k={self.design.k} cannot be cut into {parts} equal parts, one per rank; "
                f"choose k as a multiple of {parts}"
            )
        return part, parts

    @property
    def num_replicas(self) -> int:  # type: ignore[override]
        """Number of processes that share each draw here; 1 where each takes all of it."""
        return self._part()[1]

    @property
    def rank(self) -> int:  # type: ignore[override]
        """Which part of each draw this process takes."""
        return self._part()[0]

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
        """Make `epoch` the epoch of the next pass; a position just loaded for it is kept."""
        epoch = as_count(epoch, "epoch", least=0)
        if epoch != self._next_epoch:
            self._next_epoch, self._next_position = epoch, 0
        self._epoch = epoch

    def __len__(self) -> int:
        """Return the number of indices this process takes in an epoch."""
        return self.steps * (self.design.k // self._part()[1])

    def __iter__(self) -> Iterator[int]:
        self._epoch = self._next_epoch
        self._stream = _Stream(self, self._next_epoch, self._next_position)
        self._next_epoch, self._next_position = self._next_epoch + 1, 0
        return self._stream

    def update(self, X: Any) -> None:
        """Draw from new features, or from another design of the same size, from the next pass on.

        X: (n, d) features, for example `embed(model, dataset)`, which are put through the
           `diversify` call that made the present design, with its labels, w and kernel; or a
           design. The cost is one set-up of `diversify`.
        """
        design = X if isinstance(X, Design) else self._rebuilt(X)
        if (design.n, design.k) != (self.design.n, self.design.k):
            raise ValueError(
                f"the new design has n={design.n}, k={design.k}; "
                f"this sampler needs n={self.design.n}, k={self.design.k}"
            )
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

    def state_dict(self, place: tuple[int, int] | None = None) -> dict[str, int]:
        """Return where the present pass stands; a plain dict of ints.

        `place` is (epoch, indices of this process that training has consumed). By default it is
        what was taken from the sampler, which a loader with workers does ahead of training;
        `Loader` and torchdata's StatefulDataLoader count by themselves.
        """
        epoch, position = place or self._place_now()
        return {
            "epoch": epoch,
            "consumed": position * self._part()[1],  # over all ranks
            "steps": self.steps,
            "k": self.design.k,
            "n": self.design.n,
            "seed": self._key,
        }

    def _place_now(self) -> tuple[int, int]:
        stream = self._stream
        return (stream.epoch, stream.position) if stream else self.next_place

    def load_state_dict(self, state: dict[str, int]) -> None:
        """Go on from `state` at the next pass; O(1), whatever the step."""
        mine = self.state_dict()
        for name in ("n", "k", "steps", "seed"):
            if state.get(name) != mine[name]:
                raise ValueError(
                    f"the state is of another sampler: {name} {state.get(name)}, not {mine[name]}"
                )
        epoch = as_count(state["epoch"], "epoch", least=0)
        position = as_count(state["consumed"], "consumed", least=0) // self._part()[1]
        finished = position >= len(self)
        self._epoch = self._next_epoch = epoch + finished
        self._next_position = 0 if finished else position
        self._stream = None

    def __getstate__(self) -> dict[str, Any]:
        epoch, position = self._place_now()
        return {
            **self.__dict__,
            "_stream": None,
            "_epoch": epoch,
            "_next_epoch": epoch,
            "_next_position": position,
        }


def _free_cores() -> int:
    """Return how many cores torch leaves free: by default none."""
    return max(thread_count(-1) - torch.get_num_threads(), 0)


class _Stream(Iterator[int]):
    """One pass over a sampler: its indices from `position` on, drawn ahead a lot at a time.

    Where torch leaves cores free, they draw the next lot in the background. Where it does not, the
    lot is drawn while training waits, a large one on all cores: torch's threads wait for each
    other, so that a draw beside them would cost several times its own time.
    """

    def __init__(self, sampler: DiverseSampler, epoch: int, position: int) -> None:
        part, parts = sampler._part()
        self.epoch = epoch
        self.position = position
        self._design, self._seed = sampler.design, sampler._draw_seed
        self._width = self._design.k // parts
        self._columns = slice(part * self._width, (part + 1) * self._width)
        self._offset = epoch * sampler.steps
        self._steps = sampler.steps
        self._step, skip = divmod(position, self._width)
        free = _free_cores()
        self._workers = free or thread_count(-1)
        at_once = getattr(self._design, "at_once", None)  # set if every call reads the data
        self._most = at_once or max(AHEAD // self._width + 1, EACH * self._workers)  # draws a lot
        soon = FIRST // self._design.k**3 // (PART if free else 1)
        self._lot = at_once or max(self._workers if soon == 0 else 1, min(self._most, soon))
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="dmsgd") if free else None
        self._ready = iter(self._draw(*self._reserve())[skip:])
        self._next_lot()

    def _reserve(self) -> tuple[int, int]:
        """Return (first step, number of steps) of the next lot of draws, and grow the lot."""
        first, count = self._step, min(self._lot, self._steps - self._step)
        self._step += count
        self._lot = min(4 * self._lot, self._most)
        return first, count

    def _draw(self, first: int, count: int) -> list[int]:
        if count == 0:
            return []
        start = self._offset + first
        workers = max(1, min(self._workers, count * self._design.k**3 // WORTH))
        batches = self._design.sample(count, self._seed, start=start, workers=workers)
        indices: list[int] = batches[:, self._columns].ravel().tolist()
        return indices

    def _next_lot(self) -> None:
        """Have the next lot drawn: from now on, or when it is asked for."""
        work = partial(self._draw, *self._reserve())
        self._ahead = work if self._pool is None else self._pool.submit(work).result

    def __next__(self) -> int:
        index = next(self._ready, None)
        if index is None:
            self._ready = iter(self._ahead())
            index = next(self._ready, None)
            if index is None:
                if self._pool is not None:
                    self._pool.shutdown()
                raise StopIteration
            self._next_lot()
        self.position += 1
        return index
