"""sentence-transformers with in-batch negatives: near-duplicates rarely meet in a batch.

    torchrun --standalone --nproc_per_node 2 examples/in_batch_negatives.py
    python examples/in_batch_negatives.py

DDP:     the trainer deals out batches itself; per_device_train_batch_size is k / processes.
Resume:  `resume_from_checkpoint`, as always; in mid-epoch, in any epoch.
Workers: any number (`dataloader_num_workers`).
"""

import os
import tempfile

import numpy as np
import sentence_transformers as st
import torch
from datasets import Dataset
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss
from sentence_transformers.sentence_transformer.modules import StaticEmbedding
from tokenizers import Tokenizer, models, pre_tokenizers

import dmsgd

k, processes, folder = 32, int(os.environ.get("WORLD_SIZE", "1")), tempfile.mkdtemp()
rng = np.random.default_rng(0)
family = np.concatenate([np.arange(480) // 4, np.arange(480, 960)])  # half come in four versions,
words = rng.integers(500, size=(960, 20))[family]  # each with a word of twenty of its own
words[np.arange(960), rng.integers(20, size=960)] = rng.integers(500, size=960)
texts = [" ".join(map(str, sentence)) for sentence in words]

tokenizer = Tokenizer(models.WordLevel({str(word): word for word in range(500)}, unk_token="0"))
tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
start = torch.from_numpy(rng.normal(size=(500, 128)).astype("float32"))
X = torch.nn.functional.embedding(torch.tensor(words), start).mean(1)  # any model's embeddings
diverse = dmsgd.Partition(dmsgd.cells(X, k))  # every sentence once an epoch


def batches(data: Dataset, batch_size: int, drop_last: bool, **_: object) -> st.DefaultBatchSampler:
    return st.DefaultBatchSampler(dmsgd.torch.DiverseSampler(diverse), batch_size, drop_last)


def train(checkpoint: str | None = None) -> torch.Tensor:
    model = st.SentenceTransformer(modules=[StaticEmbedding(tokenizer, start.numpy().copy())])
    arguments = st.SentenceTransformerTrainingArguments(
        folder, per_device_train_batch_size=k // processes, num_train_epochs=2, save_steps=40,
        batch_sampler=batches, use_cpu=True, report_to=[], disable_tqdm=True,
    )  # fmt: skip
    pairs = Dataset.from_dict({"anchor": texts, "positive": texts})
    loss = MultipleNegativesRankingLoss(model)
    trainer = st.SentenceTransformerTrainer(model, arguments, train_dataset=pairs, loss=loss)
    trainer.train(resume_from_checkpoint=checkpoint)
    return model[0].get_parameter("embedding.weight")


for name, design in {"random": dmsgd.Partition(dmsgd.Uniform(960, k)), "diverse": diverse}.items():
    met = [len(set(family[batch])) < k for batch in design.sample(300, seed=0)]
    print(f"{name}: near-duplicates meet in {100 * np.mean(met):.0f} % of batches")
last = train()
if processes == 1:
    print("resumed in epoch 1, same weights:", torch.equal(last, train(f"{folder}/checkpoint-40")))
