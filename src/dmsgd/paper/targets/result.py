"""What is run on long-tailed classes, and what comes out."""

from __future__ import annotations

from dataclasses import dataclass

from dmsgd.inputs.arrays import FloatArray, IntArray
from dmsgd.paper.longtail import result as longtail

TITLE = "Long-tailed classes: balanced targets against mixing, strata and weighted losses"


@dataclass(frozen=True)
class Config:
    """What is run.

    tasks:       of "flowers" and "digits".
    k, digits_k: batch sizes; 102 is one item a class, the digits' is that of `longtail`.
    directions:  principal directions of the flowers' features in the kernel (the classifier sees
                 all): set-up is seconds.
    epochs:      at which accuracy is measured; the first is early, the last is late.
    rates:       on flowers the one that serves uniform batches best on the validation part.
    digits_rate: that of `longtail`.
    workers:     processes that share the trainings.
    """

    seeds: int = 20
    tasks: tuple[str, ...] = ("flowers", "digits")
    k: int = 102
    digits_k: int = longtail.Config.k
    directions: int = 256
    epochs: tuple[float, ...] = (1, 2, 3, 5, 10, 15)
    rates: tuple[float, ...] = (1.0, 3.0, 10.0)
    digits_rate: float = longtail.Config.rate
    digits_epochs: tuple[float, ...] = (1, 2, 5, 10, 20, 40)
    workers: int = 1


QUICK = Config(
    seeds=2, directions=128, epochs=(1, 3), rates=(1.0,), digits_epochs=(1, 5, 20)
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Outcome:
    """What one method did: accuracy (seeds, epochs), and the expected class shares of a batch.

    shares: (classes,), classes from the commonest to the rarest; mean over seeds.
    """

    task: str
    method: str
    accuracy: FloatArray
    shares: FloatArray


@dataclass(frozen=True, eq=False)
class Regime:
    """How one way to use a k-DPP treats each item, on the long-tailed digits of the first seed.

    seen:   n b_i / k, how often an item is in a batch, 1 on average.
    weight: n b_i a_i, its share of the expected update, times n; 1 for all is plain SGD's.
    noise:  variance of the batch gradient over that of uniform batches weighted so that they follow
            the same gradient; at the start of training, and after it.
    """

    name: str
    seen: FloatArray
    weight: FloatArray
    noise: FloatArray


@dataclass(frozen=True, eq=False)
class Result:
    """All methods on all tasks.

    rate:   chosen for the flowers (nan if they were left out).
    sizes:  by task, items per class in training, from the commonest.
    labels: classes of the items in `regimes`, 0 for the commonest.
    """

    config: Config
    rate: float
    sizes: dict[str, IntArray]
    outcomes: tuple[Outcome, ...]
    labels: IntArray
    regimes: tuple[Regime, ...]

    def methods(self, task: str) -> tuple[str, ...]:
        """Return the methods that were run on a task, in their order."""
        return tuple(each.method for each in self.outcomes if each.task == task)

    def accuracy(self, task: str, method: str, late: bool = True) -> FloatArray:
        """Return the last (or the first) accuracy of a method, one value per seed."""
        found = next(o for o in self.outcomes if (o.task, o.method) == (task, method))
        return found.accuracy[:, -1 if late else 0]
