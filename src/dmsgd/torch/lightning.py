"""For Lightning: new features between epochs; importing this module loads Lightning."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dmsgd.inputs.messages import require

require("lightning", "dmsgd.torch.lightning")

import torch
from lightning.pytorch import Callback, LightningModule, Trainer

from dmsgd.inputs.scalars import as_count
from dmsgd.torch.epochs import as_state
from dmsgd.torch.sampler import DiverseSampler


class UpdateFeatures(Callback):
    """After every `every`-th epoch, batches become diverse in what the model has learned.

    features: (module) -> (n, d) features in the order of the dataset, for example
              lambda module: dmsgd.torch.embed(module.body, dataset). Rank 0 alone calls it.

    Checkpoints hold the features in use, so that a run resumed in mid-epoch draws the same batches.

        sampler = dmsgd.torch.DiverseSampler(dmsgd.diversify(X, k=64))
        trainer = Trainer(callbacks=[UpdateFeatures(sampler, lambda m: embed(m.body, dataset))])
    """

    def __init__(
        self, sampler: DiverseSampler, features: Callable[[LightningModule], Any], every: int = 1
    ) -> None:
        self.sampler, self.features, self.every = sampler, features, every
        self._used: Any = None
        self._epochs = 0  # after how many the last update was

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Update the sampler, if the run goes on at the end of an epoch: Lightning starts none."""
        if self.sampler.place.position == 0:
            self.on_train_epoch_start(trainer, pl_module)

    def on_train_epoch_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Update the sampler, if this was not done for the epochs that are over."""
        epochs = trainer.current_epoch // self.every * self.every
        if epochs > self._epochs:
            self._use(self.features(pl_module) if trainer.is_global_zero else None, epochs)

    def _use(self, X: Any, epochs: int) -> None:
        if self.sampler.update(X):
            self._used = X
        self._epochs = epochs

    def state_dict(self) -> dict[str, Any]:
        """Return the features in use, None for the first ones, and after which epoch."""
        used = None if self._used is None else torch.as_tensor(self._used)
        # A tensor: checkpoints are read without unpickling objects.
        return {"features": used, "epochs": self._epochs}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Use the features of a checkpoint again."""
        state = as_state(state_dict, ("features", "epochs"))
        epochs = as_count(state["epochs"], "epochs of the state", least=0)
        if state["features"] is None:
            self._epochs = epochs
        else:
            self._use(state["features"], epochs)
