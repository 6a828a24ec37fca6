"""Features that change: after every epoch, batches are diverse in what the network has learned.

Digits gain nothing from it (over five splits: 0.894 with fixed features, 0.894 with changing ones);
it is for data whose raw features say little about likeness.

DDP:     every rank calls `update`, and rank 0's features count, so that all ranks draw the same.
Resume:  a state is of the features of its epoch, and refused with others: save the last ones for
         which `update` returned True beside it, and `update` with them before loading.
Workers: any number; new features count from the next pass on.
"""

import torch
from torch.utils.data import TensorDataset

import dmsgd
from data import long_tailed_digits
from dmsgd.torch import embed

X, y, test_X, test_y = map(torch.from_numpy, long_tailed_digits())
dataset = TensorDataset(X, y)
diverse = dmsgd.diversify(X, k=20, labels=y, w=0.7)
arms = {"uniform": dmsgd.Uniform(len(X), k=20), "diverse": diverse, "changing": diverse}

for name, design in arms.items():
    torch.manual_seed(0)
    body = torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.ReLU())
    model = torch.nn.Sequential(body, torch.nn.Linear(32, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
    loader = dmsgd.torch.loader(dataset, design)
    for _ in range(10):
        for inputs, targets in loader:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(inputs), targets).backward()
            optimizer.step()
        if name == "changing":
            loader.sampler.update(embed(body, dataset))  # same labels and w
    accuracy = (model(test_X).argmax(1) == test_y).float().mean()
    print(f"{name}: balanced test accuracy {accuracy:.3f}")
