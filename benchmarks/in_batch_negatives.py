"""How often near-duplicates meet in a batch, where others of the batch serve as negatives.

    python benchmarks/in_batch_negatives.py

Generated sentences: half of them alone, half in families of five, a sentence and copies in which
one word in twelve is another (two in ten copies: none). They are batched by sentence-transformers'
own batch samplers, which compare texts, and by designs, which see features of the texts.
"""

from __future__ import annotations

import timing  # isort: skip  (sets the number of threads before NumPy is loaded)


from time import process_time

import numpy as np
import torch
from datasets import Dataset, disable_progress_bars
from rich.console import Console
from rich.table import Table
from sentence_transformers import DefaultBatchSampler
from sentence_transformers.base.sampler import NoDuplicatesBatchSampler
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from torch.utils.data import RandomSampler

import dmsgd
from dmsgd.torch import DiverseSampler

N, K, FAMILY, WORDS, LENGTH, DIRECTIONS = 20_000, 64, 5, 5000, 12, 256
EPOCHS = 5


def sentences(seed=0):
    """Return texts and the family of each, in random order."""
    rng = np.random.default_rng(seed)
    common = 1 / np.arange(10, WORDS + 10)
    texts, family = [], []
    while len(texts) < N:
        first = rng.choice(WORDS, LENGTH, p=common / common.sum())
        copies = FAMILY if len(texts) < N // 2 else 1
        for copy in range(copies):
            words = first.copy()
            if copy and rng.random() > 0.2:
                words[rng.integers(LENGTH)] = rng.integers(WORDS)
            texts.append(" ".join(f"w{word}" for word in words))
            family.append(len(texts) - copy)
    order = rng.permutation(N)
    return [texts[i] for i in order], np.array(family)[order]


def features(texts):
    """Return what stands in for a model's embeddings: leading directions of words, unit rows."""
    counts = TfidfVectorizer(token_pattern=r"\S+").fit_transform(texts)
    X = TruncatedSVD(DIRECTIONS, random_state=0).fit_transform(counts)
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def epochs(batches):
    """Return the batches of some epochs, and CPU seconds of one of them."""
    begun, found = process_time(), []
    for epoch in range(EPOCHS):
        if hasattr(batches, "set_epoch"):
            batches.set_epoch(epoch)
        found += list(batches)
    return found, (process_time() - begun) / len(found)


def pairs(values, batches):
    """Return how many pairs of equal values each batch has."""
    counts = (np.unique(values[batch], return_counts=True)[1] for batch in map(np.array, batches))
    return np.array([(count * (count - 1) // 2).sum() for count in counts])


def main():
    disable_progress_bars()
    torch.set_num_threads(1)
    texts, family = sentences()
    wording = np.unique(texts, return_inverse=True)[1]
    data = Dataset.from_dict({"anchor": texts, "positive": [f"{text} +" for text in texts]})
    X = features(texts)
    same = {"batch_size": K, "drop_last": True, "generator": torch.Generator(), "seed": 0}
    alone = {"batch_size": K, "drop_last": True}
    drawn = dmsgd.diversify(X, k=K, target="uniform", kernel="linear", normalize=False)

    def diverse(make):
        return lambda: DefaultBatchSampler(DiverseSampler(make()), **alone)

    ways = {
        "random": lambda: DefaultBatchSampler(RandomSampler(data), **alone),
        "NO_DUPLICATES": lambda: NoDuplicatesBatchSampler(data, **same),
        "NO_DUPLICATES_HASHED": lambda: NoDuplicatesBatchSampler(
            data, precompute_hashes=True, precompute_num_proc=1, **same
        ),
        "diversify(X, k)": diverse(
            lambda: dmsgd.diversify(X, k=K, target="uniform", kernel="linear", normalize=False)
        ),
        "Partition(diversify(X, k))": diverse(lambda: dmsgd.Partition(drawn)),
        "Partition(cells(X, k))": diverse(lambda: dmsgd.Partition(dmsgd.cells(X, K))),
    }
    table = Table(
        title=f"Near-duplicates in batches of {K} of {N:,} sentences; {timing.processor()}"
    )
    for name in ("batches", "with near-duplicates", "with equal texts", "pairs", "seen", "time"):
        table.add_column(name, justify="left" if name == "batches" else "right")
    for name, make in ways.items():
        make().__iter__().__next__()  # compile
        batches, seconds = epochs(make())
        near, equal = pairs(family, batches), pairs(wording, batches)
        seen = len(np.unique(np.concatenate(batches[: N // K]))) / N
        table.add_row(
            name, f"{(near > 0).mean():.1%}", f"{(equal > 0).mean():.1%}", f"{near.mean():.3f}",
            f"{seen:.0%}", timing.human(seconds),
        )  # fmt: skip
    Console(width=140).print(table)


if __name__ == "__main__":
    main()
