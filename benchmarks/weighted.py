"""What weighted batches cost, and whether items are seen as often as they should be.

    python benchmarks/weighted.py

Beside `Weighted` stand NumPy's choice and torch's WeightedRandomSampler, both without replacement:
they draw one item after the other in proportion to the weights that are left, so that heavy items
are seen less often than asked for and light ones more.
"""

from __future__ import annotations

import timing  # isort: skip  (sets the number of threads before NumPy is loaded)


import numpy as np
from rich.console import Console
from rich.table import Table

import dmsgd

#: Draws of the table of errors, and its items and batch size.
DRAWS, ITEMS, PLACES = 20_000, 1000, 64


def weights_of(n):
    """Return log-normal weights: the heaviest hundredth has a tenth of all."""
    return np.random.default_rng(0).lognormal(size=n)


def numpy_draw(weights, k):
    """Return what makes one draw with NumPy."""
    rng, p = np.random.default_rng(1), weights / weights.sum()
    return lambda: rng.choice(weights.size, size=k, replace=False, p=p)


def torch_draw(weights, k):
    """Return what makes one draw with torch."""
    import torch
    from torch.utils.data import WeightedRandomSampler

    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(1)
    sampler = WeightedRandomSampler(weights, k, replacement=False, generator=generator)
    return lambda: list(sampler)


def costs():
    """Print set-up, memory and draws, for n to ten million."""
    table = Table(title="Weighted batches: CPU time, one thread")
    for name in ("n", "k", "set-up", "peak bytes an item", "draw", "NumPy", "torch"):
        table.add_column(name, justify="right")
    dmsgd.Weighted(weights=weights_of(100), k=5).sample(1, seed=0)  # compile
    for n, k in ((10_000, 64), (1_000_000, 64), (10_000_000, 64), (10_000_000, 256)):
        weights = weights_of(n)

        def make(weights=weights, k=k):
            design = dmsgd.Weighted(weights=weights, k=k)
            design.sample(1, seed=0)
            return design

        setup = timing.cpu_seconds(make, rounds=1, least=0.0)
        memory, design = timing.peak_bytes(make) / n, make()
        draws = 500
        ours, theirs, torchs = timing.medians(
            lambda design=design, draws=draws: design.sample(draws, seed=1),
            numpy_draw(weights, k), torch_draw(weights, k), rounds=3,
        )  # fmt: skip
        ours /= draws
        table.add_row(
            f"{n:,}", str(k), timing.human(setup), f"{memory:.0f}" if n > 10**5 else "",
            timing.human(ours), *(f"{timing.human(s)} ({s / ours:.3g}x)" for s in (theirs, torchs)),
        )  # fmt: skip
    Console(width=120).print(table)


def errors():
    """Print how often items are seen, beside what was asked for."""
    weights = weights_of(ITEMS)
    design = dmsgd.Weighted(weights=weights, k=PLACES)
    b = design.inclusion()
    asked = b / b.sum()
    found = {"Weighted": np.bincount(design.sample(DRAWS, seed=1).ravel(), minlength=ITEMS)}
    for name, draw in (("NumPy", numpy_draw(asked, PLACES)), ("torch", torch_draw(asked, PLACES))):
        counts = np.zeros(ITEMS)
        for _ in range(DRAWS):
            counts[draw()] += 1
        found[name] = counts
    table = Table(
        title=f"Seen over asked for, {DRAWS:,} draws of {PLACES} out of {ITEMS:,}, by weight"
    )
    groups = {
        "lightest tenth": slice(0, 100), "middle": slice(450, 550),
        "heaviest tenth": slice(900, 1000), "heaviest hundredth": slice(990, 1000),
    }  # fmt: skip
    table.add_column("")
    for name in (*groups, "expected noise"):
        table.add_column(name, justify="right")
    order = np.argsort(b)
    noise = 1 / np.sqrt(DRAWS * b[order[:100]].sum())
    for name, counts in found.items():
        seen = counts[order] / DRAWS
        shares = [seen[part].sum() / b[order][part].sum() - 1 for part in groups.values()]
        table.add_row(name, *(f"{share:+.2%}" for share in shares), f"± {noise:.2%}")
    Console(width=120).print(table)


if __name__ == "__main__":
    print(timing.processor())
    costs()
    errors()
