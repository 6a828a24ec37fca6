"""Tables 1 and 4: what a batch costs beside the LDA update that uses it.

CPU time on one thread (run it with one worker): one draw of k of R8's 5,485 training documents, and
one update of scikit-learn's LDA with k documents, with the priors and rates of the experiment `r8`.
Most of an update is local inference, so its cost depends on when that stops: at convergence (at
most 100 iterations, scikit-learn's default), or as early as in `r8`, which is better for its
features. The paper does not say; both are here. Set-up (spectrum, cores, one draw to compile and
make tables) is paid once and listed apart.

The paper's fast sampler "with M = 100" can be read in two ways, and both are here: the coreset
approximation with 100 cores (Li, Jegelka, Sra, arXiv 1509.01618, where M is the number of cores),
and the swap chain of the article it cites (arXiv 1603.06052) with 100 steps per draw. The chain
with this package's default of 10 k steps per draw mixes better and costs more.

Python calls are part of both sides: 64 draws are made per call, as in training. A step of the table
is k, and a seed is a round of measurements.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np

import dmsgd
from dmsgd.samplers import reference
from experiments.core import Case, Claim, lines
from experiments.core.compare import values
from experiments.models.topics import Inference, topic_model
from experiments.r8.corpus import FULL, QUICK, SEARCHED, TINY, TOPICS, Corpus, Size, corpus

TITLE = "Tables 1 and 4: the cost of a batch beside an LDA update on Reuters R8"

#: The paper's batch sizes and milliseconds.
SIZES = (10, 30, 50, 80)
PAPER = {
    "fast k-DPP": (1, 13.9, 54.1, 219.9),
    "k-DPP": (9.8, 146.8, 643.8, 2669.8),
    "LDA update": (877.7, 1253, 1641.4, 2231.2),
}

#: When local inference stops -> its settings.
STOPS = {"converged": replace(SEARCHED, iterations=100), "stopped early": SEARCHED}
UPDATES = {f"LDA update, {stop}": inference for stop, inference in STOPS.items()}
EXACT, SUPPLEMENT = "k-DPP", "k-DPP, supplement's algorithm"
CORESET, CHAIN, DEFAULT_CHAIN = "coreset, 100 cores", "swap chain, 100 steps", "swap chain"
MILLISECONDS, SETUP = "milliseconds", "set-up seconds"

#: What is timed stands in for a design.
ARMS: dict[str, Any] = {
    arm: lambda task, seed, arm=arm: arm
    for arm in (SUPPLEMENT, EXACT, CORESET, CHAIN, DEFAULT_CHAIN, *UPDATES)
}

#: Draws of one chain: more than are made.
ENDLESS = 10**6


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """Return what `work` returns, and the CPU seconds it took."""
    begun = process_time()
    value = work()
    return value, process_time() - begun


@cache
def kernel(task: Corpus) -> Any:
    """Return the kernel of the experiment `r8`."""
    return dmsgd.kernels.Linear(dmsgd.features.anneal(task.tfidf, 0.1))


@cache
def spectrum(task: Corpus, cores: int = 0) -> tuple[Any, float]:
    """Return the exact spectrum, or that of a coreset, and the seconds it took."""
    make = partial(dmsgd.kernels.coreset, cores=cores) if cores else dmsgd.kernels.exact
    return timed(partial(make, kernel(task)))


@cache
def ready(task: Corpus, arm: str, k: int) -> tuple[Any, float]:
    """Return a sampler that has drawn once, and the seconds of its set-up."""
    make: Callable[..., Any]
    if arm in (CHAIN, DEFAULT_CHAIN):
        thin, before = 100 if arm == CHAIN else None, 0.0
        make = partial(dmsgd.designs.SwapChain, kernel(task), k, thin=thin, chain_length=ENDLESS)
    else:
        found, before = spectrum(task, 100 if arm == CORESET else 0)
        make = partial(dmsgd.KDPP, found, k)
    if arm == SUPPLEMENT:
        make = partial(make, sampler=reference)
    make().sample(1, seed=0)  # compiles
    design, seconds = timed(make)
    return design, before + seconds + timed(partial(design.sample, 1, seed=0))[1]


def run(
    task: Corpus, arm: str, seed: int, rate: float, draws: int, updates: int
) -> Iterator[tuple[int, str, float]]:
    """Yield the milliseconds of an update, or of a draw, with those of its set-up."""
    for k in SIZES:
        if arm in UPDATES:
            yield k, MILLISECONDS, update(task, UPDATES[arm], k, seed, updates)
            continue
        design, seconds = ready(task, arm, k)
        size = 2 if arm == SUPPLEMENT else draws
        design.sample(1, seed=0, start=seed * size)  # a chain goes on from there
        spent = timed(partial(design.sample, size, seed=0, start=1 + seed * size))[1]
        yield k, MILLISECONDS, 1000 * spent / size
        yield k, SETUP, seconds
        if arm == EXACT:
            for stop, inference in STOPS.items():
                beside = update(task, inference, k, seed, updates)
                yield k, f"% of an update, {stop}", 100 * 1000 * spent / size / beside


def update(task: Corpus, inference: Inference, k: int, seed: int, updates: int) -> float:
    """Return the median milliseconds of one LDA update, after three that are not counted."""
    design = dmsgd.Uniform(task.counts.shape[0], k)
    model = topic_model(design, TOPICS, inference, seed)
    batches = design.sample(3 + updates, seed)
    times = [timed(partial(model.partial_fit, task.counts[batch]))[1] for batch in batches]
    return 1000 * float(np.median(times[3:]))


def made(size: Size, rounds: int, draws: int, updates: int) -> list[Case]:
    """Return all samplers and both updates."""
    loop = partial(run, draws=draws, updates=updates)
    return [Case("r8_cost", lambda seed: corpus(size), ARMS, loop, rounds)]


def cases(quick: bool = False) -> list[Case]:
    """Return five rounds on all documents, or two on 2,000 of them."""
    return made(QUICK, 2, 64, 5) if quick else made(FULL, 5, 64, 10)


def tiny() -> list[Case]:
    """Return the same on generated documents."""
    return made(TINY, 2, 2, 1)


#: The paper's percentages at SIZES.
SHARES = ("0.114", "1.097", "3.191", "8.971")
CLAIMS = [
    Claim("Table 1", f"a batch of {k} costs less than 2 % of an LDA update, {stop}", "r8_cost",
          EXACT, f"% of an update, {stop}", limit=2.0, step=k, lower=True, paper=paper, digits=2,
          note="converged: scikit-learn's default; stopped early: as in `r8`. Ours is exact and "
          "of the update alone, the paper's approximate and of draw and update together; the bound "
          "is ours")
    for stop in STOPS
    for k, paper in zip(SIZES, SHARES, strict=True)
]  # fmt: skip


def cost_table(table: Any) -> list[list[str]]:
    """Return medians over rounds beside the paper's, in milliseconds, and set-up in seconds."""

    def medians(arm: str, measure: str = MILLISECONDS) -> np.ndarray:
        return np.array([np.median(values(table, "r8_cost", arm, measure, k)) for k in SIZES])

    def shown(numbers: Any) -> list[str]:
        return [f"{float(f'{number:.3g}'):g}" for number in numbers]

    paper = {EXACT: "k-DPP", SUPPLEMENT: "k-DPP", CORESET: "fast k-DPP", CHAIN: "fast k-DPP"}
    paper |= dict.fromkeys(UPDATES, "LDA update")
    rows = [["milliseconds (the paper's)", *(f"k = {k}" for k in SIZES)]]
    for arm in ARMS:
        theirs = [f" ({each:g})" for each in PAPER[paper[arm]]] if arm in paper else [""] * 4
        both = zip(shown(medians(arm)), theirs, strict=True)
        rows.append([arm, *(own + other for own, other in both)])
    times = medians(SUPPLEMENT) / medians(EXACT)
    rows.append(["supplement's algorithm over k-DPP", *(f"{each:.0f}x" for each in times)])
    rows.append(["set-up of the k-DPP, seconds", *shown(medians(EXACT, SETUP))])
    return rows


TABLES = {"r8-cost": cost_table}


def figures(table: Any, folder: Path) -> list[Path]:
    """Write milliseconds of a draw and of an update over k."""
    return [
        lines(table, folder / "r8-cost.png", {"Reuters R8": "r8_cost"}, list(ARMS), MILLISECONDS,
              "milliseconds (CPU, one thread)", "batch size k", log="y")
    ]  # fmt: skip
