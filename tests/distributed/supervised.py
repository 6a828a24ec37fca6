"""TRL's SFTTrainer: the method of the Hugging Face Trainer, on the dataset that TRL prepares."""

from functools import partial

from datasets import Dataset
from transformers import GPT2Config, GPT2LMHeadModel
from trl import SFTConfig, SFTTrainer

from common import STEPS, WORLD, design, refusal, run_cells
from dmsgd.torch import loader
from hugging_face import train
from texts import VOCABULARY, WORDS, tokenizer


class Diverse(SFTTrainer):
    def get_train_dataloader(self):
        batches = loader(
            self.train_dataset, design(), steps=STEPS, collate_fn=self.data_collator,
            accumulation=self.args.gradient_accumulation_steps,
            num_workers=self.args.dataloader_num_workers,
        )  # fmt: skip
        return self.accelerator.prepare(batches)


def make(options, **more):
    config = GPT2Config(vocab_size=len(VOCABULARY), n_positions=8, n_embd=8, n_layer=1, n_head=1)
    trainer = Diverse(
        GPT2LMHeadModel(config),
        SFTConfig(**options, **more, max_length=8),
        train_dataset=Dataset.from_dict({"text": [f"{word} {word}" for word in WORDS]}),
        processing_class=tokenizer(),
    )
    return trainer, lambda inputs: inputs["input_ids"][:, 0].tolist()


def main():
    rows = run_cells({"TRL's `SFTTrainer`": partial(train, make)})
    if WORLD > 1:
        return {"rows": rows}
    packed = partial(make, packing=True, packing_strategy="wrapped")
    return {"rows": rows, "refused": refusal(train, packed, 1, 0, 1, 0)}
