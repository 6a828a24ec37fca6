"""What each approximation costs in accuracy: against the exact k-DPP, and at scale.

    python benchmarks/approximations.py             # accuracy: a table and a picture in docs/images
    python benchmarks/approximations.py --scale     # MNIST half, a million items: time and memory

Total variation is that of the inclusion probabilities (0: the same, 1: disjoint); the log-det gap
is the mean of log det L_Y over draws, exact minus approximate, under the true kernel.
"""

from __future__ import annotations

import argparse
import resource
import time
from pathlib import Path

import numpy as np
import problems
from rich.console import Console
from rich.table import Table

import dmsgd
from dmsgd.designs.determinants import log_determinants

SIZES = (50, 100, 200, 400, 800)
SEEDS = 3
K = 20


def clusters(n=2000, d=8, seed=0):
    """Items in clusters of very different sizes."""
    rng = np.random.default_rng(seed)
    group = rng.choice(12, n, p=(p := 0.6 ** np.arange(12)) / p.sum())
    return 3 * rng.normal(size=(12, d))[group] + rng.normal(size=(n, d))


def routes():
    """Each approximation as a function (kernel, size, seed) -> spectrum."""
    return {
        "pivoted Cholesky": lambda L, size, seed: dmsgd.pivoted_cholesky(L, size, seed=seed),
        "Nyström, uniform": lambda L, size, seed: dmsgd.nystrom(L, size, seed=seed),
        "Nyström, k-means": lambda L, size, seed: dmsgd.nystrom(L, size, "kmeans", seed=seed),
        "coreset": lambda L, size, seed: dmsgd.coreset(L, size, seed=seed),
    }


def accuracy(kernel):
    """Return {route: [(trace error, total variation, log-det gap) for each size]}."""
    truth = dmsgd.exact(kernel)
    exact = dmsgd.KDPP(truth, K)
    b, level = exact.inclusion(), mean_log_det(truth, exact)
    out = {}
    for name, make in routes().items():
        rows = []
        for size in SIZES:
            found = []
            for seed in range(SEEDS):
                spectrum = make(kernel, size, seed)
                design = dmsgd.KDPP(spectrum, K)
                distance = np.abs(design.inclusion() - b).sum() / (2 * K)
                found.append((spectrum.trace_error, distance, level - mean_log_det(truth, design)))
            rows.append(np.mean(found, axis=0))
        out[name] = rows
    return out


def mean_log_det(truth, design):
    logs = log_determinants(truth, design.sample(300, seed=0))
    return logs[np.isfinite(logs)].mean()


def tables(console):
    results = {}
    for label, kernel in {
        "RBF": dmsgd.RBF(clusters(), 3.0),
        "linear, 1,000 features": dmsgd.Linear(problems.gaussian(2000, 1000)),
    }.items():
        results[label] = accuracy(kernel)
        table = Table(
            title=f"{label}, N = 2,000, k = {K}: trace error / total variation / log-det gap"
        )
        for name in ("route", *map(str, SIZES)):
            table.add_column(name, justify="left" if name == "route" else "right")
        for name, rows in results[label].items():
            table.add_row(name, *(f"{e:.2%} / {d:.3f} / {g:.2f}" for e, d, g in rows))
        console.print(table)
    return results


def plot(results, path):
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4), layout="constrained")
    FigureCanvasAgg(figure)
    for axes, (label, routes_of) in zip(figure.subplots(1, 2), results.items(), strict=True):
        for (name, rows), marker in zip(routes_of.items(), "os^D", strict=True):
            axes.loglog(SIZES, [row[1] for row in rows], marker=marker, label=name)
        axes.set(title=f"{label}, N = 2,000, k = {K}", xlabel="rank, landmarks or cores")
        axes.set_ylabel("total variation of inclusion probabilities")
        axes.set_xticks(SIZES, map(str, SIZES))
        axes.set_xticks([], minor=True)
        axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(path, dpi=150)
    print(path)


def at_scale(console):
    """Set-up and 1,000 batches, with the peak memory of the process so far."""
    work = [("generated, 1,000,000 x 64", lambda: problems.gaussian(1_000_000, 64), 64, 500, 8.0)]
    if problems.data_folder():
        work.insert(0, ("MNIST half, 30,000 x 784", mnist, 100, 1500, None))
    table = Table(title="RBF at scale: pivoted Cholesky, then 1,000 batches")
    for name in ("data", "k", "rank", "trace error", "set-up", "1,000 batches", "peak memory"):
        table.add_column(name, justify="left" if name == "data" else "right")
    for name, data, k, rank, scale in work:
        kernel = dmsgd.RBF(data(), scale)
        began = time.perf_counter()
        spectrum = dmsgd.pivoted_cholesky(kernel, rank, oversampling=1.0)
        design = dmsgd.KDPP(spectrum, k)
        design.sample(1, seed=0)
        ready = time.perf_counter()
        design.sample(1000, seed=1, workers=-1)
        done = time.perf_counter()
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        table.add_row(
            name, str(k), str(spectrum.rank), f"{spectrum.trace_error:.2%}",
            f"{ready - began:.1f} s", f"{done - ready:.1f} s", f"{peak:.1f} GB",
        )  # fmt: skip
        del kernel, spectrum, design
    console.print(table)


def mnist():
    with np.load(problems.data_folder() / "mnist/mnist.npz") as arrays:
        return arrays["x_train"][:30_000].reshape(30_000, -1) / 255.0


def pivoting(console):
    """Blocked against one-column pivoted Cholesky."""
    kernel = dmsgd.RBF(clusters(20_000, 200), 20.0)
    seconds = {}
    for block in (1, 128):
        began = time.perf_counter()
        dmsgd.pivoted_cholesky(kernel, 512, oversampling=1.0, block=block)
        seconds[block] = time.perf_counter() - began
    console.print(
        f"pivoted Cholesky, N = 20,000, d = 200, rank 512: one column {seconds[1]:.1f} s, "
        f"blocked {seconds[128]:.1f} s ({seconds[1] / seconds[128]:.1f}x)"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scale", action="store_true")
    console = Console(width=140)
    if parser.parse_args().scale:
        at_scale(console)
        return
    results = tables(console)
    pivoting(console)
    plot(results, Path(__file__).parent.parent / "docs/images/approximations.png")


if __name__ == "__main__":
    main()
