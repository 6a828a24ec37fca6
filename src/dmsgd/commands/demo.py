"""`dmsgd demo`: what to label, and a page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from dmsgd.commands.options import FORCE
from dmsgd.commands.terminal import echo, echo_table
from dmsgd.inputs.messages import require

if TYPE_CHECKING:
    from dmsgd.inputs.arrays import FloatArray, IntArray

#: Items to choose from, numbers of them that are labelled, and repetitions.
POOL, LABELLED, SEEDS = 900, (20, 50, 100), 5


@click.command()
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default="dmsgd-demo",
    help="Folder for the page.",
)
@FORCE
def demo(out: Path, force: bool) -> None:
    """Show what to label, and a page about batches.

    On scikit-learn's digits; some seconds. Nothing is downloaded.

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

    from dmsgd.commands.files import write
    from dmsgd.diagnostics import inspect
    from dmsgd.runtime.progress import progress_bar

    out.mkdir(parents=True, exist_ok=True)
    digits, digit = load_digits(return_X_y=True)
    accuracy = []
    with progress_bar("Labelling digits", SEEDS) as progress:
        for seed in range(SEEDS):
            accuracy.append(compare_labelled(digits / 16, digit, seed))
            progress(seed + 1)
    echo("Which digits to label? Accuracy in % with 95 % intervals:")
    echo_table(accuracy_table(accuracy))
    echo("Few labels: choose them with select; k-means does nearly as well.")
    echo("Training: shuffle, or use Stratified if classes are uneven (docs/good-for.md).")
    with progress_bar("Looking at the digits"):
        found = inspect(digits, 20, digit)
        html = found.html("Digits", images=digits.reshape(-1, 8, 8))
    write({page: html.encode()}, force)
    echo(f"What is in the digits, and in their batches, a page: {page}")


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


def accuracy_table(accuracy: list[dict[str, list[float]]]) -> list[list[str]]:
    """Return the accuracies of several repetitions, with 95 % intervals, by number of labels."""
    import numpy as np
    from scipy.special import stdtrit

    half = stdtrit(len(accuracy) - 1, 0.975) / np.sqrt(len(accuracy))
    table = [["labelled", *accuracy[0]]]
    for at, k in enumerate(LABELLED):
        scores = [np.array([each[name][at] for each in accuracy]) for name in accuracy[0]]
        table.append([str(k), *(f"{s.mean():.1f} ± {half * s.std(ddof=1):.1f}" for s in scores)])
    return table
