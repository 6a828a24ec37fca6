"""Features that change all the time: a new design and loader per epoch do not leak memory.

python tests/soak/loaders.py [--loaders 300] [--steps 300] [--n 2000]
"""

from __future__ import annotations

import numpy as np
import torch
from torch.utils.data import TensorDataset
from watch import Memory, Progress, announce, finish, options

import dmsgd
import dmsgd.torch

K, D = 16, 64


def main(arguments=None):
    given = options(arguments, loaders=300, steps=300, n=2000)
    announce(f"{given.loaders} loaders, one every {given.steps} steps", "1 to 3 minutes by default")
    torch.set_num_threads(1)
    rng = np.random.default_rng(0)

    def features():
        return rng.normal(size=(given.n, D))

    dataset = TensorDataset(torch.arange(given.n))
    dmsgd.diversify(features(), K).sample(10_000, seed=0)  # loads the compiled loops
    watched, failures = Memory(), []
    progress = Progress(given.loaders, "loaders")
    for epoch in range(given.loaders):
        design = dmsgd.diversify(features(), K, normalize=True, kernel="linear")
        loader = dmsgd.torch.loader(dataset, design, steps=given.steps, seed=epoch)
        items = torch.stack([batch for (batch,) in loader]).numpy()
        drawn = design.sample(given.steps, seed=epoch)
        if not np.array_equal(items, drawn):
            failures.append(f"epoch {epoch} is not of the features that it was given")
        if epoch >= given.loaders // 5:  # after warm-up
            watched.look()
        progress.show(epoch + 1)
    if not watched.flat:
        failures.append("memory grows")
    finish("loaders", failures, f"{given.loaders} x {given.steps} steps, n={given.n}; {watched}")


if __name__ == "__main__":
    main()
