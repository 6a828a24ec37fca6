"""`dmsgd demo`: a diverse batch and what to label, on one screen, and a page."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dmsgd.commands.files import atomic_write
from dmsgd.commands.options import FORCE
from dmsgd.commands.terminal import echo
from dmsgd.files.paths import check_path
from dmsgd.inputs.messages import require

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

    from dmsgd.inputs.arrays import FloatArray, IntArray

PAGE, POOL = "digits.html", 900
#: Points in each group of the picture, and items in its batches.
GROUP_SIZES, K = (180, 45, 15), 16
#: Numbers of digits that are labelled.
LABELLED = (20, 50, 100)
WIDTH, HEIGHT = 36, 10


@click.command()
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default="dmsgd-demo",
    help="Folder for the page.",
)
@click.option("--seeds", type=click.IntRange(min=2), default=5, help="Repetitions.")
@FORCE
def demo(out: Path, seeds: int, force: bool) -> None:
    """Show diverse batches, what to label, and a page.

    On generated points and scikit-learn's digits; some seconds. Nothing is downloaded.

    \b
    Examples:
      dmsgd demo
      dmsgd demo --seeds 3 --out folder
    """
    check_path(out / PAGE)
    if (out / PAGE).exists() and not force:
        raise FileExistsError(f"{out / PAGE} exists; use --force to replace it, or --out")
    require("sklearn", "the demo")
    import numpy as np
    from sklearn.datasets import load_digits

    import dmsgd
    from dmsgd.runtime.progress import progress_bar

    out.mkdir(parents=True, exist_ok=True)
    digits, digit = load_digits(return_X_y=True)
    echo(batches_table())
    with progress_bar("Labelling digits") as progress:
        accuracy = []
        for seed in range(seeds):
            accuracy.append(compare_labelled(digits / 16, digit, seed))
            progress((seed + 1) / seeds)
    echo(accuracy_table(accuracy))
    echo(
        "Few labels: choose them with select; items nearest to k-means centres do nearly as well. "
        "Training: shuffle, or use Stratified if classes are uneven (docs/good-for.md).",
        wrapped=True,
    )
    with progress_bar("Looking at the digits"), atomic_write(out / PAGE, force) as file:
        images = np.uint8(digits * 255 / 16).reshape(-1, 8, 8)
        found = dmsgd.diagnostics.inspect(digits, 20, digit)
        file.write(found.html("Digits", images=images).encode())
    echo(f"What is in the digits, and in their batches, a page: {out / PAGE}")


def points() -> tuple[FloatArray, IntArray]:
    """Return points in the plane and the group of each: a large, a small and a tiny one."""
    import numpy as np

    rng = np.random.default_rng(5)
    centres, spread = np.array([[0, 0], [3.4, 0.9], [1.6, 2.4]]), np.array([0.75, 0.5, 0.3])
    group = np.repeat(np.arange(3), GROUP_SIZES)
    return centres[group] + spread[group, None] * rng.normal(size=(group.size, 2)), group


def batches_table() -> Table:
    """Return a uniform and a diverse batch of the same points, side by side."""
    from rich.table import Table

    import dmsgd

    X, group = points()
    table = Table(box=None, pad_edge=False, padding=(0, 4, 0, 0))
    pictures, captions = [], []
    designs = {"uniform": dmsgd.Uniform(len(X), K), "diverse": dmsgd.diversify(X, K)}
    for name, design in designs.items():
        batches = design.sample(1000, seed=2)
        table.add_column(f"A {name} batch of {K}", width=WIDTH)
        pictures.append(draw_points(X, batches[0]))
        held = (group == 2)[batches].any(axis=1).mean()
        captions.append(f"smallest group: in {held:.0%} of batches")
    table.add_row(*pictures)
    table.add_row(*captions)
    return table


def draw_points(X: FloatArray, chosen: IntArray) -> Text:
    """Return points as lines of text, the chosen ones as larger marks."""
    import numpy as np
    from rich.text import Text

    small, large = "·●" if "utf" in (sys.stdout.encoding or "").lower() else ".O"
    place = (X - X.min(axis=0)) / np.ptp(X, axis=0) * (WIDTH - 1, HEIGHT - 1)
    column, row = np.rint(place).astype(int).T
    grid = np.full((HEIGHT, WIDTH), " ")
    grid[row, column] = small
    grid[row[chosen], column[chosen]] = large
    picture = Text("\n".join("".join(line) for line in grid[::-1]), no_wrap=True)
    picture.highlight_words([large], "bold green")
    return picture


def compare_labelled(X: FloatArray, y: IntArray, seed: int) -> dict[str, list[float]]:
    """Return the accuracy in % of a classifier that knows the labels of a few items, by choice."""
    import numpy as np
    from sklearn.cluster import KMeans
    from sklearn.linear_model import LogisticRegression

    import dmsgd

    order = np.random.default_rng(seed).permutation(len(X))
    pool, test = order[:POOL], order[POOL:]
    found: dict[str, list[float]] = {"random": [], "k-means": [], "select": []}
    for k in LABELLED:
        centres = KMeans(k, n_init=1, random_state=seed).fit(X[pool])
        for name, items in (
            ("random", np.arange(k)),
            ("k-means", centres.transform(X[pool]).argmin(axis=0)),
            ("select", dmsgd.select(X[pool], k)),
        ):
            known = pool[items]
            model = LogisticRegression(C=10, max_iter=1000).fit(X[known], y[known])
            found[name].append(100 * float(model.score(X[test], y[test])))
    return found


def accuracy_table(accuracy: list[dict[str, list[float]]]) -> Table:
    """Return the accuracies of several repetitions, with 95 % intervals."""
    import numpy as np
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from scipy import special

    seeds = len(accuracy)
    table = Table("labelled", title="Which digits to label? Accuracy in %", box=SIMPLE_HEAD)
    for name in accuracy[0]:
        table.add_column(name, justify="right", no_wrap=True)
    for at, k in enumerate(LABELLED):
        scores = [np.array([each[name][at] for each in accuracy]) for name in accuracy[0]]
        half = special.stdtrit(seeds - 1, 0.975) / np.sqrt(seeds)
        table.add_row(str(k), *(f"{s.mean():.1f} ± {half * s.std(ddof=1):.1f}" for s in scores))
    return table
