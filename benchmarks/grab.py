"""GraB's own code on the tasks of docs/partitions.md, beside shuffling and our GraB-like order.

    pip install --no-deps grab-sampler==0.1.3 absl-py overrides
    python benchmarks/grab.py                # or name some tasks

Everything is as in `dmsgd reproduce partitions` (seeds, rates, lengths), with one more way.
Of grab-sampler its MeanBalance is run, the default, as its GraBSampler would: that class itself
calls torch's Sampler in a way that torch 2.13 refuses. torch-sparse, which the package imports for
random projections that MeanBalance does not make, gets a stand-in without content.
"""

from __future__ import annotations

import timing  # isort: skip  (sets the number of threads before NumPy is loaded)


import sys
from dataclasses import replace
from time import process_time
from types import SimpleNamespace

import numpy as np
import torch

from dmsgd.paper.intervals import show
from dmsgd.paper.partitions import run
from dmsgd.paper.partitions.arms import arms
from dmsgd.paper.partitions.claims import half
from dmsgd.paper.partitions.result import GRAB, SHUFFLED, TASKS, Config, ratio

PUBLIC = "GraB, grab-sampler 0.1.3"


class Public:
    """Epochs in the order of MeanBalance; as `dmsgd.paper.partitions.arms.GraB`.

    It is told the gradients of the last epoch batch by batch, each as it was when its batch was
    trained on, which is what it would have been told during that epoch.
    """

    def __init__(self, task, seed):
        self.task, self.seed, self.seconds, self.drawn = task, seed, 0.0, 0
        sys.modules.setdefault("torch_sparse", SimpleNamespace(SparseTensor=None))
        from grabsampler.sorter import MeanBalance

        torch.set_num_threads(1)
        torch.manual_seed(seed)
        weights = torch.from_numpy(task.start())
        self.sorter = MeanBalance(task.n, weights.numel(), dtype=weights.dtype, device="cpu")
        self.batches = None

    def epoch(self, number, errors):
        begun = process_time()
        if errors is not None:
            for batch in self.batches:
                gradients = self.task.A[batch][:, :, None] * errors[batch][:, None, :]
                self.sorter.step({"weights": torch.from_numpy(gradients)})
        if errors is not None or self.batches is None:
            self.sorter.reset_epoch()
            self.batches = self.sorter.orders.numpy().reshape(-1, self.task.k).copy()
        self.seconds += process_time() - begun
        self.drawn += len(self.batches)
        return self.batches

    def again(self):
        return Public(self.task, self.seed)


def compared(task):
    """Return the ways that are run here."""
    made = arms(task)
    return {**{name: made[name] for name in (SHUFFLED, GRAB)}, PUBLIC: lambda s: Public(task, s)}


def main():
    for name in sys.argv[1:] or TASKS:
        config = replace(Config(), tasks=(name,), workers=-1)
        result = run.run(config, run.load(config), ways=compared)
        for arm in (GRAB, PUBLIC):
            early, late = (ratio(result.logs(name, arm, "loss", at)) for at in (0, 1))
            of = result.arms(name)[arm]
            print(
                f"{name}, {arm}: a batch {show(of.variance[:, 1], 2, 1)}, "
                f"half an epoch {show(half(result, of), 2, 1)}, "
                f"loss after 1 epoch {early[0]:.3f} ({early[1]:.3f} to {early[2]:.3f}), "
                f"after 10 {late[0]:.4f} ({late[1]:.4f} to {late[2]:.4f}), "
                f"{timing.human(np.median(of.seconds))} a batch",
                flush=True,
            )


if __name__ == "__main__":
    main()
