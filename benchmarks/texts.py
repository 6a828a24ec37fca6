"""A million documents: set-up and draws from sparse features, without their eigenvectors.

    python benchmarks/texts.py [--items 1000000] [--words 5000] [--blocks]

With --blocks they are files of 50,000 documents in a folder, and memory is that of the process.
The bare work is what any exact route needs: SciPy's sparse Gram matrix, eigh, and one sparse
product with all eigenvectors; the first and the last are measured on a part and scaled.
"""

from __future__ import annotations

import timing  # isort: skip

import argparse
import resource
import tempfile
import time
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy import linalg, sparse

import dmsgd
from dmsgd.inputs.messages import format_bytes

#: Documents of the parts that are measured for the bare work.
PART = 20_000


def parts_of_documents(items, words, length=70, topics=40, seed=0):
    """Yield word counts: words of Zipf-like frequency, most of them from a document's topic."""
    rng = np.random.default_rng(seed)
    shares = np.cumsum(1 / np.arange(2, words + 2))
    for start in range(0, items, 50_000):
        count = min(50_000, items - start)
        places = np.searchsorted(shares / shares[-1], rng.random((count, length)))
        own = rng.integers(topics, size=(count, 1)) * (words // topics)
        places = (places + own * (rng.random(places.shape) < 0.7)) % words
        indices, starts = places.astype(np.int32).ravel(), np.arange(count + 1) * length
        part = sparse.csr_array((np.ones(indices.size), indices, starts), shape=(count, words))
        part.sum_duplicates()
        yield part


def documents(items, words):
    return sparse.vstack(list(parts_of_documents(items, words)), format="csr")


def resident(what):
    """Return VmRSS (now) or VmHWM (the peak since it was last forgotten) of this process."""
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(what))


def forget_peak():
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")


def seconds(work):
    start = time.process_time()
    result = work()
    return time.process_time() - start, result


def bare(X):
    """Return the CPU seconds of the Gram matrix, its eigh, and the product with eigenvectors."""
    scale = X.shape[0] / min(PART, X.shape[0])
    part = X[:PART]
    product, G = seconds(lambda: (part.T @ part).toarray())
    largest, (_, U) = seconds(
        lambda: linalg.eigh(G, driver="evd", overwrite_a=True, check_finite=False)
    )
    last, _ = seconds(lambda: part @ U)
    return scale * product, largest, scale * last


def in_blocks(given):
    """Print what a corpus on disk takes; 1,000 batches are made in one or two passes over it."""
    with tempfile.TemporaryDirectory() as folder:
        sparse.save_npz(f"{folder}/0.npz", sparse.eye_array(99, 9, format="csr"))
        dmsgd.diversify(folder, 8, kernel="linear", normalize=False).sample(1, seed=0)  # compile
        Path(f"{folder}/0.npz").unlink()
        for number, part in enumerate(parts_of_documents(given.items, given.words)):
            sparse.save_npz(f"{folder}/{number:03d}.npz", part, compressed=False)
        size = sum(path.stat().st_size for path in Path(folder).iterdir())
        setup, design = seconds(
            lambda: dmsgd.diversify(folder, given.batch, kernel="linear", normalize=False)
        )
        survey, _ = seconds(design.inclusion)
        single, _ = seconds(lambda: design.sample(1, seed=0))
        draws, _ = seconds(lambda: design.sample(1000, seed=1))
        blocks = design.spectrum.vectors.features.bounds.size - 1
    what = (
        f"{given.items:,} documents, {given.words:,} words, {format_bytes(size)} in {blocks} blocks"
    )
    table = Table(title=f"{what}; CPU time of all threads")
    table.add_column("")
    table.add_column("dmsgd", justify="right")
    table.add_row("Gram matrix, eigh", timing.human(setup))
    table.add_row("inclusion: product with the eigenvectors", timing.human(survey))
    table.add_row(f"a single draw, k = {given.batch}", timing.human(single))
    table.add_row(f"1,000 draws, k = {given.batch}", timing.human(draws))
    table.add_row(
        "largest memory of the process, with all it loaded", format_bytes(resident("VmHWM"))
    )
    others = 1024 * resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    table.add_row("largest memory of others that it started", format_bytes(others))
    Console(width=120).print(table)
    print(timing.processor())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--items", type=int, default=1_000_000)
    parser.add_argument("--words", type=int, default=5000)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--blocks", action="store_true", help="read the corpus from a folder")
    given = parser.parse_args()
    if given.blocks:
        in_blocks(given)
        return
    X = documents(given.items, given.words)
    size = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
    dmsgd.diversify(X[:2000, :100], 8, kernel="linear", normalize=False).sample(
        1, seed=0
    )  # compile
    floor = bare(X)
    before = resident("VmRSS")
    forget_peak()
    setup, design = seconds(
        lambda: dmsgd.diversify(X, given.batch, kernel="linear", normalize=False)
    )
    survey, _ = seconds(lambda: design.sample(1, seed=0))
    draws, _ = seconds(lambda: design.sample(100, seed=1))
    what = f"{given.items:,} documents, {X.nnz / given.items:.0f} of {given.words:,} words each"
    table = Table(title=f"{what}, {format_bytes(size)}; CPU time, one thread")
    for name in ("", "bare", "dmsgd"):
        table.add_column(name, justify="right")
    table.add_row("Gram matrix, eigh", timing.human(sum(floor[:2])), timing.human(setup))
    table.add_row("product with the eigenvectors", timing.human(floor[2]), timing.human(survey))
    ratio = (setup + survey) / sum(floor)
    table.add_row("all", timing.human(sum(floor)), f"{timing.human(setup + survey)} ({ratio:.2f})")
    table.add_row(f"a draw, k = {given.batch}", "", timing.human(draws / 100))
    table.add_row("memory beyond the corpus", "", format_bytes(resident("VmHWM") - before))
    Console(width=120).print(table)
    print(timing.processor())


if __name__ == "__main__":
    main()
