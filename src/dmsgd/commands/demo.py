"""`dmsgd demo`: how often batches hold rare documents, by how the batches are drawn."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from dmsgd.commands.options import FORCE
from dmsgd.commands.output import atomic_write
from dmsgd.commands.terminal import echo, progress_bar
from dmsgd.files.paths import check_path

if TYPE_CHECKING:
    from dmsgd.inputs.arrays import FloatArray, IntArray

K, PAGE = 20, "report.html"


@click.command()
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default="dmsgd-demo",
    help="Folder for the report.",
)
@click.option("--seeds", type=click.IntRange(min=2), default=10, help="Repetitions.")
@FORCE
def demo(out: Path, seeds: int, force: bool) -> None:
    """Compare ways to draw batches: a table and a report.

    Of 1,000 generated documents without labels, ten share a rare topic and ten are like no other;
    half a minute. Nothing is downloaded.

    \b
    Examples:
      dmsgd demo
      dmsgd demo --seeds 3 --out folder
    """
    check_path(out / PAGE)
    if (out / PAGE).exists() and not force:
        raise FileExistsError(f"{out / PAGE} exists; use --force to replace it, or --out")
    import numpy as np
    from rich.box import SIMPLE_HEAD
    from rich.table import Column, Table
    from scipy import sparse, special

    import dmsgd

    out.mkdir(parents=True, exist_ok=True)
    heads = "% of batches\nwith the topic", "odd ones, shuffled\n= 1: least", "most\noften"
    table = Table(
        "batches",
        *(Column(head, justify="right", no_wrap=True) for head in heads),
        title="1,000 generated documents: a topic of 10, 10 odd ones, no labels",
        caption=f"batches of {K}; ± is the 95 % interval of {seeds} seeds",
        box=SIMPLE_HEAD,
    )
    with progress_bar("Drawing batches") as progress:
        found = []
        for seed in range(seeds):
            found.append(compare_batches(seed))
            progress((seed + 1) / seeds)
    for name in found[0]:
        held, odd = (np.array([each[name][part] for each in found]) for part in (0, 1))
        margin = special.stdtrit(seeds - 1, 0.975) * held.std(ddof=1) / np.sqrt(seeds)
        shares = f"{held.mean():.1f} ± {margin:.1f}"
        table.add_row(name, shares, f"{odd.min():.1f}", f"{odd.max():.1f}")
    echo(table)
    echo(
        "A k-DPP draws unusual documents more often; most of that is sampling frequency, which "
        "frequency-matched batches have without its repulsion. Strata of k-means hold the topic "
        "more often and miss odd documents; where there are labels, try stratified batches first. "
        "Rare groups of real texts are less distinct (docs/results/topics.md).",
        wrapped=True,
    )
    with progress_bar("Report") as progress, atomic_write(out / PAGE, force) as file:
        X, topic = documents(0)
        options = dmsgd.designs.DesignOptions()
        names = np.array([*(f"topic {each}" for each in range(1, 6)), "rare topic", "odd"])
        labels = names[np.minimum(topic, 6)]
        report = dmsgd.report.build(sparse.csr_array(X), K, labels, options, progress=progress)
        file.write(report.html("Generated documents").encode())
    echo(f"The report, with sliders: {out / PAGE}")


def documents(seed: int) -> tuple[FloatArray, IntArray]:
    """Return counts of 200 words in 1,000 documents, and their topics: 5 is rare, more are odd.

    Four fifths of a document's 150 words are of its own topic.
    """
    import numpy as np

    rng, sizes = np.random.default_rng(seed), np.array([196] * 5 + [10] + [1] * 10)
    words = rng.dirichlet(np.full(200, 0.05), size=sizes.size)
    topic = np.repeat(np.arange(sizes.size), sizes)
    others = rng.dirichlet(5 * sizes / sizes.sum(), size=topic.size)
    counts = rng.multinomial(150, (0.8 * np.eye(sizes.size)[topic] + 0.2 * others) @ words)
    return counts.astype(np.float64), topic


def compare_batches(seed: int) -> dict[str, tuple[float, FloatArray]]:
    """Return for each kind of batches the % with the rare topic, and how often odd ones are drawn.

    The latter is relative to shuffled epochs.
    """
    import dmsgd

    X, topic = documents(seed)
    kdpp = dmsgd.diversify(X, K)
    shuffled = dmsgd.Partition(dmsgd.Uniform(len(X), K))
    found = {}
    for name, design in (
        ("shuffled", shuffled),
        ("frequency-matched", dmsgd.Weighted.like(kdpp)),
        ("k-DPP", kdpp),
    ):
        held = (topic == 5)[design.sample(1000, seed)].any(axis=1)
        found[name] = 100 * held.mean(), design.inclusion()[topic > 5] * len(X) / K
    return found
