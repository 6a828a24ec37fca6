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
from dmsgd.runtime.progress import Progress
from dmsgd.torch.per_item import check_numbered

#: Attributes in which datasets keep labels: torchvision's and ImageFolder, SVHN, PyTorch Geometric.
ATTRIBUTES = ("targets", "labels", "y")
#: Which field is the label, unless it is said: of a mapping or a table, and of a tuple.
USUAL = ("label", "labels", 1)
#: For messages.
LABELS = "labels of the dataset"


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
            found.append(_label(dataset[number], field))
            progress((number + 1) / len(dataset))
    return as_labels(found, len(dataset), LABELS)


def _stored(dataset: Any, field: str | int | None) -> Any:
    """Return the labels that a dataset keeps apart from its items; None if there are none."""
    if isinstance(dataset, Subset):
        inner = _stored(dataset.dataset, field)
        return None if inner is None else inner[np.asarray(dataset.indices, dtype=np.int64)]
    if isinstance(dataset, ConcatDataset):
        parts = [_stored(each, field) for each in dataset.datasets]
        return None if any(part is None for part in parts) else np.concatenate(parts)
    if isinstance(dataset, TensorDataset):
        return to_numpy(dataset.tensors[_key(range(len(dataset.tensors)), field)], LABELS)
    if isinstance(columns := getattr(dataset, "column_names", None), list):
        return to_numpy(dataset[_key(columns, field)], LABELS)
    for name in ATTRIBUTES if field is None else ():
        kept: Any = getattr(dataset, name, None)
        if not callable(kept) and hasattr(kept, "__len__") and len(kept) == len(dataset):
            change = getattr(dataset, "target_transform", None)
            if change is not None:  # items have what it makes of them
                kept = [_plain(change(_plain(each))) for each in kept]
            return to_numpy(kept, LABELS)
    return None


def _label(item: Any, field: str | int | None) -> Any:
    if isinstance(item, str | bytes) or not isinstance(item, Mapping | Sequence):
        raise TypeError(f"items of the dataset are {type(item).__name__} and have no label in them")
    keys = list(item) if isinstance(item, Mapping) else range(len(item))
    return _plain(item[_key(keys, field)])


def _key(keys: Sequence[Any], field: str | int | None) -> Any:
    wanted = USUAL if field is None else (field,)
    for key in wanted:
        if key in keys:
            return key
    missing = " or ".join(map(repr, wanted))
    raise ValueError(f"items have no field {missing}; pass field= one of {few(keys)}")


def _plain(label: Any) -> Any:
    """Return a tensor or array of one number as that number; raise for others."""
    if getattr(label, "ndim", 0):
        shape = tuple(label.shape)
        raise ValueError(f"a label must be one class, got shape {shape}; pass field= another one")
    return label.item() if hasattr(label, "ndim") else label
