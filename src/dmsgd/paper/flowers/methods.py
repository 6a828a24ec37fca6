"""The ways to draw batches of labelled features, and one training with each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from time import process_time

import numpy as np

import dmsgd
from dmsgd.inputs.arrays import FloatArray, IntArray
from dmsgd.paper.flowers.training import Task, train
from dmsgd.paper.halves import SAME_B, UNIFORM_B
from dmsgd.paper.timing import timed
from dmsgd.paper.trials import run_trials


class Kernels:
    """The spectra of F = [(1-w)X, wH] by w, each made once and timed."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self._spectra: dict[float, tuple[dmsgd.Spectrum, float]] = {}
        self._uniform: dict[tuple[int, float], tuple[dmsgd.KDPP, float]] = {}

    def spectrum(self, w: float) -> tuple[dmsgd.Spectrum, float]:
        """Return the spectrum and the CPU seconds it took."""
        if w not in self._spectra:
            X, y = self.task.X, self.task.y
            self._spectra[w] = timed(lambda: dmsgd.exact(dmsgd.Linear(dmsgd.concat(X, y, w))))
        return self._spectra[w]

    def design(self, w: float, k: int) -> dmsgd.KDPP:
        """Return the k-DPP, or raise RankError where there is none."""
        return dmsgd.KDPP(self.spectrum(w)[0], k)

    def uniform(self, w: float, k: int) -> tuple[dmsgd.KDPP, float]:
        """Return the k-DPP with a uniform b that is closest to `design`, and its CPU seconds."""
        if (k, w) not in self._uniform:
            self.prescribe(((k, w),))
        return self._uniform[k, w]

    def prescribe(self, pairs: Sequence[tuple[int, float]], workers: int = 1) -> None:
        """Make the k-DPPs with a uniform b for pairs k, w: some dozens of spectra each."""
        jobs = [(self.task.X, self.task.y, w, k) for k, w in pairs]
        self._uniform |= dict(zip(pairs, run_trials(_uniform, jobs, None, workers), strict=True))

    def refusal(self, w: float, k: int) -> str:
        """Return why there is no k-DPP for w and k, or "" where there is one."""
        try:
            self.design(w, k)
        except dmsgd.RankError as error:
            return str(error)
        return ""


@dataclass(frozen=True)
class Method:
    """A way to train: how to build its design from a seed, and whether the update is unbiased.

    The design is None for shuffled epochs; `seconds` is what its kernel's spectrum took.
    """

    name: str
    build: Callable[[int], dmsgd.ClosedForm | None]
    seconds: float = 0.0
    unbiased: bool = False


def methods(
    kernels: Kernels,
    k: int,
    others: Sequence[str],
    ws: Sequence[float],
    unbiased_ws: Sequence[float] = (),
    halved_ws: Sequence[float] = (),
) -> Iterator[Method]:
    """Yield the `others` by name, then k-DPPs for ws, then for unbiased_ws with that update.

    Last come, for halved_ws, the two halves of the k-DPP: its b without repulsion, and repulsion
    with a uniform b.

    A k-DPP that does not exist (k above the kernel's rank: w = 1 and k above the number of classes)
    is left out; its substitute, drawing k items over the classes as evenly as can be, is the method
    "stratified".
    """
    X, y = kernels.task.X, kernels.task.y
    plain: dict[str, Callable[[int], dmsgd.ClosedForm | None]] = {
        "random": lambda seed: dmsgd.Uniform(y.size, k),
        "shuffled": lambda seed: None,
        "stratified": lambda seed: dmsgd.Stratified(y, k),
        "clustered": lambda seed: dmsgd.clustered(X, k, seed=seed),
    }
    for name in others:
        yield Method(name, plain[name])
    for unbiased, each in ((False, ws), (True, unbiased_ws)):
        for w in each:
            if not kernels.refusal(w, k):
                name = f"w={w:g} unbiased" if unbiased else f"w={w:g}"
                build = partial(_design, kernels.spectrum(w)[0], k)
                yield Method(name, build, kernels.spectrum(w)[1], unbiased)
    for w in halved_ws:
        same_b = kernels.design(w, k).without_repulsion()
        yield Method(f"w={w:g} {SAME_B}", partial(_given, same_b), kernels.spectrum(w)[1])
        uniform_b, seconds = kernels.uniform(w, k)
        yield Method(f"w={w:g} {UNIFORM_B}", partial(_given, uniform_b), seconds)


def _design(spectrum: dmsgd.Spectrum, k: int, seed: int) -> dmsgd.KDPP:
    return dmsgd.KDPP(spectrum, k)


def _uniform(X: FloatArray, y: IntArray, w: float, k: int) -> tuple[dmsgd.KDPP, float]:
    return timed(lambda: dmsgd.diversify(dmsgd.concat(X, y, w), k, target="uniform"))


def _given(design: dmsgd.ClosedForm, seed: int) -> dmsgd.ClosedForm:
    return design


def shuffled(n: int, k: int, steps: int, seed: int) -> IntArray:
    """Return batches that go through the data in a new random order every epoch."""
    rng, per_epoch = np.random.default_rng([seed, 2]), n // k
    epochs = -(-steps // per_epoch)
    order = [rng.permutation(n)[: per_epoch * k].reshape(per_epoch, k) for _ in range(epochs)]
    return np.concatenate(order)[:steps]


@dataclass(frozen=True, eq=False)
class Trial:
    """One training: accuracy at its checkpoints, and CPU seconds (sample and step: of one)."""

    accuracy: FloatArray
    setup: float
    sample: float
    step: float


def trial(
    task: Task, method: Method, k: int, checkpoints: IntArray, rates: FloatArray, seed: int
) -> Trial:
    """Return what one method does for one seed; `checkpoints` are numbers of steps."""
    steps = int(checkpoints[-1])
    begun = process_time()
    design = method.build(seed)
    if design is not None:
        design.sample(1, seed)  # the sampler's tables are made at the first call
    built = process_time()
    if design is None:
        batches = shuffled(task.y.size, k, steps, seed)
    else:
        batches = design.sample(steps, seed)
    sampled = process_time()
    weights = dmsgd.unbiased_weights(design) if method.unbiased and design is not None else None
    curve, training = train(task, batches, checkpoints, rates, weights, seed, task.test)
    setup = built - begun + method.seconds
    return Trial(curve, setup, (sampled - built) / steps, training / steps)
