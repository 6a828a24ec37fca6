"""Which part of every draw this process takes."""

from __future__ import annotations

import sys
from typing import Any, Literal

import torch.distributed

#: True: take this rank's part of each draw. False: take all of it. "auto": see `part_of_draw`.
Shard = bool | Literal["auto"]


def part_of_draw(shard: Shard, rank: int | None, num_replicas: int | None) -> tuple[int, int]:
    """Return (part, parts): this process takes part number `part` of each draw cut in `parts`.

    "auto" cuts draws over the ranks of torch.distributed, which is right for plain DDP and for
    Lightning (it leaves a DistributedSampler alone). Accelerate cuts what it is given itself, so
    where it runs nothing is cut here.
    """
    if shard is False or (shard == "auto" and num_replicas is None and _accelerate() is not None):
        return 0, 1
    if rank is not None and num_replicas is not None:
        return rank, num_replicas
    return (torch.distributed.get_rank(), process_count()) if _initialised() else (0, 1)


def process_count() -> int:
    """Return how many processes train together, as far as Accelerate or torch know."""
    accelerate = _accelerate()
    if accelerate is not None:
        return int(accelerate.num_processes)
    return int(torch.distributed.get_world_size()) if _initialised() else 1


def _initialised() -> bool:
    return torch.distributed.is_available() and torch.distributed.is_initialized()


def _accelerate() -> Any:
    """Return Accelerate's state if it runs here; it is asked only if already imported."""
    state = sys.modules.get("accelerate.state")
    return state.PartialState() if state and state.PartialState._shared_state else None
