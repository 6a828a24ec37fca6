"""Accelerate with a stateful loader whose batches rank 0 dispatches: only rank 0 can refuse it."""

from functools import partial

from accelerate.utils import DataLoaderConfiguration

from accelerated import cut, train
from common import run_cells


def main():
    config = DataLoaderConfiguration(dispatch_batches=True, use_stateful_dataloader=True)
    row = "Accelerate, both stateful and dispatched"
    return {"rows": run_cells({row: partial(train, cut, config)}, leave=True)}
