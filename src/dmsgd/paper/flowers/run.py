"""Class shares, accuracy curves, times and the noise of gradients on Oxford-102."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

import dmsgd
from dmsgd.inputs.arrays import FloatArray, IntArray
from dmsgd.paper.flowers.gradient_noise import measure
from dmsgd.paper.flowers.methods import Kernels, Method, Trial, methods, trial
from dmsgd.paper.flowers.result import Config, Noise, Outcome, Result
from dmsgd.paper.flowers.training import Task, make_task, start, steps_at, train
from dmsgd.paper.halves import SAME_B
from dmsgd.paper.models import softmax
from dmsgd.paper.protocol import Progress
from dmsgd.paper.trials import run_trials

if TYPE_CHECKING:
    from dmsgd.datasets import Flowers


def load(config: Config, data_dir: str | None = None) -> Flowers:
    """Return the features of Oxford-102."""
    from dmsgd import datasets

    return datasets.flowers(data_dir, config.features)


def run(config: Config, data: Flowers, progress: Progress | None = None) -> Result:
    """Return histograms, accuracy curves, times and noise; every training on one thread."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        task = make_task(config, data)
        kernels = Kernels(task)
        rate, decay = _tune(config, task)
        kernels.prescribe(config.halves, config.workers)
        trials = [
            (config, task, method, k, rate[number], decay[number], seed)
            for number, k in enumerate(config.ks)
            for method in methods(
                kernels, k, config.others, config.ws, config.unbiased, _halved(config, k)
            )
            for seed in range(config.seeds)
        ]
        found = run_trials(_trial, trials, _part(progress, 0.1, 0.9), config.workers)
        firsts = range(0, len(trials), config.seeds)
        return Result(
            config=config,
            sizes=np.bincount(task.y),
            rate=rate,
            decay=decay,
            shares=_shares(config, kernels),
            strata_gap=_strata_gap(kernels),
            refused=_refused(config, kernels),
            outcomes=tuple(
                _outcome(trials[at][2].name, trials[at][3], found[at : at + config.seeds])
                for at in firsts
            ),
            balanced=_balanced(config, task, rate, decay) if config.balanced else (),
            noise=_noise(config, kernels, rate, decay) if config.noise_draws else (),
        )


def _halved(config: Config, k: int) -> tuple[float, ...]:
    """Return the w whose k-DPP is trained in halves at k."""
    return tuple(w for each, w in config.halves if each == k)


def _part(progress: Progress | None, first: float, last: float) -> Progress | None:
    """Return what tells a part of the work as a share of the whole."""
    if progress is None:
        return None
    return lambda done: progress(first + (last - first) * done)


def _trial(
    config: Config, task: Task, method: Method, k: int, rate: float, decay: float, seed: int
) -> Trial:
    checkpoints = steps_at(config.at(), task, k)
    return trial(task, method, k, checkpoints, _rates(task, k, checkpoints, rate, decay), seed)


def _outcome(name: str, k: int, trials: list[Trial]) -> Outcome:
    # The median: on a shared machine a mean is mostly other people's load.
    times = [(each.setup, each.sample, each.step) for each in trials]
    setup, sample, step = np.median(times, axis=0)
    accuracy = np.array([each.accuracy for each in trials])
    return Outcome(k, name, accuracy, float(setup), float(sample), float(step))


def _rates(task: Task, k: int, checkpoints: IntArray, rate: float, decay: float) -> FloatArray:
    """Return the rate of every step, rate / (1 + decay epoch)."""
    epoch = np.arange(checkpoints[-1]) * k / task.y.size
    return np.asarray(rate / (1 + decay * epoch))


def _tune(config: Config, task: Task) -> tuple[FloatArray, FloatArray]:
    """Return rate and decay for each k: the best for random batches on the validation part.

    Best is the highest mean over whole epochs, on one seed that no reported run uses.
    """
    grid = [(rate, decay) for rate in config.rates for decay in config.decays]
    jobs = [(config, task, k, *pair) for k in config.ks for pair in grid]
    scores = np.array(run_trials(_score, jobs, None, config.workers)).reshape(-1, len(grid))
    rate, decay = np.array([grid[best] for best in scores.argmax(axis=1)]).T
    return rate, decay


def _score(config: Config, task: Task, k: int, rate: float, decay: float) -> float:
    """Return the mean validation accuracy of random batches over whole epochs."""
    seed, checkpoints = 1000, steps_at(config.at(), task, k)
    batches = dmsgd.Uniform(task.y.size, k).sample(int(checkpoints[-1]), seed)
    rates = _rates(task, k, checkpoints, rate, decay)
    curve, _ = train(task, batches, checkpoints, rates, None, seed, task.valid)
    return float(curve[np.isin(config.at(), np.arange(1, config.epochs + 1))].mean())


def _nearest(config: Config, k: int) -> int:
    """Return which of `ks` is nearest to k: its schedule is used."""
    return int(np.argmin(np.abs(np.array(config.ks) - k)))


def _shares(config: Config, kernels: Kernels) -> dict[str, FloatArray]:
    y = kernels.task.y
    return {
        f"k={k} w={w:g}": np.bincount(y, kernels.design(w, k).inclusion()) / k
        for k, w in config.histograms
        if not kernels.refusal(w, k)
    }


def _strata_gap(kernels: Kernels) -> float:
    y = kernels.task.y
    k = np.unique(y).size
    ours, stratified = kernels.design(1.0, k).inclusion(), dmsgd.Stratified(y, k).inclusion()
    return float(np.abs(ours - stratified).max())


def _refused(config: Config, kernels: Kernels) -> dict[str, str]:
    pairs = [(k, w) for k in config.ks for w in config.ws]
    reasons = {f"k={k} w={w:g}": kernels.refusal(w, k) for k, w in pairs}
    return {name: reason for name, reason in reasons.items() if reason}


def _balanced(
    config: Config, task: Task, rate: FloatArray, decay: FloatArray
) -> tuple[Outcome, ...]:
    """Return the methods on `balanced` items of each class, drawn anew for every seed."""
    nearest = _nearest(config, config.balanced_k)
    jobs = [(config, task, rate[nearest], decay[nearest], seed) for seed in range(config.seeds)]
    found = run_trials(_balanced_trials, jobs, workers=config.workers)
    return tuple(
        _outcome(name, config.balanced_k, [trials[name] for trials in found]) for name in found[0]
    )


def _balanced_trials(
    config: Config, task: Task, rate: float, decay: float, seed: int
) -> dict[str, Trial]:
    """Return what every method does on the balanced items of a seed."""
    rng, k = np.random.default_rng([seed, 3]), config.balanced_k
    members = [np.flatnonzero(task.y == c) for c in np.unique(task.y)]
    items = np.concatenate([rng.permutation(m)[: config.balanced] for m in members])
    part = task.only(np.sort(items))
    ws = config.balanced_ws
    every = methods(Kernels(part), k, config.others, ws, halved_ws=ws[-1:] if config.halves else ())
    return {method.name: _trial(config, part, method, k, rate, decay, seed) for method in every}


def _noise(
    config: Config, kernels: Kernels, rate: FloatArray, decay: FloatArray
) -> tuple[Noise, ...]:
    """Return the noise of every design's gradients along one training with random batches."""
    task, k = kernels.task, config.noise_k
    nearest = _nearest(config, k)
    steps = np.rint(np.array(config.noise_epochs) * task.y.size / k).astype(np.int64)
    batches = dmsgd.Uniform(task.y.size, k).sample(int(steps[-1]), 0)
    rates = _rates(task, k, steps, rate[nearest], decay[nearest])
    weights, first, errors = start(task, 0), 0, []
    for last in steps:
        weights = softmax.train(
            weights, task.inputs, task.targets, batches[first:last], rates[first:last]
        )
        errors.append(softmax.probabilities(weights, task.inputs) - task.targets)
        first = last
    designs: dict[str, dmsgd.ClosedForm] = {
        "random": dmsgd.Uniform(task.y.size, k),
        "stratified": dmsgd.Stratified(task.y, k),
        "clustered": dmsgd.clustered(task.X, k),
        **{f"w={w:g}": kernels.design(w, k) for w in config.noise_ws},
        **{f"w={w:g} {SAME_B}": kernels.design(w, k).without_repulsion() for w in config.noise_ws},
    }
    found = []
    for name, design in designs.items():
        updates = [(name, None), (f"{name} unbiased", dmsgd.unbiased_weights(design))]
        for update, a in updates if name != "random" else updates[:1]:
            # Batches that the training above has not seen: those fit better than others.
            draws, seed = config.noise_draws, 2000
            found.append(measure(update, design, task.inputs, errors, a, draws, seed))
    return tuple(found)
