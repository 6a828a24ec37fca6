"""Is anything better than what `dmsgd inspect` recommends, on tables that it was not made on?

    python benchmarks/held_out.py            # prints the table
    python benchmarks/held_out.py --write    # and writes it into docs/diagnostics.md

scikit-learn's wine, breast cancer and diabetes (disease progression in thirds), and blobs of 300,
60, 15 and 6. `recommend` gets two thirds of a table as it is, with its labels and without; softmax
regression by plain SGD (biased, the paper's update) learns from standardized columns with each kind
of batches, and is tested on the last third: balanced accuracy. Every seed has a split, initial
weights and batches of its own; ± is the 95 % interval of the difference from shuffled epochs, seed
by seed.
"""

from __future__ import annotations

import timing  # isort: skip  (sets the number of threads before NumPy is loaded)

import argparse
import re
from collections import Counter
from pathlib import Path

import numpy as np
from sklearn import datasets

import dmsgd
from dmsgd import diagnostics
from dmsgd.designs.build import make_kdpp
from experiments.core.compare import mean
from experiments.models import softmax

assert timing  # imported for what it sets

PAGE = Path(__file__).parent.parent / "docs" / "diagnostics.md"
MARKS = "<!-- held out: written by benchmarks/held_out.py -->\n", "<!-- end of held out -->"
K, RATE, STEPS = 10, 0.2, (20, 400)


def tables():
    """Return the tables: name -> (X, y)."""
    X, measure = datasets.load_diabetes(return_X_y=True)
    thirds = np.digitize(measure, np.quantile(measure, (1 / 3, 2 / 3)))
    sizes = [300, 60, 15, 6]
    return {
        "wine": datasets.load_wine(return_X_y=True),
        "breast cancer": datasets.load_breast_cancer(return_X_y=True),
        "diabetes in thirds": (X, thirds),
        "long-tailed blobs": datasets.make_blobs(sizes, 6, cluster_std=3.0, random_state=0),
    }


def split(y, rng):
    """Return which items are for training: two thirds of every class."""
    train = np.zeros(y.size, dtype=bool)
    for label in np.unique(y):
        items = rng.permutation(np.flatnonzero(y == label))
        train[items[: -(-2 * items.size // 3)]] = True
    return train


def accuracies(X, y, test_X, test_y, design, seed):
    """Return the balanced test accuracy after each of STEPS, in percent."""
    classes = int(y.max()) + 1
    weights = softmax.initial_weights(X.shape[1], classes, np.random.default_rng(seed))
    batches, reached = design.sample(STEPS[-1], seed), []
    for first, last in zip((0, *STEPS), STEPS, strict=False):
        weights = softmax.train(weights, X, np.eye(classes)[y], batches[first:last], RATE)
        right = softmax.predict(weights, test_X) == test_y
        reached.append(100 * np.mean([right[test_y == c].mean() for c in range(classes)]))
    return reached


def designs(X, standardized, y):
    """Return what is compared, by name; shuffled epochs come first."""
    kdpp = make_kdpp(diagnostics.compare(X, K).candidate.options, X, K)
    return {
        "shuffled epochs": dmsgd.Partition(dmsgd.Uniform(y.size, K)),
        "stratified": dmsgd.Stratified(y, K),
        "k-DPP": kdpp,
        "weighted, b of the k-DPP": dmsgd.Weighted.like(kdpp),
        "weighted by density": dmsgd.Weighted(dmsgd.targets.density(standardized, K), K),
    }


def compare(X, y, seeds):
    """Return how often each design is recommended with labels and without, and accuracies."""
    advice, found = [Counter(), Counter()], {}
    for seed in range(seeds):
        train = split(y, np.random.default_rng(seed))
        ours, theirs = X[train], X[~train]
        mean, spread = ours.mean(axis=0), ours.std(axis=0)
        data = (ours - mean) / spread, y[train], (theirs - mean) / spread, y[~train]
        for count, labels in zip(advice, (y[train], None), strict=True):
            count[diagnostics.recommend(diagnostics.compare(ours, K, labels)).name] += 1
        for name, design in designs(ours, *data[:2]).items():
            found.setdefault(name, []).append(accuracies(*data, design, seed))
    return advice, {name: np.array(rows) for name, rows in found.items()}  # (seeds, STEPS)


def lines(seeds):
    """Yield the lines of the table."""
    yield "| data | batches | recommended | accuracy | minus shuffled epochs |"
    yield "|---|---|---|---|---|"
    for title, (X, y) in tables().items():
        advice, found = compare(X, y, seeds)
        for name, scores in found.items():
            when = [
                f"{where} labels" + (f" ({count[name]} of {seeds})" if count[name] < seeds else "")
                for where, count in zip(("with", "without"), advice, strict=True)
                if count[name]
            ]
            reached = ", ".join(f"{each:.1f}" for each in scores.mean(axis=0))
            gains = (scores - found["shuffled epochs"]).T
            more = "" if name == "shuffled epochs" else ", ".join(mean(g).text(1) for g in gains)
            data = f"{title}, {y.size} x {X.shape[1]}"
            yield f"| {data} | {name} | {', '.join(when)} | {reached} | {more} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    table = []
    for line in lines(asked.seeds):
        print(line, flush=True)
        table.append(line)
    if asked.write:
        text, (begin, end) = PAGE.read_text(), MARKS
        pattern = re.escape(begin) + ".*?" + re.escape(end)
        assert re.search(pattern, text, flags=re.S), "the page has no place for the table"
        new = begin + "\n".join(table) + "\n" + end
        PAGE.write_text(re.sub(pattern, lambda _: new, text, flags=re.S))


if __name__ == "__main__":
    main()
