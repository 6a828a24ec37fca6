"""The most likely set is the greedy one of determinants, by item number where they are equal."""

from itertools import combinations
from math import factorial

import mpmath
import numpy as np
import pytest
from scipy import sparse

import dmsgd
from dmsgd.designs import kdpp as module
from dmsgd.features import array
from test_kdpp import KERNELS, matrix

RNG = np.random.default_rng(2)
CLOUD = RNG.normal(size=(200, 10)) * np.geomspace(1, 1e-3, 10)


def brute(L, k, start=()):
    """Return the greedy set by determinants of all candidates, in 60 digits."""
    with mpmath.workdps(60):
        L, chosen = mpmath.matrix(np.asarray(L).tolist()), list(start)
        while len(chosen) < k:
            dets = [
                -1
                if i in chosen
                else mpmath.det(
                    mpmath.matrix([[L[a, b] for b in (*chosen, i)] for a in (*chosen, i)])
                )
                for i in range(L.rows)
            ]
            best = max(dets)
            chosen.append(
                next(i for i, det in enumerate(dets) if det >= best * (1 - mpmath.mpf("1e-9")))
            )
        return chosen


@pytest.mark.parametrize("name", KERNELS)
def test_it_is_the_greedy_set_of_determinants(name):
    kernel, k = KERNELS[name]
    design = dmsgd.KDPP(kernel, k)
    found = design.greedy_map()
    assert found.tolist() == brute(matrix(kernel), k)
    assert found.dtype == np.int64
    logs = design.log_prob(np.array(list(combinations(range(kernel.n), k))))
    assert design.log_prob(found) >= logs.max() - 2 * np.log(factorial(k)) - 1e-9


def test_it_is_right_where_little_is_left(monkeypatch):
    design = dmsgd.diversify(CLOUD, 10, kernel="linear", normalize=False)
    asked = []
    real = module.conditional
    monkeypatch.setattr(module, "conditional", lambda *given: asked.append(1) or real(*given))
    found = design.greedy_map()
    assert len(asked) > 1  # the kernel of what is left was made anew
    with mpmath.workdps(60):
        F = mpmath.matrix(CLOUD.tolist())
        left, expected = [mpmath.fsum(x**2 for x in row) for row in CLOUD.tolist()], []
        rows = [F[i, :] for i in range(F.rows)]
        for _ in range(10):
            expected.append(max(range(F.rows), key=lambda i: left[i]))
            q = rows[expected[-1]] / mpmath.sqrt(left[expected[-1]])
            rows = [row - (row * q.T)[0] * q for row in rows]
            left = [(row * row.T)[0] for row in rows]
    assert found.tolist() == expected


def test_the_first_items_are_the_answer_for_fewer():
    assert (
        dmsgd.diversify(CLOUD, 8, kernel="linear", normalize=False).greedy_map()[:5].tolist()
        == dmsgd.diversify(CLOUD, 5, kernel="linear", normalize=False).greedy_map().tolist()
    )


def test_of_equal_items_the_first_is_taken():
    assert dmsgd.KDPP(
        dmsgd.kernels.exact(dmsgd.kernels.Linear(np.eye(6))), 3
    ).greedy_map().tolist() == [0, 1, 2]
    X = np.repeat(np.eye(4), 3, axis=0)
    assert dmsgd.diversify(X, 4, kernel="linear", normalize=False).greedy_map().tolist() == [
        0,
        3,
        6,
        9,
    ]


def test_given_items_come_first_and_are_not_taken_again():
    kernel, _ = KERNELS["features and labels"]
    design = dmsgd.KDPP(kernel, 5).given([6, 1])
    assert design.greedy_map().tolist() == brute(matrix(kernel), 5, [1, 6])
    half = dmsgd.diversify(CLOUD, 8, kernel="linear", normalize=False).greedy_map()[:4]
    others = dmsgd.diversify(CLOUD, 8, kernel="linear", normalize=False).given(half).greedy_map()
    assert others.tolist() == [
        *sorted(half),
        *dmsgd.diversify(CLOUD, 8, kernel="linear", normalize=False).greedy_map()[4:],
    ]


def test_items_in_blocks_and_of_texts_are_the_same(tmp_path, monkeypatch):
    np.save(tmp_path / "cloud.npy", CLOUD)
    expected = dmsgd.diversify(CLOUD, 10, kernel="linear", normalize=False).greedy_map().tolist()
    blocks = dmsgd.diversify(tmp_path / "cloud.npy", 10, kernel="linear", normalize=False)
    assert blocks.greedy_map().tolist() == expected
    assert blocks.greedy_map().tolist() == expected  # and nothing it keeps has changed
    monkeypatch.setattr(array, "STORED", 0)
    assert (
        dmsgd.diversify(sparse.csr_array(CLOUD), 10, kernel="linear", normalize=False)
        .greedy_map()
        .tolist()
        == expected
    )
