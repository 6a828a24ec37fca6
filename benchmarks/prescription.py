"""What a prescribed target costs: evaluations of b, and time as a multiple of one set-up.

    python benchmarks/prescription.py              # all problems (R8 takes minutes)
    python benchmarks/prescription.py flowers      # those whose name contains a word

A set-up is what any k-DPP over the same features needs: `exact` and the tables of the sampler.
"""

from __future__ import annotations

import timing  # isort: skip

import sys
import time

import numpy as np
import problems
from rich.console import Console
from rich.table import Table

import dmsgd
from experiments import datasets

#: Evaluations of b(θ) so far.
COUNT = [0]


def count():
    original = dmsgd.targets.Tilted.inclusion

    def call(tilted, theta):
        COUNT[0] += 1
        return original(tilted, theta)

    dmsgd.targets.Tilted.inclusion = call


def generated():
    y = np.random.default_rng(1).choice(20, 1_000_000, p=(p := 0.8 ** np.arange(20)) / p.sum())
    return problems.gaussian(1_000_000, 64), y


def mnist():
    images = datasets.mnist()
    X = dmsgd.features.normalize(images.x_train[:30_000].reshape(30_000, -1))
    return X, images.y_train[:30_000]


def r8():
    return problems.r8(), datasets.r8().y_train


#: Name -> (features and labels, k).
PROBLEMS = {
    "flowers, 256 directions": (lambda: problems.flowers(256), 64),
    "flowers": (problems.flowers, 64),
    "generated": (generated, 32),
    "MNIST half": (mnist, 100),
    "R8": (r8, 80),
}


def measure(F, k, target):
    """Return (evaluations, seconds to prescribe, seconds of a set-up, relative error)."""
    kernel = dmsgd.kernels.Linear(F)
    COUNT[0] = 0
    began = time.process_time()
    tilted = dmsgd.targets.prescribe(kernel, k, target)
    seconds = time.process_time() - began
    began = time.process_time()
    design = dmsgd.KDPP(tilted, k)
    design.sample(1, seed=0)
    setup = time.process_time() - began
    b = k * target / target.sum()
    return COUNT[0], seconds, setup, np.abs(design.inclusion() / b - 1).max()


def main():
    count()
    console = Console(width=130)
    table = Table(title="Prescribed inclusion probabilities, tol 1e-6: CPU time, one thread")
    for name in ("data", "N", "d", "k", "target", "steps", "set-up", "prescribe", "set-ups",
                 "largest error"):  # fmt: skip
        table.add_column(name, justify="left" if name in ("data", "target") else "right")
    wanted = sys.argv[1:]
    for name, (load, k) in PROBLEMS.items():
        if wanted and not any(word in name for word in wanted):
            continue
        F, y = load()
        dmsgd.diversify(np.eye(20), 3).sample(1)  # compile
        targets = {"uniform": np.full(y.size, k / y.size), "balanced": None}
        for label, target in targets.items():
            if target is None:
                size = k if np.bincount(y).min() > k / np.unique(y).size else 40
                target = (size / np.unique(y).size / np.bincount(y))[y]
            steps, seconds, setup, error = measure(F, round(target.sum()), target)
            table.add_row(
                name, f"{F.shape[0]:,}", f"{F.shape[1]:,}", f"{target.sum():.0f}", label,
                str(steps), timing.human(setup), timing.human(seconds), f"{seconds / setup:.1f}",
                f"{error:.1e}",
            )  # fmt: skip
    console.print(table)


if __name__ == "__main__":
    main()
