"""For the Hugging Face Trainer: new features between epochs; this module loads transformers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from dmsgd.inputs.messages import require

require("transformers", "dmsgd.torch.transformers")

from transformers import TrainerCallback
from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR

from dmsgd.torch.distributed import broadcast_from_rank_0
from dmsgd.torch.sampler import DiverseSampler

#: The file in a checkpoint.
FILE = "dmsgd-features.npz"


class UpdateFeatures(TrainerCallback):
    """After every `every`-th epoch, batches become diverse in what the model has learned.

    features: () -> (n, d) features in the order of the dataset, for example
              lambda: dmsgd.torch.embed(model.body, dataset). Rank 0 alone calls it.

    Checkpoints hold the features in use, so that a run resumed from its own output folder draws the
    same batches, also in mid-epoch. The Trainer must get this very sampler:

        class Diverse(Trainer):
            def get_train_dataloader(self):
                options = {"collate_fn": self.data_collator}  # and accumulation=, num_workers=
                loader = dmsgd.torch.loader(self.train_dataset, sampler, **options)
                return self.accelerator.prepare(loader)
    """

    def __init__(
        self, sampler: DiverseSampler, features: Callable[[], Any], every: int = 1
    ) -> None:
        self.sampler, self.features, self.every = sampler, features, every
        self._used: Any = None
        self._epochs = 0  # after how many the last update was

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Use the features of the checkpoint that is resumed from, if it has some."""
        path = self._checkpoint(args, state) / FILE
        X, epochs = None, 0
        if state.is_world_process_zero and state.global_step > 0 and path.exists():
            with np.load(path, allow_pickle=False) as file:
                X, epochs = file.get("features"), int(file["epochs"])
        known, epochs = broadcast_from_rank_0((X is not None, epochs))  # others may not see it
        if known:
            self._use(X, epochs)
        elif epochs > 0:
            self._epochs = epochs

    def on_epoch_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Update the sampler, if this was not done for the epochs that are over."""
        over = int(state.epoch + 1e-6)
        epochs = over // self.every * self.every
        if epochs <= self._epochs:
            return
        if state.epoch > over + 1e-6:  # resumed in mid-epoch
            raise OSError(
                f"{self._checkpoint(args, state)} has no {FILE} with the features of epoch {over}; "
                f"resume from the output folder of the run that made it, or at the end of an epoch"
            )
        self._use(self.features() if state.is_world_process_zero else None, epochs)

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Put the features beside the checkpoint that was just written."""
        if self._epochs > 0 and state.is_world_process_zero:
            path = self._checkpoint(args, state) / FILE
            part = path.with_suffix(".part")
            with part.open("wb") as file:
                held: dict[str, Any] = {"epochs": self._epochs}
                if self._used is not None:
                    held["features"] = np.asarray(self._used)
                np.savez(file, **held)
            part.replace(path)

    def _use(self, X: Any, epochs: int) -> None:
        if self.sampler.update(X):
            self._used = X
        self._epochs = epochs

    @staticmethod
    def _checkpoint(args: Any, state: Any) -> Path:
        return Path(args.output_dir) / f"{PREFIX_CHECKPOINT_DIR}-{state.global_step}"
