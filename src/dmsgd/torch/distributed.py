"""Which part of each draw this process takes, and Accelerate.

The Hugging Face Trainer, TRL and sentence-transformers train through Accelerate, which deals out
or splits the batches and keeps the epoch itself.
"""

from __future__ import annotations

import os
import sys
from typing import Any, Literal

import torch.distributed

from dmsgd.inputs.scalars import as_count, as_flag

#: True: take this rank's part of each draw. False: take all of it. "auto": see `part_of_draw`.
Shard = bool | Literal["auto"]
#: How to go on in the middle of an epoch under Accelerate, whose load_state calls no sampler.
RESUME = (
    "Accelerate's load_state restores neither epoch nor batches. To resume, call "
    "loader.set_epoch(epoch), then go through accelerator.skip_first_batches(loader, batches)"
)


def as_shard(value: Any) -> Shard:
    """Return `value`, which is True, False or "auto"."""
    is_auto = isinstance(value, str) and value == "auto"
    return "auto" if is_auto else as_flag(value, "shard", ", or 'auto'")


def as_replica(rank: int | None, num_replicas: int | None) -> tuple[int, int] | None:
    """Return a process's number and how many there are, None if the user names neither."""
    if rank is None and num_replicas is None:
        return None
    if rank is None or num_replicas is None:
        raise ValueError("num_replicas and rank belong together; pass both or neither")
    rank, num_replicas = as_count(rank, "rank", least=0), as_count(num_replicas, "num_replicas")
    if rank >= num_replicas:
        raise ValueError(f"rank must be one of 0..{num_replicas - 1}, got {rank}")
    return rank, num_replicas


def part_of_draw(shard: Shard, replica: tuple[int, int] | None) -> tuple[int, int]:
    """Return (part, parts): this process takes part number `part` of each draw cut in `parts`.

    "auto" cuts draws over the ranks of torch.distributed, which is right for plain DDP and for
    Lightning, which leaves a DistributedSampler alone. Accelerate cuts what it is given itself, so
    nothing is cut here where it runs.
    """
    if shard is False or (shard == "auto" and replica is None and _accelerate() is not None):
        return 0, 1
    if replica is None and _initialized():
        return torch.distributed.get_rank(), torch.distributed.get_world_size()
    return replica or (0, 1)


def process_count() -> int:
    """Return how many processes train together, as far as Accelerate or torch know."""
    if (accelerate := _accelerate()) is not None:
        return int(accelerate.PartialState().num_processes)
    return part_of_draw(True, None)[1]


def check_initialized() -> None:
    """Raise if this is one of several processes, and torch.distributed does not run yet."""
    world = os.environ.get("WORLD_SIZE", "1")
    if not _initialized() and _accelerate() is None and world not in ("", "0", "1"):
        raise RuntimeError(
            f"WORLD_SIZE says {world} processes, but torch.distributed does not run; call "
            f"torch.distributed.init_process_group first, or pass shard=False if each process "
            f"trains a model of its own"
        )


def check_batch_size(sampler: Any, batch_size: int, ranks: int, split: bool = False) -> None:
    """Raise unless forward passes of batch_size x ranks items add up to draws of the sampler.

    Its pass_size: items of a draw that a pass must have; None: any part of it, by accumulation.
    split: whether Accelerate splits each batch over the processes.
    """
    k, pass_size, together = sampler.design.k, sampler.pass_size, batch_size * ranks
    if k % together == 0 if pass_size is None else together == pass_size:
        return
    fix = f"choose batch_size = {k} / ({ranks} ranks x accumulation steps)"
    if split:
        fix = f"leave out Accelerate's split_batches=True, or pass batch_size={pass_size or k}"
    elif pass_size is not None:
        fix = "make the loader once all processes run (in Lightning, in train_dataloader)"
    problem = f"batch_size {batch_size} x {ranks} ranks do not add up to draws of k={k}"
    raise ValueError(f"{problem}; {fix}")


def check_accelerate(sampler: Any) -> int | None:
    """Return the epoch of the Accelerate loader that reads `sampler` now, None if none does.

    Raises ValueError for a set-up in which steps would not be draws. Accelerate calls `set_epoch`
    before each pass, but not through `skip_first_batches` over several processes.
    """
    accelerate, design = _accelerate(), sampler.design
    if accelerate is None:
        return None
    loader = accelerate.GradientState().active_dataloader
    chain: list[Any] = [getattr(loader, "batch_sampler", None)]
    while hasattr(chain[-1], "batch_sampler"):  # Accelerate's shards and skips wrap ours
        chain.append(chain[-1].batch_sampler)
    batches = chain[-1]
    if any(each.sampler is sampler for each in getattr(batches, "batch_samplers", ())):
        fix = "join them (datasets.concatenate_datasets), and build the design from all items"
        raise ValueError(f"batches of several datasets are mixed here; {fix}")
    if getattr(batches, "sampler", None) is not sampler:
        return None
    if loader.use_stateful_dataloader:
        problem = "Accelerate's use_stateful_dataloader=True saves no epoch; leave it out"
        raise ValueError(f"{problem}. {RESUME}")
    if len(loader.dataset) != design.n:
        raise ValueError(
            f"the dataset has {len(loader.dataset)} items, the design {design.n}; leave out TRL's "
            f"packing, which joins texts, and give evaluation a sampler of its own"
        )
    dispatcher = sys.modules["accelerate.data_loader"].DataLoaderDispatcher
    processes = process_count()
    split = any(getattr(part, "split_batches", False) for part in (loader, *chain))
    skipped = any(getattr(part, "skip_batches", 0) for part in chain)
    if isinstance(loader, dispatcher) and processes > 1 and skipped and not split:
        problem = "under dispatch_batches=True Accelerate's skip_first_batches would cut draws"
        raise ValueError(f"{problem}; leave out dispatch_batches: the batches are the same without")
    check_batch_size(sampler, batches.batch_size, 1 if split else processes, split)
    return int(loader.iteration)


def _accelerate() -> Any:
    """Return the module accelerate.state if an Accelerator runs here; it is never imported."""
    module = sys.modules.get("accelerate.state")
    return module if module is not None and module.is_initialized() else None


def _initialized() -> bool:
    return torch.distributed.is_available() and torch.distributed.is_initialized()
