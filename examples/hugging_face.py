"""The Hugging Face Trainer: one method is overridden, and a killed run goes on.

    torchrun --standalone --nproc_per_node 2 examples/hugging_face.py
    python examples/hugging_face.py                 # one process

DDP:     the Trainer deals out batches itself, and the sampler leaves draws whole.
Resume:  `resume_from_checkpoint`, as always; in mid-epoch, in any epoch, with any workers.
"""

import os
import tempfile
from typing import Any

import torch
from torch.utils.data import DataLoader
from transformers import Trainer, TrainingArguments

import dmsgd
from data import long_tailed_digits

X, y, test_X, test_y = map(torch.from_numpy, long_tailed_digits())
dataset: Any = [{"inputs": inputs, "labels": label} for inputs, label in zip(X, y, strict=True)]
processes = int(os.environ.get("WORLD_SIZE", "1"))
folder = tempfile.mkdtemp()  # each process has its own here, so that only one alone resumes


class Softmax(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(64, 10)

    def forward(self, inputs: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"loss": torch.nn.functional.cross_entropy(self.layer(inputs), labels)}


def train(design: dmsgd.Design, checkpoint: str | None = None) -> Softmax:
    class Diverse(Trainer):
        def get_train_dataloader(self) -> DataLoader[Any]:
            loader = dmsgd.torch.loader(dataset, design, collate_fn=self.data_collator)
            return self.accelerator.prepare(loader)  # type: ignore[no-any-return]

    torch.manual_seed(0)
    model = Softmax()
    arguments = TrainingArguments(
        folder, per_device_train_batch_size=20 // processes, num_train_epochs=6, save_steps=50,
        save_strategy="steps", learning_rate=0.5, lr_scheduler_type="constant", optim="sgd",
        max_grad_norm=0, use_cpu=True, report_to=[], disable_tqdm=True,
    )  # fmt: skip
    Diverse(model, arguments, train_dataset=dataset).train(resume_from_checkpoint=checkpoint)
    return model


diverse = dmsgd.diversify(X, k=20, labels=y, w=0.7)
for name, design in {"uniform": dmsgd.Uniform(len(X), k=20), "diverse": diverse}.items():
    accuracy = ((last := train(design)).layer(test_X).argmax(1) == test_y).float().mean()
    if os.environ.get("RANK", "0") == "0":
        print(f"{name}: balanced test accuracy {accuracy:.3f} ({processes} processes)")
if processes == 1:
    again = train(diverse, f"{folder}/checkpoint-50")
    print("resumed in epoch 2, same weights:", torch.equal(last.layer.weight, again.layer.weight))
