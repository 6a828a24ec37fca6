"""For the Hugging Face Trainer: new features between epochs; this module loads transformers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from transformers import TrainerCallback

from dmsgd.torch.sampler import DiverseSampler

#: The file in a checkpoint.
FILE = "dmsgd-features.npy"


class UpdateFeatures(TrainerCallback):
    """After every `every`-th epoch, batches become diverse in what the model has learned.

    features: () -> (n, d) features in the order of the dataset, for example
              lambda: dmsgd.torch.embed(model.body, dataset). Rank 0 alone calls it.

    Checkpoints hold the features that are in use, so that a run that is resumed from its own output
    folder, also in mid-epoch, draws the same batches. The Trainer must get this very sampler:

        class Diverse(Trainer):
            def _get_train_sampler(self, *args):
                return sampler
    """

    def __init__(
        self, sampler: DiverseSampler, features: Callable[[], Any], every: int = 1
    ) -> None:
        self.sampler, self.features, self.every = sampler, features, every
        self._used: Any = None

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Use the features of the checkpoint that is resumed from, if it has some."""
        path = self._checkpoint(args, state) / FILE
        if state.global_step > 0 and path.exists():
            self._use(np.load(path, allow_pickle=False))

    def on_epoch_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Update the sampler, if there is an epoch to come."""
        done = round(state.epoch)
        if done % self.every == 0 and state.global_step < state.max_steps:
            self._use(self.features() if state.is_world_process_zero else None)

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Put the features beside the checkpoint that was just written."""
        if self._used is not None and state.is_world_process_zero:
            np.save(self._checkpoint(args, state) / FILE, np.asarray(self._used))

    def _use(self, X: Any) -> None:
        self.sampler.update(X)
        self._used = X

    @staticmethod
    def _checkpoint(args: Any, state: Any) -> Path:
        return Path(args.output_dir) / f"checkpoint-{state.global_step}"
