"""Run an experiment, print its claims, draw its figures; or write the tables of the docs."""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from rich.console import Console
from rich.progress import Progress, TimeElapsedColumn
from rich.table import Table

from experiments import good_for, readme
from experiments.core import markdown, protocol
from experiments.core import table as tables
from experiments.core.journal import Journal
from experiments.slices import about

#: The paper's, in its order, then our own studies.
PAPER = ("toy", "synthetic_lda", "r8", "r8_cost", "flowers", "mnist", "mnist_cost")
BEYOND = ("topics", "debian", "long_tailed", "federated", "labelling", "labels", "advice")
EXPERIMENTS = (*PAPER, *BEYOND)
#: Studies of an earlier version, whose code is in the history. Their runs are in `results`, and
#: their tables in docs/results: what no experiment makes is read from the CSV file of its name.
STORED = ("noise", "targets", "subgroups", "repulsion", "partitions", "rare", "streams",
          "negatives", "coordinates", "pinn")  # fmt: skip

CONSOLE = Console(width=None if sys.stdout.isatty() else 120)


def main(arguments: list[str] | None = None) -> int:
    """Return the exit status."""
    options = parser().parse_args(arguments)
    if options.name == "tables":
        return write_tables(options.check)
    names = EXPERIMENTS if options.name == "all" else (options.name,)
    for name in names:
        written = options.out / f"{name}.parquet"
        if written.exists() and not (options.force or options.replot):
            ways = "--force to replace it, --replot to draw and print it again, or another --out"
            parser().error(f"{written} exists; use {ways}")
    options.out.mkdir(parents=True, exist_ok=True)
    for name in names:
        one(name, options)
    return 0


def parser() -> argparse.ArgumentParser:
    """Return the command line."""
    found = argparse.ArgumentParser("python -m experiments", description=__doc__)
    found.add_argument("name", choices=[*EXPERIMENTS, "all", "tables"], metavar="NAME",
                       help=f"{', '.join(EXPERIMENTS)}, all, or tables (of the docs)")  # fmt: skip
    found.add_argument("--quick", action="store_true", help="a small version of a minute or some")
    found.add_argument("--seeds", type=int, help="repetitions (default: the experiment's own)")
    found.add_argument("--workers", type=int, default=1, help="processes that share the runs")
    found.add_argument("--out", type=Path, default=Path("build/experiments"),
                       help="folder of results and figures (default: %(default)s)")  # fmt: skip
    found.add_argument("--force", action="store_true", help="replace results in --out")
    found.add_argument("--replot", action="store_true", help="read --out instead of running")
    found.add_argument("--check", action="store_true", help="tables: exit 1 if one is out of date")
    return found


def one(name: str, options: argparse.Namespace) -> None:
    """Run (or read) one experiment, write its files and print its claims."""
    module, began = import_module(f"experiments.{name}"), time.perf_counter()
    path = options.out / f"{name}.parquet"
    if options.replot:
        found = tables.read(name, options.out)
    else:
        found = run(name, module, options)
        tables.write(found, path)
    pictures = module.figures(found, options.out)
    show_claims(module, found)
    for written in (path, *pictures):
        print(written)
    print(f"{time.perf_counter() - began:.0f} s\n")


def run(name: str, module: ModuleType, options: argparse.Namespace) -> Any:
    """Return the table of an experiment; what an interrupted run has done is not done again."""
    cases = module.cases(options.quick)
    if options.seeds is not None:
        cases = [replace(case, seeds=options.seeds) for case in cases]
    path = options.out / f"{name}.journal"
    journal = Journal(path, about(name, module, options.quick))
    if len(journal):
        print(f"{name}: {len(journal)} finished runs are in {path}; going on from there")
    columns = (*Progress.get_default_columns(), TimeElapsedColumn())
    with Progress(*columns, console=CONSOLE, transient=True) as bar:
        work = bar.add_task(name, total=1.0)
        found = protocol.results(
            cases, options.workers, journal, lambda done: bar.update(work, completed=done)
        )
    for case in cases:
        if edges := protocol.at_the_edge(case, found):
            print(f"{case.name}: the best rate is at the edge of the grid for {', '.join(edges)}")
    path.unlink()
    return found


def show_claims(module: ModuleType, found: Any) -> None:
    """Print the claims of an experiment; --quick may leave cases out, and then their claims."""
    there = set(found["experiment"].unique())
    claims = [claim for claim in module.CLAIMS if claim.experiment in there]
    head, *rows = markdown.claim_rows(claims, found)
    shown = Table(*head, title=module.TITLE, title_justify="left")
    for row in rows:
        shown.add_row(*row)
    CONSOLE.print(shown)


def write_tables(check: bool) -> int:
    """Write the tables of the docs from the stored results, or check that they are current."""
    names = [name for name in EXPERIMENTS if (tables.RESULTS / f"{name}.parquet").is_file()]
    modules = {name: import_module(f"experiments.{name}") for name in names}
    stored = {name: tables.read(name) for name in (*names, *STORED)}
    extra = {
        key: (name, function)
        for name, module in modules.items()
        for key, function in getattr(module, "TABLES", {}).items()
    }

    def every(attribute: str, of: Sequence[str] = names) -> list[tuple[str, Any, Any]]:
        return [(each, stored[each], getattr(modules[each], attribute, ())) for each in of]

    shared = {"good-for": good_for.rows, "readme-uses": readme.uses, "readme-paper": readme.paper}

    @cache
    def rows(name: str) -> list[list[str]]:
        if name in shared:
            return shared[name](stored)
        if name == "decomposition":
            earlier = [row for row in markdown.stored_rows(name) if row[0] in STORED]
            return [*markdown.decomposition_rows(every("DECOMPOSED")), *earlier]
        own = name.removesuffix("-claims")
        if own in (*names, "paper") and own != name:
            return markdown.all_claim_rows(every("CLAIMS", PAPER if own == "paper" else [own]))
        if name not in extra:
            return markdown.stored_rows(name)
        owner, function = extra[name]
        return function(stored[owner])

    def make(kind: str, name: str, pattern: str) -> str:
        if kind == "csv":
            return markdown.as_csv(rows(name))
        if kind == "table":
            return markdown.lined(markdown.matching(rows(name), pattern) if pattern else rows(name))
        name = name.replace("-", "_")
        claims = [each for each in modules[name].CLAIMS if re.search(pattern, each.statement)]
        return markdown.claims_section(claims, stored[name], tables.recorded(name))

    changed = markdown.update_pages(make, check)
    for page in changed:
        print(f"{page.name} is not up to date" if check else f"{page.name} written")
    return 1 if check and changed else 0


if __name__ == "__main__":
    sys.exit(main())
