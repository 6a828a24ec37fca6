"""Encoders that learn by InfoNCE: the two of a pair alike, the others of the batch not."""

from __future__ import annotations

import numpy as np
import torch
from torch.nn.functional import cross_entropy, normalize

from experiments.models import many

TEMPERATURE = 0.05


def embed(encoders: many.Parameters, x: torch.Tensor) -> torch.Tensor:
    """Return embeddings of length 1 for x (jobs, rows, inputs), which may have half precision."""
    return normalize(many.outputs(encoders, x.float()), dim=2)


def losses(encoders: many.Parameters, first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    """Return the loss of each job: how likely each finds its partner, in both directions."""
    jobs, k, _ = first.shape
    likeness = embed(encoders, first) @ embed(encoders, second).transpose(1, 2) / TEMPERATURE
    truth = torch.arange(k, device=first.device).expand(jobs, k)
    both = (cross_entropy(each, truth, reduction="none")
            for each in (likeness, likeness.transpose(1, 2)))  # fmt: skip
    return sum(both, torch.zeros((), device=first.device)).mean(dim=1)


def nearest(
    encoders: many.Parameters, job: int, x: torch.Tensor, queries: np.ndarray, others: np.ndarray
) -> np.ndarray:
    """Return the five of `others`, by position in it, that are nearest to each query, in order."""
    with torch.no_grad():
        z = embed([each[[job]] for each in encoders], x[None])[0]
        return np.asarray((z[queries] @ z[others].T).topk(5, dim=1).indices.cpu())
