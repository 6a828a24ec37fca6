"""Kernels with too many items and too many features for an eigendecomposition: what else there is.

    DMSGD_DATA=... python benchmarks/large_kernels.py           # time and memory, 20,000 documents
    DMSGD_DATA=... python benchmarks/large_kernels.py --error   # 4,000 documents, against exact

Descriptions of Debian packages (debian/descriptions.txt.gz of the data folder), tf-idf of all
words; --power 0.1 anneals it. Each route runs in a process of its own, on one
thread; times are CPU times. Words and ranks shrink with the number of documents.

bound:     on the total variation between the laws of batches, from what the route leaves out.
b:         total variation of the inclusion probabilities; counted over draws where there is no
           closed form, and then beside what as many exact draws show.
log-det:   mean of log det L_Y under the whole kernel, exact minus route.
"""

from __future__ import annotations

import timing  # isort: skip

import argparse
import gzip
import json
import resource
import subprocess
import sys

import numpy as np
import problems
from rich.console import Console
from rich.table import Table
from scipy import sparse

import dmsgd
from dmsgd.inputs.messages import format_bytes

ITEMS, SMALL = 20_000, 4000
#: Shares of the number of documents: words that are kept, rank of a factor.
WORDS, RANK = 1 / 4, 1 / 10
DRAWS = {"time": 200, "error": 2000}
#: Seconds after which a route is given up.
LIMIT = 600


def texts(items, power):
    """Return tf-idf of all words of so many documents, as CSR."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    with gzip.open(problems.data_folder() / "debian/descriptions.txt.gz", "rt") as lines:
        documents = [line.rstrip("\n").split("\t")[1] for line in lines]
    chosen = np.sort(np.random.default_rng(0).choice(len(documents), items, replace=False))
    found = TfidfVectorizer(token_pattern=r"\S+").fit_transform([documents[i] for i in chosen])
    return sparse.csr_array(dmsgd.features.anneal(found, power))


def frequent(X, k):
    """The words that most documents have."""
    return _of_words(X, k, np.bincount(X.indices, minlength=X.shape[1]))


def heavy(X, k):
    """The words with the largest share of the trace."""
    return _of_words(X, k, X.multiply(X).sum(axis=0))


def lengths_kept(X, k):
    """The same words, documents of the length that they had."""
    part = X[:, _first(np.bincount(X.indices, minlength=X.shape[1]), X)]
    lengths, left = (np.sqrt(rows.multiply(rows).sum(axis=1)) for rows in (X, part))
    factors = np.divide(lengths, left, out=np.zeros_like(left), where=left > 0)
    return dmsgd.diversify(
        sparse.csr_array(sparse.diags_array(factors) @ part), k, kernel="linear", normalize=False
    )


def _of_words(X, k, weight):
    return _marked(
        dmsgd.diversify(X[:, _first(weight, X)], k, kernel="linear", normalize=False), X, k
    )


def _first(weight, X):
    """Return the numbers of the words with the largest weights."""
    return np.sort(np.argsort(-weight, kind="stable")[: int(WORDS * X.shape[0])])


def _marked(design, X, k):
    """Return a design of features that are a part of X, marked with the trace they leave out."""
    trace = float(X.multiply(X).sum())
    left_out = max(0.0, 1 - float(design.spectrum.values.sum()) / trace)
    return dmsgd.KDPP(design.spectrum.replaced(trace_error=left_out), k)


def cholesky(X, k):
    """A randomly pivoted Cholesky factor."""
    rank = int(RANK * X.shape[0])
    return dmsgd.KDPP(dmsgd.kernels.pivoted_cholesky(dmsgd.kernels.Linear(X), rank), k)


def truncated(X, k):
    """The largest singular values, by a randomised range finder."""
    from sklearn.utils.extmath import randomized_svd

    U, s, _ = randomized_svd(X, int(RANK * X.shape[0]), n_iter=4, random_state=0)
    return _marked(dmsgd.diversify(U * s, k, kernel="linear", normalize=False), X, k)


def chain(X, k):
    """Swaps."""
    return dmsgd.designs.SwapChain(dmsgd.kernels.Linear(X), k)


def cells(X, k):
    """One item from each of k cells."""
    return dmsgd.cells(X, k)


def exact(X, k):
    """The whole kernel."""
    return dmsgd.diversify(X, k, kernel="linear", normalize=False)


class Dppy:
    """DPPy's exact sampler without an eigendecomposition of L (Calandriello et al. 2020)."""

    def __init__(self, X, k):
        from dppy.finite_dpps import FiniteDPP

        self.n, self.k = X.shape[0], k

        def entries(items, others=None):
            others = items if others is None else others
            return (X[items.ravel()] @ X[others.ravel()].T).toarray()

        self.dpp = FiniteDPP("likelihood", L_eval_X_data=(entries, np.arange(self.n)[:, None]))

    def sample(self, size, seed):
        state = np.random.RandomState(seed)
        draws = [
            self.dpp.sample_exact_k_dpp(self.k, mode="alpha", random_state=state, verbose=False)
            for _ in range(size)
        ]
        return np.array(draws)


ROUTES = {
    "most frequent words": frequent,
    "the same, lengths kept": lengths_kept,
    "words of the largest share": heavy,
    "pivoted_cholesky": cholesky,
    "truncated SVD": truncated,
    "SwapChain": chain,
    "DPPy, alpha": Dppy,
    "cells": cells,
    "exact": exact,
}


def seconds():
    """Return the CPU seconds of this process and of those that it has started."""
    return sum(
        used.ru_utime + used.ru_stime
        for used in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    )


def measure(name, items, power, k, draws):
    """Return what one route takes, and its draws; in this process."""
    X = texts(items, power)
    dmsgd.diversify(X[:200], 4, kernel="linear", normalize=False).sample(1, seed=0)  # compile
    dmsgd.designs.SwapChain(dmsgd.kernels.Linear(X[:200]), 4).sample(1, seed=0)
    before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, seconds()
    design = ROUTES[name](X, k)
    design.sample(1, seed=0)
    ready = seconds()
    batches = design.sample(draws, seed=1)
    done = seconds()
    peaks = [
        resource.getrusage(who).ru_maxrss
        for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    ]
    spectrum = getattr(design, "spectrum", None)
    approximate = spectrum is not None and spectrum.trace_error > 0
    return {
        "setup": ready - began,
        "draw": (done - ready) / draws,
        "memory": 1024 * (max(peaks) - before),
        "left out": spectrum.trace_error if approximate else None,
        "bound": min(1.0, k * spectrum.batch_error(k)) if approximate else None,
        "b": design.inclusion().tolist() if hasattr(design, "inclusion") else None,
        "batches": batches.tolist(),
    }


def apart(name, given, items, draws):
    """Return what `measure` does in a process of its own, or why not."""
    arguments = [name, items, given.power, given.batch, draws]
    command = [sys.executable, __file__, "--measure", json.dumps(arguments)]
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT)
    except subprocess.TimeoutExpired:
        return f"nothing in {LIMIT} s"
    if run.returncode:
        return (run.stderr.strip().splitlines() or ["failed"])[-1][:60]
    return json.loads(run.stdout.splitlines()[-1])


def table_of_times(given, console):
    table = Table(title=f"{given.items:,} documents, k = {given.batch}, power {given.power}")
    for heading in ("route", "set-up", "a draw", "memory", "trace left out", "bound"):
        table.add_column(heading, justify="left" if heading == "route" else "right")
    for name in given.routes or [name for name in ROUTES if name != "exact"]:
        found = apart(name, given, given.items, given.draws or DRAWS["time"])
        if isinstance(found, str):
            table.add_row(name, found)
            continue
        known = found["left out"] is not None
        table.add_row(
            name, timing.human(found["setup"]), timing.human(found["draw"]),
            format_bytes(found["memory"]), f"{found['left out']:.1%}" if known else "",
            f"{found['bound']:.3g}" if known else "",
        )  # fmt: skip
    console.print(table)


def table_of_errors(given, console):
    draws, k = given.draws or DRAWS["error"], given.batch
    X = texts(SMALL, given.power)
    truth = apart("exact", given, SMALL, draws)
    b = np.array(truth["b"])
    matrix = (X @ X.T).toarray()

    def log_dets(batches):
        return np.array([np.linalg.slogdet(matrix[np.ix_(Y, Y)])[1] for Y in batches])

    def variation(other):
        return np.abs(np.asarray(other) - b).sum() / (2 * k)

    def counted(batches):
        return variation(np.bincount(np.ravel(batches), minlength=SMALL) / len(batches))

    def b_of(found):
        if found["b"] is not None:
            return f"{variation(found['b']):.3f}"
        return f"{counted(found['batches']):.3f} (counted)"

    level = log_dets(truth["batches"])
    noise = level.std() / np.sqrt(draws)
    table = Table(title=f"{X.shape[0]:,} x {X.shape[1]:,}, k = {k}, power {given.power}")
    for heading in ("route", "trace left out", "bound", "b", "log-det", "set-up", "a draw"):
        table.add_column(heading, justify="left" if heading == "route" else "right")
    rng = np.random.default_rng(0)
    uniform = [rng.choice(SMALL, k, replace=False) for _ in range(draws)]
    gap = level.mean() - log_dets(uniform).mean()
    table.add_row("uniform", "", "", f"{variation(np.full(SMALL, k / SMALL)):.3f}", f"{gap:.2f}")
    table.add_row(
        "exact", "", "", f"{counted(truth['batches']):.3f} (counted)", f"± {1.4 * noise:.2f}",
        timing.human(truth["setup"]), timing.human(truth["draw"]),
    )  # fmt: skip
    for name in given.routes or [name for name in ROUTES if name != "exact"]:
        found = apart(name, given, SMALL, draws)
        if isinstance(found, str):
            table.add_row(name, found)
            continue
        known = found["left out"] is not None
        table.add_row(
            name, f"{found['left out']:.1%}" if known else "",
            f"{found['bound']:.3g}" if known else "",
            b_of(found),
            f"{level.mean() - log_dets(found['batches']).mean():.2f}",
            timing.human(found["setup"]), timing.human(found["draw"]),
        )  # fmt: skip
    console.print(table)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("routes", nargs="*", help=f"of: {', '.join(ROUTES)}; default: all")
    parser.add_argument("--error", action="store_true")
    parser.add_argument("--items", type=int, default=ITEMS)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--draws", type=int)
    parser.add_argument("--power", type=float, default=1.0)
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.measure:
        print(json.dumps(measure(*json.loads(given.measure))))
        return
    console = Console(width=140)
    (table_of_errors if given.error else table_of_times)(given, console)
    print(timing.processor())


if __name__ == "__main__":
    main()
