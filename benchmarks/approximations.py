"""What each approximation costs in accuracy: against the exact k-DPP, and at scale.

    python benchmarks/approximations.py             # accuracy: tables and a picture in docs/images
    python benchmarks/approximations.py --scale     # MNIST half, a million items: time and memory

Total variation is that of the inclusion probabilities (0: the same, 1: disjoint); the log-det gap
is the mean of log det L_Y over draws, exact minus approximate, under the true kernel.

A chain has no closed form, so its inclusion is counted over independent chains, one draw each.
As many draws of the exact k-DPP, counted alike, show the total variation that noise alone gives;
they are made ten times, for its mean and its spread.
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
from dmsgd.kernels.pivoted_cholesky import factor

SIZES = (50, 100, 200, 400, 800)
STEPS = (0, 10, 100, 1000, 10_000)
SEEDS = 3
DRAWS = 5000
N, K = 2000, 20
CLUSTERS = 12


def clusters(n=N, d=8, seed=0):
    """Items in clusters of very different sizes, and the cluster of each."""
    rng = np.random.default_rng(seed)
    group = rng.choice(CLUSTERS, n, p=(p := 0.6 ** np.arange(CLUSTERS)) / p.sum())
    return 3 * rng.normal(size=(CLUSTERS, d))[group] + rng.normal(size=(n, d)), group


def kernels():
    """The two problems: a spectrum that decays fast, and one that decays slowly."""
    return {
        "RBF": dmsgd.kernels.RBF(clusters()[0], 3.0),
        "linear": dmsgd.kernels.Linear(problems.gaussian(N, 1000)),
    }


def routes():
    """Each approximation as a function (kernel, size, seed) -> spectrum."""
    return {
        "pivoted Cholesky": lambda L, size, seed: dmsgd.kernels.pivoted_cholesky(
            L, size, seed=seed
        ),
        "Nyström, uniform": lambda L, size, seed: dmsgd.kernels.nystrom(L, size, seed=seed),
        "Nyström, k-means": lambda L, size, seed: dmsgd.kernels.nystrom(
            L, size, "kmeans", seed=seed
        ),
        "coreset": lambda L, size, seed: dmsgd.kernels.coreset(L, size, seed=seed),
    }


class Truth:
    """The exact k-DPP of a kernel, and how far other batches are from it."""

    def __init__(self, kernel):
        self.design = dmsgd.KDPP(kernel, K)
        self.matrix = kernel.block(np.arange(N), np.arange(N))
        self.b = self.design.inclusion()
        self.level = self.log_dets(self.design.sample(4 * DRAWS, seed=1)).mean()

    def log_dets(self, batches):
        """log det L_Y of each batch, under the true kernel."""
        return np.linalg.slogdet(self.matrix[batches[:, :, None], batches[:, None, :]])[1]

    def variation(self, b):
        """Total variation of these inclusion probabilities."""
        return np.abs(b - self.b).sum() / (2 * K)

    def gap(self, batches):
        """Mean log-det gap of these batches."""
        return self.level - self.log_dets(batches).mean()

    def counted(self, batches):
        """Total variation, by counting, and log-det gap of batches whose law is unknown."""
        frequency = np.bincount(batches.ravel(), minlength=N) / len(batches)
        return self.variation(frequency), self.gap(batches)


def by_size(kernel, truth):
    """Return {route: [(trace error, total variation, log-det gap) for each size]}."""
    out = {}
    for name, make in routes().items():
        rows = []
        for size in SIZES:
            found = []
            for seed in range(SEEDS):
                spectrum = make(kernel, size, seed)
                design = dmsgd.KDPP(spectrum, K)
                gap = truth.gap(design.sample(DRAWS, seed=seed))
                found.append((spectrum.trace_error, truth.variation(design.inclusion()), gap))
            rows.append(np.mean(found, axis=0))
        out[name] = rows
    return out


def by_steps(truth):
    """Return [(total variation, log-det gap) for each number of steps], the same of exact draws."""
    kernel = dmsgd.kernels.Precomputed(
        truth.matrix
    )  # the same draws, without the cost of its features
    chains = [dmsgd.designs.SwapChain(kernel, K, burn_in=steps, chain_length=1) for steps in STEPS]
    rows = [truth.counted(chain.sample(DRAWS, seed=0)) for chain in chains]
    noise = [truth.counted(truth.design.sample(DRAWS, seed=seed)) for seed in range(2, 12)]
    return rows, np.mean(noise, axis=0), np.std(noise, axis=0)


def accuracy(console):
    """Print the tables; return {kernel: (by size, by steps, uniform batches)}."""
    results = {}
    chains = Table(title=f"SwapChain by steps before a draw, {DRAWS} chains: variation / gap")
    for name in ("kernel", *map(str, STEPS), "exact draws", "noise of one"):
        chains.add_column(name, justify="left" if name == "kernel" else "right")
    for label, kernel in kernels().items():
        truth = Truth(kernel)
        even = dmsgd.Uniform(N, K)
        uniform = truth.variation(even.inclusion()), truth.gap(even.sample(DRAWS, seed=0))
        sizes, (steps, floor, noise) = by_size(kernel, truth), by_steps(truth)
        results[label] = sizes, (steps, floor, noise), uniform
        table = Table(
            title=f"{label}, N = {N}, k = {K}: trace error / total variation / log-det gap"
        )
        for name in ("route", *map(str, SIZES)):
            table.add_column(name, justify="left" if name == "route" else "right")
        for name, rows in sizes.items():
            table.add_row(name, *(f"{e:.2%} / {d:.3f} / {g:.2f}" for e, d, g in rows))
        console.print(table, f"uniform batches: {uniform[0]:.3f} / {uniform[1]:.2f}")
        cells = (f"{d:.4f} / {g:.3f}" for d, g in (*steps, floor, noise))
        chains.add_row(label, *cells)
    console.print(chains)
    return results


def plot(results, path):
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 7.5), layout="constrained")
    FigureCanvasAgg(figure)
    grid = figure.subplots(2, 3)
    for column, (label, (sizes, _, uniform)) in enumerate(results.items()):
        for row, axes in enumerate(grid[:, column]):
            for (name, rows), marker in zip(sizes.items(), "os^D", strict=True):
                axes.plot(SIZES, [found[1 + row] for found in rows], marker=marker, label=name)
            axes.axhline(uniform[row], color="gray", linestyle=":", label="uniform batches")
            axes.set(xlabel="rank, landmarks or cores", xscale="log", title=f"{label} kernel")
            axes.set_xticks(SIZES, map(str, SIZES))
            axes.set_xticks([], minor=True)
        grid[0, column].set(yscale="log", ylim=(2e-4, 1))
        grid[0, column].set_yticks([0.001, 0.01, 0.1, 1], ["0.001", "0.01", "0.1", "1"])
    places = np.arange(len(STEPS))
    for (label, (_, chains, _)), color in zip(results.items(), ("C4", "C5"), strict=True):
        for row, axes in enumerate(grid[:, 2]):
            steps, floor, noise = ([step[row] for step in chains[0]], *(c[row] for c in chains[1:]))
            axes.plot(places, steps, marker="o", color=color, label=f"{label} kernel")
            band = f"as many exact draws, {label}"
            axes.axhspan(floor - 2 * noise, floor + 2 * noise, color=color, alpha=0.2, label=band)
            axes.set(
                xlabel="steps of a chain before its draw", title=f"SwapChain, {DRAWS:,} chains"
            )
            axes.set_xticks(places, [f"{step:,}" for step in STEPS])
    grid[0, 2].set_ylim(0, 0.08)
    for row, name in zip(grid, ("total variation of inclusion", "log-det gap"), strict=True):
        for axes in row:
            axes.set_ylabel(name)
            axes.grid(alpha=0.3)
    grid[0, 0].legend(loc="lower left")
    grid[0, 2].legend(loc="lower left")
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
        kernel = dmsgd.kernels.RBF(data(), scale)
        began = time.perf_counter()
        spectrum = dmsgd.kernels.pivoted_cholesky(kernel, rank, oversampling=1.0)
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
    kernel = dmsgd.kernels.RBF(clusters(20_000, 200)[0], 20.0)
    seconds = {}
    for block in (1, 128):
        began = time.perf_counter()
        factor(kernel, 512, 0.0, 0, block)
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
    results = accuracy(console)
    pivoting(console)
    plot(results, Path(__file__).parent.parent / "docs/images/approximations.png")


if __name__ == "__main__":
    main()
