"""Items and groups that options of `dmsgd select` name, and its options in messages."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from dmsgd.errors import OPTIONS, HasFixes, as_options
from dmsgd.inputs.messages import cell, counted, few, visible

if TYPE_CHECKING:
    from dmsgd.inputs.arrays import IntArray

#: The column of an output that holds item numbers; characters that a message shows of a list.
NUMBER, SHOWN = "item", 200
#: The end of a file of items, or of one of its columns, file.csv:NAME.
FILE = re.compile(r"\.(npy|npz|csv|tsv|parquet|jsonl|zarr|txt)(:.+)?$", re.IGNORECASE)
#: Arguments of `dmsgd.select` in its messages, with a value as in how='cover' or as a word; not
#: between quotes, not in code, and not in "costs 5" and "k-DPP".
WORDS = (
    r"at_most|at_least|budget|costs(?! -?\d)|cover|duplicates|groups|k(?!-)|quality|until|workers"
)
ARGUMENT = re.compile(
    rf"(?P<other>'[^']*'|dmsgd\.\S+\([^)]*\))"
    rf"|\b(?P<name>how|metric|diversity|{WORDS})=(?P<value>'[^']*'|[\w.+-]*\w)"
    rf"|\b(?P<word>{WORDS})\b"
)


@contextmanager
def options_named() -> Iterator[None]:
    """Write options for the arguments of `dmsgd.select` that the message of an error names."""
    try:
        yield
    except HasFixes as error:
        error.problem = in_options(error.problem)
        error.args = (error.problem,)
        raise
    except (ValueError, TypeError) as error:
        error.args = (in_options(str(error)),)
        raise


def in_options(message: str) -> str:
    """Return a message with options for arguments; text between quotes stays as it is.

    >>> in_options("at_least asks for 9 items of 'k', but k=5; budget needs how='cover'")
    "--at-least asks for 9 items of 'k', but -k 5; --budget needs --how cover"
    """

    def option(found: re.Match[str]) -> str:
        if found["name"]:
            return as_options({found["name"]: found["value"].strip("'")})
        word = found["word"]
        return OPTIONS.get(word, "--" + word.replace("_", "-")) if word else found["other"]

    return ARGUMENT.sub(option, message)


def named_items(option: str, texts: tuple[str, ...], ids: Any, columns: Sequence[str]) -> IntArray:
    """Return the items that --given or --exclude names, or that files of ids hold, sorted.

    ids:     of all items, each once; their numbers if they have no others.
    columns: names of the column of a file that holds ids.
    """
    import numpy as np

    from dmsgd.files.tables import column_names, read_entries

    places: dict[str, int] = {}
    if texts:
        places = {cell(each): item for item, each in enumerate(ids)}  # as in an earlier output
        places |= {str(each): item for item, each in enumerate(ids)}
    found: set[int] = set()
    for text in texts:
        if FILE.search(text) and text not in places:
            held = column_names(text)
            path = next((f"{text}:{name}" for name in columns if name in held), text)
            listed = [str(each) for each in read_entries(path).tolist()]
        else:
            listed = [text] if text in places else text.split(",")
        listed = [each if each in places else each.strip() for each in listed]
        unknown = [each for each in listed if each not in places]
        if unknown:
            what = counted(len(unknown), "number" if NUMBER in columns else "id")
            shown = f"{option} {visible(text, SHOWN)} names {what} that no item has"
            raise ValueError(f"{shown}: {visible(few(unknown), SHOWN)}; give others, or a file")
        found |= {places[each] for each in listed}
    return np.array(sorted(found), dtype=np.int64)


def check_ids(named: str, ids: Any) -> None:
    """Raise if two items have one id."""
    (commonest, times), *_ = Counter(map(str, ids)).most_common(1)
    if times > 1:
        raise ValueError(
            f"--id {named} must tell items apart, but {visible(repr(commonest), SHOWN)} occurs "
            f"{times:,} times; name another column, or leave --id out"
        )


def group_numbers(option: str, texts: tuple[str, ...]) -> int | dict[str, int] | None:
    """Return what --at-most or --at-least says: one number for all groups, or some by name."""
    found: dict[str, int] = {}
    for text in texts:
        name, _, number = text.rpartition("=")
        if not re.fullmatch("[0-9]{1,18}", number.strip(), re.ASCII):
            raise ValueError(
                f"{option} {visible(text, SHOWN)} is no number of items; give one for all groups, "
                f"such as {option} 50, or one for a group, such as {option} web=50"
            )
        if name in found:
            raise ValueError(f"{option} is given twice for {visible(name) or 'all groups'}")
        found[name] = int(number)
    if "" not in found:
        return found or None
    if len(found) > 1:
        raise ValueError(f"{option} gives a number for all groups and for some; give one kind")
    return found[""]
