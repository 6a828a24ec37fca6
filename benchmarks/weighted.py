"""What weighted batches cost, and whether items come as often as their weights ask for.

    python benchmarks/weighted.py
    python benchmarks/weighted.py --items 1000000

Beside `Weighted` stand torch's WeightedRandomSampler as it is by default, with replacement, where
one call draws a whole epoch and an item may come twice in a batch; and, without replacement, the
same sampler and NumPy's choice, which draw one item after the other in proportion to the weights
that are left, so that heavy items come less often than asked for and light ones more.
"""

from __future__ import annotations

import timing  # isort: skip  (sets the number of threads before NumPy is loaded)

import argparse

import numpy as np
from rich.console import Console
from rich.table import Table

import dmsgd

#: Draws of the table of errors, and its items and batch size.
DRAWS, ITEMS, PLACES = 20_000, 1000, 64
#: Items and batch sizes of the table of costs.
SIZES = (10_000, 64), (1_000_000, 64), (10_000_000, 64), (10_000_000, 256)


def weights_of(n):
    """Return log-normal weights: the heaviest hundredth has a tenth of all."""
    return np.random.default_rng(0).lognormal(size=n)


def numpy_draw(weights, k):
    """Return what makes one draw with NumPy."""
    rng, p = np.random.default_rng(1), weights / weights.sum()
    return lambda: rng.choice(weights.size, size=k, replace=False, p=p)


def torch_draw(weights, samples, replacement):
    """Return what makes one call of torch's sampler."""
    import torch
    from torch.utils.data import WeightedRandomSampler

    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(1)
    sampler = WeightedRandomSampler(weights, samples, replacement, generator)
    return lambda: list(sampler)


def costs(sizes):
    """Print set-up, memory and the time per batch."""
    table = Table(title="Weighted batches: CPU time, one thread")
    for name in ("n", "k", "set-up", "peak bytes per item", "per batch", "torch (default)",
                 "NumPy, no replacement", "torch, no replacement"):  # fmt: skip
        table.add_column(name, justify="right")
    dmsgd.Weighted(weights=weights_of(100), k=5).sample(1, seed=0)  # compile
    for n, k in sizes:
        weights = weights_of(n)

        def make(weights=weights, k=k):
            design = dmsgd.Weighted(weights=weights, k=k)
            design.sample(1, seed=0)
            return design

        setup = timing.cpu_seconds(make, rounds=1, least=0.0)
        memory, design = timing.peak_bytes(make) / n, make()
        draws = 500
        ours, epoch, *others = timing.medians(
            lambda design=design, draws=draws: design.sample(draws, seed=1),
            torch_draw(weights, n, True), numpy_draw(weights, k), torch_draw(weights, k, False),
            rounds=3,
        )  # fmt: skip
        table.add_row(
            f"{n:,}", str(k), timing.human(setup), f"{memory:.0f}" if n > 10**5 else "",
            *(timing.human(each) for each in (ours / draws, epoch * k / n, *others)),
        )  # fmt: skip
    Console(width=120).print(table)


def errors():
    """Print how often items come, beside what was asked for."""
    weights = weights_of(ITEMS)
    design = dmsgd.Weighted(weights=weights, k=PLACES)
    b = design.inclusion()
    asked = b / b.sum()
    one_by_one = {
        "NumPy, no replacement": numpy_draw(asked, PLACES),
        "torch, no replacement": torch_draw(asked, PLACES, False),
    }
    found = {
        "Weighted": design.sample(DRAWS, seed=1),
        "torch (default)": np.reshape(torch_draw(asked, DRAWS * PLACES, True)(), (DRAWS, PLACES)),
        **{name: np.array([draw() for _ in range(DRAWS)]) for name, draw in one_by_one.items()},
    }
    table = Table(
        title=f"Drawn over asked for, {DRAWS:,} batches of {PLACES} out of {ITEMS:,}, by weight"
    )
    groups = {
        "lightest tenth": slice(0, 100), "middle": slice(450, 550),
        "heaviest tenth": slice(900, 1000), "heaviest hundredth": slice(990, 1000),
    }  # fmt: skip
    table.add_column("")
    for name in (*groups, "noise of the lightest", "batches with an item twice"):
        table.add_column(name, justify="right")
    order = np.argsort(b)
    noise = 1 / np.sqrt(DRAWS * b[order[:100]].sum())
    for name, batches in found.items():
        drawn = np.bincount(batches.ravel(), minlength=ITEMS)[order] / DRAWS
        shares = [drawn[part].sum() / b[order][part].sum() - 1 for part in groups.values()]
        twice = (np.diff(np.sort(batches)) == 0).any(axis=1).mean()
        table.add_row(
            name, *(f"{share:+.2%}" for share in shares), f"± {noise:.2%}", f"{twice:.0%}"
        )
    Console(width=120).print(table)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--items", type=int, help="only the rows of costs with this n")
    only = parser.parse_args().items
    print(timing.processor())
    costs([(n, k) for n, k in SIZES if only in (None, n)])
    errors()
