"""The paper's Figures 7, 8 and 11: softmax regression on Oxford-102, made long-tailed.

Training uses the official 'test' part (6149 images, 20 to 238 a class), testing the official
'train' part (10 a class, so that accuracy is balanced accuracy), tuning the official 'valid' part.
The kernel is L = FFᵀ with F = [(1-w)X, wH] and X of unit rows: the paper does not state the scale
of X, and w means nothing unless rows of X and of H are of similar length.

Within a seed all methods share the random start. The learning rate is the same for all methods at
a given k: the one of a small grid that gives *random* batches the best validation accuracy,
averaged over the epochs. Beyond the paper: shuffled epochs and pre-clustering as baselines,
unbiased updates, seconds to an accuracy, the noise of gradients, and balanced classes.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import dmsgd
from dmsgd.experiments import flowers_figures, flowers_findings, softmax
from dmsgd.experiments.flowers_methods import (
    Kernels,
    Method,
    Task,
    Trial,
    methods,
    start,
    train,
    trial,
)
from dmsgd.experiments.protocol import Claim, Progress
from dmsgd.experiments.softmax_noise import Noise, measure
from dmsgd.inputs.arrays import FloatArray, IntArray

if TYPE_CHECKING:
    from dmsgd.datasets import Flowers

TITLE = "Oxford-102 flowers with a softmax: class balance and accuracy (Figures 7, 8 and 11)"


@dataclass(frozen=True)
class Config:
    """What is run.

    features:       "efficientnet" or "vgg19" (substitutes for the paper's VGG16 fc1).
    ks, ws:         batch sizes and label weights, the paper's; `unbiased` are the w that are also
                    trained with the unbiased update. `others` are the methods without a kernel.
    epochs, early:  passes over the data, and at which fractions accuracy is measured besides.
    length:         rows of the classifier's input have this length, near that of the raw features;
                    it sets how fast weights learn compared with the bias.
    centre:         subtract the mean from the classifier's input (never from the kernel's); the
                    paper does not, but random batches learn faster so.
    rates, decays:  the grid for the rate at epoch e, rate / (1 + decay e).
    targets:        accuracies for which the seconds to reach them are counted.
    histograms:     pairs k, w whose class shares are shown.
    balanced:       items per class of the null case, at batch size `balanced_k` (0: left out).
                    Its schedule is that of the nearest k.
    noise_k, noise_ws, noise_epochs, noise_draws: where the noise of gradients is measured, along
                    training with random batches (noise_draws = 0: left out).
    """

    features: str = "efficientnet"
    seeds: int = 5
    ks: tuple[int, ...] = (50, 80, 102, 150)
    ws: tuple[float, ...] = (0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0)
    unbiased: tuple[float, ...] = (0.9, 0.0)
    others: tuple[str, ...] = ("random", "shuffled", "stratified", "clustered")
    epochs: int = 20
    early: tuple[float, ...] = (0.1, 0.2, 0.3, 0.5, 0.75, 1.5, 2.5)
    length: float = 10.0
    centre: bool = False
    rates: tuple[float, ...] = (0.3, 1.0, 3.0, 10.0)
    decays: tuple[float, ...] = (0.0, 0.1)
    targets: tuple[float, ...] = (0.8, 0.85)
    histograms: tuple[tuple[int, float], ...] = (
        *((50, w) for w in (0.3, 0.9)),
        *((102, w) for w in (0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0)),
    )
    balanced: int = 20
    balanced_k: int = 102
    balanced_ws: tuple[float, ...] = (0.0, 0.9)
    noise_k: int = 102
    noise_ws: tuple[float, ...] = (0.0, 0.5, 0.9)
    noise_epochs: tuple[float, ...] = (0.0, 0.1, 1.0, 5.0)
    noise_draws: int = 1000

    def at(self) -> FloatArray:
        """Return the epochs at which accuracy is measured, in order."""
        whole = range(1, self.epochs + 1)
        return np.array(sorted({*self.early, *map(float, whole)}))


QUICK = Config(
    seeds=2,
    ks=(102,),
    ws=(0.5, 0.9),
    unbiased=(0.9,),
    epochs=3,
    rates=(1.0, 3.0),
    decays=(0.0,),
    noise_ws=(0.9,),
    noise_draws=100,
    histograms=((102, 0.0), (102, 0.9), (102, 1.0)),
)


@dataclass(frozen=True, eq=False)
class Outcome:
    """What one method did with batches of k.

    accuracy: (seeds, checkpoints) on the balanced test set.
    setup, sample, step: CPU seconds to build the design, to draw a batch, to make an update.
    """

    k: int
    method: str
    accuracy: FloatArray
    setup: float
    sample: float
    step: float


@dataclass(frozen=True, eq=False)
class Result:
    """All that was measured.

    sizes:      items per class in training, in the order of the classes.
    rate, decay: the chosen schedule for each k.
    shares:     expected share of a batch by class, for "k=50 w=0.3" and so on.
    strata_gap: largest |b_i - b_i'| between w = 1, k = classes and stratified sampling.
    refused:    for "k=150 w=1" and its like, why there is no such k-DPP.
    balanced:   the null case, equal numbers of items per class.
    noise:      of gradients, at `noise_epochs`.
    """

    config: Config
    sizes: IntArray
    rate: FloatArray
    decay: FloatArray
    shares: dict[str, FloatArray]
    strata_gap: float
    refused: dict[str, str]
    outcomes: tuple[Outcome, ...]
    balanced: tuple[Outcome, ...]
    noise: tuple[Noise, ...]

    def outcome(self, k: int, method: str) -> Outcome:
        """Return what a method did with batches of k."""
        return next(o for o in self.outcomes if (o.k, o.method) == (k, method))

    def accuracy(self, k: int, method: str, epoch: float | None = None) -> FloatArray:
        """Return accuracy after `epoch` (by default the last), one value per seed."""
        at = self.config.at()
        column = -1 if epoch is None else int(np.argmin(np.abs(at - epoch)))
        return self.outcome(k, method).accuracy[:, column]


def load(config: Config, data_dir: str | None = None) -> Flowers:
    """Return the features of Oxford-102."""
    from dmsgd import datasets

    return datasets.flowers(data_dir, config.features)


def run(config: Config, data: Flowers, progress: Progress | None = None) -> Result:
    """Return histograms, accuracy curves, times and noise; everything on one thread."""
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

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


def make_task(config: Config, data: Flowers) -> Task:
    """Return the swapped split, kernel features of unit rows and the classifier's inputs."""
    X = np.asarray(dmsgd.normalize(data.X))
    train, test, valid = (data.split == part for part in ("test", "train", "valid"))
    inputs = config.length * X
    if config.centre:
        inputs -= inputs[train].mean(axis=0)
    inputs = inputs.astype(np.float32)
    y = data.y
    targets = np.eye(int(y.max()) + 1, dtype=np.float32)[y[train]]
    return Task(
        X[train], y[train], inputs[train], targets,
        (inputs[test], y[test]), (inputs[valid], y[valid]),
    )  # fmt: skip


def _trial(
    config: Config, task: Task, method: Method, k: int, rate: float, decay: float, seed: int
) -> Trial:
    checkpoints = _steps(config, task, k)
    return trial(task, method, k, checkpoints, _rates(task, k, checkpoints, rate, decay), seed)


def _outcome(name: str, k: int, trials: list[Trial]) -> Outcome:
    # The median: on a shared machine a mean is mostly other people's load.
    times = [(each.setup, each.sample, each.step) for each in trials]
    setup, sample, step = np.median(times, axis=0)
    accuracy = np.array([each.accuracy for each in trials])
    return Outcome(k, name, accuracy, float(setup), float(sample), float(step))


def _steps(config: Config, task: Task, k: int) -> IntArray:
    """Return the numbers of steps at which accuracy is measured."""
    return np.maximum(1, np.rint(config.at() * task.y.size / k)).astype(np.int64)


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
        checkpoints = _steps(config, task, k)
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
    designs: dict[str, dmsgd.Design] = {
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


def claims(result: Result) -> list[Claim]:
    """Return the paper's statements and our findings."""
    return flowers_findings.claims(result)


def plot(result: Result, folder: Path) -> list[Path]:
    """Write class shares, accuracy curves, gains over random and the noise of gradients."""
    return flowers_figures.plot(result, folder)
