"""How much of the pool `dmsgd.select` covers, beside greedy over all items, k-means and others.

    python benchmarks/covering.py                    # Debian, MNIST, clusters and normals
    python benchmarks/covering.py normals-10000-8 --peers    # beside others that are installed
    python benchmarks/covering.py clusters-1000000-384 --k 1000 --gpu --no-exact
    python benchmarks/covering.py clusters-300000-128 --k 10000 --no-exact

Coverage is the mean similarity exp(-d² / m) to the nearest chosen item. "share" is the gain over
random sets, of which five are averaged, divided by that of greedy over all items. Those take many
times as long: --no-exact leaves them out. Peers have the same similarities where they take any, are
run once before they are timed, and are left out for more items than they can hold. Seconds are of
CPU time, of the clock with --gpu or --workers. No constant of `select` was chosen on MNIST, but
clusters-60000-64 and Debian were looked at, and clusters of other seeds.
"""

from __future__ import annotations

from timing import processor  # isort: skip  (sets one thread before NumPy)

import argparse
import importlib.util
import resource
import time
from functools import partial

import numpy as np

import dmsgd
from dmsgd.features import as_features
from dmsgd.selection import coverage
from dmsgd.selection.pool import RowPool

SETS = ("debian", "mnist", "clusters-60000-64", "normals-16000-8")


def rows(name, seed):
    """Return the features of a data set."""
    rng = np.random.default_rng(seed)
    kind, *sizes = name.split("-")
    if kind == "debian":
        from sklearn.decomposition import TruncatedSVD
        from sklearn.feature_extraction.text import TfidfVectorizer
        from experiments.datasets import debian

        words = TfidfVectorizer(sublinear_tf=True, min_df=3).fit_transform(debian().texts)
        X = TruncatedSVD(64, random_state=0).fit_transform(words)
        return X / np.maximum(np.linalg.norm(X, axis=1), 1e-12)[:, None]
    if kind == "mnist":
        from experiments.datasets import mnist

        return mnist().x_train.reshape(60_000, -1) / 255.0
    n, d = map(int, sizes)
    if kind == "normals":
        return rng.normal(size=(n, d))
    shares = 1 / np.arange(1, 4001) ** 0.8  # more clusters than items are chosen, of uneven sizes
    code = rng.choice(4000, n, p=shares / shares.sum())
    X = rng.normal(size=(4000, d))[code] + 0.8 * rng.normal(size=(n, d))
    return X / np.linalg.norm(X, axis=1)[:, None]


def covered(X, items, square):
    """Return the mean similarity to the nearest of some items."""
    best, chosen = np.full(len(X), -np.inf), X[items]
    norms = (chosen**2).sum(1)
    for first in range(0, len(X), 4096):
        part = X[first : first + 4096]
        near = (part**2).sum(1) + (norms - 2 * part @ chosen.T).min(1)
        best[first : first + 4096] = np.exp(-np.maximum(near, 0) / square)
    return float(best.mean())


def similarities(X, square):
    """Return all similarities."""
    norms = (X**2).sum(1)
    return np.exp(np.minimum(2 * X @ X.T - norms - norms[:, None], 0) / square)


def k_means(X, k, square):
    """Return the item nearest to each centre of k-means."""
    from sklearn.cluster import MiniBatchKMeans

    centres = MiniBatchKMeans(k, batch_size=4096, n_init=1, random_state=0).fit(X).cluster_centers_
    norms = (X**2).sum(1)
    return np.unique([int(np.argmin(norms - 2 * X @ centre)) for centre in centres])


def apricot(X, k, square):
    """Return apricot's facility location."""
    from apricot import FacilityLocationSelection

    S = similarities(X, square)
    return FacilityLocationSelection(k, metric="precomputed", optimizer="lazy").fit(S).ranking


def submodlib(X, k, square):
    """Return submodlib's facility location."""
    from submodlib import FacilityLocationFunction

    S = similarities(X, square).astype(np.float32)
    function = FacilityLocationFunction(len(X), mode="dense", sijs=S, separate_rep=False)
    chosen = function.maximize(k, optimizer="LazyGreedy", show_progress=False)
    return np.array([item for item, _ in chosen])


def pyversity(X, k, square):
    """Return pyversity's cover, which has similarities of its own."""
    from pyversity import diversify

    return diversify(X, np.ones(len(X)), k, strategy="cover", diversity=1.0).indices


#: The modules of peers, and the most items that they are given.
PEERS = {
    "select": ("dmsgd", 10**9, lambda X, k, square: dmsgd.select(X, k)),
    "select, medoids": ("dmsgd", 10**9, lambda X, k, square: dmsgd.select(X, k, how="medoids")),
    "k-means medoids": ("sklearn", 10**9, k_means),
    "apricot": ("apricot", 16_000, apricot),
    "submodlib": ("submodlib", 16_000, submodlib),
    "pyversity": ("pyversity", 4000, pyversity),
}


def timed(choose, clock):
    began = clock()
    return choose(), clock() - began


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sets", nargs="*", default=SETS)
    parser.add_argument("--k", type=int, nargs="*", default=[50, 200, 500])
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--gpu", action="store_true")
    parser.add_argument("--peers", action="store_true")
    parser.add_argument("--exact", action=argparse.BooleanOptionalAction, default=True)
    asked = parser.parse_args()
    print(processor())
    clock = time.perf_counter if asked.gpu or asked.workers != 1 else time.process_time
    for name in asked.sets:
        X = rows(name, asked.seed)
        there = X
        if asked.gpu:
            import torch

            there = torch.as_tensor(X, dtype=torch.float32, device="cuda")
        dmsgd.select(there[:9000], 2, workers=asked.workers)  # compiles
        square = RowPool(as_features(X)).square
        largest = max(asked.k)

        def choose(there=there, largest=largest):
            return dmsgd.select(there, largest, workers=asked.workers)

        items, seconds = timed(choose, clock)
        ways = {f"select ({seconds:.1f} s)": lambda k, items=items: items[:k]}
        if asked.exact:
            coverage.WHOLE, before = 10**12, coverage.WHOLE
            best, seconds = timed(choose, clock)
            coverage.WHOLE = before
            ways[f"greedy over all ({seconds:.1f} s)"] = lambda k, best=best: best[:k]
        for peer, (module, most, find) in PEERS.items() if asked.peers else ():
            if len(X) > most or not importlib.util.find_spec(module):
                continue
            find(X[:500], 5, square)  # which may compile
            for k in asked.k:
                found, seconds = timed(partial(find, X, k, square), clock)
                ways[f"{peer}, k = {k} ({seconds:.2f} s)"] = {k: found}.get
        rng = np.random.default_rng(0)
        for k in asked.k:
            random = [covered(X, rng.choice(len(X), k, replace=False), square) for _ in range(5)]
            values = {way: covered(X, set_, square) for way, get in ways.items()
                      if (set_ := get(k)) is not None}  # fmt: skip
            floor, top = np.mean(random), next((v for w, v in values.items() if "over all" in w), 0)
            shares = {way: (v - floor) / (top - floor) for way, v in values.items()} if top else {}
            line = [f"{way} {v:.4f}" + (f" share {shares[way]:.3f}" if shares else "")
                    for way, v in values.items()]  # fmt: skip
            print(f"{name}, k = {k}: random {floor:.4f};", "; ".join(line), flush=True)
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        print(f"{name}: peak of {memory:,} MB", flush=True)


if __name__ == "__main__":
    main()
