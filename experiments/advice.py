"""Does following `dmsgd inspect` train better than shuffled epochs, also on data held out?

Thirteen sources, five of them also with a long tail: their training classes are thinned until sizes
fall geometrically to a twentieth. `inspect` sees the training items as they are, with labels; a
softmax regression learns from standardized columns. Beside the advised batches stand those that
could have been: with labels, and without, where shuffled epochs are always advised.

Four sources are held out: of those that no rule was made on, the ones whose names have the smallest
SHA-256. Rules were changed by the results of the other sources alone.

Every seed has a split of its own (streams are split by blocks of time), at most 1,500 training
items, weights and batches. Test accuracy is the mean over classes, and over items beside it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import dmsgd
from experiments import datasets
from experiments.core import Case, Claim, bars, training
from experiments.core.compare import compare, values
from experiments.long_tailed import long_tail
from experiments.models import softmax
from experiments.models.softmax import Task

TITLE = "Following dmsgd inspect, against shuffled epochs"
TABLES_OF_SKLEARN = ("iris", "wine", "breast cancer", "diabetes", "digits")
SOURCES = (*TABLES_OF_SKLEARN, "mnist", "flowers", "r8", "debian", "dblp", "eeg", "occupancy",
           "sonar")  # fmt: skip
#: What the rules were made on, before this experiment: never held out.
MADE_ON = ("digits", "r8", "flowers")
TAILED = ("iris", "wine", "breast cancer", "digits", "mnist")
NAMES = tuple(
    name for each in SOURCES for name in (each, *[f"{each}, long tail"] * (each in TAILED))
)
#: Batch sizes of the small tables; 32 for the others.
KS = dict.fromkeys(TABLES_OF_SKLEARN[:4], 10)
ITEMS, TAIL, FEWEST, EPOCHS, BLOCKS = 1500, 20, 3, (1, 20), 40
RATES = (3e-4, 1e-3, 3e-3, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
ADVICE, STRATIFIED, SPREAD = "advice", "stratified", "partition of stratified"
KDPP, CELLS = "k-DPP", "partition of cells"
#: An arm of which the runs are stored alone; commit 5021779 is the last with its code.
DENSITY = "weighted by density"
SCORE = "mean over classes"
#: Rates are chosen by what the tables show, the mean over classes after the last epoch. On the
#: long-tailed breast cancer data those that are best after one epoch are the worst after twenty.
CHOSEN = "mean over classes, last epoch"


def source(name: str) -> str:
    """Return where a data set is from."""
    return name.partition(",")[0]


def held_out() -> list[str]:
    """Return the sources that no rule is made on: a third of the thirteen, rounded down."""
    free = [each for each in SOURCES if each not in MADE_ON]
    return sorted(free, key=lambda each: hashlib.sha256(each.encode()).digest())[:4]


HELD_OUT = held_out()
GROUPS = {
    title: [name for name in NAMES if (source(name) in HELD_OUT) == out]
    for title, out in (("held out", True), ("others", False))
}


@dataclass(frozen=True, eq=False)
class Data:
    """All items of a source; block: items of one are all for training or all for testing."""

    X: np.ndarray
    y: np.ndarray
    block: np.ndarray | None = None


@cache
def load(name: str) -> Data:
    """Return a source; images and texts as their leading directions."""
    if name in TABLES_OF_SKLEARN:
        from sklearn import datasets as tables

        X, y = getattr(tables, f"load_{name.replace(' ', '_')}")(return_X_y=True)
        if name == "diabetes":
            y = np.digitize(y, np.quantile(y, (1 / 3, 2 / 3)))
        return Data(X, y)
    if name in ("eeg", "occupancy", "sonar"):
        found = datasets.stream(name)
        return Data(found.X, found.y, found.blocks(BLOCKS))
    if name == "mnist":
        images = datasets.mnist()
        return Data(images.x_train.reshape(-1, 784) / 255.0, images.y_train.astype(np.int64))
    if name == "flowers":
        flowers = datasets.flowers()
        _, U = np.linalg.eigh(flowers.X.T.astype(np.float64) @ flowers.X)
        return Data(flowers.X @ U[:, -256:], flowers.y)
    if name == "r8":
        news = datasets.r8()
        return directions([*news.train, *news.test], np.r_[news.y_train, news.y_test])
    if name == "dblp":
        return directions(*datasets.venues())
    packages = datasets.debian().thinned(10_000)
    often = np.bincount(packages.y)[packages.y] >= 30
    texts = [text for text, kept in zip(packages.texts, often, strict=True) if kept]
    return directions(texts, packages.y[often])


def directions(texts: Sequence[str], y: np.ndarray) -> Data:
    """Return 100 directions of tf-idf."""
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer

    counts = TfidfVectorizer(sublinear_tf=True, min_df=2).fit_transform(texts)
    return Data(TruncatedSVD(100, random_state=0).fit_transform(counts), y)


@lru_cache(32)
def task(name: str, seed: int) -> Task:
    """Return the split of a seed: two thirds of every class, or of the blocks, for training."""
    data, rng = load(source(name)), np.random.default_rng([seed, 90])
    train = np.zeros(data.y.size, dtype=bool)
    if data.block is None:
        for each in np.unique(data.y):
            items = rng.permutation(np.flatnonzero(data.y == each))
            train[items[: -(-2 * items.size // 3)]] = True
    else:
        train = np.isin(data.block, rng.permutation(BLOCKS)[: 2 * BLOCKS // 3])
    items, test = rng.permutation(np.flatnonzero(train)), np.flatnonzero(~train)
    if name != source(name):
        largest = int(np.bincount(data.y[items]).max())
        chosen, *_ = long_tail(data.y[items], largest, max(largest / TAIL, FEWEST), 0, rng)
        items = rng.permutation(items[chosen])
    items, test = np.sort(items[:ITEMS]), rng.permutation(test)[:ITEMS]
    X, y = data.X[items], data.y[items]
    ends = np.quantile(X, (0.005, 0.995), axis=0)  # beyond them are spikes
    middle = np.clip(X, *ends)
    centre, spread = middle.mean(axis=0), middle.std(axis=0)
    scale = np.sqrt(10 / X.shape[1]) / np.where(spread > 0, spread, 1.0)  # rows of length 3 or so

    def inputs(rows: np.ndarray) -> np.ndarray:
        return ((np.clip(rows, *ends) - centre) * scale).astype(np.float32)

    targets = np.eye(int(data.y.max()) + 1, dtype=np.float32)[y]
    tested = inputs(data.X[test]), data.y[test]
    return Task(X, y, inputs(X), targets, tested, tested)


@lru_cache(32)
def unlabelled(task: Task, k: int) -> tuple[dmsgd.KDPP, Any]:
    """Return the k-DPP beside the advice, without labels, and X as a hint of `inspect` has it."""
    units = dmsgd.diagnostics.inspect(task.X, k).data.different_units
    X = dmsgd.features.standardize(task.X) if units else task.X
    return dmsgd.diversify(task.X, k, standardize=units), X


@lru_cache(32)
def advised(task: Task, k: int) -> Any:
    """Return the recommended design."""
    return dmsgd.diagnostics.inspect(task.X, k, task.y).advice.design(task.X, task.y)


def arms(k: int) -> dict[str, Callable[[Task, int], Any]]:
    """Return what `inspect` names with labels, and what it does not name or in a hint."""
    return training(None, k, {
        ADVICE: lambda task, seed: advised(task, k),
        STRATIFIED: lambda task, seed: dmsgd.Stratified(task.y, k),
        SPREAD: lambda task, seed: dmsgd.Partition(dmsgd.Stratified(task.y, k)),
        KDPP: lambda task, seed: unlabelled(task, k)[0],
        CELLS: lambda task, seed: dmsgd.Partition(dmsgd.cells(unlabelled(task, k)[1], k)),
    })  # fmt: skip


def run(
    task: Task, design: Any, seed: int, rate: float, epochs: Sequence[int] = EPOCHS
) -> Iterator[tuple[int, str, float]]:
    """Yield accuracies after some epochs, and whether batches are stratified."""
    (X, y), sizes = task.test, np.bincount(task.test[1])
    steps = [task.y.size // design.k * epoch for epoch in epochs]
    with np.errstate(all="ignore"):  # rates that diverge
        trained = [weights for _, weights in task.stages(design, seed, rate, steps)]
    for epoch, weights in zip(epochs, trained, strict=True):
        right = softmax.predict(weights, X) == y
        score = 100 * (np.bincount(y, right)[sizes > 0] / sizes[sizes > 0]).mean()
        yield epoch, SCORE, score  # not updates: seeds differ in the number of items
        yield epoch, "accuracy", 100 * right.mean()
    yield epochs[-1], CHOSEN, score
    yield 0, "stratified", float(isinstance(design, dmsgd.Stratified))


def make_case(name: str, seeds: int, rates: tuple[float, ...], epochs: Sequence[int]) -> Case:
    """Return one data set."""
    loop = partial(run, epochs=epochs)
    k = KS.get(source(name), 32)
    return Case(f"advice/{name}", partial(task, name), arms(k), loop, seeds, rates, CHOSEN,
                tuning_seeds=5)  # fmt: skip


def cases(quick: bool = False) -> list[Case]:
    """Return all data sets; `quick` are those of scikit-learn, two seeds at one rate."""
    if quick:
        small = [name for name in NAMES if source(name) in KS]
        return [make_case(name, 2, RATES[6:7], (1, 5)) for name in small]
    return [make_case(name, 20, RATES, EPOCHS) for name in NAMES]


def tiny() -> list[Case]:
    """Return the smallest table, as it is and with a long tail."""
    return [make_case(name, 2, RATES[6:7], (1, 2)) for name in NAMES[:2]]


CLAIMS = [
    Claim("beyond", f"{name} ({group}): {arm} ahead of shuffled epochs after {EPOCHS[-1]} epochs",
          f"advice/{name}", arm, SCORE, "shuffled")
    for arm in (ADVICE, STRATIFIED, KDPP) for group, names in GROUPS.items() for name in names
]  # fmt: skip


def pooled(table: pl.DataFrame) -> pl.DataFrame:
    """Return the table and, as data sets of their own, means over those of each group by seed."""
    found = [table]
    for title, names in GROUPS.items():
        own = table.filter(pl.col("experiment").is_in([f"advice/{name}" for name in names]))
        means = own.group_by("arm", "seed", "step", "measure").agg(pl.col("value").mean())
        found.append(means.with_columns(experiment=pl.lit(f"advice/{title}")).select(table.columns))
    return pl.concat(found)


def advice_table(group: str, table: pl.DataFrame) -> list[list[str]]:
    """Return what was advised for each data set of a group, and what it gained; then the mean."""
    last, every = EPOCHS[-1], pooled(table)
    columns = {
        "advice": (ADVICE, SCORE, last),
        "mean over items": (ADVICE, "accuracy", last),
        "`Stratified`": (STRATIFIED, SCORE, last),
        "k-DPP": (KDPP, SCORE, last),
    }
    if DENSITY in table["arm"]:
        columns["density"] = DENSITY, SCORE, last
    rows = [["data", "shuffled", "advised", *columns]]
    for name in (*GROUPS[group], group):
        where = f"advice/{name}"
        level, often = (
            values(every, where, arm, measure, step).mean()
            for arm, measure, step in (("shuffled", SCORE, last), (ADVICE, "stratified", 0))
        )
        words = {0.0: "shuffled epochs", 1.0: "`Stratified`"}
        gains = [compare(every, where, arm, "shuffled", measure, step).text()
                 for arm, measure, step in columns.values()]  # fmt: skip
        named = words.get(often, f"`Stratified` (in {often:.0%} of seeds)")
        title = ["mean", f"{level:.1f}", ""] if name == group else [name, f"{level:.1f}", named]
        rows.append([*title, *gains])
    return rows


TABLES = {f"advice-{group.replace(' ', '-')}": partial(advice_table, group) for group in GROUPS}


def figures(table: pl.DataFrame, folder: Path) -> list[Path]:
    """Write what batches gain over shuffled epochs, in both groups of data sets."""
    there = set(table["experiment"].unique())
    panels = {
        arm: {
            f"{name} ({group})": compare(table, f"advice/{name}", arm, "shuffled", SCORE)
            for group, names in GROUPS.items() for name in names if f"advice/{name}" in there
        }
        for arm in (ADVICE, KDPP)
    }  # fmt: skip
    return [bars(folder / "advice.png", panels, "points ahead of shuffled epochs")]
