"""Do the designs that `dmsgd inspect` recommends train better than uniform batches, and others?

    DMSGD_DATA=... python benchmarks/recommendations.py

Softmax regression by plain SGD (biased, the paper's update) on three imbalanced problems; balanced
test accuracy over ten seeds, with the 95 % interval of the difference from uniform batches, seed
by seed. One rate for all designs of a problem. Beside what is recommended stand the k-DPP with
labels mixed in (w = 0.9), the one without, and the same b of each without repulsion.
"""

from __future__ import annotations

import timing  # isort: skip  (sets the number of threads before NumPy is loaded)

import argparse
from dataclasses import dataclass, replace

import numpy as np
from rich.console import Console

import dmsgd
from dmsgd.designs.build import make_kdpp
from dmsgd.diagnostics import class_shares, compare, estimate_repulsion, evenness, recommend
from experiments import datasets, targets
from experiments.core.compare import mean
from experiments.models import softmax

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
    task = targets.digits(0)
    X = task.inputs.astype(np.float64)
    return Problem("long-tailed digits", 20, 0.5, (50, 800), X, task.y, *task.test)


def r8(words=2000):
    from scipy import sparse
    from sklearn.feature_extraction.text import TfidfVectorizer

    data = datasets.r8()
    vectorizer = TfidfVectorizer(max_features=words, sublinear_tf=True)
    X = sparse.csr_array(vectorizer.fit_transform(data.train))
    test_X = vectorizer.transform(data.test).toarray()
    return Problem("R8", 64, 2.0, (100, 800), X, data.y_train, test_X, data.y_test)


def oxford():
    data = datasets.flowers()
    X = dmsgd.features.normalize(data.X)
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


def designs(problem):
    """What is compared, by name: recommended designs, k-DPPs, frequency-matched controls."""
    X, k, y = problem.X, problem.k, problem.y
    labelled, unlabelled = compare(X, k, y, ws=()), compare(X, k)
    tried, advice = {}, [recommend(labelled), recommend(unlabelled)]
    options = unlabelled.candidate.options
    for w, recommended in ((0.9, advice[0]), (0.0, advice[1])):
        kdpp = make_kdpp(replace(options, w=w), X, k, y)
        whose = "with labels" if w else "without labels"
        found = {
            f"k-DPP, w = {w:g}": kdpp,
            f"frequency-matched, w = {w:g}": dmsgd.Weighted.like(kdpp),
        }
        kind = {"k-DPP": 0, "weighted": 1}.get(recommended.name)
        if kind is None:
            tried[f"recommended {whose}: {recommended.name}"] = recommended.design(X, k, y)
        for number, (name, design) in enumerate(found.items()):
            tried[f"recommended {whose}: {name}" if number == kind else name] = design
    return tried


def noise(design):
    """How much of the noise of a batch's features repulsion removes, of a k-DPP."""
    return f"{estimate_repulsion(design).value:.0%}" if isinstance(design, dmsgd.KDPP) else ""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=10)
    seeds = parser.parse_args().seeds
    console = Console(width=200, highlight=False)
    console.print("| data, k | batches | evenness | noise removed | step | accuracy | difference |")
    console.print("|---|---|---|---|---|---|---|")
    for problem in (digits(), r8(), oxford()):
        uniform = dmsgd.Uniform(problem.y.size, problem.k)
        plain = accuracies(problem, uniform, seeds)
        for name, design in {"uniform": uniform, **designs(problem)}.items():
            even = evenness(class_shares(design, problem.y))
            scores = plain if design is uniform else accuracies(problem, design, seeds)
            steps = ", ".join(str(step) for step in problem.steps)
            pairs = [(scores[:, c], (scores - plain)[:, c]) for c in range(len(problem.steps))]
            reached = ", ".join(f"{ours.mean():.1f}" for ours, _ in pairs)
            more = ", ".join(mean(gain).text(1) for _, gain in pairs)
            console.print(
                f"| {problem.name}, {problem.k} | {name} | {even:.2f} | {noise(design)} | "
                f"{steps} | {reached} | {'' if design is uniform else more} |",
                markup=False,
            )


if __name__ == "__main__":
    main()
