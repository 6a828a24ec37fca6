"""The Hugging Face Trainer: one method is overridden, and it is resumed from its checkpoints."""

import tempfile

import torch
from transformers import Trainer, TrainerCallback, TrainingArguments

from common import OUT, STEPS, WORLD, Items, K, design, numbers, run_cells, write
from dmsgd.torch import DiverseSampler


class Records(Items):
    def __getitem__(self, index):
        return {"x": super().__getitem__(index)}


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(1, 1)

    def forward(self, x):
        return {"loss": self.layer(x).sum()}


class Diverse(Trainer):
    def _get_train_sampler(self, *args):
        return DiverseSampler(design(), steps=STEPS)

    def training_step(self, model, inputs, *args):
        self.seen.append(numbers(inputs["x"]))
        return super().training_step(model, inputs, *args)


class Crash(TrainerCallback):
    def __init__(self, stop):
        self.stop = stop

    def on_step_end(self, args, state, control, **_):
        if state.global_step == self.stop:
            control.should_save = control.should_training_stop = True


def train(epochs, workers, accumulation, stop):
    arguments = TrainingArguments(
        output_dir=tempfile.mkdtemp(dir=OUT) if WORLD == 1 else OUT / f"{accumulation}-{stop}",
        per_device_train_batch_size=K // WORLD // accumulation, num_train_epochs=epochs,
        gradient_accumulation_steps=accumulation, dataloader_num_workers=workers, use_cpu=True,
        report_to=[], save_strategy="no", logging_strategy="no", disable_tqdm=True, learning_rate=0,
    )  # fmt: skip

    def fresh(*callbacks):
        trainer = Diverse(Model(), arguments, train_dataset=Records(), callbacks=list(callbacks))
        trainer.seen = []
        return trainer

    first, last = fresh(Crash(stop)), fresh()
    if not stop:
        last.train()
        return last.seen
    first.train()
    last.train(resume_from_checkpoint=f"{arguments.output_dir}/checkpoint-{stop}")
    return first.seen + last.seen


write(rows=run_cells({"Hugging Face `Trainer`": train}))
