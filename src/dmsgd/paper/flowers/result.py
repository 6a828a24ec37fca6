"""What is run on Oxford-102, and what comes out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dmsgd.inputs.arrays import FloatArray, IntArray

TITLE = "Oxford-102 flowers with a softmax: class balance and accuracy (Figures 7, 8 and 11)"


@dataclass(frozen=True)
class Config:
    """What is run.

    features:       "efficientnet" or "vgg19" (substitutes for the paper's VGG16 fc1).
    ks, ws:         batch sizes and label weights, the paper's; `unbiased` are the w that are also
                    trained with the unbiased update. `others` are the methods without a kernel.
    halves:         pairs k, w whose k-DPP is also trained in halves: the same b without repulsion,
                    and repulsion with a uniform b.
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
    workers:        processes that share the trainings.
    """

    features: str = "efficientnet"
    seeds: int = 20
    ks: tuple[int, ...] = (50, 80, 102, 150)
    ws: tuple[float, ...] = (0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0)
    unbiased: tuple[float, ...] = (0.9, 0.0)
    others: tuple[str, ...] = ("random", "shuffled", "stratified", "clustered")
    halves: tuple[tuple[int, float], ...] = (
        (50, 0.9), (80, 0.9), (102, 0.5), (102, 0.9), (150, 0.9),
    )  # fmt: skip
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
    workers: int = 1

    def at(self) -> FloatArray:
        """Return the epochs at which accuracy is measured, in order."""
        whole = range(1, self.epochs + 1)
        return np.array(sorted({*self.early, *map(float, whole)}))


QUICK = Config(
    seeds=2,
    ks=(102,),
    ws=(0.5, 0.9),
    unbiased=(0.9,),
    halves=((102, 0.9),),
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
class Noise:
    """Tr Cov of a design's batch gradient at several points of training, and its baselines.

    variance, error: of the design, from draws, and the standard error.
    independent:     the first term of the paper's theorem: independent inclusion with the same b_i.
                     The theorem's second term is variance - independent.
    uniform:         plain SGD: the mean gradient of k items drawn without replacement.
    signal:          |E g|², to compare with.
    """

    k: int
    method: str
    variance: FloatArray
    error: FloatArray
    independent: FloatArray
    uniform: FloatArray
    signal: FloatArray


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


def imbalance(shares: FloatArray) -> float:
    """Return the total variation between class shares and equal shares; 0 is balanced."""
    return float(0.5 * np.abs(shares / shares.sum() - 1 / shares.size).sum())


def kernel_methods(result: Result, k: int) -> list[str]:
    """Return the k-DPPs that were trained at k as they are, by name."""
    names = [outcome.method for outcome in result.outcomes if outcome.k == k]
    return [name for name in names if is_kernel(name)]


def is_kernel(name: str) -> bool:
    """Return whether a method is a k-DPP as it is: neither unbiased nor one of its halves."""
    return name.startswith("w=") and " " not in name
