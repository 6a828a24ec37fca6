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


def drive(sampler: Any, n: int) -> Drive | None:
    """Return how Accelerate goes through `sampler`, of n items; None if it does not do so now."""
    module = sys.modules.get("accelerate.state")
    if module is None or not module.GradientState._shared_state:
        return None
    loader = module.GradientState().active_dataloader
    chain: list[Any] = [getattr(loader, "batch_sampler", None)]
    while hasattr(chain[-1], "batch_sampler"):
        chain.append(chain[-1].batch_sampler)
    _refuse_several(sampler, chain[-1])
    if getattr(chain[-1], "sampler", None) is not sampler:
        _refuse_while_preparing()
        return None
    _refuse_other_data(loader.dataset, n)
    processes = int(module.PartialState().num_processes)
    split = any(getattr(part, "split_batches", False) for part in (loader, *chain))
    if hasattr(loader, "slice_fn") and processes > 1:
        _refuse_lost_places(loader, chain, split)
    return Drive(int(loader.iteration), 1 if split else processes, split)


def _refuse_several(sampler: Any, batches: Any) -> None:
    """Raise if the innermost batch sampler takes turns between several, one of them ours."""
    if any(each.sampler is sampler for each in getattr(batches, "batch_samplers", ())):
        raise ValueError(
            "batches of several datasets are mixed here, so that steps would not be draws; join "
            "them (datasets.concatenate_datasets), and build the design from all items"
        )


def _refuse_other_data(dataset: Any, n: int) -> None:
    if len(dataset) != n:
        raise ValueError(
            f"the dataset has {len(dataset)} items, the design {n}; build the design from "
            f"the very items that are trained on: TRL's packing joins texts, so leave it out, and "
            f"a loader for evaluation needs a sampler of its own"
        )


def _refuse_lost_places(loader: Any, chain: list[Any], split: bool) -> None:
    """Raise if the main process hands out batches and would lose count of them."""
    if loader.use_stateful_dataloader:
        raise ValueError(
            "Accelerate's dispatch_batches=True loses the place of a stateful loader; leave out "
            "use_stateful_dataloader, or dispatch_batches: the batches are the same without"
        )
    if not split and any(getattr(part, "skip_batches", 0) for part in chain):
        raise ValueError(
            "under dispatch_batches=True Accelerate's skip_first_batches counts the batches before "
            "they are put together, so that draws would be cut; leave out dispatch_batches: the "
            "batches are the same without"
        )


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
