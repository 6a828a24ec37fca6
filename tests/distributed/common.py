"""What the framework scripts share: a design, data whose items are their own numbers, the cells.

A script's `main` trains in one framework, in as many processes as there are, and goes through all
cells of its table rows. `launch.py` runs several in the same processes: starting those costs most.
"""

import json
import os
import sys
from pathlib import Path

import numpy as np
import torch

import dmsgd

N, K, STEPS, EPOCHS = 48, 8, 5, 3
OUT = Path(sys.argv[1]) if len(sys.argv) > 1 else None
WORLD = int(os.environ.get("WORLD_SIZE", "1"))

EARLY, LATE = 2, 2 * STEPS + 3  # steps after which a run is killed: in epoch 0, in epoch 2

#: What every framework is asked for, and the runs that show it.
CELLS = {
    "one batch per step": [{"epochs": 1}],
    "epochs": [{}],
    "workers 0, 1, 4": [{"workers": 1}, {"workers": 4}],
    "resumed in epoch 0": [{"stop": EARLY, "workers": 1}],
    "resumed in epoch 2": [{"stop": LATE, "workers": 1}],
    "accumulation": [{"accumulation": 2}],
}
TWO_RANKS = {
    "two ranks": [{}, {"accumulation": 2, "workers": 1}],
    "two ranks, resumed in epoch 0": [{"stop": EARLY}],
    "two ranks, resumed in epoch 2": [{"stop": LATE, "accumulation": 2}],
}


def design():
    return dmsgd.diversify(np.random.default_rng(0).normal(size=(N, 12)), k=K)


class Items(torch.utils.data.Dataset):
    def __len__(self):
        return N

    def __getitem__(self, index):
        return torch.tensor([float(index)])


def rank():
    return int(os.environ.get("RANK", "0"))


def numbers(x):
    return x.flatten().int().tolist()


def run_cells(rows, leave=False):
    """Run every cell of these rows, a dict from a row's name to its train function.

    train(epochs, workers, accumulation, stop) returns the items of each pass that this rank saw. It
    is killed after `stop` steps and begun anew from what it saved. With `leave`, the first refusal
    of several ranks stands for all that come after it.
    """
    results = {}
    for row, train in rows.items():
        refused = None
        for cell, runs in (TWO_RANKS if WORLD > 1 else CELLS).items():
            for given in runs:
                asked = {"epochs": EPOCHS, "workers": 0, "accumulation": 1, "stop": 0, **given}
                try:
                    found = {"refused": refused} if refused else {"batches": train(**asked)}
                except (ValueError, RuntimeError, TypeError, AttributeError) as error:
                    found = {"refused": str(error)}
                refused = found.get("refused") if leave and WORLD > 1 else None
                results.setdefault(row, {}).setdefault(cell, []).append({**asked, **found})
    return results


def refusal(action, *args):
    """Return the words with which an action is refused, None if it is not."""
    try:
        action(*args)
    except (RuntimeError, ValueError, TypeError) as error:
        return str(error)


def write(results):
    """Save what this rank saw, and end the process at once.

    gloo's threads abort one exit in thirty, after Python's own.
    """
    (OUT / f"rank{rank()}.json").write_text(json.dumps(results))
    sys.stdout.flush()
    os._exit(0)
