"""Options that commands share, and the files that they name."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields
from functools import wraps
from inspect import cleandoc
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import click

from dmsgd.errors import as_options
from dmsgd.inputs.messages import few

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from dmsgd.inputs.arrays import FloatArray

SEED = click.option(
    "--seed", type=click.IntRange(0), default=0, help="The same seed gives the same result."
)
FORCE = click.option("--force", is_flag=True, help="Replace an existing output.")
#: What names the features and labels.
FILES = ("features", "labels", "columns", "drop")
#: Options whose value may be a column of the features, which is then no feature.
BESIDE = ("id", "texts", "quality")
#: A file to write.
OUTPUT = click.Path(path_type=Path)


def output_option(help: str, required: bool = True) -> Callable[[Any], Any]:
    """Return the option --output of a command."""
    return click.option("-o", "--output", type=OUTPUT, required=required, help=help)


@final
@dataclass(frozen=True)
class DataFiles:
    """The files with features and labels, and which columns of a table are features.

    labels, others: each a column of the features, which is then no feature, or a file; the others
                    by option.
    """

    features: str
    labels: str | None = None
    columns: str | None = None
    drop: str | None = None
    others: dict[str, str] = field(default_factory=dict)

    @classmethod
    def named(cls, given: dict[str, Any]) -> DataFiles:
        """Return the files that the options of a command name."""
        files = {name: given[name] for name in FILES}
        others = {f"--{name}": given[name] for name in BESIDE if given.get(name) is not None}
        return cls(**files, others=others)

    def load(self, on_cluster: bool = False) -> tuple[Any, Any]:
        """Return X and y."""
        from dmsgd.features.convert import open_features
        from dmsgd.files.tables import column_names, read_column
        from dmsgd.inputs.labels import as_labels

        drop = self.dropped(column_names(self.features))
        labels = None if self.labels is None else self._find("--labels", self.labels)
        for option, value in self.others.items():
            self._find(option, value)
        X = open_features(self.features, drop, on_cluster=on_cluster)
        n = X.shape[0]
        return X, None if labels is None else as_labels(read_column(labels, n), n)

    def entries(self, option: str, n: int) -> npt.NDArray[np.object_] | None:
        """Return what the column or file that an option names holds for each of n items, if any."""
        from dmsgd.files.tables import read_entries

        value = self.others.get(option)
        return None if value is None else read_entries(self._find(option, value), n)

    def quality(self, n: int) -> FloatArray | None:
        """Return the numbers that --quality names for n items, if any."""
        import numpy as np

        entries = self.entries("--quality", n)
        try:
            return None if entries is None else np.array(entries.tolist(), dtype=np.float64)
        except (TypeError, ValueError) as error:
            named = self.others["--quality"]
            raise ValueError(f"--quality {named} must hold a number per item: {error}") from None

    def _find(self, option: str, value: str) -> str:
        """Return the path of the column of the features, or of the file, that an option names."""
        from dmsgd.files.tables import COLUMN_FILES, column_names

        names = column_names(self.features)
        if value in names:
            return f"{self.features}:{value}"
        if names and not any(suffix in value.lower() for suffix in COLUMN_FILES):
            raise ValueError(
                f"{self.features} has no column {value!r} for {option}; it has {few(names)}"
            )
        return value

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
        for each in found:
            if each not in known:
                raise ValueError(
                    f"{self.features} has no column {each!r} for {option}; it has {few(names)}"
                )
        return found


#: The end of the help of commands that read features.
FEATURES = (
    "FEATURES has items as rows: .npy, .npz (or file.npz:NAME; SciPy sparse too), .csv, .tsv, "
    ".parquet, .zarr (or store.zarr:NAME), or a folder of sparse .npz files."
)
LABELS = (
    "Class of each item: a file (.npy, .npz, .csv, .tsv, .txt, .parquet, .zarr), or a column of "
    "FEATURES, which is then no feature."
)
#: Which columns of a table are features.
COLUMNS = (
    click.option(
        "--columns",
        metavar="NAME,NAME",
        help="Columns of a table that are features.  [default: all that no option names]",
    ),
    click.option(
        "--drop",
        metavar="NAME,NAME",
        help="Columns of a table that are no features, such as ids.",
    ),
)
QUALITY = "Worth of each item, >= 0: a column, or a file of numbers"
DIVERSITY = click.option(
    "--diversity",
    type=click.FloatRange(0, 1, min_open=True),
    default=0.5,
    help="0.5 takes --quality as it is; near 0 only quality counts, at 1 only diversity.",
)
#: What is done to the features first.
MAPS = (
    click.option("--rho", type=float, help="Anneal the features first: x to the power rho."),
    click.option(
        "--standardize",
        is_flag=True,
        help="Scale columns to mean 0 and standard deviation 1: for columns in different units.",
    ),
)
#: What describes a design, the same in all commands.
DESIGN = (
    click.argument("features"),
    click.option("-k", type=click.IntRange(1), required=True, help="Items in a batch."),
    click.option("--labels", help=LABELS),
    *COLUMNS,
    click.option(
        "-w",
        type=float,
        default=0.0,
        help="Weight of the labels: 0 only reports them, 1 looks at nothing else.",
    ),
    click.option(
        "--kernel",
        type=click.Choice(["auto", "linear", "rbf"]),
        default="auto",
        help="Similarity of items: linear where there are 1.25 k columns, otherwise RBF.",
    ),
    click.option(
        "--scale",
        type=float,
        help="Length scale of --kernel rbf.  [default: fitted to k]",
    ),
    *MAPS,
    click.option(
        "--normalize/--no-normalize",
        default=None,
        help="Scale rows to length 1, so that only directions count.  [default: for a linear "
        "kernel]",
    ),
    click.option(
        "--target",
        type=click.Choice(["uniform", "balanced", "density"]),
        help="How often items are drawn: all alike, all classes alike, or more where they are "
        "sparse.  [default: as the kernel gives it]",
    ),
)


def reads_features(options: Iterable[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return what gives these options to a command, and its help the formats of features."""

    def given(command: Callable[..., None]) -> Callable[..., None]:
        command.__doc__ = f"{cleandoc(command.__doc__ or '')}\n\n{FEATURES}"
        for option in reversed(tuple(options)):
            command = option(command)
        return command

    return given


def design_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give `command` the options of a design, as its first arguments `files`, `k` and `options`."""

    @wraps(command)
    def called(**given: Any) -> None:
        from dmsgd.designs.options import DesignOptions
        from dmsgd.files.tables import column_names

        quality = given.get("quality")
        by_length = quality == "length" and quality not in column_names(given["features"])
        files = DataFiles.named(given | {"quality": None if by_length else quality})
        given = {name: each for name, each in given.items() if name not in FILES}
        if "quality" in given:
            given["quality"] = quality if by_length else None
        names = [each.name for each in fields(DesignOptions) if each.name in given]
        options = DesignOptions(**{name: given.pop(name) for name in names})
        if files.labels is None and options.uses_labels:
            of_labels = {"w", "target", "batches"} & set(options.changed())
            needed = as_options({name: getattr(options, name) for name in sorted(of_labels)})
            raise ValueError(f"{needed} needs labels; give them with --labels")
        command(files, given.pop("k"), options, **given)

    return reads_features(DESIGN)(called)
