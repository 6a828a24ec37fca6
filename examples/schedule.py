"""A schedule: batches drawn once, kept in a file, and used by many runs in place of a design.

Here three learning rates share one file; nothing is drawn while they train.

DDP:     all ranks map the same file, and the sampler takes each rank's part of a draw.
Resume:  as with a design. A presample that was killed goes on when it is called again.
Workers: any number. `presample(..., workers=-1)` draws on all cores, with the same result.
"""

import tempfile
from pathlib import Path

import torch
from torch.utils.data import TensorDataset

import dmsgd
from data import long_tailed_digits

X, y, test_X, test_y = map(torch.from_numpy, long_tailed_digits())
epochs, k = 6, 20
steps = epochs * (len(X) // k)
diverse = dmsgd.diversify(X, k, labels=y, w=0.7)
folder = tempfile.TemporaryDirectory()
for name, design in {"uniform": dmsgd.Uniform(len(X), k), "diverse": diverse}.items():
    dmsgd.presample(design, steps, seed=0, path=Path(folder.name) / name, workers=-1)

for name in ("uniform", "diverse"):
    schedule = dmsgd.Schedule.load(Path(folder.name) / name)
    for rate in (0.1, 0.3, 1.0):
        torch.manual_seed(0)
        model = torch.nn.Linear(64, 10)
        optimizer = torch.optim.SGD(model.parameters(), lr=rate)
        loader = dmsgd.torch.loader(TensorDataset(X, y), schedule)
        for _ in range(epochs):
            for inputs, targets in loader:
                optimizer.zero_grad()
                torch.nn.functional.cross_entropy(model(inputs), targets).backward()
                optimizer.step()
        accuracy = (model(test_X).argmax(1) == test_y).float().mean()
        print(f"{name}, rate {rate}: balanced test accuracy {accuracy:.3f}")

assert schedule.fingerprint() == diverse.fingerprint()  # the file was made for these data
print(
    "same batches as the design draws:", (schedule.sample(steps) == diverse.sample(steps, 0)).all()
)
folder.cleanup()
