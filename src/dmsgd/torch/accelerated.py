"""What Accelerate does with a sampler: it deals out or splits batches, and keeps the epoch itself.

The Hugging Face Trainer, TRL and sentence-transformers train through Accelerate.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any


def state() -> Any:
    """Return Accelerate's state if it runs here; it is asked only if already imported."""
    module = sys.modules.get("accelerate.state")
    return module.PartialState() if module and module.PartialState._shared_state else None


@dataclass(frozen=True)
class Drive:
    """How Accelerate goes through a sampler.

    epoch:    the one its loader is in. It calls the sampler's `set_epoch` too, but does not reach
              it through `skip_first_batches` over several processes.
    ranks:    how many batches of the sampler make one step: the processes, or 1 if each is split.
    split:    whether each batch is split over the processes.
    """

    epoch: int
    ranks: int
    split: bool


def drive(sampler: Any) -> Drive | None:
    """Return how Accelerate goes through `sampler`, or None if it does not do so now."""
    module = sys.modules.get("accelerate.state")
    if module is None or not module.GradientState._shared_state:
        return None
    loader = module.GradientState().active_dataloader
    chain: list[Any] = [getattr(loader, "batch_sampler", None)]
    while hasattr(chain[-1], "batch_sampler"):
        chain.append(chain[-1].batch_sampler)
    if getattr(chain[-1], "sampler", None) is not sampler:
        _refuse_while_preparing()
        return None
    processes = int(module.PartialState().num_processes)
    dispatched = hasattr(loader, "slice_fn") and processes > 1
    split = any(getattr(part, "split_batches", False) for part in (loader, *chain))
    if dispatched and loader.use_stateful_dataloader:
        raise ValueError(
            "Accelerate's dispatch_batches=True loses the place of a stateful loader; leave out "
            "use_stateful_dataloader, or dispatch_batches: the batches are the same without"
        )
    if dispatched and not split and any(getattr(part, "skip_batches", 0) for part in chain):
        raise ValueError(
            "under dispatch_batches=True Accelerate's skip_first_batches counts the batches before "
            "they are put together, so that draws would be cut; leave out dispatch_batches: the "
            "batches are the same without"
        )
    return Drive(int(loader.iteration), 1 if split else processes, split)


def _refuse_while_preparing() -> None:
    """Raise if Accelerate reads the sampler before training has begun, as a stateful loader does.

    Its workers fetch the first batches while it is made, when no epoch can have been named.
    """
    frame: Any = sys._getframe(1)
    while frame is not None:
        where = frame.f_globals.get("__name__"), frame.f_code.co_name
        if where == ("accelerate.data_loader", "__init__"):
            raise ValueError(
                "Accelerate's use_stateful_dataloader=True with workers reads batches before "
                "training can say which epoch it is in; leave it out, and resume with "
                "loader.set_epoch(epoch) and accelerator.skip_first_batches(loader, batches)"
            )
        frame = frame.f_back
