"""A small convolutional network, trained anew in each round: features of its last layer move."""

from __future__ import annotations

from typing import Any

import numpy as np

from experiments.labelling.data import images
from experiments.labelling.rounds import Task, split
from experiments.models import dense, few_labels

#: Steps of Adam, images of a step, and features.
STEPS, BATCH, FEATURES = 300, 32, 64


def images_task(seed: int, data: str, k: int, pool: int, tested: int) -> Task:
    """Return a random pool of images, others to test on, and k images that are labelled."""
    pixels, y = images(data)
    X = (pixels.reshape(len(y), 1, 28, 28) / 255).astype(np.float32)
    rest, test, rng = split(seed, len(y), pool, tested)
    start = rng.choice(rest.size, k, replace=False)
    return Task(X[rest], y[rest], X[test], y[test], int(y.max()) + 1, start)


class Network:
    """Two convolutions, a layer of 64 features, a softmax; as `rounds.Softmax` for arms.

    The temperature of UHerding is that of a softmax on the features: to train a second network each
    round would be twice the work.
    """

    def __init__(self, task: Task, labelled: np.ndarray, seed: int) -> None:
        import torch
        from torch import nn

        torch.set_num_threads(1)
        torch.manual_seed(seed)
        self.task, self.seed = task, seed
        body = nn.Sequential(
            nn.Conv2d(1, 16, 5, stride=2), nn.ReLU(), nn.Conv2d(16, 32, 5, stride=2), nn.ReLU(),
            nn.Flatten(), nn.Linear(512, FEATURES), nn.ReLU(),
        )  # fmt: skip
        last = nn.Linear(FEATURES, task.classes)
        rng = np.random.default_rng([seed, labelled.size])
        weights = [*body.parameters(), *last.parameters()]
        optimizer = torch.optim.AdamW(weights, lr=1e-3, weight_decay=1e-2)
        X, y = torch.from_numpy(task.X[labelled]), torch.from_numpy(task.y[labelled])
        order = np.concatenate([rng.permutation(labelled.size)
                                for _ in range(-(-STEPS * BATCH // labelled.size))])  # fmt: skip
        for step in range(STEPS):
            some = torch.from_numpy(order[step * BATCH : (step + 1) * BATCH])
            optimizer.zero_grad()
            nn.functional.cross_entropy(last(body(X[some])), y[some]).backward()
            optimizer.step()
        with torch.no_grad():
            self.X, self._test = (body(torch.from_numpy(part)).numpy()
                                  for part in (task.X, task.X_test))  # fmt: skip
            W, b = last.weight.numpy().T, last.bias.numpy()
        self.layers: Any = [np.vstack([W, b])]
        self.inputs, self.scores = self.X, self.scores_of(self.X)

    def scores_of(self, X: np.ndarray) -> np.ndarray:
        """Return the scores of other features."""
        return dense.forward(self.layers, X)[-1]

    def accuracy(self) -> float:
        """Return the percentage of test items whose class is right."""
        return dense.accuracy(self.layers, self._test, self.task.y_test)

    def held_out(self, train: np.ndarray, rest: np.ndarray) -> np.ndarray:
        """Return the scores of some items by a softmax that has learned from others."""
        y = self.task.y[train]
        layers = few_labels.fit(self.X[train].astype(float), y, self.task.classes, 0, self.seed)
        return dense.forward(layers, self.X[rest])[-1]
