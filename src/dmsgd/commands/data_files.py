"""The files that options name, and which columns of a table are what."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, final

from dmsgd.errors import as_options
from dmsgd.inputs.messages import few

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from dmsgd.features import Features
    from dmsgd.inputs.arrays import FloatArray

#: Options that name the features and labels.
FILES = ("features", "labels", "columns", "drop")
#: Options whose value may be a column of the features, which is then no feature.
BESIDE = ("id", "texts", "quality", "groups", "costs")


@final
@dataclass(frozen=True)
class DataFiles:
    """The files with features and labels, and which columns of a table are features.

    labels, others: each a column of the features, which is then no feature, or a file; the others
                    by option.
    shows_texts:    whether a column of text is more likely one for --texts than for --labels.
    """

    features: str
    labels: str | None = None
    columns: str | None = None
    drop: str | None = None
    others: dict[str, str] = field(default_factory=dict)
    shows_texts: bool = False

    @classmethod
    def named(cls, given: dict[str, Any]) -> DataFiles:
        """Return the files that the options of a command name."""
        files = {name: given[name] for name in FILES}
        others = {f"--{name}": given[name] for name in BESIDE if given.get(name) is not None}
        return cls(**files, others=others, shows_texts="id" in given)

    def load(self, on_cluster: bool = False) -> tuple[Any, Any]:
        """Return X and y."""
        from dmsgd.files.tables import column_names

        drop = self.dropped(column_names(self.features))
        labels, *_ = [self._find(option) for option in ("--labels", *self.others)]
        X = self._open(self.features, drop, on_cluster)
        return X, _read_classes(labels, X.shape[0])

    def _open(self, path: str, drop: frozenset[str], on_cluster: bool = False) -> Features:
        """Return the features in a file; of a table all columns that are not in `drop`."""
        from dmsgd.features.convert import open_features
        from dmsgd.files.columns import NotNumericError

        named = self.columns is not None
        try:
            return open_features(path, drop, named=named, on_cluster=on_cluster)
        except NotNumericError as error:
            if not (self.shows_texts and error.texts):
                raise
            raise ValueError(self._about_texts(path, error.texts)) from None

    def _about_texts(self, path: str, names: tuple[str, ...]) -> str:
        """Return what to do about columns of text."""
        drop = as_options({"drop": ",".join(names)})
        if len(names) > 1:
            every = few([repr(name) for name in names])
            ways = f"show them with --texts NAME or --id NAME, or leave them out with {drop}"
            return f"{path}: {every} are text: {ways}"
        if "--texts" in self.others:
            return f"{path}: {names[0]!r} is text: leave it out with {drop}"
        show = as_options({"texts": names[0]})
        return f"{path}: {names[0]!r} is text: show it with {show}, or leave it out with {drop}"

    def feature_names(self) -> list[str]:
        """Return the columns that are features; none if the features are no table."""
        from dmsgd.files.tables import column_names, feature_names

        names = column_names(self.features)
        if not names:
            return []
        return feature_names(self.features, self.dropped(names), self.columns is not None)

    def load_like(self, option: str, path: str, d: int) -> Features:
        """Return the features in another file, which needs the d columns of the first one.

        Of a table the columns with the same names are taken, if that is what the first one has.
        """
        from dmsgd.features.convert import open_features
        from dmsgd.files.tables import column_names

        wanted, names = self.feature_names(), column_names(path)
        if wanted and names:
            known = set(wanted)
            found = [name for name in names if name in known]
            if found != wanted:
                raise ValueError(
                    f"{option} {path} has the columns {few(names)}, and the features of "
                    f"{self.features} are {few(wanted)}; it needs the same ones, in this order"
                )
            other = open_features(path, frozenset(names) - known, named=True)
        else:
            other = self._open(path, frozenset())
        if other.d != d:
            raise ValueError(
                f"{option} {path} has {other.d:,} features and {self.features} has {d:,}; give "
                f"both the same ones"
            )
        return other

    def is_column(self, value: str | None) -> bool:
        """Return whether an option with this value names a column of the features."""
        from dmsgd.files.tables import column_names

        return value is not None and value in column_names(self.features)

    def entries(self, option: str, n: int) -> npt.NDArray[np.object_] | None:
        """Return what the column or file that an option names holds for each of n items, if any."""
        from dmsgd.files.tables import read_entries

        path = self._find(option)
        return None if path is None else read_entries(path, n)

    def numbers(self, option: str, n: int) -> FloatArray | None:
        """Return the numbers that an option names for n items, if any."""
        import numpy as np

        entries = self.entries(option, n)
        try:
            return None if entries is None else np.array(entries.tolist(), dtype=np.float64)
        except (TypeError, ValueError) as error:
            named = self.others[option]
            raise ValueError(f"{option} {named} must hold a number per item: {error}") from None

    def classes(self, option: str, n: int) -> npt.NDArray[Any] | None:
        """Return the class that an option names for each of n items, if any."""
        return _read_classes(self._find(option), n)

    def _find(self, option: str) -> str | None:
        """Return the path of the column of the features, or of the file, that an option names."""
        from dmsgd.files.tables import COLUMN_FILES, column_names

        value = self.labels if option == "--labels" else self.others.get(option)
        if value is None:
            return None
        names = column_names(self.features)
        if value in names:
            return f"{self.features}:{value}"
        if names and not any(suffix in value.lower() for suffix in COLUMN_FILES):
            raise self._no_column(option, value, names)
        return value

    def _no_column(self, option: str, name: str, names: list[str]) -> ValueError:
        """Return the error about a column that the table of features does not have."""
        known = f"it has {few(names)}"
        return ValueError(f"{self.features} has no column {name!r} for {option}; {known}")

    def dropped(self, names: list[str]) -> frozenset[str]:
        """Return which of the table's columns, with these names, are no features.

        A set, as there may be 100,000 of them.
        """
        columns = self._named("--columns", self.columns, names)
        drop = self._named("--drop", self.drop, names)
        if columns and drop:
            raise ValueError(
                "--columns names the features, --drop the other columns; give one of them"
            )
        kept = set(columns or names).difference(drop, [self.labels], self.others.values())
        return frozenset(names) - kept

    def _named(self, option: str, text: str | None, names: list[str]) -> list[str]:
        """Return the columns that an option names, between commas, or one whose name has commas."""
        if text is None:
            return []
        if not names:
            raise ValueError(f"{option} is for tables; {self.features} has no named columns")
        known = set(names)
        found = [each.strip() for each in text.split(",") if each.strip()] or [""]
        found = [text] if text in known else found
        if unknown := [each for each in found if each not in known]:
            raise self._no_column(option, unknown[0], names)
        return found


def _read_classes(path: str | None, n: int) -> npt.NDArray[Any] | None:
    """Return the classes of n items in a column or file, if there is one."""
    from dmsgd.files.tables import read_column
    from dmsgd.inputs.labels import as_labels

    return None if path is None else as_labels(read_column(path, n), n)


def load_images(path: str | None) -> Any:
    """Return the pictures that --images names, if it is given."""
    from dmsgd.files.arrays import load_array
    from dmsgd.files.paths import find_file

    if path is None:
        return None
    return load_array(*find_file(path, (".npy", ".npz")), ("images", "X", "x"))
