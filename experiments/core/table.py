"""The one table of results: a value per (experiment, arm, seed, step, measure)."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

import polars as pl

from experiments.core import provenance

#: The first five are unique. `experiment` is the file and the case: "flowers/k=102". `step` counts
#: updates; closed forms have step 0 and tables of costs have k. Accuracies are in percent.
SCHEMA = pl.Schema(
    {
        "experiment": pl.String,
        "arm": pl.String,
        "seed": pl.Int32,
        "step": pl.Int64,
        "measure": pl.String,
        "value": pl.Float64,
    }
)
KEYS = [name for name in SCHEMA if name != "value"]
RESULTS = Path(__file__).parent.parent / "results"

#: experiment, arm, seed, step, measure, value.
Row = tuple[str, str, int, int, str, float]


def as_table(rows: Iterable[Row]) -> pl.DataFrame:
    """Return rows as a table; raise ValueError if two of them have the same keys."""
    table = pl.DataFrame(list(rows), schema=SCHEMA, orient="row")
    repeated = table.filter(table.select(KEYS).is_duplicated())
    if repeated.height:
        raise ValueError(f"two values for {repeated.row(0)[:5]}")
    return table


def write(table: pl.DataFrame, path: Path, recorded: Mapping[str, str] | None = None) -> None:
    """Write a table and what made it to a Parquet file, whole or not at all.

    Values have nine digits: far more than any interval, and half the file.
    """
    about = json.dumps(dict(provenance.record() if recorded is None else recorded))
    hidden = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        table.with_columns(pl.col("value").round_sig_figs(9)).write_parquet(
            hidden, compression="zstd", metadata={"dmsgd": about}
        )
        os.replace(hidden, path)
    finally:
        hidden.unlink(missing_ok=True)


def read(name: str, folder: Path = RESULTS) -> pl.DataFrame:
    """Return the stored results of an experiment."""
    path = _path(name, folder)
    try:
        return pl.read_parquet(path).match_to_schema(SCHEMA)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise ValueError(f"{path} is damaged; run the experiment again ({error})") from None


def recorded(name: str, folder: Path = RESULTS) -> dict[str, str]:
    """Return what made the stored results: processor, versions, commit."""
    found: dict[str, str] = json.loads(pl.read_parquet_metadata(_path(name, folder))["dmsgd"])
    return found


def _path(name: str, folder: Path) -> Path:
    path = folder / f"{name}.parquet"
    if not path.is_file():
        raise FileNotFoundError(f"{path} does not exist; run python -m experiments {name} first")
    return path
