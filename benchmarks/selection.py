"""How long `dmsgd.select` takes: CPU time, one thread, after the first call has compiled its loop.

    python benchmarks/selection.py          # beside pyversity, where it is installed
    python benchmarks/selection.py --labelling  # a round of labels, beside BADGE and apricot
    python benchmarks/selection.py --small  # small calls and first calls, beside MMR in NumPy
    python benchmarks/selection.py --large  # 500 of 50,000 x 384, greedy

Candidates are unit rows in clusters, quality is uniform; "no quality" is the worst case, as no item
is left alone. Plain NumPy is the same greedy set by one column of the kernel per step. pyversity
works in 32-bit numbers on cosine similarity, so its sets are others.
"""

from __future__ import annotations

from timing import cpu_seconds, human, processor  # isort: skip  (sets one thread before NumPy)

import argparse
import importlib.util
import subprocess
import sys
import time

import numpy as np

import dmsgd

#: Candidates, columns, items chosen.
SIZES = ((100, 256, 10), (1000, 384, 20), (10_000, 100, 50), (10_000, 256, 100))


def candidates(n, d, clusters=50):
    """Return unit rows in clusters, and a quality of each."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(clusters, d))[rng.integers(clusters, size=n)]
    X += 0.7 * rng.normal(size=(n, d))
    return X / np.linalg.norm(X, axis=1)[:, None], rng.uniform(0.05, 1.0, size=n)


def plain(X, k, q):
    """Return the greedy set of `dmsgd.select`, one column of the kernel at a time."""
    sample = X
    if len(X) > 40:
        sample = X[np.sort(np.random.default_rng(0).choice(len(X), 40, replace=False))]
    norms, lengths = (X * X).sum(1), (sample * sample).sum(1)
    D = lengths[:, None] + lengths - 2 * sample @ sample.T
    square = np.median(D[np.triu_indices(len(D), 1)])
    left, C, items = q * q, np.zeros((k, len(X))), []
    for t in range(k):
        item = int(np.argmax(left))
        column = np.exp((2 * (X @ X[item]) - norms - norms[item]) / square) * q * q[item]
        C[t] = (column - C[:t, item] @ C[:t]) / np.sqrt(left[item])
        left = left - C[t] ** 2
        items.append(item)
        left[items] = 0.0
    return np.array(items)


def plain_mmr(X, k, q):
    """Return items by maximal marginal relevance: half quality, half distance to those chosen."""
    U = X / np.linalg.norm(X, axis=1)[:, None]
    S, nearest, free, items = U @ U.T, np.zeros(len(X)), np.ones(len(X), dtype=bool), []
    for _ in range(k):
        item = int(np.where(free, 0.5 * q - 0.5 * nearest, -np.inf).argmax())
        items.append(item)
        free[item] = False
        nearest = np.maximum(nearest, S[item])
    return np.array(items)


def small_sets():
    """Print the times of small calls beside MMR, and of the first one of a process."""
    X, q = candidates(100, 256)
    base = cpu_seconds(lambda: plain_mmr(X, 10, q))
    print("\n10 of 100 x 256 with quality, CPU time, and first call from `import dmsgd` on")
    print(f"| MMR in NumPy | {human(base)} | 1 | |")
    for how in ("cover", "medoids", "greedy"):
        spent = cpu_seconds(lambda how=how: dmsgd.select(X, 10, quality=q, how=how))
        print(f"| {how} | {human(spent)} | {spent / base:.1f} | {human(first_call(how))} |")


def first_call(how):
    """Return the CPU seconds of a new process from `import dmsgd` to its first small set."""
    code = (
        "import time; began = time.process_time(); import dmsgd, numpy as np; "
        "X = np.random.default_rng(0).normal(size=(200, 32)); "
        f"dmsgd.select(X, 20, how={how!r}); print(time.process_time() - began)"
    )
    runs = (subprocess.check_output([sys.executable, "-c", code]) for _ in range(4))
    return min(float(each) for each in runs)


def others():
    """Return pyversity's strategies that choose as we do, if it is installed."""
    try:
        from pyversity import dpp, mmr
    except ImportError:
        return {}
    return {
        "pyversity MMR": lambda X, k, q: mmr(X, q, k, diversity=0.5).indices,
        "pyversity DPP": lambda X, k, q: dpp(X, q, k, diversity=0.5).indices,
    }


def greedy_sets():
    """Print the times of greedy sets."""
    names = ["dmsgd", "no quality", "plain NumPy", *others()]
    print("| candidates | k |", " | ".join(names), "|\n|---|---|", "---|" * len(names))
    for n, d, k in SIZES:
        X, q = candidates(n, d)
        singles = X.astype(np.float32), q.astype(np.float32)
        assert np.array_equal(dmsgd.select(X, k, quality=q, how="greedy"), plain(X, k, q))
        works = [
            lambda X=X, k=k, q=q: dmsgd.select(X, k, quality=q, how="greedy"),
            lambda X=X, k=k: dmsgd.select(X, k, how="greedy"),
            lambda X=X, k=k, q=q: plain(X, k, q),
            *(lambda f=f, s=singles, k=k: f(s[0], k, s[1]) for f in others().values()),
        ]
        seconds = [cpu_seconds(work, rounds=7) for work in works]
        cells = [human(seconds[0]), *(f"{human(s)} ({s / seconds[0]:.1f} x)" for s in seconds[1:])]
        print(f"| {n:,} x {d} | {k} |", " | ".join(cells), "|", flush=True)


def labelling():
    """Print the times of choosing 50 items to label, 250 being labelled, as ratios to cover.

    BADGE and facility location in NumPy are those of experiments/labelling. apricot compiles its
    loops anew on every call; like NumPy's, its time includes all similarities.
    """
    from experiments.labelling.arms import badge
    from experiments.labelling.coverage import distances, greedy_cover
    from experiments.labelling.rounds import Round

    def facility_location(now):
        D = distances(now.X)
        S = np.exp(D / -np.median(D[:500]))
        weights = np.where(np.isin(np.arange(len(S)), now.labelled), 0.0, now.u)
        return greedy_cover(S, weights, S[now.labelled].max(0), now.free, now.k, now.rng)

    def apricot(now):
        from apricot import FacilityLocationSelection

        norms = (now.X**2).sum(1)
        S = np.exp(2 * now.X @ now.X.T - norms[:, None] - norms)
        weights = np.where(np.isin(np.arange(len(S)), now.labelled), 0.0, now.u)
        options = {"metric": "precomputed", "initial_subset": now.labelled, "optimizer": "lazy"}
        return FacilityLocationSelection(now.k, **options).fit(S, sample_weight=weights).ranking

    def by_select(now, how, labelled="given"):
        return dmsgd.select(now.X, now.k, quality=now.u, how=how, **{labelled: now.labelled})

    ways = {
        "cover": lambda now: by_select(now, "cover"),
        "greedy, given": lambda now: by_select(now, "greedy"),
        "greedy, exclude": lambda now: by_select(now, "greedy", "exclude"),
        "BADGE": badge,
        "facility location, NumPy": facility_location,
    }
    if importlib.util.find_spec("apricot"):
        ways["facility location, apricot"] = apricot
    print("| pool |", " | ".join(ways), "|\n|---|", "---|" * len(ways))
    for n, d in ((3000, 100), (8900, 100), (10_000, 100)):
        X, rng = candidates(n, d)[0], np.random.default_rng(1)
        odds = np.exp(5 * X @ X[:50].T)
        P, labelled = odds / odds.sum(1)[:, None], rng.choice(n, 250, replace=False)
        now = Round(X, P, labelled, 50, rng)
        seconds = [cpu_seconds(lambda way=way, now=now: way(now)) for way in ways.values()]
        cells = [human(seconds[0]), *(f"{human(s)} ({s / seconds[0]:.2f} x)" for s in seconds[1:])]
        print(f"| {n:,} x {d} |", " | ".join(cells), "|", flush=True)


def large_sets():
    """Print the times of 500 of 50,000, in seconds of CPU and of the clock."""
    X, q = candidates(50_000, 384, clusters=200)
    began, clock = time.process_time(), time.perf_counter()
    dmsgd.select(X, 500, quality=q, how="greedy")
    spent, passed = time.process_time() - began, time.perf_counter() - clock
    print(f"500 of 50,000 x 384, greedy: {spent:.1f} s of CPU, {passed:.1f} s")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    tables = {
        "small": small_sets,
        "labelling": labelling,
        "large": large_sets,
    }
    for name in tables:
        parser.add_argument(f"--{name}", action="store_true")
    asked = [name for name, given in vars(parser.parse_args()).items() if given]
    print(processor())
    for print_table in [tables[name] for name in asked] or [greedy_sets]:
        print_table()
