"""Which part of every draw this process takes, and what all processes must agree on."""

from __future__ import annotations

import os
from typing import Any, Literal

import torch.distributed

from dmsgd.inputs.scalars import as_count, as_flag
from dmsgd.torch import accelerated

#: True: take this rank's part of each draw. False: take all of it. "auto": see `part_of_draw`.
Shard = bool | Literal["auto"]


def as_shard(value: Any) -> Shard:
    """Return `value`, which is True, False or "auto"."""
    if isinstance(value, str) and value == "auto":
        return "auto"
    return as_flag(value, "shard", ", or 'auto'")


def as_replica(rank: int | None, num_replicas: int | None) -> tuple[int | None, int | None]:
    """Return a process's number and how many there are, as integers, or None for both."""
    if (rank is None) != (num_replicas is None):
        raise ValueError("num_replicas and rank belong together; pass both or neither")
    if rank is None or num_replicas is None:
        return None, None
    rank, num_replicas = as_count(rank, "rank", least=0), as_count(num_replicas, "num_replicas")
    if rank >= num_replicas:
        raise ValueError(f"rank must be one of 0..{num_replicas - 1}, got {rank}")
    return rank, num_replicas


def part_of_draw(shard: Shard, rank: int | None, num_replicas: int | None) -> tuple[int, int]:
    """Return (part, parts): this process takes part number `part` of each draw cut in `parts`.

    "auto" cuts draws over the ranks of torch.distributed, which is right for plain DDP and for
    Lightning (it leaves a DistributedSampler alone). Accelerate cuts what it is given itself, so
    where it runs nothing is cut here.
    """
    cut_by_accelerate = shard == "auto" and num_replicas is None and accelerated.state() is not None
    if shard is False or cut_by_accelerate:
        return 0, 1
    if rank is not None and num_replicas is not None:
        return rank, num_replicas
    return (torch.distributed.get_rank(), process_count()) if _initialised() else (0, 1)


def refuse_unjoined(shard: Shard, num_replicas: int | None) -> None:
    """Raise if this is one of several processes that have not found each other yet.

    Each of them would take whole draws, and all of them the same.
    """
    world = os.environ.get("WORLD_SIZE", "1")
    alone = not _initialised() and accelerated.state() is None
    if alone and shard is not False and num_replicas is None and world not in ("", "0", "1"):
        raise RuntimeError(
            f"WORLD_SIZE says {world} processes, but torch.distributed does not run, so that each "
            f"would train on the same draws; call torch.distributed.init_process_group first, or "
            f"say shard=False if the processes have nothing to do with each other"
        )


def refuse_misfit(k: int, batch_size: int, ranks: int, wanted: int | None, split: bool) -> None:
    """Raise unless passes of batch_size x ranks items add up to draws.

    wanted: how many items of a draw a pass must have; None: any part of it, by accumulation.
    split:  whether Accelerate splits each batch over the processes.
    """
    together = batch_size * ranks
    if k % together == 0 if wanted is None else together == wanted:
        return
    if split:
        remedy = (
            "Accelerate's split_batches=True cuts each batch once more; leave it out, or use a "
            f"plain DataLoader with batch_size={wanted or k}"
        )
    elif wanted is None:
        remedy = f"choose batch_size = {k} / ({ranks} ranks x accumulation steps)"
    else:
        remedy = "make the loader once all processes run (in Lightning, in train_dataloader)"
    raise ValueError(
        f"batch_size {batch_size} x {ranks} ranks = {together} items a pass do not add up to "
        f"draws of k={k}; {remedy}"
    )


def process_count() -> int:
    """Return how many processes train together, as far as Accelerate or torch know."""
    state = accelerated.state()
    if state is not None:
        return int(state.num_processes)
    return int(torch.distributed.get_world_size()) if _initialised() else 1


def sharers(shard: Shard, num_replicas: int | None) -> int:
    """Return how many processes share each draw, whoever cuts it: as given, or all that train."""
    return process_count() if shard is False or num_replicas is None else num_replicas


def of_first_rank(value: Any) -> Any:
    """Return rank 0's value on every rank; all of them must call it."""
    if not _several():
        return value
    box = [value]
    torch.distributed.broadcast_object_list(box, src=0)
    return box[0]


def refuse_disagreement(fingerprint: str) -> None:
    """Raise on every rank if they hold different designs; all of them must call it."""
    if not _several():
        return
    found = [""] * torch.distributed.get_world_size()
    torch.distributed.all_gather_object(found, fingerprint)
    if len(set(found)) > 1:
        raise ValueError(
            "the ranks hold different designs, so that no step would be a draw; build the design "
            "from the same features on every rank, or pass update() features: rank 0's count"
        )


def _several() -> bool:
    return _initialised() and torch.distributed.get_world_size() > 1


def _initialised() -> bool:
    return torch.distributed.is_available() and torch.distributed.is_initialized()
