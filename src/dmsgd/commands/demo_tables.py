"""What `dmsgd demo` says about its results: a table of each, and sentences that follow from it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.table import Table

    from dmsgd.paper.longtail import result as longtail
    from dmsgd.paper.rare import result as rare
    from dmsgd.paper.toy import result as toy

#: How many of the rarest classes the table of digits adds up.
RARE = 3


def rare_table(result: rare.Result) -> Table:
    """Return how many batches hold what is looked for, of both kinds of documents."""
    from dmsgd.paper.intervals import show

    config = result.config
    total = config.topics * config.per_topic + config.rare
    table = _table(
        title=f"A topic of {config.rare} in {total} generated documents; "
        f"{len(result.packages)} small packages in {result.pages} help pages",
        caption=f"batches of {config.k}; ± is the 95 % interval of {config.seeds} seeds",
        headers=(
            "batches",
            "% that hold\nthe topic",
            "of it in\na batch",
            "% that hold\na package",
            "its pages, times\nuniform: least, most",
        ),
    )
    for outcome in result.outcomes:
        table.add_row(
            outcome.name,
            show(outcome.found),
            f"{outcome.expected.mean():.2f}",
            show(outcome.pages_found.mean(axis=1)),
            f"{outcome.times.min():.2f}, {outcome.times.max():.2f}",
        )
    return table


def rare_summary(result: rare.Result) -> str:
    """Return what each design did for the planted topic, and for packages that nobody planted."""
    found = {one.name: f"{100 * one.found.mean():.0f} %" for one in result.outcomes}
    clustered, kdpp = result["clustered"], result["k-DPP"]
    fewer = 100 * (clustered.times < 1).mean()
    return (
        f"Documents: no design knew a topic. The rare one is in {found['uniform']} of uniform, "
        f"{found['weighted']} of weighted and {found['k-DPP']} of k-DPP batches, and in "
        f"{found['clustered']} of clustered ones, since k-means finds it. The small packages of "
        f"real help pages are less distinct: {fewer:.0f} % of the time clustered batches show one "
        f"less often than uniform ones do, down to {clustered.times.min():.2f} times; the k-DPP "
        f"shows them {kdpp.times.min():.2f} to {kdpp.times.max():.2f} times as often."
    )


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
    others = {
        "uniform": "uniform batches",
        "stratified": "stratified batches, which know the labels and nothing else",
        same: f"{same}, which shows every item as often and repels nothing",
    }
    found = (
        f"{_compare(result, kdpp, name, early)} after {early} steps and "
        f"{_compare(result, kdpp, name, final)} after {final} against {words}"
        for name, words in others.items()
    )
    return f"Digits: seed by seed, {kdpp} was " + "; ".join(found) + "."


def _compare(result: longtail.Result, name: str, other: str, step: int) -> str:
    """Return "3.0 ± 0.5 points ahead", "... behind" or "level", by the paired interval."""
    from dmsgd.paper.intervals import margin

    difference = 100 * (result.accuracy(name, step) - result.accuracy(other, step))
    mean, half = float(difference.mean()), margin(difference)
    if abs(mean) <= half:
        return f"level ({mean:+.1f} ± {half:.1f} points)"
    return f"{abs(mean):.1f} ± {half:.1f} points {'ahead' if mean > 0 else 'behind'}"


def cost_summary(result: longtail.Result) -> str:
    """Return one sentence: what a k-DPP batch costs beside a training step."""
    kdpp = result.outcomes[-1]
    return (
        f"Cost: a k-DPP batch took {1e6 * kdpp.sample:.0f} µs to draw, beside "
        f"{1e6 * kdpp.step:.0f} µs for a training step of this very small classifier; the draw "
        f"does not depend on the model."
    )


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
