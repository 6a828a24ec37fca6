"""Each compiled loop against the NumPy line it stands for."""

import numpy as np
import pytest

from dmsgd.samplers.compiled import linear_algebra as la
from dmsgd.samplers.compiled.kdpp import ROWS
from dmsgd.samplers.compiled.random import fill_uniform, philox
from dmsgd.samplers.rejection import mass_table

RNG = np.random.default_rng(0)


@pytest.mark.parametrize(
    ("key", "counter", "expected"),
    [
        ((0, 0), (0, 0, 0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
        (
            (0xFFFFFFFF, 0xFFFFFFFF),
            (0xFFFFFFFF,) * 4,
            (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD),
        ),
        (
            (0xA4093822, 0x299F31D0),
            (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
            (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
        ),
    ],
)
def test_philox_gives_the_published_test_vectors(key, counter, expected):
    words = philox(*(np.uint32(word) for word in (*key, *counter)))
    assert tuple(int(word) for word in words) == expected


def test_uniforms_are_uniform_and_continue_where_they_stopped():
    out = np.empty(100_001)
    fill_uniform(np.uint64(5), np.uint64(2**40), 0, out)
    assert 0 < out.min() < 1e-3 < 1 - 1e-3 < out.max() < 1
    assert np.histogram(out, 20, (0, 1))[0].std() < 200
    assert abs(np.corrcoef(out[:-1], out[1:])[0, 1]) < 0.02
    rest = np.empty(11)
    first = np.empty(10)
    block = fill_uniform(np.uint64(5), np.uint64(2**40), 0, first)
    fill_uniform(np.uint64(5), np.uint64(2**40), block, rest)
    np.testing.assert_array_equal(np.append(first, rest), out[:21])


@pytest.mark.parametrize("rows", [1, 2, 5, 8])
@pytest.mark.parametrize("inner", [1, 4, 7])
def test_add_product(rows, inner):
    A, B, C = (
        RNG.normal(size=(rows, inner)),
        RNG.normal(size=(inner, 9)),
        RNG.normal(size=(rows, 9)),
    )
    expected = C + A @ B
    la.add_product(A, B, C)
    np.testing.assert_allclose(C, expected, atol=1e-13)


@pytest.mark.parametrize("rows", [2, 3, 6, 9])
def test_reflections_send_a_column_to_the_last_axis(rows):
    Z, v = RNG.normal(size=(rows, 7)), np.zeros(rows)
    tau = la.householder(Z, 2, v)
    H = np.eye(rows) - tau * np.outer(v, v)
    np.testing.assert_allclose(H @ H.T, np.eye(rows), atol=1e-13)
    np.testing.assert_allclose((H @ Z[:, 2])[:-1], 0, atol=1e-13)
    expected = (H @ Z)[:-1, 3:]
    la.reflect(Z, v, tau, 3, np.empty(7))
    np.testing.assert_allclose(Z[:-1, 3:], expected, atol=1e-13)


@pytest.mark.parametrize("count", [1, 3, 4, 9])
def test_reflect_many_equals_one_by_one(count):
    k, group = 12, 4
    W = RNG.normal(size=(k, k))
    expected, reflectors, taus = W.copy(), np.zeros((count, k)), np.empty(count)
    for i in range(count):
        v = np.zeros(k - i)
        taus[i] = la.householder(RNG.normal(size=(k - i, 1)), 0, v)
        reflectors[i, : k - i] = v
        expected = (np.eye(k - i) - taus[i] * np.outer(v, v)) @ expected
        expected = expected[:-1]
    la.reflect_many(W, reflectors, taus, np.empty((group, k)), np.empty((k, group)))
    np.testing.assert_allclose(W[: k - count], expected, atol=1e-12)


@pytest.mark.parametrize("n", [1, ROWS, ROWS + 1, 1000])
def test_mass_table_is_the_running_sum_of_squares(n):
    V = RNG.normal(size=(n, 3))
    V /= np.linalg.norm(V, axis=0)
    ends = np.append(np.arange(ROWS, n, ROWS), n) - 1
    np.testing.assert_allclose(mass_table(V), np.cumsum(V**2, axis=0)[ends].T, atol=1e-12)
