"""Rounding of approximate kernels follows the rule of exact ones: it is bounded, and told."""

import warnings
from functools import partial

import numpy as np
import pytest

import dmsgd
import precise
from dmsgd.kernels import RBF, coreset, exact, nystrom, pivoted_cholesky
from dmsgd.spectra.rounding import Rounding

MADE = {
    "Nyström": nystrom,
    "Nyström, pivots": partial(nystrom, how="pivots"),
    "pivoted Cholesky": pivoted_cholesky,
    "plain pivoted Cholesky": partial(pivoted_cholesky, oversampling=1.0),
}


def told(make, *args, **options):
    """Return what `make` returns, and whether it warned of rounding."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        made = make(*args, **options)
    return made, any("rounding may move" in str(each.message) for each in caught)


def points(rng):
    """Return few points, some of them nearly equal, and a scale."""
    n, d = int(rng.integers(3, 8)), int(rng.integers(1, 4))
    X = rng.normal(size=(n, d))
    if rng.random() < 0.3:
        X[n // 2 :] = X[: n - n // 2] + 10.0 ** rng.uniform(-7, -1) * rng.normal(size=d)
    elif rng.random() < 0.3:
        X = np.linspace(0, 1, n)[:, None] * np.ones(d)
    return X, 10.0 ** rng.uniform(-0.7, 1.5)


@pytest.mark.parametrize("part", [0, 1, *(pytest.param(i, marks=pytest.mark.long) for i in (2, 3))])
def test_no_error_of_b_is_silent_and_the_bounds_hold(part):
    """Kernels of 3 to 7 items against 70 digits, with all items as landmarks, and with some.

    25 for each part. With all items, approximations are right to 1e-8 or warn, as exact spectra do.
    """
    wrong = 0
    for seed in range(25 * part, 25 * part + 25):
        rng = np.random.default_rng(seed)
        X, scale = points(rng)
        kernel, sizes = RBF(X, scale), (len(X), int(rng.integers(2, len(X) + 1)))
        spectra = [(exact(kernel), True)]
        spectra += [(make(kernel, m), m == len(X)) for make in MADE.values() for m in sizes]
        true = {}
        for spectrum, is_whole in spectra:
            k = spectrum.rank
            if k == len(X):
                k -= 1  # of all items b is 1, whatever the kernel
            if k not in true:
                true[k] = precise.rbf_inclusion(X, scale, k)
            design, warned = told(dmsgd.KDPP, spectrum, k)
            off = np.abs(design.inclusion() - true[k])
            assert off.sum() <= 2 * k * spectrum.batch_error(k) + 1e-14, (seed, spectrum)
            assert off.max() <= k * spectrum.batch_error(k) + 1e-14, (seed, spectrum)
            if is_whole:
                assert off.max() <= 1e-8 or warned, (seed, spectrum, off.max())
                assert off.max() <= 10 * spectrum.inclusion_error(k) + 1e-14, (seed, spectrum)
                wrong += off.max() > 1e-8
    assert wrong > 10


@pytest.mark.parametrize("name", ["nystrom", "pivoted_cholesky"])
def test_named_approximations_of_full_rank_warn_as_exact_ones_do(name):
    """Six points on a line at a scale of several times their distance."""
    X = np.arange(6.0)[:, None]
    for scale, k, visible in ((16.0, 5, True), (60.0, 4, True), (1.0, 5, False), (16.0, 2, False)):
        make = partial(dmsgd.diversify, X, k, kernel="rbf", scale=scale)
        exactly, known = told(make, spectrum="exact")
        design, warned = told(make, spectrum=name, rank=6)
        assert known == warned == visible
        b = precise.rbf_inclusion(X, scale, k)
        error = design.spectrum.inclusion_error(k)
        assert error == pytest.approx(exactly.spectrum.inclusion_error(k), rel=1, abs=1e-9)
        assert np.abs(design.inclusion() - b).max() <= error + 1e-14
        assert (1e-9 < design.spectrum.batch_error(k) < 1e-3) == visible


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("columns", "k"),
    [(1, 20), *(pytest.param(d, 50, marks=pytest.mark.long) for d in (2, 5)), (20, 300)],
)
def test_well_conditioned_kernels_raise_no_false_alarm(columns, k):
    """At the suggested scale, and where landmarks equal the kernel up to rounding."""
    X = np.random.default_rng(0).normal(size=(1000, columns))
    for times in (1, 3):
        kernel = RBF(X, times * dmsgd.designs.suggest_scale(X, k))
        for spectrum in (nystrom(kernel, 600, "pivots"), pivoted_cholesky(kernel, 600)):
            assert spectrum.inclusion_error(k) < 1e-8
            dmsgd.KDPP(spectrum, k)


def test_what_the_user_gave_is_exact():
    values, V = np.linalg.eigh(RBF(np.arange(6.0)[:, None], 2.0).block(range(6), range(6)))
    given = dmsgd.spectra.Spectrum(values[::-1], V[:, ::-1])
    assert given.batch_error(5) == 0


def test_cores_of_duplicates_are_off_by_rounding_alone_and_say_so():
    """20 copies of 5 points: b is that of one point, divided among its copies."""
    X = np.arange(5.0)[:, None]
    cores = coreset(RBF(np.repeat(X, 20, axis=0), 16.0), 5)
    b = precise.rbf_inclusion(X, 16.0, 4)
    assert (cores.rank, cores.trace_error) == (5, 0)
    off = np.abs(dmsgd.KDPP(cores, 4).inclusion() - np.repeat(b, 20) / 20)
    assert 1e-12 < off.sum() < 8 * cores.batch_error(4) < 1e-5
    assert off.max() < 4 * cores.batch_error(4)


def test_rounding_of_an_exact_kernel_is_not_called_an_approximation():
    with pytest.warns(dmsgd.KernelWarning) as caught:
        design = dmsgd.diversify(np.arange(6.0)[:, None], 4, kernel="rbf", scale=200.0)
    assert design.spectrum.batch_error(4) > 0.01
    assert "rounding may move" in str(caught[0].message)
    assert len(caught) == 1


def test_equal_eigenvalues_may_each_be_off_by_the_noise():
    rounding = Rounding(1.0, 20)
    values = np.append(1 + 0.9 * rounding.noise * np.array([1, 0.1, -1]), 1 - 2 * rounding.noise)
    assert list(rounding.equal_groups(values)) == [slice(0, 3)]
