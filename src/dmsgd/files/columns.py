"""Columns of tables: where one is, and which of them are features."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from dmsgd.errors import InputError, warn_kernel
from dmsgd.inputs.messages import few

#: What columns hold; of other columns the name of the type is used.
LISTS, NUMBERS, TEXT = "lists of numbers", "numbers", "text"
#: Columns of features that a message names one by one.
SUGGESTED = 5


class NotNumericError(InputError):
    """Columns that would be features are no numbers; `texts` are their names if all are text."""

    texts: tuple[str, ...] = ()


def column_number(file: Path, names: list[str], name: str | None) -> int:
    """Return where the column `name`, or the only one, is; raise if there is none or several."""
    if name is None and len(names) == 1:
        return 0
    if name not in names:
        lacks = "" if name is None else f" and no column {name!r}"
        there = f"{few(names)}{lacks}; select one as {file.name}:NAME"
        raise ValueError(f"{file} has the columns {there}")
    if names.count(name) > 1:
        raise ValueError(f"{file} has {names.count(name)} columns {name!r}; name them apart")
    return names.index(name)


def kept_columns(file: Path, names: list[str], drop: Collection[str]) -> list[int]:
    """Return where the columns are that are not in `drop`, or raise if one of these is missing."""
    known, dropped = set(names), set(drop)  # there may be 100,000 of both
    for name in drop:
        if name not in known:
            column_number(file, names, name)
    kept = [j for j, name in enumerate(names) if name not in dropped]
    if not kept:
        raise ValueError(f"{file} has no column of features besides {few(list(drop))}")
    return kept


def features_among(file: Path, kinds: Mapping[str, str], named: bool) -> list[str]:
    """Return the columns that are features, of columns with the kinds of what they hold.

    If one of them holds lists of numbers, such as embeddings, only such columns are; a number
    beside it may be a score or an id. named: the user named these columns, so that all are.
    """
    lists = [name for name, kind in kinds.items() if kind == LISTS]
    if lists and not named:
        return lists
    wrong = {name: kind for name, kind in kinds.items() if kind not in (LISTS, NUMBERS)}
    if wrong:
        raise not_numeric(file, wrong, list(kinds))
    return list(kinds)


def warn_left_out(file: Path, kinds: Mapping[str, str], used: Sequence[str]) -> None:
    """Warn about numbers that are no features, which `features_among` left out."""
    numbers = [name for name, kind in kinds.items() if kind == NUMBERS]
    if numbers and numbers[0] not in used:
        all_of_them = [*used, *numbers]
        warn_kernel(
            f"{file}: the features are the lists of numbers in {few(used)}; "
            f"the numeric column{'s' * (len(numbers) > 1)} {few(numbers)} beside "
            f"{'them' if len(used) > 1 else 'it'} {'are' if len(numbers) > 1 else 'is'} left out",
            **({"columns": ",".join(all_of_them)} if len(all_of_them) <= SUGGESTED else {}),
        )


def not_numeric(file: Path, wrong: Mapping[str, str], names: Sequence[str]) -> NotNumericError:
    """Return the error about the columns `wrong`, by name with what they hold, of all `names`.

    What they hold begins with `TEXT` if it is text.
    """
    features, fixes = [name for name in names if name not in wrong], {}
    if 0 < len(features) <= SUGGESTED:
        fixes["columns"] = ",".join(features)
    if len(wrong) == 1:
        (fixes["labels"],) = wrong
    several = len(wrong) > 1
    error = NotNumericError(
        f"{file}: column{'s' * several} {few([repr(name) for name in wrong])} "
        f"{'are' if several else 'is'} not numeric ({few(list(dict.fromkeys(wrong.values())))}): "
        f"encode as numbers, or leave out",
        **fixes,
        drop=",".join(wrong),
    )
    if all(held.startswith(TEXT) for held in wrong.values()):
        error.texts = tuple(wrong)
    return error
