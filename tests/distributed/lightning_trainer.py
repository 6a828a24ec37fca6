"""Lightning's Trainer with default settings, resumed from its own checkpoints."""

import contextlib
from functools import partial

import lightning
import torch
from torch.utils.data import DataLoader, Subset
from torchdata.stateful_dataloader import StatefulDataLoader

from common import EPOCHS, OUT, STEPS, WORLD, Items, K, design, numbers, run_cells
from dmsgd.torch import DiverseSampler, loader


def ours(accumulation=1, num_workers=0):
    return loader(
        Items(), design(), steps=STEPS, accumulation=accumulation, num_workers=num_workers
    )


def torchdatas(accumulation, num_workers):
    """With persistent workers it asks for more iterators than it uses."""
    return StatefulDataLoader(
        Items(), K // WORLD // accumulation, sampler=DiverseSampler(design(), steps=STEPS),
        num_workers=num_workers, persistent_workers=num_workers > 0,
    )  # fmt: skip


class Model(lightning.LightningModule):
    def __init__(self, make, **options):
        super().__init__()
        self.layer, self.make, self.options = torch.nn.Linear(1, 1), make, options
        self.batches = []

    def training_step(self, x):
        self.batches.append(numbers(x))
        return self.layer(x).sum()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=1e-9)

    def train_dataloader(self):
        return self.make(**self.options)


class Crash(lightning.Callback):
    """Saves a checkpoint after some steps, as ModelCheckpoint would, and dies."""

    def __init__(self, stop):
        self.stop = stop

    def on_train_batch_end(self, trainer, *args):
        if trainer.global_step == self.stop:
            trainer.save_checkpoint(OUT / "middle.ckpt")
            raise InterruptedError


def trainer(*callbacks, **options):
    return lightning.Trainer(
        accelerator="cpu", devices=WORLD, strategy="ddp" if WORLD > 1 else "auto", logger=False,
        enable_progress_bar=False, enable_checkpointing=False, enable_model_summary=False,
        default_root_dir=str(OUT), callbacks=list(callbacks), **options,
    )  # fmt: skip


def train(make, epochs, workers, accumulation, stop):
    def fresh():
        return Model(make, accumulation=accumulation, num_workers=workers)

    options = {"max_epochs": epochs, "accumulate_grad_batches": accumulation}
    first, model = fresh(), fresh()
    if stop:
        with contextlib.suppress(InterruptedError):
            trainer(Crash(stop), **options).fit(first)
    last = trainer(**options)
    last.fit(model, ckpt_path=OUT / "middle.ckpt" if stop else None, weights_only=False)
    assert last.current_epoch == epochs
    assert last.num_training_batches == STEPS * accumulation  # of an epoch, resumed or not
    return first.batches + model.batches


def edges():
    """Killed at the last step of an epoch; and overfit_batches, which takes the sampler away."""
    found = {"at_the_end": train(ours, EPOCHS, 1, 1, STEPS)}
    overfit = trainer(overfit_batches=2, max_epochs=2)
    try:
        overfit.fit(Model(ours))
    except TypeError as error:
        found["refused"] = str(error)
    model = Model(ours)
    drawn = Subset(Items(), design().sample(2, seed=0).ravel())
    overfit.fit(model, DataLoader(drawn, batch_size=K))
    return {**found, "overfit": model.batches}


def main():
    rows = {
        "Lightning": partial(train, ours),
        "Lightning, torchdata's `StatefulDataLoader`": partial(train, torchdatas),
    }
    return {"rows": run_cells(rows), **(edges() if WORLD == 1 else {})}
