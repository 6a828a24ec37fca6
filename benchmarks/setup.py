"""What set-up costs: against the bare matrix products and eigendecomposition it needs, and memory.

python benchmarks/setup.py
"""

from __future__ import annotations

import timing  # isort: skip

import time
from functools import partial

import numpy as np
import problems
from rich.console import Console
from rich.table import Table
from scipy import linalg

import dmsgd
from dmsgd.inputs.arrays import as_array
from dmsgd.inputs.arrays import as_matrix


def bare(F):
    """The products and the eigh that any exact route needs, by LAPACK's fastest driver."""
    wide = F.shape[1] >= F.shape[0]
    L = as_array(F @ F.T if wide else F.T @ F)
    _, U = linalg.eigh(L, driver="evd", overwrite_a=True, check_finite=False)
    return U if wide else F @ U


def ours(F, k):
    """Everything up to the first draw: checks, spectrum, tables."""
    return dmsgd.diversify(F, k, kernel="linear", normalize=False).sample(1, seed=0)


def cells_seconds(n=50_000, d=384, k=500):
    """Print the CPU time of `cells` with BLAS threads as they are by default, and with one."""
    code = (
        "import numpy, time, dmsgd\n"
        f"X = numpy.random.default_rng(0).normal(size=({n}, {d}))\n"
        f"began = time.process_time(); dmsgd.cells(X, {k}); print(time.process_time() - began)"
    )
    default, one = (timing.run_python(code, one_thread=each) for each in (False, True))
    print(f"cells, {n:,} x {d}, k = {k}: {timing.human(default)} of CPU time with default threads, "
          f"{timing.human(one)} with one BLAS thread")  # fmt: skip


def inspect_seconds(n=4481, d=784, k=64):
    """Print the CPU time of what `dmsgd inspect` computes, threads by default, after compiling."""
    code = (
        "import numpy, time\n"
        "from dmsgd.diagnostics import inspect\n"
        "rng = numpy.random.default_rng(0)\n"
        f"X = rng.normal(size=({n}, {d})) * numpy.logspace(0, -4, {d})\n"
        f"y = rng.integers(10, size={n})\n"
        f"inspect(X[:1500], {k}, y[:1500])\n"
        f"began = time.process_time(); inspect(X, {k}, y); print(time.process_time() - began)"
    )
    seconds = timing.run_python(code, one_thread=False)
    print(f"inspect, {n:,} x {d} with labels, k = {k}: {timing.human(seconds)} of CPU time")


def rbf_seconds(k=64, d=14):
    """Print what an RBF kernel and a target on it cost, in seconds and eigendecompositions."""
    for n in (1000, 2500):
        X = np.random.default_rng(0).normal(size=(n, d))
        suggest = partial(dmsgd.designs.suggest_scale, X, k)
        scale = 3 * suggest()
        wide = partial(dmsgd.diversify, X, k, kernel="rbf", scale=scale)
        matrix = dmsgd.kernels.RBF(X, scale).block(np.arange(n), np.arange(n))
        works = partial(linalg.eigh, matrix, driver="evd"), wide, partial(wide, target="uniform")
        floor, plain, tilted = (timing.cpu_seconds(work, 1) for work in works)
        fitted = timing.cpu_seconds(suggest)
        print(f"RBF, {n:,} x {d}, k = {k}, 3 x suggest_scale: {timing.human(plain)}, "
              f"{plain / floor:.1f} x eigh; target='uniform' {timing.human(tilted)}, "
              f"{tilted / floor:.1f} x eigh; suggest_scale {timing.human(fitted)}")  # fmt: skip
    for n, columns, size in ((50_000, d, k), (100_000, 2, 50), (100_000, 10, 50)):
        X, began = np.random.default_rng(0).normal(size=(n, columns)), time.process_time()
        spectrum = dmsgd.diversify(X, size, kernel="rbf").spectrum
        took = timing.human(time.process_time() - began)
        print(f"RBF, {n:,} x {columns}, k = {size}: {took}, {spectrum.rank:,} landmarks, "
              f"batch_error {spectrum.batch_error(size):.2%}")  # fmt: skip


def main():
    table = Table(title="Set-up: CPU time, one thread; memory beside the features themselves")
    for name in ("N", "d", "k", "bare products + eigh", "dmsgd", "ratio", "peak / (N x r factor)"):
        table.add_column(name, justify="right")
    shapes = [(5485, 1000, 80), (30_000, 794, 100), (3000, 6000, 50), (1_000_000, 64, 32)]
    kernels = [(lambda n=n, d=d: problems.gaussian(n, d), k, 5) for n, d, k in shapes]
    if problems.data_folder():
        kernels.append((problems.r8, 80, 1))
    for make, k, rounds in kernels:
        F = as_matrix(make())
        n, d = F.shape
        ours(F[:1000], k)  # compile
        floor, seconds = timing.medians(
            partial(bare, F), partial(ours, F, k), rounds=rounds, least=0.0
        )
        factor = n * min(n, d) * 8
        peak = timing.peak_bytes(partial(ours, F, k))
        table.add_row(
            f"{n:,}", str(d), str(k), timing.human(floor), timing.human(seconds),
            f"{seconds / floor:.2f}", f"{peak / factor:.2f}",
        )  # fmt: skip
    Console(width=120).print(table)
    cells_seconds()
    inspect_seconds()
    rbf_seconds()
    print(timing.processor())
    print(f"numpy {np.__version__}, dmsgd {dmsgd.__version__}")


if __name__ == "__main__":
    main()
