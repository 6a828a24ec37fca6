"""Plain torch: nothing but the sampler, under DistributedDataParallel if there are ranks."""

import copy
import warnings
from functools import partial

import numpy as np
import torch
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader
from torchdata.stateful_dataloader import StatefulDataLoader

import dmsgd
from common import STEPS, WORLD, Items, K, N, design, numbers, rank, run_cells
from dmsgd.torch import DiverseSampler, loader


def train(kind, epochs, workers, accumulation, stop):
    def fresh():
        if kind is loader:
            options = {"accumulation": accumulation, "steps": STEPS, "num_workers": workers}
            return loader(Items(), design(), **options)
        sampler, size = DiverseSampler(design(), steps=STEPS), K // WORLD // accumulation
        return kind(Items(), batch_size=size, sampler=sampler, drop_last=True, num_workers=workers)

    def go(batches, first):
        for _ in range(first, epochs):
            for x in batches:
                model(x).sum().backward()
                seen.append(numbers(x))
                if stop and len(seen) == stop * accumulation:
                    return copy.deepcopy(batches.state_dict())  # a plain DataLoader has none

    model, seen, batches = torch.nn.Linear(1, 1), [], fresh()
    if WORLD > 1:
        model = DistributedDataParallel(model)
    state = go(batches, 0)
    if stop:
        batches = fresh()
        batches.load_state_dict(state)
        go(batches, stop // STEPS)
    return seen


def updated():
    """Ranks draw by the features and weights of rank 0, and by the last ones where new ones have
    no rank; different designs are refused."""
    sampler = DiverseSampler(design(), steps=STEPS)
    sampler.update(np.ones((N, 9)) if rank() else np.random.default_rng(1).normal(size=(N, 9)))
    features = np.random.default_rng(7 + rank()).normal(size=(N, 9))
    sampler.update(features if rank() == 0 else None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dmsgd.KernelWarning)
        kept = not sampler.update(np.zeros((N, 9)) if rank() == 0 else None)
    weighted = DiverseSampler(dmsgd.Weighted(weights=np.ones(N), k=K), steps=STEPS)
    weighted.update(weights=np.arange(1, N + 1) if rank() == 0 else None)
    found = {"features": features.tolist(), "drawn": list(sampler), "weighted": list(weighted)}
    found["kept"] = kept
    try:
        sampler.update(dmsgd.diversify(features, k=K))
    except ValueError as error:
        return {**found, "refused": str(error)}


def main():
    if WORLD > 1:
        torch.distributed.init_process_group("gloo")
    kinds = {
        "PyTorch, `DataLoader`": DataLoader,
        "PyTorch, `dmsgd.torch.loader`": loader,
        "torchdata, `StatefulDataLoader`": StatefulDataLoader,
    }
    rows = run_cells({name: partial(train, kind) for name, kind in kinds.items()})
    return {"rows": rows, **(updated() if WORLD > 1 else {})}
