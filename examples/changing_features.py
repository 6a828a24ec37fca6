"""Features that change: after every epoch, batches are diverse in what the network has learned.

Digits gain nothing from it (over five splits: 0.894 with fixed features, 0.894 with changing ones);
it is for data whose raw features say little about likeness.

DDP:     all ranks must build the design from the same features: send those of rank 0 to all.
Resume:  a state is of the features of its epoch, and refused with others: save them beside it, and
         make the same loader of them before loading.
Workers: any number.
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
    for epoch in range(10):
        if name == "changing" and epoch > 0:
            design = dmsgd.diversify(embed(body, dataset), k=20, labels=y, w=0.7)
        loader = dmsgd.torch.loader(dataset, design, seed=epoch)
        for inputs, targets in loader:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(inputs), targets).backward()
            optimizer.step()
    accuracy = (model(test_X).argmax(1) == test_y).float().mean()
    print(f"{name}: balanced test accuracy {accuracy:.3f}")
