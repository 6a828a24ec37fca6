"""The draws in plain NumPy are those of compiled loops."""

from __future__ import annotations

import numpy as np
import pytest

import dmsgd
from dmsgd.compiled.philox import fill_uniform
from dmsgd.errors import SamplingError
from dmsgd.samplers import plain
from dmsgd.samplers.rejection_sampling import DenseTables, kdpp_sampler


@pytest.mark.parametrize("kind", ["gaussian", "one-hot", "duplicates"])
@pytest.mark.parametrize(("n", "d", "k", "size"), [
    (30, 8, 1, 40), (9, 3, 3, 40), (40, 20, 17, 40), (300, 130, 33, 20), (400, 150, 100, 4),
    (plain.ROWS, 12, 5, 20), (2 * plain.ROWS + 1, 12, 5, 20),
])  # fmt: skip
def test_draws_are_those_of_compiled_loops(n, d, k, size, kind):
    X = np.random.default_rng(n).normal(size=(n, d))
    if kind == "one-hot":
        X = np.eye(d)[np.arange(n) % d]
    elif kind == "duplicates":
        X[n // 2 :] = X[: n - n // 2]
    spectrum = dmsgd.kernels.exact(dmsgd.kernels.Linear(X))
    k, V, start = min(k, spectrum.rank), spectrum.vectors, 2**33 - 2
    tables = plain.Tables.of(V, spectrum.values, k)
    found = [plain.draw(tables, 5, start + t) for t in range(size)]
    compiled = kdpp_sampler(DenseTables(V), spectrum.values, k)
    np.testing.assert_array_equal(found, compiled.sample(5, start, size, 1))


def test_vectors_that_are_not_orthonormal_are_refused():
    with pytest.raises(SamplingError, match=r"draw 4 .*orthonormal"):
        plain.draw(plain.Tables.of(np.ones((5, 3)), np.ones(3), 3), 0, 4)


@pytest.mark.parametrize("size", [1, 2, 7, 96])
def test_uniforms_are_those_of_philox(size):
    key, draw, block, expected = 2**63 + 5, 2**40 + 3, 2**31, np.empty(size)
    fill_uniform(key, draw, block, expected)
    np.testing.assert_array_equal(plain.uniforms(key, draw, block, size), expected)
