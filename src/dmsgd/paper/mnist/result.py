"""What is run on MNIST, and what comes out."""

from __future__ import annotations

from dataclasses import dataclass

from dmsgd.inputs.arrays import FloatArray
from dmsgd.paper.halves import SAME_B, UNIFORM_B

TITLE = "MNIST with a CNN: balanced classes, batches of 10 and 200 (Figure 9)"


#: The methods; the last is trained on the batches of the one before.
UNBIASED = "k-DPP unbiased"
METHODS = ("random", "stratified", "clustered", SAME_B, UNIFORM_B, "k-DPP", UNBIASED)


@dataclass(frozen=True)
class Config:
    """What is run.

    ks, checkpoints: batch sizes, and for each the steps after which test accuracy is measured; the
                     last ends the run (here 1.7 and 5 passes over the data).
    items:           half of the training set, drawn once (the paper does not say which half).
    w:               weight of the labels, the paper's.
    rank:            of the pivoted Cholesky factor of the kernel: set-up stays under a minute.
                     The kernel's scale, which the paper does not state, is the median heuristic.
    rate, dropout:   Adam's rate and the dropout of the tutorial that the paper cites.
    device:          "cpu", "cuda", or "auto" for cuda where there is one. All trainings take some
                     minutes on a large GPU and most of a day on one CPU core.
    workers:         processes that share the trainings, also those on one GPU.
    """

    seeds: int = 10
    ks: tuple[int, ...] = (10, 200)
    checkpoints: tuple[tuple[int, ...], ...] = (
        (25, 50, 75, 100, 150, 200, 300, 400, 500, 750, 1000, 1500, 2000, 2500, 3000, 4000, 5000),
        (10, 20, 30, 40, 50, 60, 80, 100, 125, 150, 200, 250, 300, 400, 500, 625, 750),
    )
    items: int = 30000
    test_items: int = 10000
    w: float = 0.5
    rank: int = 2000
    rate: float = 1e-4
    dropout: float = 0.5
    device: str = "auto"
    workers: int = 1


QUICK = Config(
    seeds=2,
    ks=(10, 50),
    checkpoints=((10, 30), (3, 6)),
    items=3000,
    test_items=300,
    rank=500,
)


@dataclass(frozen=True, eq=False)
class Outcome:
    """What one method did with batches of k.

    shares:   (classes,) expected share of a batch by class, from `inclusion()`.
    accuracy: (seeds, checkpoints) on the test set.
    """

    k: int
    method: str
    shares: FloatArray
    accuracy: FloatArray


@dataclass(frozen=True, eq=False)
class Result:
    """All methods, the kernel's scale and rank, and the share of its trace the factor leaves out.

    largest_weight: by k, the largest weight of the unbiased update relative to the mean one.
    """

    config: Config
    scale: float
    rank: int
    trace_error: float
    largest_weight: FloatArray
    outcomes: tuple[Outcome, ...]

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods that were run, in their order."""
        return tuple(dict.fromkeys(outcome.method for outcome in self.outcomes))

    def accuracy(self, k: int, method: str) -> FloatArray:
        """Return test accuracy, shape (seeds, checkpoints)."""
        return next(o.accuracy for o in self.outcomes if (o.k, o.method) == (k, method))
