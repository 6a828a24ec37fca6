"""Accelerate with gradient accumulation: one draw per optimiser step, over processes and passes.

    accelerate launch --cpu --num_processes 2 examples/accelerate_run.py
    python examples/accelerate_run.py               # one process

DDP:     Accelerate deals out batches itself; the sampler sees it and leaves draws whole. `loader`
         makes batches of k / (processes x accumulation) items.
Resume:  Accelerate's way, with the epoch first: `loader.set_epoch(epoch)`, then go through
         `accelerator.skip_first_batches(loader, batches)`.
Workers: any number.
"""

import torch
from accelerate import Accelerator
from torch.utils.data import TensorDataset

import dmsgd
from data import long_tailed_digits

accumulation = 2
accelerator = Accelerator(cpu=True, gradient_accumulation_steps=accumulation)
torch.manual_seed(0)
X, y, test_X, test_y = map(torch.from_numpy, long_tailed_digits())
diverse = dmsgd.diversify(X, k=20, labels=y, w=0.7)
uniform = dmsgd.Uniform(len(X), k=20)

for name, design in {"uniform": uniform, "diverse": diverse}.items():
    loader = dmsgd.torch.loader(TensorDataset(X, y), design, accumulation=accumulation)
    model = torch.nn.Linear(64, 10)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    for epoch in range(6):
        loader.set_epoch(epoch)
        for inputs, targets in loader:
            with accelerator.accumulate(model):
                loss = torch.nn.functional.cross_entropy(model(inputs), targets)
                accelerator.backward(loss)
                optimizer.step()
                optimizer.zero_grad()
    accuracy = (model(test_X).argmax(1) == test_y).float().mean()
    accelerator.print(
        f"{name}: balanced test accuracy {accuracy:.3f} "
        f"({accelerator.num_processes} processes x {accumulation} passes)"
    )
accelerator.end_training()
