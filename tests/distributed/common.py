"""What the two-process scripts share: a design, a data set whose items are their own numbers."""

import json
import os
import sys
from pathlib import Path

import numpy as np
import torch

import dmsgd

N, K, STEPS, EPOCHS = 48, 8, 5, 2
OUT = Path(sys.argv[1]) if len(sys.argv) > 1 else None


def design():
    return dmsgd.diversify(np.random.default_rng(0).normal(size=(N, 12)), k=K)


class Items(torch.utils.data.Dataset):
    def __len__(self):
        return N

    def __getitem__(self, index):
        return torch.tensor([float(index)])


def write(rank, batches, **extra):
    """Save what this rank saw: one list of items per backward pass."""
    (OUT / f"rank{rank}.json").write_text(json.dumps({"batches": batches, **extra}))


def rank():
    return int(os.environ.get("RANK", os.environ.get("LOCAL_RANK", "0")))


def leave():
    """End this process at once: gloo's threads abort one exit in thirty, after Python's own."""
    sys.stdout.flush()
    os._exit(0)
