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
from dmsgd.paper.models import softmax
from dmsgd.paper.protocol import Progress

if TYPE_CHECKING:
    from dmsgd.datasets import Flowers


def load(config: Config, data_dir: str | None = None) -> Flowers:
    """Return the features of Oxford-102."""
    from dmsgd import datasets

    return datasets.flowers(data_dir, config.features)


def run(config: Config, data: Flowers, progress: Progress | None = None) -> Result:
    """Return histograms, accuracy curves, times and noise; everything on one thread."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        task = make_task(config, data)
        kernels = Kernels(task)
        rate, decay = _tune(config, task)
        trials = [
            (method, k, number)
            for number, k in enumerate(config.ks)
            for method in methods(kernels, k, config.others, config.ws, config.unbiased)
        ]
        found = []
        for method, k, number in trials:
            of_method = [
                _trial(config, task, method, k, rate[number], decay[number], seed)
                for seed in range(config.seeds)
            ]
            found.append(_outcome(method.name, k, of_method))
            if progress is not None:
                progress(0.1 + 0.8 * len(found) / len(trials))
        return Result(
            config=config,
            sizes=np.bincount(task.y),
            rate=rate,
            decay=decay,
            shares=_shares(config, kernels),
            strata_gap=_strata_gap(kernels),
            refused=_refused(config, kernels),
            outcomes=tuple(found),
            balanced=_balanced(config, task, rate, decay) if config.balanced else (),
            noise=_noise(config, kernels, rate, decay) if config.noise_draws else (),
        )


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
    seed, chosen = 1000, []
    whole = np.isin(config.at(), np.arange(1, config.epochs + 1))
    grid = [(rate, decay) for rate in config.rates for decay in config.decays]
    for k in config.ks:
        checkpoints = steps_at(config.at(), task, k)
        batches = dmsgd.Uniform(task.y.size, k).sample(int(checkpoints[-1]), seed)
        scores = []
        for rate, decay in grid:
            rates = _rates(task, k, checkpoints, rate, decay)
            curve, _ = train(task, batches, checkpoints, rates, None, seed, task.valid)
            scores.append(curve[whole].mean())
        chosen.append(grid[int(np.argmax(scores))])
    rate, decay = np.array(chosen).T
    return rate, decay


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
    k, nearest = config.balanced_k, _nearest(config, config.balanced_k)
    gathered: dict[str, list[Trial]] = {}
    for seed in range(config.seeds):
        rng = np.random.default_rng([seed, 3])
        members = [np.flatnonzero(task.y == c) for c in np.unique(task.y)]
        items = np.concatenate([rng.permutation(m)[: config.balanced] for m in members])
        part = task.only(np.sort(items))
        for method in methods(Kernels(part), k, config.others, config.balanced_ws):
            done = _trial(config, part, method, k, rate[nearest], decay[nearest], seed)
            gathered.setdefault(method.name, []).append(done)
    return tuple(_outcome(name, k, trials) for name, trials in gathered.items())


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
    }
    found = []
    for name, design in designs.items():
        updates = [(name, None), (f"{name} unbiased", dmsgd.unbiased_weights(design))]
        for update, a in updates if name != "random" else updates[:1]:
            # Batches that the training above has not seen: those fit better than others.
            draws, seed = config.noise_draws, 2000
            found.append(measure(update, design, task.inputs, errors, a, draws, seed))
    return tuple(found)
