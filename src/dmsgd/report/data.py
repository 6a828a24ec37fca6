"""The items that the report looks at, a sample where there are very many."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import numpy.typing as npt

from dmsgd.designs import KDPP, DesignOptions
from dmsgd.designs.build import make_kdpp
from dmsgd.diagnostics.sample import rows_for, taken
from dmsgd.features import Features, as_features
from dmsgd.inputs.arrays import FloatArray, IntArray, as_array
from dmsgd.inputs.labels import as_labels
from dmsgd.inputs.messages import cell, visible
from dmsgd.inputs.scalars import Seed
from dmsgd.report.items import checked_images, snippets

#: Classes whose shares are listed; of more, the commonest and the rarest.
CLASSES = 200
#: Characters of a class's name that are shown.
NAME = 80


@final
@dataclass(frozen=True, eq=False)
class Data:
    """Features and what else is known of the items.

    codes:  (rows,) the number of each item's class, the commonest being 0; None without labels.
    labels: the classes as they were given; names are what is shown of them.
    rows:   numbers of the items among all.
    """

    X: Features
    codes: npt.NDArray[np.int64] | None
    labels: list[Any]
    rows: IntArray
    texts: list[str] | None
    images: npt.NDArray[np.uint8] | None

    @property
    def names(self) -> list[str]:
        """Return the classes as they are shown."""
        return [visible(each, NAME) for each in self.labels]

    @property
    def listed(self) -> IntArray:
        """Return the numbers of the classes whose shares are listed."""
        numbers = np.arange(len(self.labels))
        if numbers.size <= CLASSES:
            return numbers
        return np.concatenate([numbers[: CLASSES // 2], numbers[-CLASSES // 2 :]])

    def design(self, settings: DesignOptions, k: int) -> KDPP:
        """Return the k-DPP of these items; where a message may name a class, it is as given."""
        labels: Any = self.codes
        if labels is not None and settings.target == "balanced":
            labels = np.array(self.labels)[labels]
        return make_kdpp(settings, self.X, k, labels)

    def classes(self) -> list[dict[str, Any]]:
        """Return name, items and share of each class, [] without labels.

        A "cell" is what stands for the name in a table that the page saves, if it is another.
        """
        if self.codes is None:
            return []
        counts = np.bincount(self.codes, minlength=len(self.labels))
        total = max(int(counts.sum()), 1)
        return [
            {"name": name, "items": int(count), "share": count / total}
            | ({"cell": cell(name)} if cell(name) != name else {})
            for name, count in zip(self.names, counts.tolist(), strict=True)
        ]


def look_at(
    X: Features, labels: Any, texts: Any, images: Any, k: int, settings: DesignOptions, seed: Seed
) -> Data:
    """Return all items or a sample, with their classes, texts and pictures."""
    n = X.n
    y = None if labels is None else as_labels(labels, n)
    rows = rows_for(X, k, y, settings, seed)
    snippet, pixels = snippets(texts, n), checked_images(images, n, rows)
    codes, values = None, []
    if y is not None:
        found, codes = np.unique(y[rows], return_inverse=True)
        order = np.argsort(-np.bincount(codes), kind="stable")  # the commonest class is number 0
        codes, values = np.argsort(order)[codes], found[order].tolist()
        if order.size > 2**16:
            raise ValueError(f"{order.size:,} classes are too many for a report; are these labels?")
    if snippet is not None and rows.size < n:
        snippet = [snippet[i] for i in rows]
    return Data(taken(X, rows), codes, values, rows, snippet, pixels)


def rows_of(gradients: Any, n: int, rows: IntArray) -> FloatArray:
    """Return these rows of the gradients, one for each of n items."""
    if len(getattr(gradients, "shape", (n, 1))) != 2:
        raise ValueError("gradients must have two dimensions, (items, parameters)")
    g = as_features(gradients)
    if g.shape[0] != n:
        raise ValueError(f"gradients has {g.shape[0]} items, the features {n}")
    return as_array(taken(g, rows).matrix)


def as_csv(data: Data, ratio: FloatArray, first: IntArray) -> str:
    """Return a table of the items: number, class, times as often as in uniform batches, copies.

    first: the item of which each is a near-copy, itself where it is none; that cell is empty.
    """
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    named = data.codes is not None
    writer.writerow(["item", *(["class"] if named else []), "times_uniform", "near_copy_of"])
    classes = [] if data.codes is None else [[cell(data.labels[c])] for c in data.codes]
    for i, (row, times) in enumerate(zip(data.rows.tolist(), ratio.tolist(), strict=True)):
        copied = "" if first[i] == i else int(data.rows[first[i]])
        writer.writerow([row, *(classes[i] if named else []), f"{times:.6g}", copied])
    return file.getvalue()
