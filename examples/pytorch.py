"""Plain PyTorch: the sampler is the one thing that changes. Then a killed run goes on.

DDP:     one process here; pytorch_ddp.py is the same with several.
Resume:  `dmsgd.torch.loader` counts the batches that training has consumed, not those that workers
         fetched ahead; loading its state takes no time, whatever the step.
Workers: any number. Item numbers are drawn in the main process, many batches at a time.
"""

import io
from typing import Any

import torch
from torch.utils.data import DataLoader, RandomSampler, TensorDataset

import dmsgd
from data import long_tailed_digits

torch.manual_seed(0)
X, y, test_X, test_y = map(torch.from_numpy, long_tailed_digits())
dataset, k = TensorDataset(X, y), 20
design = dmsgd.diversify(X, k, labels=y, w=0.7)


def train(model: torch.nn.Module, loader: Any, checkpoint: io.BytesIO | None = None) -> None:
    """Go through the loader once; write a checkpoint after the seventh step."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    for number, (inputs, targets) in enumerate(loader, start=1):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(inputs), targets).backward()
        optimizer.step()
        if checkpoint and number == 7:
            torch.save([model.state_dict(), loader.state_dict()], checkpoint)


diverse = dmsgd.torch.DiverseSampler(design, seed=0)
for name, sampler in {"uniform": RandomSampler(dataset), "diverse": diverse}.items():
    model, loader = torch.nn.Linear(64, 10), DataLoader(dataset, k, sampler=sampler, drop_last=True)
    for _ in range(6):
        train(model, loader)
    accuracy = (model(test_X).argmax(1) == test_y).float().mean()
    print(f"{name}: balanced test accuracy {accuracy:.3f}")

file = io.BytesIO()
model, loader = torch.nn.Linear(64, 10), dmsgd.torch.loader(dataset, design, num_workers=1)
train(model, loader, checkpoint=file)
resumed, loader = torch.nn.Linear(64, 10), dmsgd.torch.loader(dataset, design, num_workers=1)
states = torch.load(io.BytesIO(file.getvalue()))
resumed.load_state_dict(states[0])
loader.load_state_dict(states[1])
train(resumed, loader)
print("resumed in mid-epoch, same weights:", torch.equal(resumed.weight, model.weight))
