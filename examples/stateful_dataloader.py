"""torchdata's StatefulDataLoader: a checkpoint in mid-epoch, and a run that goes on from it.

DDP:     as in pytorch_ddp.py: the sampler takes this rank's part of each draw.
Resume:  the loader's state holds the sampler's (seed, epoch, items consumed by training), so that
         nothing is drawn twice and the epoch is right.
Workers: any number, but the same before and after, as torchdata demands.
"""

import copy
from typing import Any

import torch
from torch.utils.data import TensorDataset
from torchdata.stateful_dataloader import StatefulDataLoader

import dmsgd
from data import long_tailed_digits

X, y, test_X, test_y = map(torch.from_numpy, long_tailed_digits())
dataset, k = TensorDataset(X, y), 20
diverse = dmsgd.diversify(X, k, labels=y, w=0.7)


def new_run(design: dmsgd.Design) -> tuple[torch.nn.Linear, Any]:
    """Return a model and a loader at the start."""
    torch.manual_seed(0)
    sampler = dmsgd.torch.DiverseSampler(design, seed=0)
    loader = StatefulDataLoader(dataset, k, sampler=sampler, drop_last=True, num_workers=1)
    return torch.nn.Linear(64, 10), loader


def train(model: torch.nn.Module, loader: Any, epochs: int, save_at: int | None = None) -> Any:
    """Train; return the states of model and loader after the step `save_at` of the last epoch."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    for epoch in range(epochs):
        for step, (inputs, targets) in enumerate(loader, start=1):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(inputs), targets).backward()
            optimizer.step()
            if (epoch, step) == (epochs - 1, save_at):
                checkpoint = copy.deepcopy([model.state_dict(), loader.state_dict()])
    return checkpoint if save_at else None


for name, design in {"uniform": dmsgd.Uniform(len(X), k), "diverse": diverse}.items():
    model, loader = new_run(design)
    checkpoint = train(model, loader, epochs=6, save_at=7)
    accuracy = (model(test_X).argmax(1) == test_y).float().mean()
    print(f"{name}: balanced test accuracy {accuracy:.3f}")

resumed, loader = new_run(diverse)
for part, state in zip((resumed, loader), checkpoint, strict=True):
    part.load_state_dict(state)
train(resumed, loader, epochs=1)
print("resumed in mid-epoch, same weights:", torch.equal(resumed.weight, model.weight))
