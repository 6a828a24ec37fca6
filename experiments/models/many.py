"""Many small networks trained at once: one for each job, in batched products.

Weights have the shape (jobs, inputs, outputs). Jobs have no parameter in common, so the gradient of
the sum of their losses is the gradient of each. On a GPU hundreds take about as long as one.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import torch

Parameters = list[torch.Tensor]


def device() -> str:
    """Return "cuda" where there is a GPU, and start it, so that the results' record names it."""
    if not torch.cuda.is_available():
        return "cpu"
    torch.cuda.init()  # type: ignore[no-untyped-call]
    return "cuda"


def stacked(arrays: Sequence[np.ndarray], here: str) -> torch.Tensor:
    """Return one array per job as one tensor: integers as int64, others as float32."""
    found = torch.from_numpy(np.stack(arrays))
    return found.to(here, torch.float32 if found.is_floating_point() else torch.int64)


def draw(
    designs: Sequence[Any], seeds: Sequence[int], steps: int, start: int, here: str
) -> torch.Tensor:
    """Return the batches of each job; jobs with the same design and seed have the same."""
    jobs = list(zip(designs, seeds, strict=True))
    drawn = {job: job[0].sample(steps, job[1], start=start) for job in dict.fromkeys(jobs)}
    return stacked([drawn[job] for job in jobs], here)


def initial(widths: Sequence[int], seeds: Sequence[int], gain: float, here: str) -> Parameters:
    """Return weights and biases of every layer, in turn; jobs with one seed begin with the same.

    Weights are normal with variance gain / inputs, biases 0.
    """
    drawn: dict[int, list[np.ndarray]] = {}
    shapes = list(pairwise(widths))
    for seed in dict.fromkeys(seeds):
        rng = np.random.default_rng([seed, 61])
        drawn[seed] = [rng.standard_normal(shape) * np.sqrt(gain / shape[0]) for shape in shapes]
    parameters = []
    for layer, (_, outputs) in enumerate(shapes):
        parameters.append(stacked([drawn[seed][layer] for seed in seeds], here))
        parameters.append(torch.zeros(len(seeds), 1, outputs, device=here))
    return [each.requires_grad_() for each in parameters]


def outputs(parameters: Parameters, x: torch.Tensor) -> torch.Tensor:
    """Return the output of networks with rectified units for inputs (jobs, rows, inputs)."""
    for weight, bias in zip(parameters[:-2:2], parameters[1:-2:2], strict=True):
        x = torch.baddbmm(bias, x, weight).relu()
    return torch.baddbmm(parameters[-1], x, parameters[-2])


class Adam:
    """Adam with a constant rate for each job."""

    def __init__(self, parameters: Parameters, rates: Sequence[float]) -> None:
        self.parameters, self.steps = parameters, 0
        self.rates = torch.tensor(rates, device=parameters[0].device)[:, None, None]
        self.first = [torch.zeros_like(each) for each in parameters]
        self.second = [torch.zeros_like(each) for each in parameters]

    def step(self, losses: torch.Tensor) -> None:
        """Make one step for each job; losses: (jobs,)."""
        gradients = torch.autograd.grad(losses.sum(), self.parameters)
        self.steps += 1
        whole = np.sqrt(1 - 0.999**self.steps)
        rates = self.rates * (whole / (1 - 0.9**self.steps))
        with torch.no_grad():
            for at, m, v, g in zip(
                self.parameters, self.first, self.second, gradients, strict=True
            ):
                m.lerp_(g, 0.1)
                v.mul_(0.999).addcmul_(g, g, value=0.001)
                at.sub_(rates * m / (v.sqrt() + 1e-8 * whole))
