"""The gradient of every single item's loss, for `dmsgd.diagnostics.gradient_variance`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch.func import functional_call, grad, vmap

from dmsgd.inputs.arrays import FloatArray
from dmsgd.inputs.scalars import as_count


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

    >>> model, loss = torch.nn.Linear(5, 3), torch.nn.functional.cross_entropy
    >>> item_gradients(model, loss, torch.randn(10, 5), torch.randint(3, (10,))).shape
    (10, 18)
    """
    if not isinstance(model, torch.nn.Module):
        raise TypeError(f"model must be a torch module, got {type(model).__name__}")
    if not callable(loss):
        raise TypeError(f"loss must be a function (outputs, targets) -> number, got {loss!r}")
    for name, rows in (("inputs", inputs), ("targets", targets)):
        if not isinstance(rows, torch.Tensor) or rows.ndim == 0:
            raise TypeError(f"{name} must be a tensor with a row per item, got {rows!r}")
    step = as_count(chunk, "chunk")
    parameters = {
        name: value.detach() for name, value in model.named_parameters() if value.requires_grad
    }
    if not parameters:
        raise ValueError("the model has no parameters that require gradients")
    rest: dict[str, Any] = {
        name: value for name, value in model.named_parameters() if name not in parameters
    }
    rest.update(model.named_buffers())
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
