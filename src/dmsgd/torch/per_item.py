"""What is known of each item of a dataset: what a model makes of it, and its label."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch.utils.data import ConcatDataset, DataLoader, IterableDataset, Subset, TensorDataset

from dmsgd.inputs.arrays import to_numpy
from dmsgd.inputs.labels import as_labels
from dmsgd.inputs.messages import few
from dmsgd.inputs.scalars import as_count
from dmsgd.runtime.progress import Progress

#: Attributes in which datasets keep labels: torchvision's and ImageFolder, SVHN, PyTorch Geometric.
ATTRIBUTES = ("targets", "labels", "y")
#: Which field is the label, unless it is said: of a mapping or a table, and of a tuple.
USUAL = ("label", "labels", 1)
#: For messages.
LABELS = "labels of the dataset"


def embed(
    model: torch.nn.Module,
    data: Any,
    *,
    batch_size: int = 256,
    num_workers: int = 0,
    collate_fn: Callable[[list[Any]], Any] | None = None,
) -> npt.NDArray[np.float32]:
    """Return model(x) for every item in the order of the dataset, shape (n, d), float32.

    model:      for example model.features, the part of a network whose output you want, which is a
                tensor with a row per item. It runs in evaluation mode without gradients; its parts
                get back the modes they had.
    data:       a map-style dataset. The first field of a batch is the model's input.
    batch_size: items per forward pass.
    num_workers, collate_fn: as in DataLoader.

    A dataset that augments its items at random gives other features in every call, so pass one
    without augmentation; `embed` warns if the first items differ when they are read twice.
    See also `diversify`.

    >>> from torch.utils.data import TensorDataset
    >>> embed(torch.nn.Linear(5, 3), TensorDataset(torch.randn(10, 5))).shape
    (10, 3)
    """
    if not isinstance(model, torch.nn.Module):
        raise TypeError(f"model must be a torch module, got {type(model).__name__}")
    check_numbered(data, "data")
    if not len(data):
        raise ValueError("data is empty; pass a dataset with items")
    size = as_count(batch_size, "batch_size")
    batches = DataLoader[Any](data, size, num_workers=num_workers, collate_fn=collate_fn)
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
                result = model(inputs)
                if not isinstance(result, torch.Tensor):
                    kind = f"a {type(result).__name__}; wrap it in a module that returns one field"
                    raise TypeError(f"the model must return a tensor, got {kind}")
                if result.shape[:1] != inputs.shape[:1]:
                    shapes = f"{tuple(result.shape)} for inputs of shape {tuple(inputs.shape)}"
                    raise ValueError(f"the model must return one row per item, got shape {shapes}")
                parts.append(result.reshape(len(result), -1).float().cpu())
    finally:
        for module, mode in modes.items():
            module.training = mode
    return np.asarray(torch.cat(parts).numpy())


def _warn_augmented(batches: DataLoader[Any]) -> None:
    def read(number: int) -> torch.Tensor:
        return _inputs(batches.collate_fn([batches.dataset[number]])).nan_to_num()

    first = range(min(len(batches.dataset), 4))  # type: ignore[arg-type]
    if not all(torch.equal(read(number), read(number)) for number in first):
        warnings.warn(
            "items of this dataset differ each time that they are read, as with random "
            "augmentation, and so do the features; embed the dataset without augmentation",
            stacklevel=3,
        )


def _inputs(batch: Any) -> torch.Tensor:
    while not isinstance(batch, torch.Tensor):
        fields = _fields(batch, "the first field of the data", "models take tensors")
        batch = next(iter(fields.values()))
    return batch


def _fields(item: Any, what: str, advice: str) -> Mapping[Any, Any]:
    """Return the fields of a mapping, or of a sequence by their numbers; raise for others."""
    if isinstance(item, str | bytes) or not isinstance(item, Mapping | Sequence):
        raise TypeError(f"{what} is a {type(item).__name__}; {advice}")
    return item if isinstance(item, Mapping) else dict(enumerate(item))


def check_numbered(data: Any, name: str) -> None:
    """Raise unless items of `data` can be read by number, as those of a list can."""
    other = isinstance(data, IterableDataset | str | bytes | dict | type)
    if other or not (hasattr(data, "__getitem__") and hasattr(data, "__len__")):
        problem = f"{name} is a {type(data).__name__}, whose items have no numbers"
        raise TypeError(f"{problem}; pass a map-style dataset")


def labels(dataset: Any, field: str | int | None = None) -> npt.NDArray[Any]:
    """Return the class of every item of a map-style dataset, in order, shape (n,).

    field: which column or field of an item is the label: by default "label" or "labels" of a
           mapping or a Hugging Face dataset, the second field of a tuple.

    Items are not loaded where the dataset keeps labels apart: in `targets`, `labels` or `y`, as a
    column, or as a tensor of a TensorDataset; also within a Subset and a ConcatDataset. Otherwise
    all items are read, one by one, and long work logs its progress: keep the result. Raises
    ValueError if items have no such field. See also `Stratified`, `loader`.

    >>> import torch
    >>> from torch.utils.data import Subset, TensorDataset
    >>> data = TensorDataset(torch.zeros(4, 2), torch.tensor([2, 0, 1, 1]))
    >>> labels(Subset(data, [3, 0]))
    array([1, 2])
    """
    check_numbered(dataset, "dataset")
    if isinstance(field, bool) or not isinstance(field, str | int | None):
        raise TypeError(f"field must be the name or the number of the label, got {field!r}")
    found = _stored(dataset, field)
    if found is None:
        progress = Progress(f"reading {len(dataset):,} items, as the dataset keeps no labels apart")
        found = []
        for number in range(len(dataset)):
            item = _fields(dataset[number], "an item of the dataset", "it has no label in it")
            label = _chosen(item, field)
            found.append(label.tolist() if hasattr(label, "tolist") else label)
            progress((number + 1) / len(dataset))
    return as_labels(found, len(dataset), LABELS)


def _stored(dataset: Any, field: str | int | None) -> Any:
    """Return the labels that a dataset keeps apart from its items; None if there are none."""
    if isinstance(dataset, Subset):
        inner = _stored(dataset.dataset, field)
        return None if inner is None else inner[np.asarray(dataset.indices, dtype=np.int64)]
    if isinstance(dataset, ConcatDataset):
        parts = [_stored(each, field) for each in dataset.datasets]
        if any(part is None for part in parts):
            return None
        mixed = len({part.dtype.kind for part in parts}) > 1
        return np.concatenate(parts, dtype=object if mixed else None)
    if isinstance(dataset, TensorDataset):
        return _array(_chosen(dict(enumerate(dataset.tensors)), field))
    if isinstance(columns := getattr(dataset, "column_names", None), list):
        return _array(dataset[_chosen(dict(zip(columns, columns, strict=True)), field)])
    for name in ATTRIBUTES if field is None else ():
        kept: Any = getattr(dataset, name, None)
        if not callable(kept) and hasattr(kept, "__len__") and len(kept) == len(dataset):
            found = _array(kept)
            change = getattr(dataset, "target_transform", None)  # items have what it makes of them
            return found if change is None else _array(list(map(change, found.tolist())))
    return None


def _array(values: Any) -> npt.NDArray[Any]:
    """Return labels as an array; of several types as objects, as NumPy makes text of numbers."""
    if isinstance(values, list | tuple) and len(set(map(type, values))) > 1:
        return np.fromiter(values, dtype=object, count=len(values))
    return to_numpy(values, LABELS)


def _chosen(fields: Mapping[Any, Any], field: str | int | None) -> Any:
    """Return the label among the fields of an item, or among columns."""
    wanted = USUAL if field is None else (field,)
    for key in wanted:
        if key in fields:
            return fields[key]
    missing = " or ".join(map(repr, wanted))
    raise ValueError(f"items have no field {missing}; pass field= one of {few(fields)}")
