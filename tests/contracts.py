"""What every member of a concept must do; each test file runs these on its members."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from scipy import sparse
from scipy.stats import chi2

import dmsgd

#: A correct sampler fails one χ² test in ten thousand; the seeds are fixed, so none does by chance.
ERROR_RATE = 1e-4


def kdpp_law(L, k):
    """P(Y) for all k-subsets of a small kernel matrix, by enumeration."""
    sets = list(combinations(range(len(L)), k))
    dets = np.array([max(np.linalg.det(L[np.ix_(Y, Y)]), 0.0) for Y in sets])
    dets[dets < 1e-12 * dets.max()] = 0.0
    return dict(zip(sets, dets / dets.sum(), strict=True))


def balanced_strata(labels):
    """Return the kernel with L_ij = 1 / (items of the class) within a class, else 0."""
    H = dmsgd.features.one_hot(labels)
    return dmsgd.kernels.Linear(H @ sparse.diags_array(1 / np.sqrt(H.sum(axis=0))))


def moments(law, n):
    """E[m_i] and E[m_i m_j] of an enumerated law."""
    joint = np.zeros((n, n))
    for Y, probability in law.items():
        joint[np.ix_(Y, Y)] += probability
    return joint.diagonal(), joint


def check_closed_forms(design, law):
    """Probabilities, inclusion and joint equal enumeration."""
    probabilities = np.array(list(law.values()))
    batches = [np.array(Y, dtype=int) for Y in law]
    if hasattr(design, "k"):
        batches = np.array(batches)
        assert batches.shape[1] == design.k
    np.testing.assert_allclose(np.exp(design.log_prob(batches)), probabilities, atol=1e-10)
    assert np.isneginf(design.log_prob(batches))[probabilities == 0].all()
    b, joint = moments(law, design.n)
    np.testing.assert_allclose(design.inclusion(), b, atol=1e-8)
    everyone = np.arange(design.n)
    np.testing.assert_allclose(design.joint(everyone[:, None], everyone), joint, atol=1e-8)


def check_draws(design, law, size=20_000, seed=0):
    """Draws follow the law: χ² over all subsets; impossible ones never come."""
    counts = dict.fromkeys(law, 0)
    for row in design.sample(size, seed=seed):
        counts[tuple(sorted(row.tolist()))] += 1
    expected = size * np.array(list(law.values()))
    observed = np.array(list(counts.values()))
    assert not observed[expected == 0].any()
    possible = expected > 0
    order = np.argsort(expected[possible])
    expected, observed = expected[possible][order], observed[possible][order]
    rare = np.cumsum(expected) < 10  # pool rare subsets into one cell
    if rare.any():
        expected = np.append(expected[~rare], expected[rare].sum())
        observed = np.append(observed[~rare], observed[rare].sum())
    if expected.size > 1:
        statistic = np.sum((observed - expected) ** 2 / expected)
        assert chi2.sf(statistic, expected.size - 1) > ERROR_RATE


def check_determinism(design):
    """Draw t is a function of (seed, t) alone."""

    def rows(*args, **kwargs):
        return [row.tolist() for row in design.sample(*args, **kwargs)]

    hundred = rows(100, seed=3)
    assert rows(10, seed=3) == hundred[:10]
    assert rows(30, seed=3, start=70) == hundred[70:]
    assert rows(100, seed=3, workers=2) == hundred
    assert rows(100, seed=3, workers=7) == hundred
    assert rows(100, seed=4) != hundred
    assert rows(0, seed=3) == []
    assert all(len(set(row)) == len(row) for row in hundred)


def check_exchangeable(design, size=20_000):
    """The first place of a row has law b/k: order within a row carries nothing."""
    first = np.bincount(design.sample(size, seed=5)[:, 0], minlength=design.n)
    expected = size * design.inclusion() / design.k
    used = expected > 0
    statistic = np.sum((first[used] - expected[used]) ** 2 / expected[used])
    assert chi2.sf(statistic, used.sum() - 1) > ERROR_RATE
