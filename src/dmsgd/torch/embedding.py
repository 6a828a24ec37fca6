"""A model's own view of the data, as features for the next design."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch.utils.data import DataLoader, IterableDataset, SequentialSampler


def embed(model: torch.nn.Module, data: Any, *, batch_size: int = 256) -> npt.NDArray[np.float32]:
    """Return model(x) for every item in the order of the dataset, shape (n, d), float32.

    `data` is a map-style dataset or a DataLoader that goes through one in order; the first field
    of a batch is the model's input. Pass the part of a network whose output you want, for example
    model.features. The model is put in evaluation mode and back, and no gradients are kept. One
    forward pass over the data; batch_size is how many items at a time.

    >>> from torch.utils.data import TensorDataset
    >>> embed(torch.nn.Linear(5, 3), TensorDataset(torch.randn(10, 5))).shape
    (10, 3)
    """
    if isinstance(data, IterableDataset):
        raise TypeError("an IterableDataset has no item numbers; pass a map-style dataset")
    batches = data if isinstance(data, DataLoader) else DataLoader(data, batch_size=batch_size)
    if not isinstance(batches.sampler, SequentialSampler) or batches.drop_last:
        raise ValueError(
            "the features must be in the order of the dataset; pass the dataset itself, or a "
            "DataLoader with shuffle=False and drop_last=False"
        )
    parameter = next(model.parameters(), None)
    device = parameter.device if parameter is not None else torch.device("cpu")
    training = model.training
    model.eval()
    try:
        with torch.no_grad():
            parts = [model(_inputs(batch).to(device)).flatten(1).float().cpu() for batch in batches]
    finally:
        model.train(training)
    return np.asarray(torch.cat(parts).numpy())


def _inputs(batch: Any) -> torch.Tensor:
    """Return the first field of a batch."""
    while not isinstance(batch, torch.Tensor):
        batch = next(iter(batch.values())) if isinstance(batch, dict) else batch[0]
    return batch
