"""`dmsgd demo`: the paper's toy picture, six samplers on long-tailed digits, a report on them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dmsgd.commands.arguments import Force, replacing
from dmsgd.commands.terminal import bar, say, show

if TYPE_CHECKING:
    from rich.table import Table

    from dmsgd.paper.longtail import result as longtail
    from dmsgd.paper.toy import result as toy

#: How many of the rarest classes the table adds up.
RARE = 3
#: What is written.
PICTURES = ("toy.png", "class-shares.png", "accuracy.png")
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

    \b
    Examples:
      dmsgd demo
      dmsgd demo --quick --out pictures
    """
    for name in (*PICTURES, PAGE):
        if (out / name).exists() and not force:
            raise FileExistsError(f"{out / name} exists; use --force to replace it, or --out")
    from dmsgd.paper.longtail import result as longtail
    from dmsgd.paper.longtail.figures import plot_accuracy, plot_shares
    from dmsgd.paper.longtail.run import run as run_digits
    from dmsgd.paper.toy import result as toy
    from dmsgd.paper.toy.figures import plot as plot_points
    from dmsgd.paper.toy.run import run as run_points

    out.mkdir(parents=True, exist_ok=True)
    with bar("Points in the plane") as progress:
        points = run_points(toy.Config(seeds=5) if quick else toy.Config(), None, progress)
    with bar("Long-tailed digits (the first run compiles)") as progress:
        digits = run_digits(longtail.Config(seeds=min(seeds, 3) if quick else seeds), progress)
    plot_points(points, out)
    plot_shares(digits, out / "class-shares.png")
    plot_accuracy(digits, out / "accuracy.png")
    with bar("Report") as progress, replacing(out / PAGE) as file:
        file.write(digits_page(digits.config, progress).encode())

    for table in (toy_table(points), digits_table(digits)):
        show(table)
        say()
    for name in (*PICTURES, PAGE):
        say(str(out / name))
    for sentence in (toy_summary(points), accuracy_summary(digits), cost_summary(digits)):
        say()
        say(sentence, wrapped=True)


def toy_table(result: toy.Result) -> Table:
    """Return the imbalance that each way of sampling leaves, over all data sets."""
    from dmsgd.paper.intervals import margin
    from dmsgd.paper.toy.result import TITLES

    count, cells = result.config.seeds, result.config.cells
    table = _table(
        title="Points in the plane: share of the weight in the wrong place",
        caption=f"{cells} x {cells} cells; ± is the 95 % interval of {count} data sets",
        headers=("weights", "imbalance\n0 is best", "best of\n(c)-(e) on"),
    )
    wins = _wins(result)
    for name, values in result.imbalance.items():
        won = f"{wins[name]} of {count}" if name in wins else ""
        table.add_row(TITLES[name], f"{values.mean():.3f} ± {margin(values):.3f}", won)
    return table


def _wins(result: toy.Result) -> dict[str, int]:
    """Return for each design the number of data sets on which it left the least imbalance."""
    import numpy as np

    names = list(result.scene.frequency)
    best = np.argmin([result.imbalance[name] for name in names], axis=0)
    return {name: int(np.sum(best == number)) for number, name in enumerate(names)}


def toy_summary(result: toy.Result) -> str:
    """Return one sentence: how the k-DPP compares on the points in the plane."""
    from dmsgd.paper.intervals import margin

    designs = {name: result.imbalance[name] for name in result.scene.frequency}
    kdpp = designs.pop("k-DPP")
    lead = min(designs.values(), key=lambda values: float(values.mean())) - kdpp
    if abs(lead.mean()) <= margin(lead):
        verdict = "was level with the best of the others"
    else:
        verdict = "restored the balance best" if lead.mean() > 0 else "was not the best"
    others = ", ".join(f"{100 * values.mean():.0f} % ({name})" for name, values in designs.items())
    return (
        f"Points: the k-DPP {verdict} on average, with {100 * kdpp.mean():.0f} % of the weight in "
        f"the wrong place against {others} and {100 * result.imbalance['observed'].mean():.0f} % "
        f"in the data; it was the best on {_wins(result)['k-DPP']} of {kdpp.size} data sets."
    )


def digits_table(result: longtail.Result) -> Table:
    """Return shares, accuracies and costs of all methods on the long-tailed digits."""
    from dmsgd.paper.intervals import margin

    config, sizes = result.config, result.sizes
    early, final = config.early, config.checkpoints[-1]
    table = _table(
        title=f"Digits: {sizes.sum()} items in {sizes.size} classes of {sizes[0]} to {sizes[-1]}, "
        f"batches of {config.k}",
        caption=f"accuracy on a balanced test set; ± is the 95 % interval of {config.seeds} seeds",
        headers=(
            "batches",
            f"share of\n{RARE} rarest",
            f"accuracy %\nstep {early}",
            f"accuracy %\nstep {final}",
            "draw\nµs/batch",
            "of train-\ning time",
            "set-up\nms",
        ),
    )
    for outcome in result.outcomes:
        scores = (100 * result.accuracy(outcome.name, step) for step in (early, final))
        table.add_row(
            outcome.name,
            f"{100 * outcome.shares[-RARE:].sum():.1f} %",
            *(f"{score.mean():.1f} ± {margin(score):.1f}" for score in scores),
            f"{1e6 * outcome.sample:.1f}",
            f"{100 * outcome.sample / outcome.step:.0f} %",
            f"{1e3 * outcome.setup:.1f}",
        )
    return table


def accuracy_summary(result: longtail.Result) -> str:
    """Return the label-aware k-DPP against uniform and stratified batches, and its own b alone."""
    early, final = result.config.early, result.config.checkpoints[-1]
    same, kdpp = (outcome.name for outcome in result.outcomes[-2:])
    return (
        f"Digits: compared seed by seed, {kdpp} was "
        f"{_compare(result, kdpp, 'uniform', early)} uniform batches after {early} steps and "
        f"{_compare(result, kdpp, 'uniform', final)} them after {final}; it was "
        f"{_compare(result, kdpp, 'stratified', early)} and "
        f"{_compare(result, kdpp, 'stratified', final)} stratified batches, which know the labels "
        f"and nothing else. It was {_compare(result, kdpp, same, early)} and "
        f"{_compare(result, kdpp, same, final)} {same}, which shows every item as often and "
        f"repels nothing."
    )


def _compare(result: longtail.Result, name: str, other: str, step: int) -> str:
    """Return "3.0 ± 0.5 points above", "... below" or "level with", by the paired interval."""
    from dmsgd.paper.intervals import margin

    difference = 100 * (result.accuracy(name, step) - result.accuracy(other, step))
    mean, half = float(difference.mean()), margin(difference)
    if abs(mean) <= half:
        return f"level ({mean:+.1f} ± {half:.1f} points) with"
    return f"{abs(mean):.1f} ± {half:.1f} points {'above' if mean > 0 else 'below'}"


def cost_summary(result: longtail.Result) -> str:
    """Return one sentence: what a k-DPP batch costs beside a training step."""
    kdpp = result.outcomes[-1]
    return (
        f"Cost: a k-DPP batch took {1e6 * kdpp.sample:.0f} µs to draw, beside "
        f"{1e6 * kdpp.step:.0f} µs for a training step of this very small classifier; the draw "
        f"does not depend on the model."
    )


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


def _table(title: str, caption: str, headers: tuple[str, ...]) -> Table:
    """Return an empty table that fits 80 columns: names on the left, numbers on the right."""
    from rich import box
    from rich.table import Table

    table = Table(
        title=title, caption=caption, box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), min_width=64
    )
    for number, header in enumerate(headers):
        table.add_column(header, justify="right" if number else "left", no_wrap=True)
    return table
