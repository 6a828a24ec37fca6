"""What a model makes of each item: features for the next design, and gradients of the loss."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch.func import functional_call, grad, vmap
from torch.utils.data import DataLoader, IterableDataset

from dmsgd.designs.stream import is_numbered
from dmsgd.inputs.arrays import FloatArray
from dmsgd.inputs.scalars import as_count, as_function


def embed(
    model: torch.nn.Module,
    data: Any,
    *,
    batch_size: int = 256,
    num_workers: int = 0,
    collate_fn: Callable[[list[Any]], Any] | None = None,
    output: str | int | None = None,
) -> npt.NDArray[np.float32]:
    """Return model(x) for every item in the order of the dataset, shape (n, d), float32.

    model:      for example model.features, the part of a network whose output you want. It runs in
                evaluation mode without gradients; its parts get back the modes they had.
    data:       a map-style dataset. The first field of a batch is the model's input.
    batch_size: items per forward pass.
    num_workers, collate_fn: as in DataLoader.
    output:     which field, if the model returns a mapping or a tuple.

    A dataset that augments its items at random gives other features in every call, so pass one
    without augmentation; `embed` warns if the first items differ when they are read twice.
    See also `diversify`.

    >>> from torch.utils.data import TensorDataset
    >>> embed(torch.nn.Linear(5, 3), TensorDataset(torch.randn(10, 5))).shape
    (10, 3)
    """
    _check_model(model)
    check_numbered(data, "data")
    batches: DataLoader[Any] = DataLoader(
        data,
        batch_size=as_count(batch_size, "batch_size"),
        num_workers=num_workers,
        collate_fn=collate_fn,
    )
    _warn_augmented(batches)
    like = next((p for p in model.parameters() if p.is_floating_point()), torch.empty(0))
    modes = {module: module.training for module in model.modules()}
    model.eval()
    try:
        with torch.no_grad():
            parts = []
            for batch in batches:
                inputs = _inputs(batch).to(like.device)
                inputs = inputs.to(like.dtype) if inputs.is_floating_point() else inputs
                result = _field(model(inputs), output)
                if result.shape[:1] != inputs.shape[:1]:
                    raise ValueError(
                        f"the model must return one row per item, got shape {tuple(result.shape)} "
                        f"for inputs of shape {tuple(inputs.shape)}"
                    )
                parts.append(result.reshape(len(result), -1).float().cpu())
    finally:
        for module, mode in modes.items():
            module.training = mode
    return np.asarray(torch.cat(parts).numpy())


def _warn_augmented(batches: DataLoader[Any]) -> None:
    data = batches.dataset
    for number in range(min(len(data), 4)):  # type: ignore[arg-type]
        one, two = (_inputs(batches.collate_fn([data[number]])) for _ in range(2))
        if one.shape != two.shape or not bool(((one == two) | (one != one)).all()):
            warnings.warn(
                "items of this dataset differ each time that they are read, as with random "
                "augmentation, and so do the features; embed the dataset without augmentation",
                stacklevel=3,
            )
            return


def check_numbered(data: Any, name: str) -> None:
    """Raise unless items of `data` can be read by number."""
    if isinstance(data, IterableDataset) or not is_numbered(data):
        raise TypeError(
            f"{name} is a {type(data).__name__}, whose items have no numbers; pass a map-style "
            f"dataset"
        )


def _inputs(batch: Any) -> torch.Tensor:
    while not isinstance(batch, torch.Tensor):
        if isinstance(batch, str | bytes) or not isinstance(batch, Mapping | Sequence):
            kind = type(batch).__name__
            raise TypeError(f"the first field of the data is a {kind}; models take tensors")
        batch = next(iter(batch.values())) if isinstance(batch, Mapping) else batch[0]
    return batch


def _field(result: Any, output: str | int | None) -> torch.Tensor:
    """Return the one tensor of a model's result, or the one that `output` names."""
    if isinstance(result, torch.Tensor):
        return result
    fields = result.items() if isinstance(result, Mapping) else enumerate(result)
    tensors = {name: value for name, value in fields if isinstance(value, torch.Tensor)}
    if output is None and len(tensors) == 1:
        (output,) = tensors
    if output not in tensors:
        names = ", ".join(map(repr, tensors))
        raise ValueError(f"the model returns several things; pass output= one of {names}")
    return tensors[output]


def item_gradients(
    model: Any, loss: Callable[[Any, Any], Any], inputs: Any, targets: Any, chunk: int = 256
) -> FloatArray:
    """Return the gradient of each item's loss in all trainable parameters, shape (n, p).

    inputs, targets: tensors with a row per item.
    loss:  (outputs, targets) -> a single number for a batch of one, such as
           torch.nn.functional.cross_entropy.
    chunk: items differentiated at a time.

    Every item is a batch of its own (`torch.func`), so the model must not mix items: put batch
    normalisation and dropout in evaluation mode. n p numbers are kept; for large models pass the
    last layer alone, with its inputs. One forward and backward pass over the data.
    See also `gradient_variance`.

    >>> model, loss = torch.nn.Linear(5, 3), torch.nn.functional.cross_entropy
    >>> item_gradients(model, loss, torch.randn(10, 5), torch.randint(3, (10,))).shape
    (10, 18)
    """
    _check_model(model)
    as_function(loss, "loss", "(outputs, targets) -> number")
    for name, rows in (("inputs", inputs), ("targets", targets)):
        if not isinstance(rows, torch.Tensor) or rows.ndim == 0:
            raise TypeError(f"{name} must be a tensor with a row per item, got {rows!r}")
    step = as_count(chunk, "chunk")
    named = dict(model.named_parameters())
    parameters = {name: each.detach() for name, each in named.items() if each.requires_grad}
    if not parameters:
        raise ValueError("the model has no parameters that require gradients")
    rest: dict[str, Any] = named | dict(model.named_buffers())
    if len(inputs) != len(targets):
        raise ValueError(f"inputs has {len(inputs)} items, targets {len(targets)}")

    def single(trained: dict[str, Any], x: Any, y: Any) -> Any:
        outputs = functional_call(model, {**rest, **trained}, (x.unsqueeze(0),))
        return loss(outputs, y.unsqueeze(0)).sum()

    each = vmap(grad(single), in_dims=(None, 0, 0))
    parts = []
    for start in range(0, len(inputs), step):
        part = slice(start, start + step)
        found = each(parameters, inputs[part], targets[part])
        rows = [found[name].flatten(1).to(torch.float64).cpu() for name in parameters]
        parts.append(torch.cat(rows, dim=1).numpy())
    return np.concatenate(parts)


def _check_model(model: Any) -> None:
    if not isinstance(model, torch.nn.Module):
        raise TypeError(f"model must be a torch module, got {type(model).__name__}")
