"""What a draw costs: against the floor (one QR of a k x k matrix), against peers, and as N grows.

    python benchmarks/draws.py            # generated data, and the paper's where DMSGD_DATA has it
    python benchmarks/draws.py --growth FILE    # as n grows, as benchmarks/growth.csv

Any exact draw orthogonalises k vectors of length k, so one LAPACK QR (dgeqrf) is the floor.
"""

from __future__ import annotations

import timing  # isort: skip  (sets the number of threads before NumPy is loaded)

import argparse
import warnings
from functools import partial
from itertools import count
from pathlib import Path

import numpy as np
import polars as pl
import problems
from rich.console import Console
from rich.table import Table
from scipy.linalg import lapack

import dmsgd
from dmsgd.samplers import reference


def qr(k):
    """Return what decomposes a k x k matrix."""
    A = np.asfortranarray(np.random.default_rng(0).normal(size=(k, k)))
    lwork = int(lapack.dgeqrf_lwork(k, k)[0])
    return lambda: lapack.dgeqrf(A, lwork=lwork)


def draw_and_floor(design):
    """Return the CPU seconds of a draw and of a QR, and their ratio, measured in turns."""
    draws = max(1, min(200, 10**8 // design.k**3))
    ours, floor = timing.medians(lambda: design.sample(draws, seed=1), qr(design.k))
    return ours / draws, floor


def dppy_seconds(spectrum, k):
    """DPPy's fastest exact k-DPP sampler on the same spectrum, and whether it overflowed."""
    if k > 200:
        return None, False
    from dppy.finite_dpps import FiniteDPP

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        peer = FiniteDPP("likelihood", L_eig_dec=(spectrum.values[::-1], spectrum.vectors[:, ::-1]))
        try:
            peer.sample_exact_k_dpp(size=k, mode="GS_bis", random_state=0)
            seconds = timing.cpu_seconds(
                lambda: peer.sample_exact_k_dpp(size=k, mode="GS_bis"), rounds=2, least=0.0
            )
        except (ValueError, IndexError, FloatingPointError):
            return None, True
    return seconds, any("overflow" in str(w.message) for w in caught)


def reference_seconds(spectrum, k):
    """The paper's algorithm, O(N k³); left out where one draw takes minutes."""
    if spectrum.n * k**3 > 1e11:
        return None
    design = dmsgd.KDPP(spectrum, k, sampler=reference)
    return timing.cpu_seconds(lambda: design.sample(1, seed=0), rounds=1, least=0.0)


def torch_seconds(n, k, replacement=False):
    """Weighted sampling in torch: no diversity, for scale. Its samplers replace by default."""
    import torch

    torch.set_num_threads(1)
    weights = torch.rand(n, dtype=torch.float64)
    return timing.cpu_seconds(lambda: torch.multinomial(weights, k, replacement), rounds=2)


def ratio(seconds, ours):
    return "-" if seconds is None else f"{timing.human(seconds)} ({seconds / ours:.3g}x)"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="generated data and small N only")
    parser.add_argument("--growth", metavar="FILE", type=Path, help="time per batch as n grows")
    options = parser.parse_args()
    timing.load_loops()
    if options.growth:
        options.growth.write_text(f"# {timing.processor()}\n{growth_rows().write_csv()}")
        return
    quick = options.quick
    work = [("generated", lambda: problems.gaussian(5485, 1000), (10, 50, 80))]
    if not quick:
        work.append(("generated", lambda: problems.gaussian(5485, 1500), (50, 80)))
        work.append(("generated", lambda: problems.gaussian(30_000, 794), (100, 200)))
        work.append(("generated", lambda: problems.gaussian(20_000, 2200), (512, 800, 1024)))
        if problems.data_folder():
            work.append(("R8", problems.r8, (50, 80)))
            work.append(("MNIST half", problems.mnist_half, (100, 200)))
    console = Console(width=140)
    table = Table(title="One draw: CPU time, one thread")
    columns = ("data", "N", "rank", "k", "QR floor", "dmsgd", "x QR", "DPPy", "reference", "torch")
    for name in columns:
        table.add_column(name, justify="left" if name == "data" else "right")
    for name, features, sizes in work:
        spectrum = dmsgd.kernels.exact(dmsgd.kernels.Linear(features()))
        for k in sizes:
            ours, floor = draw_and_floor(dmsgd.KDPP(spectrum, k))
            peer, overflow = dppy_seconds(spectrum, k)
            plain = reference_seconds(spectrum, k)
            table.add_row(
                name, f"{spectrum.n:,}", str(spectrum.rank), str(k), timing.human(floor),
                timing.human(ours), f"{ours / floor:.1f}",
                ratio(peer, ours) + (" overflows" if overflow else ""),
                ratio(plain, ours), ratio(torch_seconds(spectrum.n, k), ours),
            )  # fmt: skip
    console.print(timing.processor())
    console.print(table)
    one_per_call(console)
    growth(console, (10_000, 100_000) if quick else (10_000, 100_000, 1_000_000))


def one_per_call(console, n=500, k=10):
    """A draw of a small problem, one per call of `sample` and in lots of 1,000."""
    design = dmsgd.diversify(problems.gaussian(n, n), k, kernel="linear")
    seeds = count()
    alone, later, lot = timing.medians(
        lambda: design.sample(1, seed=next(seeds)),
        lambda: design.sample(1, seed=0, start=next(seeds)),
        lambda: design.sample(1000, seed=0),
    )
    console.print(
        f"{n} x {n}, k = {k}: {timing.human(lot / 1000)} per draw in lots of 1,000; one per call "
        f"{timing.human(alone)} (seed=i) or {timing.human(later)} (seed=0, start=i)"
    )


def growth_rows(counts=(1_000, 10_000, 100_000, 1_000_000), d=256, k=64):
    """Return CPU seconds per batch by n, ours beside DPPy's and torch's weighted samplers."""
    rows = []
    for n in counts:
        spectrum = dmsgd.kernels.exact(dmsgd.kernels.Linear(problems.gaussian(n, d)))
        draw = partial(dmsgd.KDPP(spectrum, k).sample, 200, seed=1)
        rows.append({
            "n": n, "dmsgd": timing.medians(draw)[0] / 200, "DPPy": dppy_seconds(spectrum, k)[0],
            "torch, without replacement": torch_seconds(n, k),
            "torch, with replacement": torch_seconds(n, k, replacement=True),
        })  # fmt: skip
    return pl.DataFrame(rows)


def growth(console, counts, d=256, k=64):
    """Draw time as N grows, at the same rank and k."""
    table = Table(title=f"As N grows: d = {d}, k = {k}")
    for name in ("N", "dmsgd", "against the first N", "x QR", "torch without replacement"):
        table.add_column(name, justify="right")
    spectra = [dmsgd.kernels.exact(dmsgd.kernels.Linear(problems.gaussian(n, d))) for n in counts]
    designs = [dmsgd.KDPP(spectrum, k) for spectrum in spectra]
    works = (partial(design.sample, 200, seed=1) for design in designs)
    *seconds, floor = timing.medians(*works, qr(k))
    for n, ours in zip(counts, seconds, strict=True):
        table.add_row(
            f"{n:,}", timing.human(ours / 200), f"{ours / seconds[0]:.2f}",
            f"{ours / 200 / floor:.1f}", timing.human(torch_seconds(n, k)),
        )  # fmt: skip
    console.print(table)
    console.print(f"From the start of Python to the first batch, nothing compiled: "
                  f"{timing.first_use():.1f} s of CPU time; to the first 1,000 batches: "
                  f"{timing.first_use(1000):.1f} s")  # fmt: skip


if __name__ == "__main__":
    main()
