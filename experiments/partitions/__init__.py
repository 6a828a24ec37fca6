"""Does a diverse partition beat plain shuffling? Every item once an epoch, in batches cut anew.

Partitions are compared with shuffled epochs, independent batches, classes spread evenly over
batches, and an order in the manner of GraB: how noisy the gradient of a batch and of half an epoch
is, the loss after one epoch and after ten at each arm's best rate, and the cost.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from functools import lru_cache, partial
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import polars as pl

import dmsgd
from experiments.core import Case, Claim, Difference, bars, compare
from experiments.core.compare import mean, values
from experiments.partitions.tasks import TASKS, Task

TITLE = "Every item once an epoch: diverse partitions against plain shuffling"
#: Added to a seed for the training that ends where gradients are measured.
ASIDE = 2 * 10**6
#: Epochs before the order of GraB has settled, so that its gradients can be measured.
SETTLED = 3
#: In units of 1/L; those of a softmax are larger.
RATES, CLASS_RATES = ([2 ** (p / 2) for p in powers] for powers in (range(-14, 4), range(2, 13)))
LENGTHS = {1: "1 epoch", 10: "10 epochs"}
GRAB = "GraB-like order"
#: What is compared with shuffled epochs: the case, and its measure.
MEASURES = {
    "variance of a batch": ("noise", "variance"),
    "error of half an epoch": ("noise", "error of half an epoch"),
    **{f"loss after {when}": (when, "loss") for when in LENGTHS.values()},
}

Rows = Iterator[tuple[int, str, float]]
#: Batches (m, k) of one epoch after the other; the errors (n, classes) of the last one are sent in.
Epochs = Generator[np.ndarray, np.ndarray, None]


def drawn(design: Any, seed: int) -> Epochs:
    """Yield epochs of n // k batches from a design, whatever the errors of the last one were."""
    count, start = design.n // design.k, 0
    while True:
        yield design.sample(count, seed, start=start)
        start += count


def grab(task: Task, seed: int) -> Epochs:
    """Yield epochs in an order that keeps sums of centred gradients small, our own short version.

    After Lu, Guo and De Sa (2022): items take signs in turn so that the signed sum of their centred
    gradients stays small, and the next order is those with a plus, then those with a minus,
    backwards. Gradients are the last epoch's, each from when its batch was trained on, centred by
    their mean; the first epoch is shuffled.
    """
    order = np.random.default_rng([seed, 60]).permutation(task.n)
    while True:
        errors = yield order.reshape(-1, task.k)
        order = balanced(order, task.A, errors)


def balanced(order: np.ndarray, A: np.ndarray, errors: np.ndarray) -> np.ndarray:
    """Return the next order, from gradients A_i δ_iᵀ in the present one.

    With P the signed sum of gradients, a that of signs and M their mean, the signed sum of centred
    gradients is P - aM; item i takes the sign against its inner product with it.
    """
    mean = A.T @ errors / len(A)
    along = np.einsum("ij,ij->i", A @ mean, errors)
    square = float(np.sum(mean * mean))
    P, a, on_mean = np.zeros_like(mean), 0, 0.0
    front, back = list[int](), list[int]()
    for i in order.tolist():
        x, error = A[i], errors[i]
        inner = float(x @ P @ error) - a * float(along[i]) - (on_mean - a * square)
        sign = 1 if inner < 0 else -1
        (front if sign > 0 else back).append(i)
        P += x[:, None] * (sign * error)
        a += sign
        on_mean += sign * float(along[i])
    return np.array(front + back[::-1])


def arms(spread: tuple[str, ...]) -> dict[str, Any]:
    """Return all arms: designs, or functions of a seed that yield epochs; b = k/n in each."""
    cut, plain = dmsgd.Partition, dmsgd.Uniform
    found: dict[str, Any] = {
        "uniform": lambda task, seed: plain(task.n, task.k),
        "shuffled": lambda task, seed: cut(plain(task.n, task.k)),
    }
    for of in ("x", "x and y"):
        found[f"k-DPP on {of}"] = lambda task, seed, of=of: task.kernels[of]
        found[f"partition, k-DPP on {of}"] = lambda task, seed, of=of: cut(task.kernels[of])
    for of in spread:
        found[f"{of} spread"] = lambda task, seed, of=of: cut(
            dmsgd.Stratified(task.strata[of], task.k)
        )
    found[f"{spread[0]} spread, k-DPP on x"] = lambda task, seed: cut(
        task.kernels["x"], labels=task.strata[spread[0]]
    )
    found[GRAB] = lambda task, seed: partial(grab, task)
    return found


def epochs_of(arm: Any, seed: int) -> Epochs:
    """Return the epochs of a design, or of an order that follows the gradients."""
    return arm(seed) if callable(arm) else drawn(arm, seed)


def train(task: Task, epochs: Epochs, length: int, rate: float) -> tuple[np.ndarray, float]:
    """Return the weights after `length` epochs, and the CPU seconds of drawing them.

    The rate, in units of 1/L, falls in a line to 0 at the end.
    """
    weights, errors, step, seconds = task.start.copy(), np.empty_like(task.T), 0, 0.0
    with np.errstate(over="ignore", invalid="ignore"):  # rates that are too large are tried, too
        for number in range(length):
            begun = process_time()
            batches = epochs.send(errors) if number else next(epochs)
            seconds += process_time() - begun
            errors = np.empty_like(task.T)
            for batch in batches:
                errors[batch] = error = task.errors(weights, batch)
                slope = task.A[batch].T @ (error / task.k) + task.ridge * weights
                weights -= rate / task.curvature * (1 - step / length / len(batches)) * slope
                step += 1
    return weights, seconds


def run(length: int, task: Task, arm: Any, seed: int, rate: float) -> Rows:
    """Yield the loss and the accuracy after a training, and what drawing a batch costs."""
    next(epochs_of(arm, seed + ASIDE))  # sets up what is made once
    streams, last = task.streams(seed), length * (task.n // task.k)
    weights, seconds = zip(
        *(train(task, epochs_of(arm, each), length, rate) for each in streams), strict=True
    )
    yield last, "loss", np.mean([task.loss(each) for each in weights])
    if task.test is not None:
        yield last, "accuracy", task.accuracy(weights[0])
    yield 0, "ms per batch", 1e3 * sum(seconds) / (len(streams) * last)


def run_noise(epochs: int, task: Task, arm: Any, seed: int, rate: float) -> Rows:
    """Yield squared errors of gradients over those of shuffled epochs: a batch, half an epoch.

    They are means over `epochs`, at the start and where a shuffled epoch ends. Uniform batches, and
    so shuffled ones, have σ²/k (n - k)/(n - 1), and m of the M batches of a shuffled epoch
    (M - m)/(M - 1)/m of that, without any drawing.
    """
    M, m = task.n // task.k, task.n // task.k // 2
    for step, weights in ((0, task.start), (M, shuffled_epoch(task, seed, rate))):
        errors = task.errors(weights)
        mean = task.A.T @ errors / task.n
        size = np.einsum("ij,ij->i", task.A, task.A) @ np.einsum("ij,ij->i", errors, errors)
        spread = float(size) / task.n - float(np.sum(mean * mean))
        plain = spread / task.k * (task.n - task.k) / (task.n - 1)
        stream, found = epochs_of(arm, task.streams(seed)[-1]), []
        first = SETTLED if callable(arm) else 0
        for number in range(first + epochs):
            batches = stream.send(errors) if number else next(stream)
            if number >= first:
                away = np.array([task.A[b].T @ errors[b] / task.k - mean for b in batches])
                half = m * np.sum(away[:m].mean(axis=0) ** 2) / ((M - m) / (M - 1))
                found.append((np.sum(away * away) / M / plain, half / plain))
        variance, half = np.mean(found, axis=0)
        yield step, "variance", variance
        yield step, "error of half an epoch", half


@lru_cache(25)
def shuffled_epoch(task: Task, seed: int, rate: float) -> np.ndarray:
    """Return the weights after one shuffled epoch with other batches."""
    design = dmsgd.Partition(dmsgd.Uniform(task.n, task.k))
    return train(task, drawn(design, seed + ASIDE), 1, rate)[0]


@lru_cache(32)
def make_task(name: str, items: int, seed: int) -> Task:
    """Return the task of a seed; jobs go arm by arm through all of them."""
    return TASKS[name].make(items, TASKS[name].k, seed)


def make_cases(items: dict[str, int], seeds: int, tuning: int, epochs: int,
               rates: slice = slice(None)) -> list[Case]:  # fmt: skip
    """Return noise, a short and a long training of each task; large ones have fewer seeds."""
    found = []
    for name, count in items.items():
        of, task = TASKS[name], partial(make_task, name, count)
        most, few, noise = (10, 2, 4) if of.k > 16 else (seeds, tuning, epochs)
        every, grid = arms(of.spread), CLASS_RATES if "classes" in of.spread else RATES
        found.append(Case(f"partitions/{name}/noise", task, every, partial(run_noise, noise),
                          min(seeds, most), (of.first,)))  # fmt: skip
        found += [
            Case(f"partitions/{name}/{when}", task, every, partial(run, length), min(seeds, most),
                 tuple(grid[rates]), "loss", lower=True, tuning_seeds=min(tuning, few))
            for length, when in LENGTHS.items()
        ]  # fmt: skip
    return found


def cases(quick: bool = False) -> list[Case]:
    """Return all tasks; quick: two that need no files, and fewer seeds."""
    if quick:
        return make_cases({"2 columns": 442, "digits": 1280}, 5, 2, 10, slice(None, None, 2))
    return make_cases({name: of.items for name, of in TASKS.items()}, 20, 5, 40)


def tiny() -> list[Case]:
    """Return two tasks with few items and rates, for tests."""
    return make_cases({"2 columns": 64, "digits": 96}, 2, 1, 2, slice(6, 9))


def lowers(name: str, arm: str, when: str = "10 epochs") -> Claim:
    """Return the claim that an arm has a lower loss than shuffled epochs."""
    note = ("training loss less the least one, over that of shuffled epochs, with a rate that "
            "falls to 0, each arm at its own best rate, which other seeds chose")  # fmt: skip
    return Claim("beyond", f"{name}: less loss after {when}, {arm}", f"partitions/{name}/{when}",
                 arm, "loss", "shuffled", lower=True, ratio=True, note=note)  # fmt: skip


CLAIMS = [
    *(lowers(name, f"partition, k-DPP on {of}") for of in ("x", "x and y") for name in TASKS),
    *(lowers(name, f"{of.spread[0]} spread") for name, of in TASKS.items()),
    *(lowers(name, GRAB) for name in TASKS),
    *(
        Claim("beyond", f"{name}: more accurate after {when}, classes spread",
              f"partitions/{name}/{when}", "classes spread", "accuracy", "shuffled",
              note="percent of items that were not trained on")
        for when in LENGTHS.values() for name in TASKS if "classes" in TASKS[name].spread
    ),
    *(
        Claim("beyond", f"{name}: less noisy batches at the start, partition, k-DPP on x",
              f"partitions/{name}/noise", "partition, k-DPP on x", "variance", limit=1.0, step=0,
              lower=True, digits=2, note="variance of gradients over that of shuffled batches")
        for name in ("2 columns", "digits")
    ),
]  # fmt: skip


def over_shuffled(table: pl.DataFrame, name: str, arm: str, what: str) -> Difference:
    """Return the logarithm of a measure over that of shuffled epochs."""
    case, measure = MEASURES[what]
    if case == "noise":  # is so already
        return mean(np.log(values(table, f"partitions/{name}/noise", arm, measure)))
    return compare(table, f"partitions/{name}/{case}", arm, "shuffled", measure, ratio=True)


def compared(table: pl.DataFrame, name: str) -> list[str]:
    """Return the arms of a task, shuffled epochs first; none if it was not run."""
    every = table.filter(experiment=f"partitions/{name}/noise")["arm"].unique(maintain_order=True)
    return sorted(every, key=lambda arm: arm != "shuffled")


def figures(table: pl.DataFrame, folder: Path) -> list[Path]:
    """Write noise and losses over those of shuffled epochs.

    Independent draws are left out, with losses of up to 40 times as much, and so are ratios below
    0.05: the table of the docs has them.
    """
    panels: dict[str, dict[str, Difference]] = {what: {} for what in MEASURES}
    for name in TASKS:
        for arm in compared(table, name):
            for what in MEASURES:
                found = over_shuffled(table, name, arm, what)
                if ("partition" in arm or "spread" in arm or "GraB" in arm) and found.mean > -3:
                    panels[what][f"{name}: {arm}"] = found
    return [bars(folder / "partitions.png", panels, "over shuffled epochs'", factor=True)]


def measures_table(table: pl.DataFrame) -> list[list[str]]:
    """Return all measures, a row for each task and arm."""
    whens = [*LENGTHS.values()]
    heads = ["task", "arm", *MEASURES, *(f"accuracy after {when}" for when in whens)]
    rows = [[*heads, "CPU ms per batch"]]
    for name, of in TASKS.items():
        for arm in compared(table, name):
            row = ["", arm]
            for what, (case, measure) in MEASURES.items():
                found = mean(values(table, f"partitions/{name}/{case}", arm, measure))
                ratio = over_shuffled(table, name, arm, what).factor()
                row.append(found.text(2, sign=False) if case == "noise" else ratio)
                if arm == "shuffled":
                    row[0] = f"{name} (n = {of.items // of.k * of.k:,}, k = {of.k})"
                    row[-1] = "1" if case == "noise" else f"{found.mean:.2g} = 1"
            for when in whens if "classes" in of.spread else ():
                scores = values(table, f"partitions/{name}/{when}", arm, "accuracy")
                row.append(mean(scores).text(sign=False))
            cost = np.median(values(table, f"partitions/{name}/10 epochs", arm, "ms per batch"))
            rows.append([*row, *[""] * (len(heads) - len(row)), f"{cost:.2g}"])
    return rows


TABLES = {"partitions": measures_table}
