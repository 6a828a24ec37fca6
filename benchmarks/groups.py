"""Groups apart: `OnePerGroup` beside NO_DUPLICATES of sentence-transformers, CPU time per batch.

python benchmarks/groups.py
"""

import logging
from time import process_time

import numpy as np
import sentence_transformers as st
import torch
from datasets import Dataset, disable_progress_bars
from sentence_transformers.base.sampler import NoDuplicatesBatchSampler

import dmsgd

EPOCHS = 5


def diverse(data, k):
    sampler = dmsgd.torch.DiverseSampler(dmsgd.designs.OnePerGroup(data["question"], k), seed=0)
    return st.DefaultBatchSampler(sampler, k, drop_last=True)


def no_duplicates(data, k, hashes=False):
    options = {"precompute_hashes": hashes, "precompute_num_proc": 1 if hashes else None}
    return NoDuplicatesBatchSampler(data, k, True, generator=torch.Generator(), seed=0, **options)


def hashed(data, k):
    return no_duplicates(data, k, hashes=True)


def measure(n, k, size):
    """Print a row per sampler: n pairs of a question and an answer, `size` answers per question."""
    group = np.arange(n) // size
    questions, answers = [f"question {g}" for g in group], [f"answer {i}" for i in range(n)]
    data = Dataset.from_dict({"question": questions, "answer": answers})
    samplers = {"OnePerGroup": diverse, "NO_DUPLICATES": no_duplicates, "with hashes": hashed}
    for name, make in samplers.items():
        began, times = process_time(), []
        sampler = make(data, k)
        for epoch in range(EPOCHS):
            sampler.set_epoch(epoch)
            batches = list(sampler)
            times.append(process_time() - began)
            began = process_time()
        seen = np.unique(np.concatenate(batches)).size
        two = sum(np.unique(group[batch]).size < len(batch) for batch in batches)
        later = 1e3 * min(times[1:]) / len(batches)
        print(
            f"| {n:,} pairs, {size} per question, k = {k:,} | {name} | {times[0]:.2f} s | "
            f"{later:.3g} ms | {two} of {len(batches)} | {100 * seen / n:.1f} % |"
        )


if __name__ == "__main__":
    logging.disable(logging.WARNING)
    disable_progress_bars()
    dmsgd.designs.OnePerGroup([0, 1], 1).sample(1)
    print("| data | batches of | first epoch | per batch, later | two of a group | items seen |")
    print("|---|---|---|---|---|---|")
    for case in ((30_000, 64, 5), (30_000, 1024, 5), (32_768, 1024, 30), (65_536, 8192, 7)):
        measure(*case)
