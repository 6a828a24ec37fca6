"""What draws cost on a graphics card: draws a second, set-up, training steps, and the same sets.

    python benchmarks/gpu.py                     # everything; --only draws set-up steps sets peers

Times are medians after a warm-up, synchronised. The processor's are those of all its cores.
"""

from __future__ import annotations

import argparse
import statistics
import time
from functools import partial

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

import dmsgd
from dmsgd.inputs.arrays import on_host

DEVICE = torch.device("cuda", 0)
#: Items, rank, k, draws a call, and the rate that the first plain kernels had.
PROBLEMS = [
    (5_485, 1_500, 10, 1_000_000, 15e6),
    (5_485, 1_500, 50, 200_000, 3.1e6),
    (5_485, 1_500, 80, 100_000, 1.0e6),
    (30_000, 794, 100, 65_536, 0.54e6),
    (30_000, 794, 160, 32_768, None),
    (30_000, 794, 200, 32_768, 0.07e6),
    (30_000, 794, 256, 16_384, None),
    (1_000_000, 512, 64, 200_000, 1.9e6),
    (20_000, 2_200, 1_024, 1_024, 35.0),
    (20_000, 6_000, 4_096, 128, None),
]

#: Operations in float64 of large batches, in k³, as counted; 4 of others.
COUNTED = {1_024: 3.2, 4_096: 2.5}


def seconds(work, repeats=5):
    """Return the median seconds of `work`, synchronised, after one call that does not count."""
    found = []
    for _ in range(repeats + 1):
        torch.cuda.synchronize()
        began = time.perf_counter()
        work()
        torch.cuda.synchronize()
        found.append(time.perf_counter() - began)
    return statistics.median(found[1:])


def features(n, d, dtype=torch.float32):
    """Return features whose eigenvalues fall slowly, made on the card."""
    random = torch.Generator(DEVICE).manual_seed(0)
    X = torch.empty((n, d), dtype=dtype, device=DEVICE)
    for part in X.split(max(1, 2**27 // d)):
        part.normal_(generator=random)
    return X.mul_(torch.arange(1, d + 1, device=DEVICE, dtype=dtype) ** -0.5)


def proposals(k):
    """Return how many items a draw proposes, on average."""
    return k * float((1 / np.arange(1, k + 1)).sum())


def rates(n, rank, k, size):
    """Return draws a second on the card, and on all cores if V is not too large."""
    X = features(n, rank)
    card = dmsgd.diversify(X, k=k, kernel="linear", normalize=False)
    rate = size / seconds(partial(card.sample, size, seed=1), 3 if k > 500 else 5)
    if n * rank > 2**26:
        return rate, None
    here = dmsgd.diversify(on_host(X).astype(float), k=k, kernel="linear", normalize=False)
    few = max(16, min(20_000, 4 * 10**10 // k**3))
    here.sample(few, seed=0, workers=-1)  # the first batches of a process are drawn in NumPy
    began = time.perf_counter()
    here.sample(few, seed=1, workers=-1)
    return rate, few / (time.perf_counter() - began)


def draws(console):
    table = Table(title=f"Draws a second, {torch.cuda.get_device_name()}")
    for name in ("N", "rank", "k", "draws/s", "plain kernel", "processor", "TB/s", "TFlop/s"):
        table.add_column(name, justify="right")
    for n, rank, k, size, plain in PROBLEMS:
        rate, processor = rates(n, rank, k, size)
        # Proposals' rows are read in sectors of 32 bytes; a draw takes so many operations.
        entries = 16 if 56 < k <= 256 else 4  # of a sector: in float16, or in float64
        sectors = rank / entries * (1 - (1 - entries / rank) ** k)
        operations = COUNTED.get(k, 4.0) * k**3
        moved, done = rate * proposals(k) * sectors * 32 / 1e12, rate * operations / 1e12
        known = ["-" if found is None else f"{found:.3g}" for found in (rate, plain, processor)]
        table.add_row(f"{n:,}", f"{rank:,}", f"{k:,}", *known, f"{moved:.2f}", f"{done:.2f}")
        torch.cuda.empty_cache()
    console.print(table)


def set_up(console):
    table = Table(title="Set-up on the card: features -> eigenvectors and tables")
    for name in ("what", "seconds", "peak memory"):
        table.add_column(name, justify="right")

    def row(name, work, repeats):
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        took = seconds(work, repeats)
        table.add_row(name, f"{took:.4f}", f"{torch.cuda.max_memory_allocated() / 2**30:.2f} GiB")

    def diversified(X, k, **options):
        dmsgd.diversify(X, k=k, **options).sample(1, seed=0)

    for n, d, k in ((1_000, 64, 32), (10_000, 256, 64), (1_000_000, 512, 64)):
        X = features(n, d)
        row(f"diversify and one draw, {n:,} x {d}, k = {k}", partial(diversified, X, k), 3)
        del X
    X = features(20_000_000, 128)
    row("diversify and one draw, 20,000,000 x 128, k = 64", partial(diversified, X, 64), 1)
    del X
    X = features(20_000, 50)
    exact = {"kernel": "rbf", "scale": 3.0, "spectrum": "exact"}
    row("exact RBF, 20,000 items", partial(diversified, X, 64, **exact), 1)

    def factored(X):
        dmsgd.KDPP(dmsgd.kernels.pivoted_cholesky(dmsgd.kernels.RBF(X, 3.0), 1_000), 64).sample(
            1, seed=0
        )

    row(
        "pivoted Cholesky of rank 1,000, 100,000 items", partial(factored, features(100_000, 50)), 1
    )

    X = features(10_000, 128)
    even = {"target": "uniform", "normalize": True}
    row("prescribed inclusion, 10,000 x 128, k = 64", partial(diversified, X, 64, **even), 1)
    console.print(table)


def network(width):
    """Return a small CNN for images of 28 x 28."""
    layers = torch.nn
    return layers.Sequential(
        layers.Conv2d(1, width, 5, padding=2), layers.ReLU(), layers.MaxPool2d(2),
        layers.Conv2d(width, 2 * width, 5, padding=2), layers.ReLU(), layers.MaxPool2d(2),
        layers.Flatten(), layers.Linear(98 * width, 512), layers.ReLU(), layers.Linear(512, 10),
    ).to(DEVICE)  # fmt: skip


def training(n, k, count, d):
    """Return the seconds of a training step with uniform batches, and with diverse ones."""
    images = features(n, 784).reshape(n, 1, 28, 28)
    classes = torch.randint(10, (n,), device=DEVICE)
    design = dmsgd.diversify(features(n, d), k=k, kernel="linear", normalize=False)
    model = network(32)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)

    def train(batches):
        for batch in batches:
            optimiser.zero_grad(set_to_none=True)
            loss = torch.nn.functional.cross_entropy(model(images[batch]), classes[batch])
            loss.backward()
            optimiser.step()

    def uniform():
        train(torch.randint(n, (k,), device=DEVICE) for _ in range(count))

    def diverse():
        lot = design.chunk if design.chunk > 1 else count
        for start in range(0, count, lot):
            train(design.sample(min(lot, count - start), seed=1, start=start))

    return seconds(uniform, 3) / count, seconds(diverse, 3) / count


def steps(console):
    table = Table(title="A training step of a small CNN, images on the card")
    for name in ("N", "k", "uniform", "diverse", "ratio"):
        table.add_column(name, justify="right")
    for n, k, count, d in ((60_000, 256, 2048, 784), (60_000, 4_096, 128, 6_000)):
        plain, ours = training(n, k, count, d)
        row = f"{n:,}", f"{k:,}", f"{1e3 * plain:.3f} ms", f"{1e3 * ours:.3f} ms"
        table.add_row(*row, f"{ours / plain:.3f}")
        torch.cuda.empty_cache()
    console.print(table)


def sets(console):
    table = Table(title="Draws on the card and on the processor, from the same seed")
    for name in ("N", "d", "k", "spectrum", "draws", "other sets"):
        table.add_column(name, justify="right")
    for n, d, k, decades, size in (
        (5_000, 300, 10, 1, 200_000), (5_000, 300, 50, 1, 20_000), (5_000, 300, 100, 1, 5_000),
        (5_000, 300, 250, 1, 500), (5_000, 100, 50, 8, 20_000), (5_000, 1_100, 1_024, 1, 64),
    ):  # fmt: skip
        X = np.random.default_rng(k).normal(size=(n, d)) * np.logspace(0, -decades / 2, d)
        card = dmsgd.diversify(
            torch.from_numpy(X).to(DEVICE), k=k, kernel="linear", normalize=False
        )
        ours = np.sort(on_host(card.sample(size, seed=1)), axis=1)
        theirs = np.sort(
            dmsgd.diversify(X, k=k, kernel="linear", normalize=False).sample(
                size, seed=1, workers=-1
            ),
            axis=1,
        )
        other = int((ours != theirs).any(axis=1).sum())
        label = f"{decades} decades"
        table.add_row(f"{n:,}", f"{d:,}", f"{k:,}", label, f"{size:,}", f"{other:,}")
    console.print(table)


def jaxdpp_rate(L, k, size):
    """Return draws a second of jaxdpp (github.com/moskomule/jaxdpp: `sampling` on the path)."""
    import jax

    jax.random.PRNGKeyArray = jax.Array  # annotations of an older JAX
    from sampling import kdpp

    kernel = jax.numpy.asarray(L)
    draw = jax.jit(jax.vmap(lambda key: kdpp(kernel, key, k)))
    keys = jax.random.split(jax.random.PRNGKey(0), size)
    return size / seconds(lambda: draw(keys).block_until_ready(), 2)


def tfp_rate(spectrum, k, size):
    """Return draws a second of tensorflow-probability on JAX, whose draws have k items on average.

    Its DPP takes each eigenvector by its own probability.
    """
    import jax
    from scipy.optimize import brentq
    from tensorflow_probability.substrates import jax as tfp

    values = spectrum.values
    scale = np.exp(brentq(lambda x: (1 / (1 + np.exp(-x) / values)).sum() - k, -50, 50))
    everything = np.linalg.qr(np.asarray(spectrum.vectors), mode="complete")[0]
    full = np.zeros(spectrum.n)
    full[: values.size] = scale * values
    law = tfp.distributions.DeterminantalPointProcess(
        jax.numpy.asarray(full, "float32"), jax.numpy.asarray(everything, "float32")
    )
    draw = jax.jit(lambda key: law.sample(size, seed=key))
    return size / seconds(lambda: draw(jax.random.PRNGKey(0)).block_until_ready(), 2)


def peers(console):
    table = Table(title="Other samplers on the same card, draws a second")
    for name in ("N", "rank", "k", "dmsgd", "jaxdpp", "tensorflow-probability"):
        table.add_column(name, justify="right")
    for n, d, k, size in ((1_000, 200, 10, 256), (1_000, 200, 50, 256)):
        X = np.random.default_rng(0).normal(size=(n, d)) * np.arange(1, d + 1) ** -0.5
        design = dmsgd.diversify(
            torch.from_numpy(X).to(DEVICE), k=k, kernel="linear", normalize=False
        )
        row = [f"{200_000 / seconds(partial(design.sample, 200_000, seed=1)):.3g}"]
        for peer in (partial(jaxdpp_rate, X @ X.T), partial(tfp_rate, design.spectrum)):
            try:
                row.append(f"{peer(k, size):.3g}")
            except Exception as error:  # whatever it is, the table says so
                row.append(f"{type(error).__name__}: {str(error)[:60]}")
        table.add_row(f"{n:,}", f"{d:,}", f"{k:,}", *row)
    console.print(table)


PARTS = {"draws": draws, "set-up": set_up, "steps": steps, "sets": sets, "peers": peers}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    console = Console(width=110)
    for name in parser.parse_args().only:
        PARTS[name](console)


if __name__ == "__main__":
    main()
