"""Refusals of data that are not the design's, where Accelerate's loader lets one see them."""

from __future__ import annotations

import sys
from typing import Any


def refuse_other_data(sampler: Any, n: int) -> None:
    """Raise if Accelerate reads `sampler` for a dataset that has not n items, or for several."""
    module = sys.modules.get("accelerate.state")
    if module is None or not module.GradientState._shared_state:
        return
    loader = module.GradientState().active_dataloader
    batches: Any = getattr(loader, "batch_sampler", None)
    while hasattr(batches, "batch_sampler"):
        batches = batches.batch_sampler
    if any(each.sampler is sampler for each in getattr(batches, "batch_samplers", ())):
        raise ValueError(
            "batches of several datasets are mixed here, so that steps would not be draws; join "
            "them (datasets.concatenate_datasets), and build the design from all items"
        )
    if getattr(batches, "sampler", None) is sampler and len(loader.dataset) != n:
        raise ValueError(
            f"the dataset has {len(loader.dataset)} items, the design {n}; build the design from "
            f"the very items that are trained on: TRL's packing joins texts, so leave it out, and "
            f"a loader for evaluation needs a sampler of its own"
        )
