"""Weighted losses: diverse batches that estimate the plain mean loss, with less noise.

Diverse batches show rare items more often, so training follows a balanced loss: usually the point.
Where the mean over the data as it is must stay the objective, weight each item by k / (n b_i), with
b_i its probability to be in a batch; `loss_weights=True` hands that out as the last field.

DDP:     averages over ranks and over accumulation steps stay unbiased.
Resume:  as in pytorch.py.
Workers: any number; `dmsgd.torch.WithLossWeights` is a dataset around yours.
"""

import torch
from torch.utils.data import TensorDataset

import dmsgd
from data import long_tailed_digits

X, y, test_X, test_y = map(torch.from_numpy, long_tailed_digits())
loss = torch.nn.CrossEntropyLoss(reduction="none")
diverse = dmsgd.diversify(X, k=20, labels=y, w=0.7)
uniform = dmsgd.Uniform(len(X), k=20)  # its weights are all 1
arms = {"uniform": (uniform, True), "diverse": (diverse, False), "weighted": (diverse, True)}

for name, (design, weighted) in arms.items():
    torch.manual_seed(0)
    model = torch.nn.Linear(64, 10)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    loader = dmsgd.torch.loader(TensorDataset(X, y), design, loss_weights=True)
    for _ in range(6):
        for inputs, targets, weights in loader:
            losses = loss(model(inputs), targets)
            optimizer.zero_grad()
            (weights * losses if weighted else losses).mean().backward()
            optimizer.step()
    accuracy = (model(test_X).argmax(1) == test_y).float().mean()
    print(f"{name}: balanced test accuracy {accuracy:.3f}")

losses = loss(model(X), y).detach()
print(f"mean loss over the data: {losses.mean():.3f}; what batches of 20 make of it:")
for name, (design, weighted) in arms.items():
    weights = 20 * dmsgd.unbiased_weights(design) if weighted else 1.0
    estimates = (weights * losses.numpy())[design.sample(5000, seed=1)].mean(axis=1)
    print(f"{name}: mean {estimates.mean():.3f}, standard deviation {estimates.std():.3f}")
