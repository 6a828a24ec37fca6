"""Is what `dmsgd inspect` recommends worse than uniform batches on tables that it was not made on?

    python benchmarks/held_out.py            # prints the table
    python benchmarks/held_out.py --write    # and writes it into docs/diagnostics.md

scikit-learn's wine, breast cancer and diabetes (disease progression in thirds), and blobs of 300,
60, 15 and 6. `compare` gets two thirds of a table as it is, with its labels and without; softmax
regression by plain SGD (biased, the paper's update) learns from standardized columns with batches
of what is recommended and with uniform ones, and is tested on the last third: balanced accuracy.
Every seed has a split, initial weights and batches of its own; ± is the 95 % interval of the
difference from uniform batches, seed by seed. The effective size is that of a batch with unbiased
weights.
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
from dmsgd.diagnostics import class_shares, effective_batch, evenness
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


def compare(X, y, labelled, seeds):
    """Return how often each design is recommended, and measures of uniform batches and of it."""
    kinds, measures = Counter(), []
    for seed in range(seeds):
        train = split(y, np.random.default_rng(seed))
        ours, theirs = X[train], X[~train]
        mean, spread = ours.mean(axis=0), ours.std(axis=0)
        data = (ours - mean) / spread, y[train], (theirs - mean) / spread, y[~train]
        advice = diagnostics.recommend(diagnostics.compare(ours, K, y[train] if labelled else None))
        kinds[advice.name] += 1
        row = []
        for design in (dmsgd.Uniform(train.sum(), K), advice.design(ours, K, y[train])):
            even = evenness(class_shares(design, y[train]))
            row.append([even, effective_batch(design), *accuracies(*data, design, seed)])
        measures.append(row)
    return kinds, np.array(measures)  # (seeds, 2, measures)


def lines(seeds):
    """Yield the lines of the table."""
    yield "| data | labels | recommended | evenness | effective size | accuracy | difference |"
    yield "|---|---|---|---|---|---|---|"
    for name, (X, y) in tables().items():
        for labelled in (True, False):
            kinds, measures = compare(X, y, labelled, seeds)
            kind = ", ".join(
                each if count == seeds else f"{each} ({count} of {seeds})"
                for each, count in kinds.most_common()
            )
            uniform, ours = measures.mean(axis=0)
            gains = (mean(measures[:, 1, at] - measures[:, 0, at]).text(1) for at in (2, 3))
            yield (
                f"| {name}, {y.size} x {X.shape[1]} | {'known' if labelled else 'none'} | {kind} | "
                f"{uniform[0]:.2f} → {ours[0]:.2f} | {uniform[1]:.1f} → {ours[1]:.1f} | "
                f"{uniform[2]:.1f}, {uniform[3]:.1f} | {', '.join(gains)} |"
            )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=40)
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
