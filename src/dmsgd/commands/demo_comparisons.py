"""What `dmsgd demo` compares: batches of documents without labels, and of digits with labels.

Its arms are ways to draw batches. "shuffled" epochs are what loaders do; "frequency-matched"
batches have the inclusion probabilities of the k-DPP and no repulsion.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from time import process_time
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure
from rich.box import SIMPLE_HEAD
from rich.table import Column, Table
from scipy.special import softmax, stdtrit
from sklearn.datasets import load_digits
from threadpoolctl import threadpool_limits

import dmsgd
from dmsgd.designs.options import DesignOptions
from dmsgd.inputs.arrays import FloatArray, IntArray

K = 20
COLOURS = {
    "shuffled": "#777777", "stratified": "#009E73", "clustered": "#E69F00",
    "k-DPP, no labels": "#56B4E9", "frequency-matched": "#D55E00", "k-DPP": "#0072B2",
}  # fmt: skip
STYLE: dict[Any, Any] = {
    "font.size": 17, "axes.titlesize": 18, "axes.spines.top": False, "axes.spines.right": False,
    "axes.grid": True, "grid.color": "#dddddd", "axes.axisbelow": True, "legend.frameon": False,
}  # fmt: skip

#: By arm and measure: what one seed finds, or a row for each seed.
Found = dict[str, dict[str, FloatArray]]


def repeat(run: Callable[[int], Found], seeds: int, progress: Callable[[float], None]) -> Found:
    """Return what `run` finds with each seed, on one thread: the matrices are small."""
    every = []
    for seed in range(seeds):
        with threadpool_limits(1):
            every.append(run(seed))
        progress((seed + 1) / seeds)
    return {
        arm: {name: np.array([found[arm][name] for found in every]) for name in own}
        for arm, own in every[0].items()
    }


# Documents without labels

#: Five common topics, a rare one, and ten documents that are odd: each has a topic of its own.
COMMON, RARE, ODD = 196, 10, 10


def documents(seed: int) -> tuple[FloatArray, IntArray]:
    """Return counts of 200 words in 1000 documents, and the topics: 5 is rare, more are odd.

    Four fifths of a document's 150 words are of its own topic.
    """
    rng, sizes = np.random.default_rng(seed), np.array([COMMON] * 5 + [RARE] + [1] * ODD)
    words = rng.dirichlet(np.full(200, 0.05), size=sizes.size)
    topic = np.repeat(np.arange(sizes.size), sizes)
    others = rng.dirichlet(5 * sizes / sizes.sum(), size=topic.size)
    counts = rng.multinomial(150, (0.8 * np.eye(sizes.size)[topic] + 0.2 * others) @ words)
    return counts.astype(np.float64), topic


def draw_documents(seed: int) -> Found:
    """Return the % of batches that hold the rare topic, and how often odd documents are drawn."""
    X, topic = documents(seed)
    kdpp = dmsgd.diversify(X, K, normalize=True)
    arms: dict[str, dmsgd.designs.ClosedForm | dmsgd.Partition] = {
        "shuffled": dmsgd.Partition(dmsgd.Uniform(len(X), K)),
        "clustered": dmsgd.designs.clustered(X, K, seed=seed),
        "frequency-matched": dmsgd.Weighted.like(kdpp),
        "k-DPP": kdpp,
    }
    found: Found = {}
    for arm, design in arms.items():
        held = (topic == 5)[design.sample(1000, seed)].any(axis=1)
        times = design.inclusion()[topic > 5] * len(X) / K
        found[arm] = {"held": np.array(100 * held.mean()), "times": times}
    return found


@rc_context(STYLE)
def show_documents(found: Found) -> tuple[Table, str, Figure]:
    """Return a table, what it says, and bars for the rare topic, dots for odd documents."""
    figure = Figure(figsize=(8, 7), layout="constrained")
    above, below = figure.subplots(2, 1)
    rows, percent, least = [], {}, {}
    for at, (arm, own) in enumerate(found.items()):
        mean, times = own["held"].mean(), own["times"].ravel()
        percent[arm], least[arm] = f"{mean:.0f} %", f"{times.min():.1f}"
        rows.append((arm, shown(own["held"]), least[arm], f"{times.max():.1f}"))
        above.barh(at, mean, height=0.66, color=COLOURS[arm])
        above.text(mean + 1.5, at, percent[arm], va="center")
        place = at + np.linspace(-0.3, 0.3, times.size)
        below.scatter(times, place, s=40, color=COLOURS[arm], alpha=0.5, linewidth=0)
    above.set(title=f"A topic of {RARE} in 1000 generated documents", xlim=(0, 118))
    above.set(xlabel=f"% of batches of {K} that hold it", xticks=range(0, 101, 25))
    below.set(title=f"{ODD} documents that are like no other", xscale="log")
    below.set(xlabel="how often each is drawn, shuffled = 1")
    below.set_xticks([1, 2, 5, 10, 20, 50], ["1", "2", "5", "10", "20", "50"])
    below.set_xticks([], minor=True)
    for axes in (above, below):
        axes.set_yticks(range(len(found)), list(found))
        axes.invert_yaxis()
        axes.grid(axis="y", visible=False)
    words = (
        f"The rare topic is in {percent['k-DPP']} of k-DPP batches, {percent['shuffled']} of "
        f"shuffled and {percent['clustered']} of clustered ones; the k-DPP draws each odd document "
        f"at least {least['k-DPP']} times as often as shuffling does, k-means some "
        f"{least['clustered']} times. Rare groups of real texts are less distinct (docs/topics.md)."
    )
    heads = "% of batches\nwith the topic", "odd ones, shuffled\n= 1: least", "most\noften"
    title = f"1000 generated documents: a topic of {RARE}, {ODD} odd ones, no labels"
    return tabulated(title, heads, rows, len(found["k-DPP"]["held"])), words, figure


# Digits with labels

SIZES, W = (120, 84, 59, 41, 29, 20, 14, 10, 7, 5), 0.7
STEPS, EARLY = (5, 10, 20, 35, 50, 75, 100, 150, 200, 300, 400, 600, 800), 50
#: Of 0.5, 1, 2 and 4 within half a point of the best for all arms but stratified (1.4 points).
RATE = 2.0


def digits(seed: int) -> tuple[FloatArray, IntArray, FloatArray, IntArray]:
    """Return pixels and classes to train on, SIZES of each class, then those of a balanced test.

    Which digit is which class is drawn anew for each seed.
    """
    pixels, digit = load_digits(return_X_y=True)
    rng = np.random.default_rng([seed, 0])
    items = [rng.permutation(np.flatnonzero(digit == each)) for each in rng.permutation(10)]
    train = np.concatenate([own[50:][:size] for own, size in zip(items, SIZES, strict=True)])
    test = np.concatenate([own[:50] for own in items])
    y, test_y = np.repeat(np.arange(10), SIZES), np.repeat(np.arange(10), 50)
    return pixels[train] / 16, y, pixels[test] / 16, test_y


def train_digits(seed: int) -> Found:
    """Return what softmax regression gets right after STEPS, the rare classes' share, the price."""
    X, y, test_X, test_y = digits(seed)
    kdpp = dmsgd.diversify(X, K, y, W, normalize=True)
    arms: dict[str, dmsgd.designs.ClosedForm | dmsgd.Partition] = {
        "shuffled": dmsgd.Partition(dmsgd.Uniform(y.size, K)),
        "stratified": dmsgd.Stratified(y, K),
        "k-DPP, no labels": dmsgd.diversify(X, K, normalize=True),
        "frequency-matched": dmsgd.Weighted.like(kdpp),
        "k-DPP": kdpp,
    }
    found: Found = {}
    inputs, tests = (np.column_stack([each, np.ones(len(each))]) for each in (X, test_X))
    for arm, design in arms.items():
        design.sample(1, seed)  # the sampler's tables are made at the first call
        began = process_time()
        batches = design.sample(STEPS[-1], seed)
        price = np.array(1e6 * (process_time() - began) / STEPS[-1])
        weights, right = np.zeros((65, 10)), []
        for step, batch in enumerate(batches, start=1):
            error = softmax(inputs[batch] @ weights, axis=1) - np.eye(10)[y[batch]]
            weights -= RATE / K * inputs[batch].T @ error
            if step in STEPS:
                right.append(100 * np.mean((tests @ weights).argmax(axis=1) == test_y))
        share = 100 * design.inclusion()[y >= 7].sum() / K
        found[arm] = {"right": np.array(right), "share": share, "price": price}
    return found


@rc_context(STYLE)
def show_digits(found: Found) -> tuple[Table, str, Figure]:
    """Return a table, what it says in plain words, and curves over steps with 95 % intervals."""
    figure = Figure(figsize=(8, 6), layout="constrained")
    axes, rows, early = figure.subplots(), [], {}
    for arm, own in found.items():
        early[arm] = own["right"][:, STEPS.index(EARLY)]
        mean, half, colour = own["right"].mean(axis=0), margin(own["right"]), COLOURS[arm]
        axes.fill_between(STEPS, mean - half, mean + half, color=colour, alpha=0.15, linewidth=0)
        axes.plot(STEPS, mean, color=colour, label=arm, linewidth=2)
        scores = shown(early[arm]), shown(own["right"][:, -1])
        rows.append((arm, f"{own['share'].mean():.1f}", *scores, f"{np.median(own['price']):.0f}"))
    axes.set(xscale="log", xlabel=f"steps (batches of {K})", ylabel="% right in a balanced test")
    axes.set(title=f"Long-tailed digits: {SIZES[0]} down to {SIZES[-1]} of a class")
    axes.set_xticks(STEPS[::3], [str(step) for step in STEPS[::3]])
    axes.set_xticks([], minor=True)
    axes.legend()
    words = (
        f"After {EARLY} steps the k-DPP is {lead(early['k-DPP'] - early['shuffled'])} shuffled "
        f"epochs and {lead(early['k-DPP'] - early['stratified'])} stratified batches, which need "
        f"the labels alone. Where there are labels, try Stratified first."
    )
    title = f"{sum(SIZES)} digits in classes of {SIZES[0]} down to {SIZES[-1]}, with labels"
    heads = "% of the 3\nrarest", f"% right,\nstep {EARLY}", f"% right,\n{STEPS[-1]}", "draw,\nµs"
    return tabulated(title, heads, rows, len(early["k-DPP"])), words, figure


def page(progress: Callable[[float], None]) -> str:
    """Return the report page on the digits of the first seed."""
    X, y, _, _ = digits(0)
    images = np.round(255 * X).astype(np.uint8).reshape(-1, 8, 8)
    names, options = [f"class {c + 1}" for c in y], DesignOptions(w=W, normalize=True)
    report = dmsgd.report.build(X, K, names, options, images=images, progress=progress)
    return report.html("Long-tailed digits")


# What both show


def margin(values: FloatArray) -> FloatArray:
    """Return half of the 95 % interval of the mean over seeds (Student's t)."""
    spread = values.std(axis=0, ddof=1) / np.sqrt(len(values))
    return np.asarray(stdtrit(len(values) - 1, 0.975) * spread)


def shown(values: FloatArray) -> str:
    """Return "70.9 ± 2.4"."""
    return f"{values.mean():.1f} ± {margin(values):.1f}"


def lead(gain: FloatArray) -> str:
    """Return by how many points one arm is ahead of another, or that the two are level."""
    if abs(gain.mean()) <= margin(gain):
        return "level with"
    return f"{abs(gain.mean()):.1f} points {'ahead of' if gain.mean() > 0 else 'behind'}"


def tabulated(title: str, heads: Iterable[str], rows: Iterable[Iterable[str]], seeds: int) -> Table:
    """Return a table: arms on the left, numbers on the right."""
    columns = (Column(head, justify="right", no_wrap=True) for head in heads)
    caption = f"batches of {K}; ± is the 95 % interval of {seeds} seeds"
    table = Table("batches", *columns, title=title, caption=caption, box=SIMPLE_HEAD)
    for row in rows:
        table.add_row(*row)
    return table
