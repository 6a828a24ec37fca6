"""Options that commands share, and the files that they name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import wraps
from inspect import cleandoc
from pathlib import Path
from typing import Any, final

import click

from dmsgd.errors import as_options
from dmsgd.inputs.messages import few

SEED = click.option(
    "--seed", type=click.IntRange(0), default=0, help="The same seed gives the same result."
)
FORCE = click.option("--force", is_flag=True, help="Replace an existing output.")
#: A file to write.
OUTPUT = click.Path(path_type=Path)


def output_option(help: str) -> Callable[[Any], Any]:
    """Return the option --output of a command."""
    return click.option("-o", "--output", type=OUTPUT, required=True, help=help)


@final
@dataclass(frozen=True)
class DataFiles:
    """The files with features and labels, and which columns of a table are features."""

    features: str
    labels: str | None = None
    columns: str | None = None
    drop: str | None = None

    def load(self, on_cluster: bool = False) -> tuple[Any, Any]:
        """Return X and y; labels that name a column of the features are taken out of them."""
        from dmsgd.features.convert import open_features
        from dmsgd.files.tables import COLUMN_FILES, column_names, read_column
        from dmsgd.inputs.labels import as_labels

        names, labels = column_names(self.features), self.labels
        drop = self.dropped(names)
        if labels in names:
            labels = f"{self.features}:{labels}"
        elif labels and names and not any(suffix in labels.lower() for suffix in COLUMN_FILES):
            raise ValueError(
                f"{self.features} has no column {labels!r} for --labels; it has {few(names)}"
            )
        X = open_features(self.features, drop, on_cluster=on_cluster)
        n = X.shape[0]
        return X, None if labels is None else as_labels(read_column(labels, n), n)

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
        kept = set(columns or names).difference(drop, [self.labels])
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
#: What describes a design, the same in all commands.
DESIGN = (
    click.argument("features"),
    click.option("-k", type=click.IntRange(1), required=True, help="Items in a batch."),
    click.option(
        "--labels",
        help="Class of each item: a file (.npy, .npz, .csv, .tsv, .txt, .parquet, .zarr), or a "
        "column of FEATURES, which is then no feature.",
    ),
    click.option(
        "--columns",
        metavar="NAME,NAME",
        help="Columns of a table that are features.  [default: all but --labels]",
    ),
    click.option(
        "--drop",
        metavar="NAME,NAME",
        help="Columns of a table that are no features, such as ids.",
    ),
    click.option(
        "-w",
        type=float,
        default=0.0,
        help="Weight of the labels: 0 only reports them, 1 looks at nothing else.",
    ),
    click.option(
        "--kernel",
        type=click.Choice(["linear", "rbf"]),
        default="linear",
        help="Similarity of items.",
    ),
    click.option(
        "--scale",
        type=float,
        help="Length scale of --kernel rbf.  [default: the median distance]",
    ),
    click.option("--rho", type=float, help="Anneal the features first: x to the power rho."),
    click.option(
        "--standardize",
        is_flag=True,
        help="Scale columns to mean 0 and standard deviation 1: for columns in different units.",
    ),
    click.option(
        "--normalize",
        is_flag=True,
        help="Scale rows to length 1: for embeddings, counts and images.",
    ),
    click.option(
        "--target",
        type=click.Choice(["uniform", "balanced", "density"]),
        help="How often items are drawn: all alike, all classes alike, or more where they are "
        "sparse.  [default: as the kernel gives it]",
    ),
)


def design_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give `command` the options of a design, as its first arguments `files`, `k` and `options`."""

    @wraps(command)
    def called(**given: Any) -> None:
        from dmsgd.designs.options import DesignOptions

        files = DataFiles(*(given.pop(name) for name in ("features", "labels", "columns", "drop")))
        names = [each.name for each in fields(DesignOptions) if each.name in given]
        options = DesignOptions(**{name: given.pop(name) for name in names})
        if files.labels is None and options.uses_labels:
            of_labels = {"w", "target", "batches"} & set(options.changed())
            needed = as_options({name: getattr(options, name) for name in sorted(of_labels)})
            raise ValueError(f"{needed} needs labels; give them with --labels")
        command(files, given.pop("k"), options, **given)

    called.__doc__ = f"{cleandoc(command.__doc__ or '')}\n\n{FEATURES}"
    for option in reversed(DESIGN):
        called = option(called)
    return called
