"""The ways to batch the items of a task, one epoch after the other."""

from __future__ import annotations

from collections.abc import Callable
from time import process_time

import numpy as np

import dmsgd
from dmsgd.inputs.arrays import FloatArray, IntArray
from dmsgd.paper.partitions.result import GRAB, SHUFFLED, UNIFORM
from dmsgd.paper.partitions.tasks import Task


class Drawn:
    """Epochs of n // k batches from a design; `seconds` is the CPU time of drawing them."""

    def __init__(self, design: dmsgd.Design, seed: int) -> None:
        self.design, self.seed, self.seconds, self.drawn = design, seed, 0.0, 0
        self.count = design.n // design.k
        self.kept: dict[int, IntArray] = {}

    def epoch(self, number: int, errors: FloatArray | None) -> IntArray:
        """Return the batches of an epoch, whatever the errors of the last one were."""
        if number not in self.kept:
            begun = process_time()
            batches = self.design.sample(self.count, self.seed, start=number * self.count)
            self.seconds += process_time() - begun
            self.drawn += self.count
            self.kept[number] = batches
        return self.kept[number]

    def again(self) -> Drawn:
        """Return the same epochs from the first one on; they are kept."""
        return self


class GraB:
    """Epochs in an order that keeps the sums of centred gradients small, our own short version.

    After Lu, Guo and De Sa (2022): items take signs in turn so that the signed sum of their centred
    gradients stays small, and the next order is those with a plus, then those with a minus,
    backwards. Gradients are the last epoch's, each from when its batch was trained on, centred by
    their mean; the first epoch is shuffled.
    """

    def __init__(self, task: Task, seed: int) -> None:
        self.task, self.seed, self.seconds, self.drawn = task, seed, 0.0, 0
        self.order = np.random.default_rng([seed, 60]).permutation(task.n)

    def epoch(self, number: int, errors: FloatArray | None) -> IntArray:
        """Return the batches of an epoch, given the errors (n, classes) of the last one."""
        begun = process_time()
        if errors is not None:
            self.order = balanced(self.order, self.task.A, errors)
        batches = self.order.reshape(-1, self.task.k)
        self.seconds += process_time() - begun
        self.drawn += len(batches)
        return batches

    def again(self) -> GraB:
        """Return the epochs of the same first order, for another training."""
        return GraB(self.task, self.seed)


def balanced(order: IntArray, A: FloatArray, errors: FloatArray) -> IntArray:
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
    return np.array(front + back[::-1], dtype=np.int64)


#: What makes the epochs of a seed, and all ways to do so on a task, by name.
Arm = Callable[[int], Drawn | GraB]
Ways = Callable[[Task], dict[str, Arm]]


def arms(task: Task) -> dict[str, Arm]:
    """Return all ways by name; every item is as likely in each."""
    designs: dict[str, dmsgd.Design] = {
        SHUFFLED: dmsgd.Partition(dmsgd.Uniform(task.n, task.k)),
        UNIFORM: dmsgd.Uniform(task.n, task.k),
    }
    for name, design in task.kernels.items():
        designs[f"independent, k-DPP on {name}"] = design
    for name, design in task.kernels.items():
        designs[f"partition, k-DPP on {name}"] = dmsgd.Partition(design)
    for name, strata in task.strata.items():
        designs[f"{name} spread"] = dmsgd.Partition(dmsgd.Stratified(strata, task.k))
    name, strata = next(iter(task.strata.items()))
    designs[f"{name} spread, k-DPP on x"] = dmsgd.Partition(task.kernels["x"], labels=strata)
    made: dict[str, Arm] = {
        name: lambda seed, design=design: Drawn(design, seed)  # type: ignore[misc]
        for name, design in designs.items()
    }
    return made | {GRAB: lambda seed: GraB(task, seed)}
