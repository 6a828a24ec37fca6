"""Plain torch: nothing but the sampler, under DistributedDataParallel if there are ranks."""

import copy
from functools import partial

import torch
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader
from torchdata.stateful_dataloader import StatefulDataLoader

from common import STEPS, WORLD, Items, K, design, numbers, run_cells
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


def main():
    if WORLD > 1:
        torch.distributed.init_process_group("gloo")
    kinds = {
        "PyTorch, `DataLoader`": DataLoader,
        "PyTorch, `dmsgd.torch.loader`": loader,
        "torchdata, `StatefulDataLoader`": StatefulDataLoader,
    }
    rows = run_cells({name: partial(train, kind) for name, kind in kinds.items()})
    return {"rows": rows}
