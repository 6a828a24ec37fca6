"""`dmsgd inspect`: what batches would hold, on one screen, before anything is trained."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import click

from dmsgd.commands.data_files import DataFiles
from dmsgd.commands.options import SEED, design_options
from dmsgd.commands.terminal import NAME, echo, progress_bar
from dmsgd.errors import as_options
from dmsgd.inputs.messages import counted, visible

if TYPE_CHECKING:
    from rich.table import Table

    from dmsgd.designs.options import DesignOptions
    from dmsgd.diagnostics.comparison import Comparison

#: With more classes than this the table shows the commonest and the rarest only.
CLASSES_SHOWN = 8


@click.command()
@design_options
@SEED
def inspect(files: DataFiles, k: int, options: DesignOptions, seed: int) -> None:
    """Predict what batches would hold, and recommend settings.

    \b
    Examples:
      dmsgd inspect features.npy --labels y.npy -k 64
      dmsgd inspect features.npy -k 64
      dmsgd inspect iris.csv --labels species -k 10
      dmsgd inspect tfidf.npz --rho 0.1 -k 50

    Column w=0.7 is the design that `dmsgd sample` draws from with the same options and -w 0.7. A
    k-DPP does two things: it changes sampling frequency (class shares, effective items), and it
    adds repulsion (noise removed: the variance of a batch's features). All but noise and times are
    closed forms, of a random sample where the data is large. The recommendation is stratified
    batches where classes are uneven and shuffled epochs elsewhere: what did best when models were
    trained on real data (docs/good-for.md). Nothing is written.
    """
    from dmsgd.diagnostics.compare import WS, compare
    from dmsgd.diagnostics.recommend import recommend

    X, y = files.load()
    ws = list(WS)
    if options.w not in ws:  # in place of the nearest, so that the table fits the screen
        ws[min(range(1, len(ws)), key=lambda i: abs(ws[i] - options.w))] = options.w
    with progress_bar("Eigendecompositions (the first run compiles the sampler)") as progress:
        found = compare(X, k, y, options, ws=tuple(ws), seed=seed, progress=progress)
    advice = recommend(found)
    _echo_summary(files.features, found)
    echo()
    echo(_table(found))
    for sentence in found.warnings():
        echo(f"! {sentence}", wrapped=True)
    echo()
    echo(f"Recommended: {advice.name}. Reason: {advice.reason}.", wrapped=True)
    echo(f"  {advice.code(k)}")
    if advice.options.batches != "uniform":
        named = {name: getattr(files, name) for name in ("labels", "columns", "drop")}
        given = {name: value for name, value in named.items() if value is not None}
        words = as_options({**advice.options.changed(), **given})
        name = shlex.quote(files.features)
        echo(f"  dmsgd sample {name} -k {k} -n 1000 {words} -o batches.npy")


def _echo_summary(features: str, found: Comparison) -> None:
    """Print the first lines: size of the data, the kernel, its rank against k."""
    from dmsgd.diagnostics.compare import WORD_POWER

    data, sizes = found.data, sorted(found.data.classes.values())
    several = counted(len(sizes), "class")
    classes = f", {several} of {sizes[0]:,} to {sizes[-1]:,}" if sizes else ""
    crowding = found.k / found.effective_rank
    if found.rank < found.k:
        fit = "too few for such a batch"
    elif crowding < 1:
        fit = "more kinds of items than places in a batch"
    else:
        fit = f"{crowding:.1f} places for each kind of item"
    echo(f"data      {features}: {counted(data.n, 'item')} x {data.d:,}{classes}")
    echo(f"kernel    {found.options.describe()}")
    echo(f"rank      {found.rank:,}, effective {found.effective_rank:.1f}, k {found.k}: {fit}")
    if found.rows.size < data.n:
        echo(f"sample    of {counted(found.rows.size, 'item')}, for all predictions below")
    if data.has_counts and found.options.rho is None:
        echo(f"features  sparse and not negative, like counts of words: try --rho {WORD_POWER}")


def _table(found: Comparison) -> Table:
    """Return the predicted class shares and figures: a column for each way to draw batches."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from dmsgd.diagnostics.data import commonest_and_rarest

    table = Table(
        title=f"What a batch of {found.k} would hold",
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        padding=0,
    )
    classes = found.data.classes
    table.add_column("class (items)" if classes else "", no_wrap=True, max_width=20)
    shown = {each.name.replace(" = ", "="): each for each in found.summaries}
    for heading in shown:
        table.add_column(heading, justify="right", no_wrap=True)
    summaries, labels = list(shown.values()), list(classes)
    for c in commonest_and_rarest(list(classes.values()), CLASSES_SHOWN):
        name = f"{visible(labels[c], NAME)} ({classes[labels[c]]:,})"
        shares = (f"{each.shares.get(labels[c], 0.0):.1%}" for each in summaries)
        table.add_row(Text(name, overflow="ellipsis"), *shares)
    if len(classes) > CLASSES_SHOWN:
        table.caption = f"of {len(classes)} classes the commonest and the rarest"
    if classes:
        table.add_section()
        table.add_row("evenness, 1 is even", *(f"{each.evenness:.2f}" for each in summaries))
    noise = [each.repulsion for each in summaries]
    times = [1e6 * each.seconds_per_batch for each in summaries]
    for name, row in {
        "effective items": [f"{each.effective_items:.0%}" for each in summaries],
        "seen in one epoch": [f"{each.coverage:.0%}" for each in summaries],
        "size if unbiased": [f"{each.effective_batch:.0f}" for each in summaries],
        "noise removed": [f"{max(x.value, 0.0):.0%}" if x.draws else "" for x in noise],
        "µs per batch": [f"{x:.2g}" if x < 10 else f"{x:.0f}" for x in times],
    }.items():
        table.add_row(name, *row)
    return table
