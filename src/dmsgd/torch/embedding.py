"""A model's own view of the data, as features for the next design."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain, zip_longest
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch.utils.data import DataLoader, IterableDataset, SequentialSampler

from dmsgd.designs.stream import is_numbered
from dmsgd.inputs.scalars import as_count


def embed(
    model: torch.nn.Module, data: Any, *, batch_size: int = 256, output: str | int | None = None
) -> npt.NDArray[np.float32]:
    """Return model(x) for every item in the order of the dataset, shape (n, d), float32.

    `data` is a map-style dataset or a DataLoader that goes through one in order; the first field
    of a batch is the model's input, in the model's own floating-point type. Pass the part of a
    network whose output you want, for example model.features; of a model that returns a mapping or
    a tuple, `output` says which field. The model is put in evaluation mode and every part of it
    back into the mode it had, and no gradients are kept. One forward pass over the data; batch_size
    is how many items at a time.

    >>> from torch.utils.data import TensorDataset
    >>> embed(torch.nn.Linear(5, 3), TensorDataset(torch.randn(10, 5))).shape
    (10, 3)
    """
    if not isinstance(model, torch.nn.Module):
        raise TypeError(f"model must be a torch module, got {type(model).__name__}")
    batch_size = as_count(batch_size, "batch_size")
    if not isinstance(data, DataLoader):
        check_numbered(data, "data")
    batches = data if isinstance(data, DataLoader) else DataLoader(data, batch_size=batch_size)
    if not _goes_in_order(batches):
        raise ValueError(
            "the features must be in the order of the dataset; pass the dataset itself, or a "
            "DataLoader with shuffle=False and drop_last=False, of batches in order"
        )
    like = next((p for p in model.parameters() if p.is_floating_point()), torch.empty(0))
    modes = {module: module.training for module in model.modules()}
    model.eval()
    try:
        with torch.no_grad():
            parts = []
            for batch in batches:
                inputs = _inputs(batch).to(like.device)
                inputs = inputs.to(like.dtype) if inputs.is_floating_point() else inputs
                parts.append(_rows(_field(model(inputs), output), inputs).float().cpu())
    finally:
        for module, mode in modes.items():
            module.training = mode
    return np.asarray(torch.cat(parts).numpy())


def _goes_in_order(batches: DataLoader[Any]) -> bool:
    """Return whether each item comes once, in the order of the dataset."""
    if not isinstance(batches.sampler, SequentialSampler) or not getattr(batches, "in_order", True):
        return False
    if batches.batch_sampler is None:
        return True
    taken = chain.from_iterable(batches.batch_sampler)  # `sampler` says nothing of one's own
    return all(i == j for i, j in zip_longest(taken, range(len(batches.dataset))))  # type: ignore[arg-type]


def check_numbered(data: Any, name: str) -> None:
    """Raise unless items of `data` can be read by number."""
    if isinstance(data, IterableDataset) or not is_numbered(data):
        raise TypeError(
            f"{name} is a {type(data).__name__}, whose items cannot be read by number; use a "
            f"map-style dataset"
        )


def _inputs(batch: Any) -> torch.Tensor:
    """Return the first field of a batch."""
    while not isinstance(batch, torch.Tensor):
        if isinstance(batch, str | bytes) or not isinstance(batch, Mapping | Sequence):
            raise TypeError(
                f"the first field of the data is a {type(batch).__name__}; the model's inputs must "
                f"be tensors, arrays or numbers"
            )
        batch = next(iter(batch.values())) if isinstance(batch, Mapping) else batch[0]
    return batch


def _rows(result: torch.Tensor, inputs: torch.Tensor) -> torch.Tensor:
    """Return a model's result as one row per item."""
    if result.shape[:1] != inputs.shape[:1]:
        raise ValueError(
            f"the model must return one row per item, got shape {tuple(result.shape)} for inputs "
            f"of shape {tuple(inputs.shape)}"
        )
    return result.reshape(len(result), -1)


def _field(result: Any, output: str | int | None) -> torch.Tensor:
    """Return the one tensor of a model's result, or the one that `output` names."""
    if isinstance(result, torch.Tensor):
        return result
    fields = dict(result) if isinstance(result, Mapping) else dict(enumerate(result))
    tensors = {name: value for name, value in fields.items() if isinstance(value, torch.Tensor)}
    if output is None and len(tensors) == 1:
        return next(iter(tensors.values()))
    if output not in tensors:
        raise ValueError(
            f"the model returns several things; pass output= one of {', '.join(map(repr, tensors))}"
        )
    return tensors[output]
