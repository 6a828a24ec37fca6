"""The first batches of a process, in NumPy, are those of compiled loops."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import dmsgd
from dmsgd.compiled.philox import fill_uniform
from dmsgd.errors import SamplingError
from dmsgd.samplers import first_batches


@pytest.fixture
def in_numpy(monkeypatch):
    """Call it with True for draws in NumPy, with False for compiled ones."""

    def choose(yes):
        monkeypatch.setattr(first_batches, "LIMIT", np.inf if yes else 0.0)
        monkeypatch.setattr(first_batches, "sys", SimpleNamespace(modules={}))

    return choose


@pytest.mark.parametrize("kind", ["gaussian", "one-hot", "duplicates"])
@pytest.mark.parametrize(("n", "d", "k", "size"), [
    (30, 8, 1, 40), (9, 3, 3, 40), (40, 20, 17, 40), (300, 130, 33, 20), (400, 150, 100, 4),
])  # fmt: skip
def test_batches_are_those_of_compiled_loops(n, d, k, size, kind, in_numpy):
    X = np.random.default_rng(n).normal(size=(n, d))
    if kind == "one-hot":
        X = np.eye(d)[np.arange(n) % d]
    elif kind == "duplicates":
        X[n // 2 :] = X[: n - n // 2]
    spectrum = dmsgd.kernels.exact(dmsgd.kernels.Linear(X))
    k = min(k, spectrum.rank)
    found = []
    for yes in (True, False):
        in_numpy(yes)
        found.append(dmsgd.KDPP(spectrum, k).sample(size, seed=5, start=2**33 - 2))
    np.testing.assert_array_equal(*found)


def test_vectors_that_are_not_orthonormal_are_refused(in_numpy):
    in_numpy(True)
    V = np.ones((5, 3))
    sampler = dmsgd.spectra.eigenvectors.Eigenvectors(V).sampler(np.ones(3), 3)
    with pytest.raises(SamplingError, match="orthonormal"):
        sampler.sample(0, 0, 1, 1)


@pytest.mark.parametrize("size", [1, 2, 7, 96])
def test_uniforms_are_those_of_philox(size):
    key, draw, block, expected = 2**63 + 5, 2**40 + 3, 2**31, np.empty(size)
    fill_uniform(key, draw, block, expected)
    np.testing.assert_array_equal(first_batches.uniforms(key, draw, block, size), expected)
