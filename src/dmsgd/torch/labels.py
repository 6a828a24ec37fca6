"""The labels of a torch dataset, without loading its items where that is possible."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from torch.utils.data import ConcatDataset, Subset, TensorDataset

from dmsgd.inputs.arrays import to_numpy
from dmsgd.inputs.labels import as_labels
from dmsgd.inputs.messages import few
from dmsgd.inputs.progress import Progress
from dmsgd.torch.per_item import check_numbered

#: Attributes in which datasets keep labels: torchvision's and ImageFolder, SVHN, PyTorch Geometric.
ATTRIBUTES = ("targets", "labels", "y")
#: Names of the label in a mapping or a table.
NAMES = ("label", "labels")


def labels(dataset: Any, field: str | int | None = None) -> npt.NDArray[Any]:
    """Return the class of every item of a map-style dataset, in order, shape (n,).

    field: which column or field of an item is the label: by default "label" or "labels" of a
           mapping or a Hugging Face dataset, the second field of a tuple.

    Items are not loaded where the dataset keeps labels apart: in `targets`, `labels` or `y`, as a
    column, or as a tensor of a TensorDataset; also within a Subset and a ConcatDataset. Otherwise
    all items are read, one by one, and long work logs its progress: keep the result.

    >>> import torch
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
            found.append(_label(dataset[number], field))
            progress((number + 1) / len(dataset))
    return as_labels(found, len(dataset), "labels of the dataset")


def _stored(dataset: Any, field: str | int | None) -> Any:
    """Return the labels that a dataset keeps apart from its items; None if there are none."""
    if isinstance(dataset, Subset):
        inner = _stored(dataset.dataset, field)
        return None if inner is None else inner[np.asarray(dataset.indices, dtype=np.int64)]
    if isinstance(dataset, ConcatDataset):
        parts = [_stored(each, field) for each in dataset.datasets]
        return None if any(part is None for part in parts) else np.concatenate(parts)
    if isinstance(dataset, TensorDataset):
        return to_numpy(_pick(dataset.tensors, field), "labels of the dataset")
    if isinstance(columns := getattr(dataset, "column_names", None), list):
        return to_numpy(dataset[_name(columns, field)], "labels of the dataset")
    for name in ATTRIBUTES if field is None else ():
        kept = getattr(dataset, name, None)
        if kept is None or callable(kept) or not hasattr(kept, "__len__"):
            continue
        if len(kept) == len(dataset):
            change = getattr(dataset, "target_transform", None)
            kept = kept if change is None else [_plain(change(each)) for each in kept]
            return to_numpy(kept, f"{name} of the dataset")
    return None


def _label(item: Any, field: str | int | None) -> Any:
    """Return the label of one item."""
    if isinstance(item, Mapping):
        return _plain(item[_name(list(item), field)])
    if isinstance(item, Sequence) and not isinstance(item, str | bytes):
        return _plain(_pick(item, field))
    raise TypeError(
        f"items of the dataset are {type(item).__name__}, without fields; pass labels of your own"
    )


def _plain(label: Any) -> Any:
    """Return a tensor or array of one number as that number; raise for others."""
    if getattr(label, "ndim", 0):
        raise ValueError(
            f"labels must be one class per item, got shape {tuple(label.shape)}; pass field= the "
            f"name or number of the class"
        )
    return label.item() if hasattr(label, "ndim") else label


def _name(names: Sequence[Any], field: str | int | None) -> Any:
    wanted = NAMES if field is None else (field,)
    for name in wanted:
        if name in names:
            return name
    raise ValueError(
        f"the dataset has no field {' or '.join(map(repr, wanted))}; pass field= one of "
        f"{few(names)}"
    )


def _pick(fields: Sequence[Any], field: str | int | None) -> Any:
    position = 1 if field is None else field
    if not isinstance(position, int) or not -len(fields) <= position < len(fields):
        raise ValueError(
            f"items of the dataset have {len(fields)} fields without names, and {position!r} is "
            f"none of them; pass field= the number of the one that is the label, from 0"
        )
    return fields[position]
