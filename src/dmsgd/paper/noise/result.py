"""What is run on the noise of gradients, and what comes out."""

from __future__ import annotations

from dataclasses import dataclass

from dmsgd.inputs.arrays import FloatArray

TITLE = "Gradient variance when every item is seen equally often (uniform target)"


#: The problems; see `noise.problems`.
PROBLEMS = ("regression", "flowers", "digits")


@dataclass(frozen=True)
class Config:
    """What is run.

    problems:   of PROBLEMS.
    items, k:   drawn anew for every seed; the exact variance costs items² rank.
    steps:      of plain SGD after which gradients are taken.
    columns:    of the diabetes data, one regression for each, on `regression_items` of its 442.
    stretches:  RBF scales of the regression's kernels, as multiples of `suggest_scale`.
    directions: principal directions of the flowers' features in the kernel.
    rank:       leading eigenvectors that the digits' RBF kernels keep: 0.95 of the trace or more.
    ws:         label weights of the kernels of the two softmax problems.
    workers:    processes that share the seeds.
    """

    seeds: int = 5
    problems: tuple[str, ...] = PROBLEMS
    items: int = 1000
    k: int = 40
    steps: tuple[int, ...] = (0, 10, 100, 1000)
    columns: tuple[int, ...] = (1, 3, 10)
    regression_items: int = 400
    stretches: tuple[float, ...] = (1.0, 3.0)
    directions: int = 198
    rank: int = 300
    ws: tuple[float, ...] = (0.0, 0.5, 0.9, 0.95)
    workers: int = 1


QUICK = Config(
    seeds=2, items=300, k=20, steps=(0, 10, 100), columns=(1, 10), regression_items=200,
    stretches=(3.0,), directions=64, rank=120, ws=(0.0, 0.9),
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Outcome:
    """One kernel on one problem; arrays are (seeds, steps).

    prescribed: variance with the uniform target over that of plain SGD.
    given:      the same for the k-DPP as the kernel gives it and plain averages, which follow
                another gradient.
    reweighted: the same for the k-DPP as the kernel gives it and weights 1/(N b_i).
    same_b:     the same for its b without repulsion and these weights.
    worth:      the size of a uniform batch as noisy as a prescribed one of k.
    seen, likeness, strength: see `variance.Reasons`; of the prescribed k-DPP.
    spread:     largest over smallest b_i as the kernel gives it, (seeds,).
    """

    problem: str
    kernel: str
    prescribed: FloatArray
    given: FloatArray
    reweighted: FloatArray
    same_b: FloatArray
    worth: FloatArray
    seen: FloatArray
    likeness: FloatArray
    strength: FloatArray
    spread: FloatArray


@dataclass(frozen=True, eq=False)
class Result:
    """All kernels on all problems."""

    config: Config
    outcomes: tuple[Outcome, ...]
