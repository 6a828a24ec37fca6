"""The files that options name, and which columns of a table are what."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, final

from dmsgd.inputs.messages import few

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from dmsgd.features import Features
    from dmsgd.files.contract import Table
    from dmsgd.inputs.arrays import FloatArray

#: Options that name the features.
FILES = ("features", "columns", "drop")
#: Options whose value is a file, or a column of the features, which is then no feature.
BESIDE = ("labels", "id", "texts", "quality", "groups", "costs")


@final
@dataclass(frozen=True)
class DataFiles:
    """The file with features, which of its columns are features, and what is known beside them.

    beside: by option, such as "--labels", a column of the features or a file.
    """

    features: str
    columns: str | None = None
    drop: str | None = None
    beside: dict[str, str] = field(default_factory=dict)

    @classmethod
    def named(cls, given: dict[str, Any]) -> DataFiles:
        """Return the files that the options of a command name."""
        files = {name: given[name] for name in FILES}
        beside = {f"--{name}": given[name] for name in BESIDE if given.get(name) is not None}
        return cls(**files, beside=beside)

    def inputs(self) -> list[str]:
        """Return all files that are read, or columns of them."""
        return [self.features, *self.beside.values()]

    @cached_property
    def table(self) -> Table | None:
        """The table that holds the features, if one does."""
        from dmsgd.files.tables import find_table

        return find_table(self.features)

    @cached_property
    def names(self) -> list[str]:
        """The columns of the features; none if they are no table."""
        return [] if self.table is None else self.table.names

    def load(self, on_cluster: bool = False) -> tuple[Any, Any]:
        """Return X and y."""
        from dmsgd.features.convert import open_features

        drop = self.dropped
        for option in self.beside:
            self._find(option)  # raises for a column that is not there
        named = self.columns is not None
        X = open_features(self.features, drop, named=named, on_cluster=on_cluster)
        return X, self.classes("--labels", X.shape[0])

    def feature_names(self) -> list[str]:
        """Return the columns that are features; none if the features are no table."""
        named = self.columns is not None
        return [] if self.table is None else list(self.table.features(self.dropped, named))

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
            other = open_features(path)
        if other.d != d:
            raise ValueError(
                f"{option} {path} has {other.d:,} features and {self.features} has {d:,}; give "
                f"both the same ones"
            )
        return other

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
            named = self.beside[option]
            raise ValueError(f"{option} {named} must hold a number per item: {error}") from None

    def classes(self, option: str, n: int) -> npt.NDArray[Any] | None:
        """Return the class that an option names for each of n items, if any."""
        from dmsgd.files.tables import read_column
        from dmsgd.inputs.labels import as_labels

        path = self._find(option)
        return None if path is None else as_labels(read_column(path), n)

    def _find(self, option: str) -> str | None:
        """Return the path of the column of the features, or of the file, that an option names."""
        from dmsgd.files.tables import COLUMN_FILES

        value = self.beside.get(option)
        if value in self.names:
            return f"{self.features}:{value}"
        if value and self.names and not any(each in value.lower() for each in COLUMN_FILES):
            raise self._no_column(option, value)
        return value

    def _no_column(self, option: str, name: str) -> ValueError:
        """Return the error about a column that the table of features does not have."""
        known = f"it has {few(self.names)}"
        return ValueError(f"{self.features} has no column {name!r} for {option}; {known}")

    @cached_property
    def dropped(self) -> frozenset[str]:
        """The columns of the table that are no features: a set, as there may be 100,000."""
        columns, drop = self._named("--columns", self.columns), self._named("--drop", self.drop)
        if columns and drop:
            raise ValueError(
                "--columns names the features, --drop the other columns; give one of them"
            )
        kept = set(columns or self.names).difference(drop, self.beside.values())
        return frozenset(self.names) - kept

    def _named(self, option: str, text: str | None) -> list[str]:
        """Return the columns that an option names, between commas, or one whose name has commas."""
        if text is None:
            return []
        if not self.names:
            raise ValueError(f"{option} is for tables; {self.features} has no named columns")
        known = set(self.names)
        found = [each.strip() for each in text.split(",") if each.strip()] or [""]
        found = [text] if text in known else found
        if unknown := [each for each in found if each not in known]:
            raise self._no_column(option, unknown[0])
        return found


def load_images(path: str | None) -> Any:
    """Return the pictures that --images names, if it is given."""
    from dmsgd.files.arrays import load_array
    from dmsgd.files.paths import find_file

    if path is None:
        return None
    return load_array(*find_file(path, (".npy", ".npz")), ("images", "X", "x"))
