"""What a table is: a file whose columns have names. Each format has a class of its own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy.typing as npt

from dmsgd.errors import InputError, warn_kernel
from dmsgd.inputs.arrays import IntArray
from dmsgd.inputs.messages import few

#: What columns hold; of other columns the name of the type is used.
LISTS, NUMBERS, TEXT = "lists of numbers", "numbers", "text"
#: A column: its name, and one entry per row, in a list or an array of NumPy or Arrow.
Column = tuple[str, Any]


class Table(ABC):
    """A file with named columns; `names` are in their order."""

    file: Path
    names: list[str]

    @abstractmethod
    def kinds(self, drop: Collection[str]) -> dict[str, str]:
        """Return what each column holds that may be a feature and is not in `drop`."""

    @abstractmethod
    def column(self, name: str | None) -> list[str] | npt.NDArray[Any]:
        """Return the entries of the column `name`, or of the only one: text, or an array."""

    @abstractmethod
    def rows(
        self, items: IntArray, leave_out: Collection[str], verbatim: bool
    ) -> tuple[list[Column], int]:
        """Return the other columns for these items, in their order, and the rows of the file.

        verbatim: leave cells of a CSV file as they are; otherwise a column is one of numbers if
                  all its cells are.
        """

    def place(self, name: str | None) -> int:
        """Return where the column `name`, or the only one, is; raise unless there is one."""
        if name is None and len(self.names) == 1:
            return 0
        if name not in self.names:
            lacks = "" if name is None else f" and no column {name!r}"
            there = f"{few(self.names)}{lacks}; select one as {self.file.name}:NAME"
            raise ValueError(f"{self.file} has the columns {there}")
        if (times := self.names.count(name)) > 1:
            raise ValueError(f"{self.file} has {times} columns {name!r}; name them apart")
        return self.names.index(name)

    def kept(self, drop: Collection[str]) -> list[int]:
        """Return where the columns are that are not in `drop`, or raise if one is missing."""
        known, dropped = set(self.names), set(drop)  # there may be 100,000 of both
        for name in dropped - known:
            self.place(name)
        kept = [j for j, name in enumerate(self.names) if name not in dropped]
        if not kept:
            raise ValueError(f"{self.file} has no column of features besides {few(self.names)}")
        return kept

    def features(self, drop: Collection[str], named: bool, warn: bool = False) -> dict[str, str]:
        """Return the columns that are features, with what they hold.

        If one holds lists of numbers, such as embeddings, only such columns are; a number beside
        it may be a score or an id.

        drop:  columns that are none.
        named: whether the user named the others, so that all are.
        warn:  whether to warn about numbers that are left out.
        """
        kinds = self.kinds(drop)
        lists = {name: kind for name, kind in kinds.items() if kind == LISTS}
        numbers = [name for name, kind in kinds.items() if kind == NUMBERS]
        if lists and not named:
            if numbers and warn:
                warn_kernel(
                    f"{self.file}: the features are the lists of numbers in {few(lists)}; "
                    f"numbers beside them are left out: {few(numbers)}",
                    **({"columns": ",".join([*lists, *numbers])} if len(kinds) <= 5 else {}),
                )
            return lists
        if wrong := [name for name in kinds if name not in lists and name not in numbers]:
            one = len(wrong) == 1
            several = sorted({kinds[name].partition(",")[0] for name in wrong})
            held = kinds[wrong[0]] if one else few(several)
            raise InputError(
                f"{self.file}: column{'s' * (not one)} {few(map(repr, wrong))} "
                f"hold{'s' * one} {held}: encode as numbers, or leave out",
                **({"labels": wrong[0]} if one else {}),
                **({"texts": wrong[0]} if one and held.startswith(TEXT) else {}),
                drop=",".join(wrong),
            )
        return kinds
