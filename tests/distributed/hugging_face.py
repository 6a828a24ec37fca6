"""The Hugging Face Trainer: one method is overridden, and it is resumed from its checkpoints."""

from functools import partial
from itertools import count

import torch
from transformers import Trainer, TrainerCallback, TrainingArguments

from common import OUT, STEPS, WORLD, Items, K, design, numbers, run_cells
from dmsgd.torch import DiverseSampler, loader

#: Numbers of the runs, the same on every rank.
RUNS = count()


class Records(Items):
    def __getitem__(self, index):
        return {"x": super().__getitem__(index)}


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(1, 1)

    def forward(self, x):
        return {"loss": self.layer(x).sum()}


class Crash(TrainerCallback):
    def __init__(self, stop):
        self.stop = stop

    def on_step_end(self, args, state, control, **_):
        if state.global_step == self.stop:
            control.should_save = control.should_training_stop = True


def train(make, epochs, workers, accumulation, stop):
    """Train with what make(options of the TrainingArguments) returns: a Trainer, and which items
    the inputs of a step are.
    """
    folder = OUT / f"run{next(RUNS)}"
    options = {
        "output_dir": str(folder),
        "per_device_train_batch_size": K // WORLD // accumulation,
        "num_train_epochs": epochs,
        "gradient_accumulation_steps": accumulation,
        "dataloader_num_workers": workers,
        "use_cpu": True, "report_to": [], "save_strategy": "no", "logging_strategy": "no",
        "disable_tqdm": True, "learning_rate": 0,
    }  # fmt: skip
    seen = []

    def go(path=None, *callbacks):
        trainer, items = make(options)
        step = trainer.training_step

        def watched(model, inputs, *args):
            seen.append(items(inputs))
            return step(model, inputs, *args)

        trainer.training_step = watched
        for callback in callbacks:
            trainer.add_callback(callback)
        trainer.train(resume_from_checkpoint=path)

    if stop:
        go(None, Crash(stop))
    go(f"{folder}/checkpoint-{stop}" if stop else None)
    return seen


def make(options):
    class Diverse(Trainer):
        def get_train_dataloader(self):
            batches = loader(
                self.train_dataset, sampler, collate_fn=self.data_collator,
                accumulation=self.args.gradient_accumulation_steps,
                num_workers=self.args.dataloader_num_workers,
            )  # fmt: skip
            return self.accelerator.prepare(batches)

    sampler = DiverseSampler(design(), steps=STEPS)
    trainer = Diverse(Model(), TrainingArguments(**options), train_dataset=Records())
    return trainer, lambda inputs: numbers(inputs["x"])


def main():
    return {"rows": run_cells({"Hugging Face `Trainer`": partial(train, make)})}
