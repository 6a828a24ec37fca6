"""Lightning Fabric, with the loader set up by it, and the loader as it is."""

from functools import partial

import torch
from lightning.fabric import Fabric

from common import OUT, STEPS, WORLD, Items, design, numbers, run_cells
from dmsgd.torch import loader


def train(fabric, set_up, epochs, workers, accumulation, stop):
    def fresh():
        options = {"accumulation": accumulation, "steps": STEPS, "num_workers": workers}
        batches = loader(Items(), design(), **options)
        return fabric.setup_dataloaders(batches) if set_up else batches

    def go(batches, first):
        for _ in range(first, epochs):
            for x in batches:
                fabric.backward(model(x).sum())
                seen.append(numbers(x))
                if stop and len(seen) == stop * accumulation:
                    fabric.save(OUT / "middle.ckpt", {"batches": batches})
                    return

    layer, seen, batches = torch.nn.Linear(1, 1), [], fresh()
    model, _ = fabric.setup(layer, torch.optim.SGD(layer.parameters(), lr=1e-9))
    go(batches, 0)
    if stop:
        batches = fresh()
        fabric.load(OUT / "middle.ckpt", {"batches": batches})
        go(batches, stop // STEPS)
    return seen


def main():
    fabric = Fabric(accelerator="cpu", devices=WORLD, strategy="ddp" if WORLD > 1 else "auto")
    fabric.launch()
    rows = {
        "Fabric": partial(train, fabric, True),
        "Fabric, without `setup_dataloaders`": partial(train, fabric, False),
    }
    return {"rows": run_cells(rows)}
