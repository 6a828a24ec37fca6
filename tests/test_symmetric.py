from itertools import combinations

import mpmath
import numpy as np
import pytest

from dmsgd.polynomials import (
    eigenvector_inclusion,
    eigenvector_joint,
    log_binomial,
    log_polynomial,
    log_polynomial_gradient,
    log_polynomials,
    ratios,
)

mpmath.mp.dps = 50
RNG = np.random.default_rng(0)

SPECTRA = {
    "flat": (np.ones(60), 30),
    "eight decades": (np.logspace(4, -4, 60), 25),
    "large": (RNG.uniform(0.9e6, 1.1e6, 60), 40),
    "close pairs": (np.sort(np.repeat(RNG.gamma(1, 1, 30), 2) * (1 + 1e-13 * RNG.random(60))), 20),
    "k = rank": (RNG.gamma(0.3, 1, 40), 40),
    "k = rank - 1": (np.logspace(6, -6, 40), 39),
    "k = 1": (RNG.gamma(0.3, 1, 50), 1),
    "one giant": (np.append(1e12, RNG.gamma(1, 1, 50)), 20),
}


def exact_polynomials(values, k):
    e = [mpmath.mpf(1)] + [mpmath.mpf(0)] * k
    for value in values:
        for level in range(k, 0, -1):
            e[level] += mpmath.mpf(float(value)) * e[level - 1]
    return e


@pytest.fixture(params=SPECTRA)
def spectrum(request):
    return SPECTRA[request.param]


def test_normaliser_agrees_with_50_digits(spectrum):
    values, k = spectrum
    exact = mpmath.log(exact_polynomials(values, k)[k])
    assert abs(mpmath.expm1(mpmath.mpf(log_polynomial(values, k)) - exact)) < 1e-10


def test_tables_agree_with_50_digits(spectrum):
    values, k = spectrum
    R, logs = ratios(values, k), log_polynomials(values, k)
    for n in range(1, values.size + 1, 7):
        e = exact_polynomials(values[:n], k)
        for level in range(1, min(n, k) + 1):
            assert abs(mpmath.mpf(R[n, level]) / (e[level] / e[level - 1]) - 1) < 1e-10
            assert abs(mpmath.expm1(mpmath.mpf(logs[level, n]) - mpmath.log(e[level]))) < 1e-10
    assert np.isneginf(logs[1:, 0]).all()


def test_selection_agrees_with_50_digits(spectrum):
    values, k = spectrum
    pi = eigenvector_inclusion(values, k)
    total = exact_polynomials(values, k)[k]
    for n in range(0, values.size, 5):
        without = exact_polynomials(np.delete(values, n), k - 1)[k - 1]
        assert abs(mpmath.mpf(pi[n]) / (mpmath.mpf(float(values[n])) * without / total) - 1) < 1e-10
    assert pi.sum() == pytest.approx(k, rel=1e-12)


def test_gradients_of_the_normaliser_are_finite_at_zero():
    values = np.array([3.0, 2.0, 1.0, 1.0, 0.0, 0.0])
    found, total = log_polynomial_gradient(values, 3), exact_polynomials(values, 3)[3]
    for n in range(values.size):
        without = exact_polynomials(np.delete(values, n), 2)[2]
        assert abs(mpmath.mpf(found[n]) / (without / total) - 1) < 1e-14


@pytest.mark.parametrize("function", [ratios, log_polynomial, log_polynomial_gradient])
def test_many_spectra_are_as_one_by_one(function):
    values = np.sort(RNG.gamma(0.3, 1, (2, 3, 12)), axis=-1)[..., ::-1]
    together = function(values, 5)
    for place in np.ndindex(2, 3):
        np.testing.assert_array_equal(together[place], function(values[place], 5))


def test_pair_selection_agrees_with_50_digits(spectrum):
    values, k = spectrum
    pairs = eigenvector_joint(values, k)
    total = exact_polynomials(values, k)[k]
    np.testing.assert_allclose(pairs.diagonal(), eigenvector_inclusion(values, k), rtol=1e-12)
    np.testing.assert_array_equal(pairs, pairs.T)
    if k == 1:
        assert not pairs[~np.eye(values.size, dtype=bool)].any()
        return
    for n, m in [(0, 1), (3, 2), (10, 30), (values.size - 1, values.size - 2), (0, 39)]:
        without = exact_polynomials(np.delete(values, [n, m]), k - 2)[k - 2]
        exact = mpmath.mpf(float(values[n])) * mpmath.mpf(float(values[m])) * without / total
        assert abs(mpmath.mpf(pairs[n, m]) / exact - 1) < 1e-10


@pytest.mark.parametrize("values", [np.full(400, 1e6), np.logspace(6, -2, 400)])
def test_no_overflow_where_plain_polynomials_overflow(values):
    assert np.isfinite(log_polynomials(values, 200)[200, 200:]).all()
    pi = eigenvector_inclusion(values, 200)
    assert pi.sum() == pytest.approx(200, abs=1e-9)
    assert ((pi > 0) & (pi <= 1 + 1e-12)).all()


@pytest.mark.parametrize("n", [1, 2, 5, 29, 31, 10**3, 10**6, 10**12, 10**18])
def test_numbers_of_subsets_agree_with_50_digits(n):
    for k in {0, 1, min(n, 30), min(n, 10**5), n // 3, n // 2, n - 1, n}:
        exact = mpmath.loggamma(n + 1) - mpmath.loggamma(k + 1) - mpmath.loggamma(n - k + 1)
        assert abs(float(log_binomial(n, k)) - exact) <= 1e-14 * max(exact, 1)


def test_real_size():
    values = np.sort(RNG.gamma(0.5, 10, 5416))[::-1]
    assert eigenvector_inclusion(values, 80).sum() == pytest.approx(80, abs=1e-9)


def test_products_of_all_sets_add_up():
    values = RNG.random(6)
    sums = [sum(map(np.prod, combinations(values, size))) for size in range(5)]
    np.testing.assert_allclose(np.exp(log_polynomials(values, 4)[:, -1]), sums)
