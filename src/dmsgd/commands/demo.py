"""`dmsgd demo`: rare documents, the paper's toy picture, long-tailed digits, a report on them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dmsgd.commands.arguments import Force, replacing
from dmsgd.commands.terminal import bar, say, show
from dmsgd.files.paths import refuse_impossible
from dmsgd.inputs.extras import require

if TYPE_CHECKING:
    from rich.table import Table

    from dmsgd.paper.longtail import result as longtail

#: What is written.
PICTURES = ("rare.png", "toy.png", "class-shares.png", "accuracy.png")
PAGE = "dmsgd-report.html"


def demo(
    out: Annotated[
        Path, typer.Option(help="Folder for the pictures and the report.", file_okay=False)
    ] = Path("dmsgd-demo"),
    seeds: Annotated[int, typer.Option(min=2, help="Repetitions of every training run.")] = 10,
    quick: Annotated[
        bool, typer.Option("--quick", help="At most 3 seeds and 5 toy data sets.")
    ] = False,
    force: Force = False,
) -> None:
    """Compare ways to draw batches: tables, pictures, a report.

    First documents without labels, then points in the plane, then digits with labels; about half a
    minute. Nothing is downloaded.

    \b
    Examples:
      dmsgd demo
      dmsgd demo --quick --out pictures
    """
    require("paper", "dmsgd demo")
    for name in (*PICTURES, PAGE):
        refuse_impossible(out / name)
        if (out / name).exists() and not force:
            raise FileExistsError(f"{out / name} exists; use --force to replace it, or --out")
    from dmsgd.commands import demo_tables as tables
    from dmsgd.paper.longtail import figures as longtail_figures
    from dmsgd.paper.longtail import result as longtail
    from dmsgd.paper.longtail.run import run as run_digits
    from dmsgd.paper.rare import result as rare
    from dmsgd.paper.rare.figures import plot as plot_documents
    from dmsgd.paper.rare.run import run as run_documents
    from dmsgd.paper.toy import result as toy
    from dmsgd.paper.toy.figures import plot as plot_points
    from dmsgd.paper.toy.run import run as run_points

    out.mkdir(parents=True, exist_ok=True)
    seeds = min(seeds, 3) if quick else seeds
    say("1. Documents without labels: which batches hold the rare ones?")
    with bar("Documents (the first run compiles)") as progress:
        documents = run_documents(rare.Config(seeds=seeds), progress)
    plot_documents(documents, out / "rare.png")
    _tell(tables.rare_table(documents), tables.rare_summary(documents))

    say("2. Points in the plane: the picture of the paper")
    with bar("Points in the plane") as progress:
        points = run_points(toy.Config(seeds=5) if quick else toy.Config(), None, progress)
    plot_points(points, out)
    _tell(tables.toy_table(points), tables.toy_summary(points))

    say("3. Digits with labels: what is learnt")
    with bar("Long-tailed digits") as progress:
        digits = run_digits(longtail.Config(seeds=seeds), progress)
    longtail_figures.plot_shares(digits, out / "class-shares.png")
    longtail_figures.plot_accuracy(digits, out / "accuracy.png")
    _tell(tables.digits_table(digits), tables.accuracy_summary(digits), tables.cost_summary(digits))

    with bar("Report") as progress, replacing(out / PAGE, force) as file:
        file.write(digits_page(digits.config, progress).encode())
    say("Pictures, and a page with sliders on the digits:")
    for name in (*PICTURES, PAGE):
        say(str(out / name))


def _tell(table: Table, *sentences: str) -> None:
    """Print a table and what it says."""
    say()
    show(table)
    for sentence in sentences:
        say()
        say(sentence, wrapped=True)
    say()


def digits_page(config: longtail.Config, progress: Callable[[float], None]) -> str:
    """Return the report on the digits of the first seed, with gradients at the initial weights."""
    import numpy as np

    from dmsgd.diagnostics import Settings
    from dmsgd.paper.longtail.task import make_task
    from dmsgd.paper.models.softmax import initial_weights, probabilities
    from dmsgd.report import build, render

    task = make_task(config, 0)
    weights = initial_weights(task.X.shape[1], 10, np.random.default_rng(0))
    error = probabilities(weights, task.X) - np.eye(10)[task.y]
    inputs = np.column_stack([task.X, np.ones(task.y.size)])
    content = build(
        task.X,
        config.k,
        [f"class {c + 1}" for c in task.y],
        Settings(w=0.7, normalize=True),
        images=np.round(255 * task.X).astype(np.uint8).reshape(-1, 8, 8),
        gradients=np.einsum("id,ic->idc", inputs, error).reshape(task.y.size, -1),
        progress=progress,
    )
    return render(content, "Long-tailed digits")
