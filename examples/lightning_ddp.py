"""Lightning: `dmsgd.torch.loader` goes into the Trainer as it is, for one process or several.

    python examples/lightning_ddp.py 2              # two processes; the result is the same

DDP:     make the loader in `train_dataloader`, which runs once the processes are there: it takes
         k / processes items each. No Trainer option is needed.
Resume:  Lightning's checkpoints hold the loader's state: `fit(model, ckpt_path=...)` goes on in
         mid-epoch.
Workers: any number.
"""

import sys

import lightning
import torch
from torch.utils.data import TensorDataset

import dmsgd
from data import long_tailed_digits

X, y, test_X, test_y = map(torch.from_numpy, long_tailed_digits())
processes = int(sys.argv[1]) if len(sys.argv) > 1 else 1


class Softmax(lightning.LightningModule):
    """Softmax regression on batches drawn from `design`."""

    def __init__(self, design: dmsgd.Design) -> None:
        super().__init__()
        self.layer, self.design = torch.nn.Linear(64, 10), design

    def training_step(self, batch: list[torch.Tensor]) -> torch.Tensor:
        return torch.nn.functional.cross_entropy(self.layer(batch[0]), batch[1])

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=0.5)

    def train_dataloader(self) -> dmsgd.torch.Loader:
        return dmsgd.torch.loader(TensorDataset(X, y), self.design)


diverse = dmsgd.diversify(X, k=20, labels=y, w=0.7)
for name, design in {"uniform": dmsgd.Uniform(len(X), k=20), "diverse": diverse}.items():
    torch.manual_seed(0)
    model = Softmax(design)
    trainer = lightning.Trainer(
        accelerator="cpu", devices=processes, max_epochs=6, logger=False,
        enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
    )  # fmt: skip
    trainer.fit(model)
    if trainer.is_global_zero:
        accuracy = (model.layer(test_X).argmax(1) == test_y).float().mean()
        print(f"{name}: balanced test accuracy {accuracy:.3f} ({trainer.world_size} processes)")
