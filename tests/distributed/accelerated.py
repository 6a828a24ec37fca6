"""Accelerate: batches that are dealt out, split or dispatched, and a stateful loader."""

import warnings
from functools import partial

import torch
from accelerate import Accelerator
from accelerate.utils import DataLoaderConfiguration
from torch.utils.data import DataLoader

from common import OUT, STEPS, WORLD, Items, K, design, numbers, refusal, run_cells
from dmsgd.torch import DiverseSampler, loader


def whole(accumulation, workers):
    """A plain DataLoader of whole batches, for Accelerate to split."""
    sampler = DiverseSampler(design(), steps=STEPS)
    return DataLoader(Items(), K // accumulation, sampler=sampler, num_workers=workers)


def cut(accumulation, workers):
    return loader(Items(), design(), accumulation=accumulation, steps=STEPS, num_workers=workers)


def train(make, config, epochs, workers, accumulation, stop):
    def fresh():
        model = torch.nn.Linear(1, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-9)
        accelerator = Accelerator(
            cpu=True, gradient_accumulation_steps=accumulation, dataloader_config=config
        )
        return accelerator, *accelerator.prepare(model, optimizer, make(accumulation, workers))

    def go(accelerator, model, optimizer, batches, first=0, done=0):
        for epoch in range(first, epochs):
            batches.set_epoch(epoch)
            skip = done if epoch == first else 0
            rest = accelerator.skip_first_batches(batches, skip) if skip else batches
            for x in rest:
                with accelerator.accumulate(model):
                    accelerator.backward(model(x).sum())
                    optimizer.step()
                    optimizer.zero_grad()
                seen.append(numbers(x))
                if stop and len(seen) == stop * accumulation:
                    return

    seen = []
    go(*fresh())
    if stop:
        epoch, step = divmod(stop, STEPS)
        go(*fresh(), first=epoch, done=step * accumulation)
    return seen


def checkpointed():
    """A sampler has no state to register; a stateful loader is refused without set_epoch, too.

    It would save no epoch, and go on with the batches of epoch 0.
    """
    accelerator, batches = Accelerator(cpu=True), cut(1, 0)
    messages = [refusal(accelerator.register_for_checkpointing, batches.sampler)]
    stateful = DataLoaderConfiguration(use_stateful_dataloader=True)
    for workers in (0, 2):
        accelerator = Accelerator(cpu=True, dataloader_config=stateful)
        batches = accelerator.prepare(cut(1, workers))
        accelerator.save_state(OUT / "state")
        accelerator.load_state(OUT / "state")
        messages.append(refusal(next, iter(batches)))
    return {"refused": messages}


def registered(workers):
    """Return why the loader that was prepared does not save a state of its own.

    Two batches before the end: workers are there already.
    """
    accelerator = Accelerator(cpu=True, dataloader_config=DataLoaderConfiguration())
    own = cut(1, workers)
    batches = accelerator.prepare(own)
    accelerator.register_for_checkpointing(own)
    for t, _ in enumerate(batches):
        if t == STEPS - 3:
            return refusal(accelerator.save_state, OUT / "registered")


def loaded_only():
    """Return what is said to a user who loads a state in the middle of an epoch, and goes on."""
    accelerator = Accelerator(cpu=True, dataloader_config=DataLoaderConfiguration())
    batches = accelerator.prepare(cut(1, 0))
    for t, _ in enumerate(batches):
        if t == 2:
            accelerator.save_state(OUT / "plain state")
            break
    accelerator.load_state(OUT / "plain state")
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        next(iter(batches))
    return {"said": [str(each.message) for each in said]}


def main():
    config = DataLoaderConfiguration
    split, both = config(split_batches=True), config(split_batches=True, dispatch_batches=True)
    stateful = config(use_stateful_dataloader=True)
    rows = run_cells(
        {
            "Accelerate": partial(train, cut, config()),
            "Accelerate, `split_batches=True`": partial(train, cut, split),
            "Accelerate, `split_batches=True`, `DataLoader`": partial(train, whole, split),
            "Accelerate, `use_stateful_dataloader=True`": partial(train, cut, stateful),
            "Accelerate, both split and dispatched, `DataLoader`": partial(train, whole, both),
        }
    )
    extra = {**checkpointed(), **loaded_only()} if WORLD == 1 else {}
    extra["registered"] = [registered(workers) for workers in (0, 2)]
    # Last: only rank 0 makes these passes and can refuse them, and the others hear of its end.
    dispatch = partial(train, cut, config(dispatch_batches=True))
    rows |= run_cells({"Accelerate, `dispatch_batches=True`": dispatch}, leave=True)
    return {"rows": rows, **extra}
