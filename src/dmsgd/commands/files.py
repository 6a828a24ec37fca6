"""The files that commands read: features, and what is known about items; and those they write."""

from __future__ import annotations

import os
import secrets
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import IO, Any, final

import numpy as np

from dmsgd.features import Features, convert
from dmsgd.files.arrays import load_array
from dmsgd.files.contract import Table
from dmsgd.files.paths import check_path, find_file, split_path
from dmsgd.files.tables import COLUMN_FILES, column_names, find_table, read_column, read_entries
from dmsgd.inputs.labels import as_labels
from dmsgd.inputs.messages import few, visible

#: Suffixes of pages.
PAGES = (".html", ".htm")
#: Options that name the features.
FILES = ("features", "columns", "drop")
#: Options whose value is a file, or a column of the features, which is then no feature, and the
#: names that their columns have in outputs.
BESIDE = "id", "labels", "quality", "texts", "groups", "costs"
KNOWN = {option: option.removesuffix("s") for option in BESIDE}


@final
@dataclass(frozen=True)
class DataFiles:
    """The file with features, which of its columns are features, and what is known beside them.

    beside: by option of `KNOWN`, a column of the features or a file.
    """

    features: str
    columns: str | None = None
    drop: str | None = None
    beside: dict[str, str] = field(default_factory=dict)

    @classmethod
    def named(cls, given: dict[str, Any]) -> DataFiles:
        """Return the files that the options of a command name."""
        beside = {name: given[name] for name in KNOWN if given.get(name) is not None}
        return cls(**{name: given[name] for name in FILES}, beside=beside)

    def inputs(self) -> list[str]:
        """Return all files that are read, or columns of them."""
        return [self.features, *self.beside.values()]

    @cached_property
    def table(self) -> Table | None:
        """The table that holds the features, if one does."""
        return find_table(self.features)

    @cached_property
    def names(self) -> list[str]:
        """The columns of the features; none if they are no table."""
        return [] if self.table is None else self.table.names

    def load(self) -> tuple[Any, dict[str, Any]]:
        """Return X, and what is known about its items, by the name in `KNOWN`."""
        drop, named = self.dropped, self.columns is not None
        paths = {option: self._find(option) for option in KNOWN if option in self.beside}
        X = convert.open_features(self.features, drop, named=named)
        return X, {KNOWN[name]: _read(name, paths[name], X.shape[0]) for name in paths}

    def feature_names(self) -> list[str]:
        """Return the columns that are features; none if the features are no table."""
        named = self.columns is not None
        return [] if self.table is None else list(self.table.features(self.dropped, named))

    def load_like(self, path: str, d: int) -> Features:
        """Return the features in the file of --cover, which needs the same d columns."""
        wanted, names = self.feature_names(), column_names(path)
        drop = frozenset(names).difference(wanted) if wanted else frozenset()
        if wanted and names and [name for name in names if name not in drop] != wanted:
            raise ValueError(
                f"--cover {path} has the columns {few(names)}, and the features of "
                f"{self.features} are {few(wanted)}; it needs the same ones, in this order"
            )
        other = convert.open_features(path, drop, named=bool(wanted and names))
        if other.d != d:
            counts = f"{other.d:,} features and {self.features} has {d:,}"
            raise ValueError(f"--cover {path} has {counts}; give both the same ones")
        return other

    def _find(self, option: str) -> str:
        """Return the path of the column of the features, or of the file, that an option names."""
        value = self.beside[option]
        if value in self.names:
            return f"{self.features}:{value}"
        if self.names and not any(each in value.lower() for each in COLUMN_FILES):
            self._check(option, [value])
        return value

    def _check(self, option: str, columns: list[str]) -> None:
        """Raise if the table of features lacks one of these columns."""
        known = set(self.names)
        if unknown := [each for each in columns if each not in known]:
            what = f"{self.features} has no column {unknown[0]!r} for --{option}"
            raise ValueError(f"{what}; it has {few(self.names)}")

    @cached_property
    def dropped(self) -> frozenset[str]:
        """The columns of the table that are no features: a set, as there may be 100,000."""
        columns, drop = self._named("columns", self.columns), self._named("drop", self.drop)
        if columns and drop:
            raise ValueError("--columns names the features, --drop all others; give one of them")
        kept = set(columns or self.names).difference(drop, self.beside.values())
        return frozenset(self.names) - kept

    def _named(self, option: str, text: str | None) -> list[str]:
        """Return the columns that an option names, between commas, or one whose name has commas."""
        if text is None:
            return []
        if not self.names:
            raise ValueError(f"--{option} is for tables; {self.features} has no named columns")
        found = [text] if text in self.names else [each.strip() for each in text.split(",")]
        self._check(option, found)
        return found


def _read(option: str, path: str, n: int) -> Any:
    """Return what an option of `KNOWN` names for each of n items."""
    if option in ("labels", "groups"):
        return as_labels(read_column(path), n)
    entries = read_entries(path, n)
    if option in ("quality", "costs"):
        try:
            return np.array(entries.tolist(), dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"--{option} {path} must hold a number per item: {error}") from None
    if option == "id":
        (commonest, times), *_ = Counter(map(str, entries)).most_common(1)
        if times > 1:
            raise ValueError(
                f"--id {path} must tell items apart, but {visible(repr(commonest), 200)} occurs "
                f"{times:,} times; name another column, or leave --id out"
            )
    return entries


def load_images(path: str | None) -> Any:
    """Return the pictures that --images names, if it is given."""
    if path is None:
        return None
    return load_array(*find_file(path, (".npy", ".npz")), ("images", "X", "x"))


def check_output(
    output: Path | None, suffixes: tuple[str, ...], inputs: Sequence[str | None], force: bool
) -> None:
    """Raise unless `output` can be written, if it is given; without `force` no file may be there.

    inputs: files, or file:NAME, which are never replaced.
    """
    if output is None:
        return
    check_path(output)
    folder = Path(os.path.realpath(output)).parent  # where a link leads to
    if output.suffix.lower() not in suffixes:
        raise ValueError(f"{output}: the output must end in {' or '.join(suffixes)}")
    if not folder.is_dir():
        named = folder if output.is_symlink() else output.parent
        raise FileNotFoundError(f"there is no folder {named}; create it first")
    if not os.access(folder, os.W_OK):
        raise PermissionError(f"the folder {folder} cannot be written to")
    if not output.exists():
        return
    if not output.is_file():
        raise ValueError(f"{output} is a folder, a device or a pipe; give a file")
    files = [split_path(name)[0] for name in inputs if name]
    if any(file.exists() and output.samefile(file) for file in files):
        raise ValueError(f"{output} is an input of this command; write to another file")
    if not force:
        raise FileExistsError(f"{output} exists; use --force to replace it, or another name")


def write(contents: Mapping[Path, bytes], force: bool) -> None:
    """Write each file by `atomic_write`, one after the other."""
    for path, content in contents.items():
        with atomic_write(path, force) as file:
            file.write(content)


@contextmanager
def atomic_write(path: Path, force: bool) -> Iterator[IO[bytes]]:
    """Yield a new file that becomes `path` if the block succeeds and is deleted if not.

    Without `force` it replaces no file, not even one that appeared meanwhile.
    """
    target = Path(os.path.realpath(path))  # a link stays a link
    start = target.name[:40]  # file systems limit the length of names
    hidden = target.with_name(f".{start}.{secrets.token_hex(4)}.tmp")
    try:
        with open(hidden, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if not force:
            try:
                os.link(hidden, target)  # claims the name, if no other file has it
            except OSError:  # the name is taken, or the file system has no links
                if os.path.lexists(target):
                    raise FileExistsError(
                        f"{path} was written by another program meanwhile, and is left as it is; "
                        f"use --force to replace it, or another name"
                    ) from None
        os.replace(hidden, target)
    except OSError as error:
        if error.errno is None:  # raised with a message of its own
            raise
        why = f"cannot write {path}: {os.strerror(error.errno)}; the old file, if any, is unchanged"
        raise OSError(error.errno, why) from error
    finally:
        hidden.unlink(missing_ok=True)
