"""The small convolutional network of the MNIST experiment, and training it on given batches.

Two convolutions (5 x 5; 32 and 64 maps), each followed by ReLU and 2 x 2 max-pooling, a hidden
layer of 1024 units with dropout, and a softmax: the network of the tutorial that the paper cites.
Batches are item numbers, so this module needs NumPy and PyTorch alone and runs wherever those do.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn


def device() -> str:
    """Return "cuda" where there is a GPU, and start it, so that the results' record names it.

    An experiment calls it in `cases`, too: with several workers the record is made in another
    process than the trainings.
    """
    if not torch.cuda.is_available():
        return "cpu"
    torch.cuda.init()  # type: ignore[no-untyped-call]
    return "cuda"


def network(seed: int, dropout: float, units: int = 1024) -> nn.Sequential:
    """Return the network with the tutorial's random start: normal of spread 0.1, biases 0.1.

    The start is drawn on the CPU, so that it is the same on every device.
    """
    model = nn.Sequential(
        nn.Conv2d(1, 32, 5, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 5, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(7 * 7 * 64, units),
        nn.ReLU(),
        nn.Dropout(dropout),
        nn.Linear(units, 10),
    )
    generator = torch.Generator().manual_seed(seed)
    for parameter in model.parameters():
        if parameter.ndim == 1:
            nn.init.constant_(parameter, 0.1)
        else:
            nn.init.trunc_normal_(parameter, std=0.1, a=-0.2, b=0.2, generator=generator)
    return model


def pixels(images: npt.NDArray[np.uint8], device: str) -> torch.Tensor:
    """Return images as float32 in [0, 1] with one channel, on the device."""
    return torch.from_numpy(images).to(device)[:, None].float() / 255


def stages(
    images: torch.Tensor,
    labels: torch.Tensor,
    batches: npt.NDArray[Any],
    steps: Sequence[int],
    rate: float,
    seed: int,
    units: int = 1024,
    dropout: float = 0.5,
    weights: npt.NDArray[np.floating[Any]] | None = None,
    refit: int | None = None,
) -> Iterator[tuple[int, nn.Sequential]]:
    """Yield each of `steps` with the network after so many steps of Adam; it is trained on then.

    batches: (steps, k) item numbers, one row a step.
    weights: one per item for the sum of losses over a batch (unbiased), or None for their mean.
    refit:   after so many steps the last layer begins anew, and it alone is trained.

    The work is done where the images are.
    """
    device = images.device
    torch.manual_seed(seed)
    model = network(seed, dropout, units).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    rows = torch.from_numpy(batches[: steps[-1]].astype(np.int64)).to(device)
    share = torch.full((len(images),), 1 / rows.shape[1], device=device)
    if weights is not None:
        share = torch.from_numpy(weights).to(share)
    done = 0
    for step in sorted({*steps, refit or steps[-1]}):
        descend(model, optimizer, images, labels, rows[done:step], share)
        if step in steps:
            yield step, model
        if step == refit:
            model[:-1].requires_grad_(False)
            model[-1].load_state_dict(network(seed + 1, dropout, units)[-1].state_dict())
            optimizer = torch.optim.Adam(model[-1].parameters(), lr=rate)
        done = step


def descend(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    images: torch.Tensor,
    labels: torch.Tensor,
    rows: torch.Tensor,
    share: torch.Tensor,
) -> None:
    """Make a step of the optimizer on each row of item numbers; `share` weights items' losses."""
    loss = nn.CrossEntropyLoss(reduction="none")
    model.train()
    for items in rows:
        losses = loss(model(images[items]), labels[items])
        optimizer.zero_grad()
        (losses * share[items]).sum().backward()
        optimizer.step()


def predict(model: nn.Module, images: torch.Tensor) -> torch.Tensor:
    """Return the most probable class of each image."""
    model.eval()
    with torch.no_grad():
        return torch.cat([model(part).argmax(dim=1) for part in images.split(2000)])
