"""`dmsgd demo`: a diverse batch and what to label, on one screen, and a page."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dmsgd.commands.options import FORCE
from dmsgd.commands.terminal import echo, echo_table
from dmsgd.inputs.messages import require

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

    from dmsgd.inputs.arrays import FloatArray, IntArray

#: Items to choose from, numbers of them that are labelled, and repetitions.
POOL, LABELLED, SEEDS = 900, (20, 50, 100), 5
#: Points in each group of the picture, items in its batches, and its characters.
GROUP_SIZES, K, WIDTH, HEIGHT = (180, 45, 15), 16, 36, 10


@click.command()
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default="dmsgd-demo",
    help="Folder for the page.",
)
@FORCE
def demo(out: Path, force: bool) -> None:
    """Show diverse batches, what to label, and a page.

    On generated points and scikit-learn's digits; some seconds. Nothing is downloaded.

    \b
    Examples:
      dmsgd demo
      dmsgd demo --out folder
    """
    from dmsgd.files.paths import check_path

    page = out / "digits.html"
    check_path(page)
    if page.exists() and not force:
        raise FileExistsError(f"{page} exists; use --force to replace it, or --out")
    require("sklearn", "the demo")
    from sklearn.datasets import load_digits

    from dmsgd.commands.files import atomic_write
    from dmsgd.diagnostics import inspect
    from dmsgd.runtime.progress import progress_bar

    out.mkdir(parents=True, exist_ok=True)
    digits, digit = load_digits(return_X_y=True)
    echo_table(batches_table())
    accuracy = []
    with progress_bar("Labelling digits", SEEDS) as progress:
        for seed in range(SEEDS):
            accuracy.append(compare_labelled(digits / 16, digit, seed))
            progress(seed + 1)
    echo_table(accuracy_table(accuracy))
    echo("Few labels: choose them with select; k-means does nearly as well.")
    echo("Training: shuffle, or use Stratified if classes are uneven (docs/good-for.md).")
    with progress_bar("Looking at the digits"), atomic_write(page, force) as file:
        found = inspect(digits, 20, digit)
        file.write(found.html("Digits", images=digits.reshape(-1, 8, 8)).encode())
    echo(f"What is in the digits, and in their batches, a page: {page}")


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
        nearest = centres.transform(X[pool]).argmin(axis=0)
        chosen = np.arange(k), nearest, dmsgd.select(X[pool], k)
        for name, items in zip(found, chosen, strict=True):
            known = pool[items]
            model = LogisticRegression(C=10, max_iter=1000).fit(X[known], y[known])
            found[name].append(100 * float(model.score(X[test], y[test])))
    return found


def accuracy_table(accuracy: list[dict[str, list[float]]]) -> Table:
    """Return the accuracies of several repetitions, with 95 % intervals."""
    import numpy as np
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from scipy.special import stdtrit

    half = stdtrit(len(accuracy) - 1, 0.975) / np.sqrt(len(accuracy))
    table = Table("labelled", title="Which digits to label? Accuracy in %", box=SIMPLE_HEAD)
    for name in accuracy[0]:
        table.add_column(name, justify="right", no_wrap=True)
    for at, k in enumerate(LABELLED):
        scores = [np.array([each[name][at] for each in accuracy]) for name in accuracy[0]]
        table.add_row(str(k), *(f"{s.mean():.1f} ± {half * s.std(ddof=1):.1f}" for s in scores))
    return table
