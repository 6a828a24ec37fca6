"""`dmsgd reproduce`: the paper's figures and tables, run again, with its numbers beside ours."""

from __future__ import annotations

import time
from dataclasses import fields, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dmsgd.commands.arguments import Force
from dmsgd.commands.terminal import bar, say, show
from dmsgd.files.paths import refuse_impossible
from dmsgd.inputs.extras import require

if TYPE_CHECKING:
    from rich.table import Table

    from dmsgd.paper.protocol import Claim, Experiment

#: Those that are not in the paper.
BEYOND = ("noise", "targets", "subgroups", "repulsion", "partitions", "topics", "debian")

#: Names of folders in `dmsgd.paper`, with - for _: the paper's in its order, then more.
EXPERIMENTS = (
    "toy", "synthetic-lda", "r8", "r8-cost", "flowers", "mnist", "mnist-cost", *BEYOND,
)  # fmt: skip


def reproduce(
    name: Annotated[
        str,
        typer.Argument(metavar="NAME", help=f"{', '.join(EXPERIMENTS)}, or all."),
    ],
    data_dir: Annotated[
        Path | None,
        typer.Option(
            help="Folder with the data.  [default: $DMSGD_DATA, else fetched into the cache]",
            exists=True,
            file_okay=False,
        ),
    ] = None,
    seeds: Annotated[
        int | None, typer.Option(min=2, help="Repetitions.  [default: the experiment's own]")
    ] = None,
    workers: Annotated[
        int,
        typer.Option(help="Processes that share the runs, -1 for one a core; costs use one."),
    ] = 1,
    out: Annotated[
        Path, typer.Option(help="Folder for results and pictures.", file_okay=False)
    ] = Path("dmsgd-paper"),
    quick: Annotated[
        bool, typer.Option("--quick", help="A small version of about a minute, to look at.")
    ] = False,
    replot: Annotated[
        bool, typer.Option("--replot", help="Read the results in --out instead of running.")
    ] = False,
    force: Force = False,
) -> None:
    """Run an experiment of the paper, its numbers beside ours.

    Writes NAME.json and pictures into --out, and prints what the paper states and what was found.

    \b
    Examples:
      dmsgd reproduce toy
      dmsgd reproduce r8 --quick
      dmsgd reproduce flowers --seeds 10 --workers 8 --out results
      dmsgd reproduce flowers --out results --replot
      dmsgd reproduce all --quick
    """
    require("paper", "dmsgd reproduce")
    chosen = list(EXPERIMENTS) if name == "all" else [name]
    if name != "all" and name not in EXPERIMENTS:
        raise ValueError(f"unknown experiment {name!r}; use {', '.join(EXPERIMENTS)} or all")
    if replot and (quick or seeds is not None):
        raise ValueError("--replot reads results as they are: leave out --quick and --seeds")
    if workers == 0 or workers < -1:
        raise ValueError(f"--workers must be 1 or more, or -1 for one a core, got {workers}")
    paths = [out / f"{each}.json" for each in chosen]
    for path in paths:
        refuse_impossible(path)
    if not replot:
        _refuse_results(paths, force)
    out.mkdir(parents=True, exist_ok=True)
    for each in chosen:
        _one(each, data_dir, seeds, workers, out, quick, replot)


def experiment(name: str) -> Experiment:
    """Return the experiment that the command line calls `name`."""
    from dmsgd.paper.protocol import Experiment

    result, run, claims, figures = (
        import_module(f"dmsgd.paper.{name.replace('-', '_')}.{part}")
        for part in ("result", "run", "claims", "figures")
    )
    return Experiment(
        result.TITLE, result.Config, result.QUICK, result.Result,
        run.load, run.run, claims.claims, getattr(claims, "halves", lambda result: []),
        figures.plot,
    )  # fmt: skip


def _refuse_results(paths: list[Path], force: bool) -> None:
    found = [path for path in paths if path.exists()]
    if found and not force:
        raise FileExistsError(
            f"{found[0]} exists; use --force to replace it, --replot to look at it, or another "
            f"--out"
        )


def _one(
    name: str,
    data_dir: Path | None,
    seeds: int | None,
    workers: int,
    out: Path,
    quick: bool,
    replot: bool,
) -> None:
    """Run (or read) one experiment, write its files and print what was found."""
    from dmsgd.paper import storage

    chosen = experiment(name)
    path = out / f"{name}.json"
    began = time.perf_counter()
    if replot:
        result = storage.load(chosen.Result, path)
    else:
        result = _run(chosen, name, data_dir, seeds, workers, quick)
        storage.save(result, path)
    pictures = chosen.plot(result, out)
    show(claims_table(chosen.TITLE, chosen.claims(result)))
    for written in (path, *pictures):
        say(str(written))
    if not replot:
        say(f"{time.perf_counter() - began:.0f} s")
        say()


def _run(
    chosen: Experiment,
    name: str,
    data_dir: Path | None,
    seeds: int | None,
    workers: int,
    quick: bool,
) -> Any:
    config = chosen.QUICK if quick else chosen.Config()
    if seeds is not None:
        config = replace(config, seeds=seeds)
    if any(field.name == "workers" for field in fields(config)):
        config = replace(config, workers=workers)
    data = chosen.load(config, None if data_dir is None else str(data_dir))
    with bar(name) as progress:
        return chosen.run(config, data, progress)


def claims_table(title: str, claims: list[Claim]) -> Table:
    """Return the table of the paper's statements, its numbers, ours, and whether they hold."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title, box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), title_justify="left")
    table.add_column("where")
    table.add_column("what", ratio=5)
    table.add_column("paper", ratio=2)
    table.add_column("ours (± 95 %)", ratio=4)
    table.add_column("holds")
    for claim in claims:
        verdict = {True: "yes", False: "no", None: ""}[claim.holds]
        row = (claim.where, claim.statement, claim.paper, claim.ours, verdict)
        table.add_row(*(Text(cell) for cell in row))
    notes = dict.fromkeys(claim.note for claim in claims if claim.note)
    if notes:
        table.caption = Text("\n".join(notes))
        table.caption_justify = "left"
    return table
