"""Designs whose draws are stored in data/draws.json: what a rewrite must not change.

To store them anew, after a change that is meant to change draws:  python tests/stored_draws.py
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from scipy import sparse

import dmsgd

FILE = Path(__file__).parent / "data" / "draws.json"
#: 120 x 40, random; stored, as versions of SciPy make other random matrices of one seed.
TEXT = FILE.with_name("text.npz")


def designs(place=np.asarray):
    """Exact designs, by name; `place` puts dense features where they are used, as on a GPU."""
    rng = np.random.default_rng(11)
    array, y = rng.normal(size=(90, 12)) + 0.3, rng.integers(0, 4, 90)
    text = sparse.load_npz(TEXT)
    X, wide = place(array), place(rng.normal(size=(30, 50)))
    return {
        "dense": dmsgd.diversify(X, 8, kernel="linear", normalize=False),
        "dense, k = rank": dmsgd.diversify(X, 12, kernel="linear", normalize=False),
        "dense, normalised, with labels": dmsgd.diversify(
            X, 8, y, 0.6, normalize=True, kernel="linear"
        ),
        "dense, more columns": dmsgd.diversify(wide, 9, kernel="linear", normalize=False),
        "sparse": dmsgd.diversify(text, 10, kernel="linear", normalize=False),
        "sparse, annealed": dmsgd.diversify(
            dmsgd.features.anneal(text, 0.1), 10, kernel="linear", normalize=False
        ),
        "sparse, with labels": dmsgd.diversify(
            text, 10, np.arange(120) % 5, 0.5, kernel="linear", normalize=False
        ),
        "sparse, more columns": dmsgd.diversify(
            sparse.csr_array(text.T), 10, kernel="linear", normalize=False
        ),
        "strata": dmsgd.KDPP(
            dmsgd.kernels.exact(dmsgd.kernels.Linear(dmsgd.features.one_hot(y))), 3
        ),
        "rbf": dmsgd.KDPP(dmsgd.kernels.RBF(X), 8),
        "badly conditioned": dmsgd.diversify(
            place(array * np.logspace(0, -6, 12)), 8, kernel="linear", normalize=False
        ),
        "weighted": dmsgd.Weighted(weights=rng.pareto(1.0, size=2000), k=30),
        "without repulsion": dmsgd.Weighted.like(
            dmsgd.diversify(X, 8, kernel="linear", normalize=False)
        ),
        "partition": dmsgd.Partition(dmsgd.Uniform(90, 8)),
        "partition, classes spread": dmsgd.Partition(dmsgd.Stratified(y, 8)),
    }


def draws(place=np.asarray):
    """The first draws of each design, by name."""
    return {name: design.sample(12, seed=4).tolist() for name, design in designs(place).items()}


if __name__ == "__main__":
    FILE.write_text(json.dumps(draws()) + "\n")
