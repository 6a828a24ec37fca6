"""A large array in single precision: set-up and draws in passes, without its eigenvectors.

    DMSGD_MEMORY=1900MB python benchmarks/rows.py [--items 1000000] [--columns 64]

With more memory, or fewer rows, eigenvectors are stored.

The bare work is the Gram matrix, eigh, and one product with the eigenvectors, block by block in
double precision; the first and the last are measured on a part and scaled.
"""

from __future__ import annotations

import timing  # isort: skip

import argparse

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy import linalg

import dmsgd
from dmsgd.inputs.messages import format_bytes
from texts import forget_peak, resident, seconds

#: Rows of the part that is measured for the bare work.
PART = 200_000


def embeddings(items, columns, seed=0):
    """Return rows like those of a network: a few hundred groups of uneven size, and noise."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(300, columns)).astype(np.float32)
    X = np.empty((items, columns), dtype=np.float32)
    for start in range(0, items, PART):
        part = X[start : start + PART]
        rng.standard_normal(out=part, dtype=np.float32)
        part += centres[(300 * rng.random(len(part)) ** 3).astype(int)]
    return X


def bare(X):
    """Return the CPU seconds of the Gram matrix, its eigh, and the product with eigenvectors."""
    scale, part = len(X) / min(PART, len(X)), X[:PART]

    def gram():
        rows = part.astype(float)
        return rows.T @ rows

    product, G = seconds(gram)
    largest, (_, U) = seconds(lambda: linalg.eigh(G, driver="evd"))
    last, _ = seconds(lambda: part.astype(float) @ U)
    return scale * product + largest + scale * last


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--items", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=64)
    parser.add_argument("--batch", type=int, default=64)
    given = parser.parse_args()
    X = embeddings(given.items, given.columns)
    floor = bare(X)
    before = resident("VmRSS")
    forget_peak()
    setup, design = seconds(
        lambda: dmsgd.diversify(X, given.batch, kernel="linear", normalize=False)
    )
    first, _ = seconds(lambda: design.sample(1, seed=0))
    one, _ = seconds(lambda: design.sample(1, seed=1))
    thousand, _ = seconds(lambda: design.sample(1000, seed=1))
    title = f"{given.items:,} x {given.columns} float32, {format_bytes(X.nbytes)}; CPU time"
    table = Table(title=title)
    for name in ("", "bare", "dmsgd"):
        table.add_column(name, justify="right")
    table.add_row("set-up", timing.human(floor), timing.human(setup))
    table.add_row(f"the first batch, k = {given.batch}", "", timing.human(first))
    table.add_row("a single batch", "", timing.human(one))
    table.add_row(f"1,000 batches, {design.chunk:,} per pass", "", timing.human(thousand))
    table.add_row("memory beyond the features", "", format_bytes(resident("VmHWM") - before))
    table.add_row("eigenvectors", "", type(design.spectrum.vectors).__name__)
    Console(width=120).print(table)
    print(timing.processor())


if __name__ == "__main__":
    main()
