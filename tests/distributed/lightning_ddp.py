"""Lightning's Trainer with ddp and default settings; optionally resumed within an epoch."""

import contextlib
import sys

import lightning
import torch

from common import EPOCHS, OUT, STEPS, Items, design, write
from dmsgd.torch import loader

devices, stop_at = int(sys.argv[2]), int(sys.argv[3])


class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(1, 1)
        self.batches = []

    def training_step(self, x):
        self.batches.append(x.flatten().int().tolist())
        return self.layer(x).sum()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=1e-9)

    def train_dataloader(self):
        return loader(Items(), design(), steps=STEPS, num_workers=1)


class Crash(lightning.Callback):
    """Saves a checkpoint after `stop_at` steps, as ModelCheckpoint would, and dies."""

    def on_train_batch_end(self, trainer, *args):
        if trainer.global_step == stop_at:
            trainer.save_checkpoint(OUT / "middle.ckpt")
            raise RuntimeError("crash")


def trainer(*callbacks):
    return lightning.Trainer(
        accelerator="cpu", devices=devices, strategy="ddp" if devices > 1 else "auto", logger=False,
        enable_progress_bar=False, enable_checkpointing=False, enable_model_summary=False,
        default_root_dir=str(OUT), max_epochs=EPOCHS, callbacks=list(callbacks),
    )  # fmt: skip


model, runs = Model(), []
if stop_at:
    with contextlib.suppress(RuntimeError):
        trainer(Crash()).fit(model)
    runs, model = model.batches, Model()
last = trainer()
last.fit(model, ckpt_path=OUT / "middle.ckpt" if stop_at else None)
write(last.global_rank, runs + model.batches)
