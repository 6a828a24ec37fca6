"""DM-SGD, the paper's Algorithm 1: one update per batch of a design.

The functions check their arguments at once and return an iterator; each `next` makes one update.
Biased (the default) follows the gradient of the diversified risk (Proposition 3),

    J* = (1/k) Σ_i b_i l_i,       estimated by the mean of l_i over the batch;

unbiased that of the empirical risk. Proposition 4 prints the weight 1/(k b_i), whose expectation is
n/k times the mean gradient; the weight that estimates the mean itself is 1/(n b_i):

    J = (1/n) Σ_i l_i,            estimated by the sum of l_i / (n b_i) over the batch.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from dmsgd.designs.contract import unbiased_weights
from dmsgd.designs.stream import Source, as_indexable, check_design, take
from dmsgd.inputs.arrays import IntArray, as_numbers
from dmsgd.inputs.messages import kind_of, require
from dmsgd.inputs.scalars import Seed, as_flag


@final
@dataclass(frozen=True, eq=False)
class Step:
    """One update of training: the number of its batch and the items; start=step+1 continues.

    loss: the batch's estimate of J* (biased) or J (unbiased) before the update, None from
          scikit-learn, whose estimators do not return it.
    """

    step: int
    batch: IntArray
    loss: float | None


def train_torch(
    model: Any,
    loss: Callable[[Any, Any], Any],
    optimizer: Any,
    data: Any,
    design: Source,
    steps: int,
    seed: Seed = 0,
    unbiased: bool = False,
    start: int = 0,
) -> Iterator[Step]:
    """Return an iterator that makes one optimiser step per batch and yields a `Step` after it.

    loss: (outputs, targets) -> one loss per item, shape (k,), as torch's with reduction="none".
    data: a tuple of tensors (X, ..., y) with a row per item; the model gets all but the last, which
          are the targets. Batches go to the model's device. A dataset takes `dmsgd.torch.loader`.
    unbiased: weight losses by `dmsgd.unbiased_weights`.

    The batches are the rows of design.sample(steps, seed, start=start). Raises ValueError if the
    loss does not return k values. See also `dmsgd.torch.loader`, for training loops of your own.

    >>> import dmsgd, torch
    >>> X, y = torch.randn(100, 5), torch.randint(3, (100,))
    >>> model, loss = torch.nn.Linear(5, 3), torch.nn.CrossEntropyLoss(reduction="none")
    >>> optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    >>> records = train_torch(model, loss, optimizer, (X, y), dmsgd.diversify(X, k=4), steps=10)
    >>> [record.step for record in records]
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    """
    require("torch", "train_torch")
    import torch

    methods = {"model": "parameters", "loss": "__call__", "optimizer": "step"}
    for (name, method), part in zip(methods.items(), (model, loss, optimizer), strict=True):
        if isinstance(part, type) or not hasattr(part, method):
            raise TypeError(f"{name} must have a method {method}, got {part!r}")
    unbiased = as_flag(unbiased, "unbiased")
    fields = data if isinstance(data, tuple) else ()
    if len(fields) < 2 or not all(isinstance(field, torch.Tensor) for field in fields):
        kinds = [type(field).__name__ for field in fields] if fields else kind_of(data)
        raise TypeError(f"data must be two or more tensors, inputs then targets, got {kinds}")
    lengths = [len(field) for field in fields]
    if len(set(lengths)) != 1:
        raise ValueError(f"the tensors of data have different lengths: {lengths}")
    check_design(design, lengths[0], "data")
    batches = design.stream(seed).batches(start, steps)
    weights = torch.from_numpy(unbiased_weights(design)) if unbiased else None
    device = getattr(next(model.parameters(), None), "device", None)

    def updates() -> Iterator[Step]:
        for t, batch in batches:
            items = torch.from_numpy(batch)
            *inputs, targets = (field[items.to(field.device)].to(device) for field in fields)
            losses = loss(model(*inputs), targets)
            if (shape := tuple(losses.shape)) != (design.k,):
                needed = f"one value per item (reduction='none'), shape ({design.k},)"
                raise ValueError(f"loss must return {needed}, got {shape}")
            weighted = losses if weights is None else losses * weights[items].to(losses)
            objective = weighted.mean() if weights is None else weighted.sum()
            optimizer.zero_grad()
            objective.backward()
            optimizer.step()
            yield Step(t, batch, objective.item())

    return updates()


def train_sklearn(
    estimator: Any,
    X: Any,
    y: Any,
    design: Source,
    steps: int,
    classes: Any = None,
    seed: Seed = 0,
    unbiased: bool = False,
    start: int = 0,
    sample_weight: Any = None,
    **params: Any,
) -> Iterator[Step]:
    """Return an iterator that calls `partial_fit` once per batch and yields a `Step` after it.

    X, y:     array, CSR, pandas or polars; rows are taken by position. y is None for estimators
              that need none (MiniBatchKMeans).
    classes:  passed at the first call if partial_fit takes it; by default the values of y.
    unbiased: pass sample_weight = k / (n b_i), whose mean over batches is 1.
    sample_weight: one number per item, which `unbiased` multiplies. A batch whose items all have
              weight 0 is not passed on.
    params:   more arguments for partial_fit. A batch gets its part of those that have one entry per
              item.

    SGDClassifier makes k updates of one item each, and MLPClassifier divides by the sum of the
    batch's weights, a ratio of two unbiased estimates. Use `train_torch` where that matters. Raises
    TypeError if the estimator has no partial_fit.

    >>> import dmsgd, numpy as np
    >>> from sklearn.linear_model import SGDClassifier
    >>> X = np.random.default_rng(0).normal(size=(100, 5))
    >>> y, model = X[:, 0] > 0, SGDClassifier(random_state=0)
    >>> records = list(train_sklearn(model, X, y, dmsgd.diversify(X, k=4), steps=50))
    >>> bool(model.score(X, y) > 0.8)
    True
    """
    unbiased, given = as_flag(unbiased, "unbiased"), {"X": X} if y is None else {"X": X, "y": y}
    rows = {name: as_indexable(value, name) for name, value in given.items()}
    for name, value in rows.items():
        check_design(design, value.shape[0], name)
    if sample_weight is not None:
        params["sample_weight"] = as_numbers(sample_weight, "sample_weight", design.n)
    if unbiased:
        unit = design.k * unbiased_weights(design)
        params["sample_weight"] = unit * params.get("sample_weight", 1.0)
    first = _first_call(estimator, rows.get("y"), classes, params)
    batches = design.stream(seed).batches(start, steps)
    each = {name: value for name, value in params.items() if np.shape(value)[:1] == (design.n,)}
    each = {name: as_indexable(value, name) for name, value in each.items()}
    weighted = np.any(params.get("sample_weight", 0.0))

    def updates(extra: dict[str, Any]) -> Iterator[Step]:
        for t, batch in batches:
            parts = {name: take(value, batch) for name, value in each.items()}
            # Estimators raise, or divide by 0, if all weights are 0.
            if not weighted or parts["sample_weight"].any():
                arguments = (take(value, batch) for value in rows.values())
                estimator.partial_fit(*arguments, **{**params, **parts, **extra})
                extra = {}
            yield Step(t, batch, None)

    return updates(first)


def _first_call(estimator: Any, y: Any, classes: Any, params: dict[str, Any]) -> dict[str, Any]:
    """Return what only the first partial_fit gets; raise for arguments that it does not take."""
    name = type(estimator).__name__
    if isinstance(estimator, type) or not hasattr(estimator, "partial_fit"):
        raise TypeError(f"{name} has no partial_fit, so this estimator cannot learn batch by batch")
    takes = inspect.signature(estimator.partial_fit).parameters
    if y is None and "y" in takes and takes["y"].default is inspect.Parameter.empty:
        raise ValueError(f"{name} requires y to be passed, but the target y is None")
    if classes is None and y is not None and "classes" in takes:
        outputs = math.prod(y.shape[1:])  # several: labels that are there (1) or not (0)
        classes = np.unique(np.asarray(y)) if outputs == 1 else np.arange(outputs)
    first = {} if classes is None else {"classes": classes}
    if not any(each.kind is each.VAR_KEYWORD for each in takes.values()):
        for unknown in {**params, **first}.keys() - takes:
            also = ", which unbiased=True passes, too" if unknown == "sample_weight" else ""
            raise TypeError(f"{name}.partial_fit takes no {unknown}{also}; leave it out")
    return first
