"""Do the settings that `dmsgd inspect` recommends train better than uniform batches?

    DMSGD_DATA=... python benchmarks/recommendations.py

Softmax regression by plain SGD (biased, the paper's update) on three imbalanced problems; balanced
test accuracy over five seeds, with the 95 % interval of the difference from uniform batches, seed
by seed. One rate for all designs of a problem.
"""

from __future__ import annotations

import timing  # isort: skip  (sets the number of threads before NumPy is loaded)

import argparse
from dataclasses import dataclass

import numpy as np
from rich.console import Console

import dmsgd
from dmsgd.diagnostics import advise, examine
from dmsgd.paper.intervals import margin
from dmsgd.paper.longtail.result import Config
from dmsgd.paper.longtail.task import make_task
from dmsgd.paper.models import softmax

assert timing  # imported for what it sets


@dataclass
class Problem:
    name: str
    k: int
    rate: float
    steps: tuple[int, int]
    X: object
    y: np.ndarray
    test_X: object
    test_y: np.ndarray


def digits():
    task = make_task(Config(), 0)
    return Problem(
        "long-tailed digits", 20, 0.5, (50, 800), task.X, task.y, task.test_X, task.test_y
    )


def r8(words=2000):
    from scipy import sparse
    from sklearn.feature_extraction.text import TfidfVectorizer

    data = dmsgd.datasets.r8()
    vectorizer = TfidfVectorizer(max_features=words, sublinear_tf=True)
    X = sparse.csr_array(vectorizer.fit_transform(data.train))
    test_X = vectorizer.transform(data.test).toarray()
    return Problem("R8", 64, 2.0, (100, 800), X, data.y_train, test_X, data.y_test)


def oxford():
    data = dmsgd.datasets.flowers()
    X = dmsgd.normalize(data.X)
    # As in the paper: the official test set for training, the balanced training set for testing.
    train, test = data.split == "test", data.split == "train"
    parts = X[train], data.y[train], X[test], data.y[test]
    return Problem("Oxford-102", 64, 20.0, (100, 800), *parts)


def accuracies(problem, design, seeds):
    """Balanced test accuracy, (seeds, checkpoints), in percent."""
    X = problem.X.toarray() if hasattr(problem.X, "toarray") else problem.X
    classes = int(problem.y.max()) + 1
    targets, scores = np.eye(classes)[problem.y], []
    for seed in range(seeds):
        weights = softmax.initial_weights(X.shape[1], classes, np.random.default_rng(seed))
        batches, row = design.sample(problem.steps[-1], seed), []
        for first, last in zip((0, *problem.steps), problem.steps, strict=False):
            weights = softmax.train(weights, X, targets, batches[first:last], problem.rate)
            right = softmax.predict(weights, problem.test_X) == problem.test_y
            row.append(100 * np.mean([right[problem.test_y == c].mean() for c in range(classes)]))
        scores.append(row)
    return np.array(scores)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    seeds = parser.parse_args().seeds
    console = Console(width=160, highlight=False)
    console.print("| data | k | batches | evenness | step | accuracy | uniform | difference |")
    console.print("|---|---|---|---|---|---|---|---|")
    for problem in (digits(), r8(), oxford()):
        found = examine(problem.X, problem.k, problem.y)
        advice = advise(found)
        labels = problem.y
        kdpp = max(found.candidates, key=lambda p: p.evenness)
        tried = {
            f"recommended: {advice.code(problem.k)[9:]}": advice.design(
                problem.X, problem.k, labels
            )
        }
        if advice.settings is None:
            tried[f"k-DPP, {kdpp.name}"] = kdpp.settings.design(problem.X, problem.k, labels)
        uniform = accuracies(problem, dmsgd.Uniform(labels.size, problem.k), seeds)
        for name, design in tried.items():
            even = dmsgd.diagnostics.evenness(dmsgd.diagnostics.class_shares(design, labels))
            scores = accuracies(problem, design, seeds)
            for column, step in enumerate(problem.steps):
                ours, plain = scores[:, column], uniform[:, column]
                console.print(
                    f"| {problem.name} | {problem.k} | {name} | {even:.2f} | {step} | "
                    f"{ours.mean():.1f} ± {margin(ours):.1f} | "
                    f"{plain.mean():.1f} ± {margin(plain):.1f} | "
                    f"{(ours - plain).mean():+.1f} ± {margin(ours - plain):.1f} |",
                    markup=False,
                )


if __name__ == "__main__":
    main()
