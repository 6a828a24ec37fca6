"""Who goes through a sampler: torch's or torchdata's batch sampler, or somebody else."""

from __future__ import annotations

from types import FrameType
from typing import Any

from torch.utils.data import BatchSampler
from torch.utils.data.dataloader import _BaseDataLoaderIter


def reader(caller: FrameType) -> Any:
    """Return the batch sampler whose frame asked for an iterator, None if it was none.

    Or the type of the loader's iterator that takes items one by one (batch_size=None): it reads
    ahead, too, and itself would be kept alive, with its workers.

    A batch sampler knows the batch size, and tells nobody: it keeps the sampler, and later calls
    iter() on it, without arguments. `DataLoader` makes it, and frameworks make the loader, so there
    is nothing of ours in between that could pass it on; only the frame of that call shows it.
    """
    found = caller.f_locals.get("self")
    of_torchdata = type(found).__module__.startswith("torchdata.")
    if isinstance(found, _BaseDataLoaderIter):
        return type(found)
    return found if of_torchdata or isinstance(found, BatchSampler) else None
