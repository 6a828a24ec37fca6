"""sentence-transformers' trainer, with a loss of in-batch negatives: it takes a batch sampler."""

from functools import partial

from datasets import Dataset, DatasetDict
from sentence_transformers import (
    DefaultBatchSampler,
    SentenceTransformer,
    SentenceTransformerTrainer,
    SentenceTransformerTrainingArguments,
)
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss
from sentence_transformers.sentence_transformer.modules import StaticEmbedding
from torch.utils.data import SequentialSampler

from common import OUT, STEPS, WORLD, K, N, design, refusal, run_cells
from dmsgd.torch import DiverseSampler
from hugging_face import train
from texts import WORDS, tokenizer


def diverse(dataset, batch_size, drop_last, **_):
    training = len(dataset) == N
    sampler = DiverseSampler(design(), steps=STEPS) if training else SequentialSampler(dataset)
    return DefaultBatchSampler(sampler, batch_size, drop_last)


def make(options, **datasets):
    words = Dataset.from_dict({"anchor": WORDS, "positive": WORDS})
    encoder = SentenceTransformer(modules=[StaticEmbedding(tokenizer(), embedding_dim=8)])
    trainer = SentenceTransformerTrainer(
        encoder,
        SentenceTransformerTrainingArguments(**options, batch_sampler=diverse),
        loss=MultipleNegativesRankingLoss(encoder),
        **{"train_dataset": words, **datasets},
    )
    return trainer, lambda inputs: inputs["anchor_input_ids"].tolist()


def edges():
    """Several datasets are refused, evaluation on another one is left alone."""
    options = {"output_dir": str(OUT / "edges"), "per_device_train_batch_size": K, "use_cpu": True}
    options |= {"report_to": [], "disable_tqdm": True, "save_strategy": "no", "max_steps": 1}
    trainer, _ = make({**options, "per_device_eval_batch_size": 5})
    words = trainer.train_dataset
    several, _ = make(options, train_dataset=DatasetDict(one=words, two=words))
    trainer.train()
    return {
        "refused": refusal(several.train),
        "evaluated": trainer.evaluate(words.select(range(7)))["eval_samples_per_second"] > 0,
    }


def main():
    rows = run_cells({"sentence-transformers": partial(train, make)})
    return {"rows": rows, **(edges() if WORLD == 1 else {})}
