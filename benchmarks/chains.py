"""What repulsive batches cost without a spectrum, and how far a chain's draws are from exact ones.

    python benchmarks/chains.py            # a few minutes; --quick for one
    python benchmarks/chains.py --batches  # only the table of batches by other means

Total variation of inclusion: ½ Σ |frequency_i - b_i| / k over as many draws from the chain as from
the exact sampler, whose own value is the floor that counting noise sets.
"""

from __future__ import annotations

import timing  # isort: skip  (sets the number of threads before NumPy is loaded)

import argparse
import time
from functools import partial

import numpy as np
from rich.console import Console
from rich.table import Table

import approximations
import baselines
import dmsgd
import problems
from dmsgd.designs.swap_chain import SwapChain

N, D = 2000, 100


def kernels():
    """Even norms, an RBF kernel, and norms so uneven that a few items are in most batches."""
    X = problems.gaussian(N, D)
    uneven = X * np.exp(np.random.default_rng(1).normal(size=(N, 1)))
    return {
        "linear": dmsgd.kernels.Linear(X),
        "RBF": dmsgd.kernels.RBF(X),
        "uneven norms": dmsgd.kernels.Linear(uneven),
    }


def draw_seconds(design, draws):
    """CPU time of one draw; the seed changes, so that no chain is taken up where it stopped."""
    seeds = iter(range(10**6))
    design.sample(1, seed=next(seeds))
    return timing.cpu_seconds(lambda: design.sample(draws, seed=next(seeds)), rounds=2) / draws


def times(sizes):
    X = problems.gaussian(N, D)
    table = Table(title=f"One draw: CPU time, one thread, N = {N}, {D} features")
    for name in ("k", "KDPP exact", "SwapChain linear", "SwapChain RBF", "k-center"):
        table.add_column(name, justify="right")
    rng = np.random.default_rng(0)
    for k in sizes:
        designs = {
            "exact": dmsgd.KDPP(dmsgd.kernels.Linear(X), k),
            "linear": SwapChain(dmsgd.kernels.Linear(X), k),
            "rbf": SwapChain(dmsgd.kernels.RBF(X), k),
        }
        seconds = [draw_seconds(design, 100) for design in designs.values()]
        seconds.append(timing.cpu_seconds(lambda k=k: baselines.k_center(X, k, rng), rounds=2))
        table.add_row(str(k), *map(timing.human, seconds))
    return table


def variation(batches, b):
    frequency = np.bincount(batches.ravel(), minlength=b.size) / len(batches)
    return 0.5 * np.abs(frequency - b).sum() / batches.shape[1]


def thinning(sizes, multiples, draws):
    table = Table(title=f"Chains of 100 draws as thinning grows: N = {N}, {draws} draws")
    for name in ("kernel", "k", "thin", "variation", "of exact draws"):
        table.add_column(name, justify="left" if name == "kernel" else "right")
    for name, kernel in kernels().items():
        for k in sizes:
            exact = dmsgd.KDPP(kernel, k)
            b = exact.inclusion()
            floor = variation(exact.sample(draws, seed=1), b)
            for multiple in multiples:
                chain = SwapChain(kernel, k, thin=multiple * k)
                found = variation(chain.sample(draws, seed=2, workers=-1), b)
                table.add_row(name, str(k), f"{multiple}k", f"{found:.4f}", f"{floor:.4f}")
    return table


def others(draws):
    """Batches that avoid similar items by any means, on the RBF problem of approximations.py.

    Clusters: different ones in a batch. Evenness: exp(entropy of the clusters' shares) / clusters.
    Items: different ones in all draws; who chases outliers never sees the rest.
    """
    X, group = approximations.clusters()
    kernel, k, rng = dmsgd.kernels.RBF(X, 3.0), approximations.K, np.random.default_rng(0)
    truth = approximations.Truth(kernel)
    pooled = partial(baselines.from_pool, kernel=kernel, k=k, rng=rng)
    ways = {
        "k-DPP": truth.design,
        "SwapChain": SwapChain(kernel, k),
        "k-center": lambda: baselines.k_center(X, k, rng),
        "facility location": lambda: pooled(baselines.facility_location),
        "the same by apricot": lambda: pooled(baselines.apricot_facility_location),
        "uniform": dmsgd.Uniform(kernel.n, k),
    }
    table = Table(title=f"RBF, N = {kernel.n}, k = {k}: batches by any means, CPU time of one")
    for name in ("batches", "draws", "log-det gap", "clusters", "evenness", "items", "time"):
        table.add_column(name, justify="left" if name == "batches" else "right")
    for name, way in ways.items():
        try:
            batches, seconds = timed(way, 5 if "apricot" in name else draws)
        except ImportError:
            continue
        shares = np.bincount(group[batches].ravel()) / batches.size
        even = np.exp(-np.sum(shares * np.log(np.maximum(shares, 1e-300)))) / len(np.unique(group))
        distinct = np.mean([np.unique(row).size for row in group[batches]])
        table.add_row(
            name, str(len(batches)), f"{truth.gap(batches):.2f}", f"{distinct:.1f}",
            f"{even:.2f}", str(np.unique(batches).size), timing.human(seconds),
        )  # fmt: skip
    return table


def timed(way, draws):
    """Return batches of a design, or of a function that makes one, and the CPU seconds of each."""
    if isinstance(way, dmsgd.Design):
        way.sample(1, seed=0)
    began = time.process_time()
    if isinstance(way, dmsgd.Design):
        batches = way.sample(draws, seed=1)
    else:
        batches = np.array([way() for _ in range(draws)])
    return batches, (time.process_time() - began) / draws


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer draws and thinnings")
    parser.add_argument("--batches", action="store_true", help="only batches by other means")
    arguments, console = parser.parse_args(), Console(width=120)
    quick = arguments.quick
    console.print(others(200 if quick else 1000))
    if arguments.batches:
        return
    console.print(times((20, 50)))
    console.print(thinning((20, 50), (1, 10) if quick else (1, 3, 10, 30), 500 if quick else 2000))


if __name__ == "__main__":
    main()
