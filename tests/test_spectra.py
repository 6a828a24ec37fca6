import numpy as np
import pytest
from scipy import sparse

import dmsgd
from dmsgd.polynomials import eigenvector_inclusion
from dmsgd.spectra.eigenpairs import spectrum_of_matrix
from dmsgd.spectra.rounding import Rounding

RNG = np.random.default_rng(1)


def check_spectrum(kernel, spectrum, atol=1e-10):
    """V is orthonormal, values are positive and sorted, and V diag(λ) Vᵀ is the kernel."""
    V, values = spectrum.vectors, spectrum.values
    everyone = np.arange(kernel.n)
    L = kernel.block(everyone, everyone)
    np.testing.assert_allclose(V.T @ V, np.eye(spectrum.rank), atol=atol)
    np.testing.assert_allclose((V * values) @ V.T, L, atol=atol * np.abs(L).max())
    assert (values > 0).all()
    assert (np.diff(values) <= 0).all()
    assert V.flags.c_contiguous
    assert V.dtype == values.dtype == np.float64


CASES = {
    "dual": dmsgd.kernels.Linear(RNG.normal(size=(50, 6))),
    "primal": dmsgd.kernels.Linear(RNG.normal(size=(10, 40))),
    "dual, sparse": dmsgd.kernels.Linear(sparse.random(60, 12, 0.3, random_state=1)),
    "primal, sparse": dmsgd.kernels.Linear(sparse.random(20, 90, 0.3, random_state=1)),
    "diagonal, strata": dmsgd.kernels.Linear(dmsgd.features.one_hot(RNG.integers(0, 4, 30))),
    "diagonal, identity": dmsgd.kernels.Linear(sparse.eye_array(9)),
    "primal, rbf": dmsgd.kernels.RBF(RNG.normal(size=(25, 2))),
    "primal, rbf of sparse": dmsgd.kernels.RBF(sparse.random(20, 30, 0.3, random_state=1)),
    "primal, precomputed": dmsgd.kernels.Precomputed(np.diag(np.arange(1.0, 9))),
    "dual, duplicated rows": dmsgd.kernels.Linear(np.repeat(RNG.normal(size=(6, 4)), 5, axis=0)),
    "dual, zero column": dmsgd.kernels.Linear(np.c_[RNG.normal(size=(20, 3)), np.zeros(20)]),
}


@pytest.mark.parametrize("name", CASES)
def test_exact(name):
    spectrum = dmsgd.kernels.exact(CASES[name])
    check_spectrum(CASES[name], spectrum)
    assert spectrum.route.startswith(name.split(",")[0])


def test_rank_counts_independent_directions():
    X = np.hstack([A := RNG.normal(size=(40, 5)), A @ RNG.normal(size=(5, 4))])
    assert dmsgd.kernels.exact(dmsgd.kernels.Linear(X)).rank == 5
    assert dmsgd.kernels.exact(dmsgd.kernels.Linear(X.T)).rank == 5
    assert dmsgd.kernels.exact(dmsgd.kernels.Linear(np.ones((7, 3)))).rank == 1


@pytest.mark.parametrize("transpose", [False, True])
def test_ill_conditioned_features_are_resolved_in_rounds(transpose):
    """Singular values over 5.5 decades: eigenvalues over 11, which a Gram matrix cannot hold."""
    U, _ = np.linalg.qr(RNG.normal(size=(80, 30)))
    W, _ = np.linalg.qr(RNG.normal(size=(30, 30)))
    sigma = np.logspace(0, -5.5, 30)
    F = (U * sigma) @ W.T
    kernel = dmsgd.kernels.Linear(F.T if transpose else F)
    spectrum = dmsgd.kernels.exact(kernel)
    assert spectrum.route == ("primal" if transpose else "dual")
    np.testing.assert_allclose(spectrum.values, sigma**2, rtol=1e-8)
    check_spectrum(kernel, spectrum, atol=1e-9)
    if not transpose:
        np.testing.assert_allclose(np.abs(np.sum(spectrum.vectors * U, axis=0)), 1, atol=1e-8)


@pytest.mark.parametrize("d", [8, 40])
@pytest.mark.parametrize("decades", [0, 7])
def test_items_without_features_are_never_drawn(d, decades):
    F = np.random.default_rng(0).normal(size=(30, d)) * np.logspace(0, -decades, d)
    F[[0, 3, 17]] = 0.0
    for kernel in (
        dmsgd.kernels.Linear(F),
        dmsgd.kernels.Linear(sparse.csr_array(F)),
        dmsgd.kernels.Precomputed(F @ F.T),
    ):
        spectrum = dmsgd.kernels.exact(kernel)
        assert not np.asarray(spectrum.vectors)[[0, 3, 17]].any()
        with pytest.raises(dmsgd.TargetError, match=r"item 0 has no features at all \(3 such"):
            dmsgd.targets.prescribe(spectrum, 2, "uniform")


def test_tolerance_is_the_users_to_choose():
    X = np.diag([1.0, 1e-3, 1e-7])
    assert dmsgd.kernels.exact(dmsgd.kernels.Linear(X)).rank == 3
    assert dmsgd.kernels.exact(dmsgd.kernels.Linear(X)).trace_error == 0
    cut = dmsgd.kernels.exact(dmsgd.kernels.Linear(X), tol=1e-5)
    assert cut.rank == 1
    assert cut.trace_error == pytest.approx(1e-6, rel=1e-5)
    with pytest.raises(dmsgd.RankError, match=r"1 independent direction above tol=1e-05"):
        dmsgd.KDPP(cut, 2)
    with pytest.raises(ValueError, match=r"tol must lie in \[0, 1\]"):
        dmsgd.kernels.exact(dmsgd.kernels.Linear(X), tol=-1.0)


def test_exact_needs_a_kernel():
    with pytest.raises(TypeError, match=r"exact\(Linear\(X\)\)"):
        dmsgd.kernels.exact(np.eye(3))


HARD = {
    "eigenvalues to 1e6": np.linspace(1e5, 1e6, 400),
    "eigenvalues over 8 decades": np.logspace(6, -2, 400),
}


@pytest.mark.parametrize("name", HARD)
@pytest.mark.parametrize("k", [1, 200, 399, 400])
def test_range(name, k):
    """N = 400 up to k = rank: no overflow, no warning (they are errors here), b sums to k."""
    Q, _ = np.linalg.qr(np.random.default_rng(2).normal(size=(400, 400)))
    design = dmsgd.diversify(Q * np.sqrt(HARD[name]), k)
    assert design.inclusion().sum() == pytest.approx(k, abs=1e-6)
    assert design.inclusion().max() <= 1 + 1e-9
    batch = design.sample(2, seed=0)
    assert np.isfinite(design.log_prob(batch)).all()
    assert np.unique(batch[0]).size == k


def test_float32_features_and_duplicated_rows_keep_k():
    X = np.repeat(RNG.normal(size=(100, 64)).astype(np.float32), 3, axis=0)
    design = dmsgd.diversify(X, k=63)
    assert design.inclusion().sum() == pytest.approx(63, abs=1e-6)
    assert all(np.unique(row // 3).size == 63 for row in design.sample(20, seed=0))


def test_no_group_of_equal_eigenvalues_is_wide():
    """Neighbours that are close do not chain: 133 values that span a factor of 28 were one tie."""
    for values in (np.geomspace(1, 1e-14, 2000), np.linspace(1e-12, 1e-14, 500)):
        for group in Rounding(1.0, values.size).equal_groups(values):
            assert values[group.start] - values[group.stop - 1] <= 1e-9 * values[group.start]


def test_duplicates_of_rows_are_no_directions_of_an_rbf_kernel():
    rows = np.repeat(np.random.default_rng(0).normal(size=(70, 5)), 10, axis=0)
    for scale in (0.1, 1.0):
        assert dmsgd.kernels.exact(dmsgd.kernels.RBF(rows, scale)).rank <= 70


LOW = np.random.default_rng(0).normal(size=(600, 2))


@pytest.mark.parametrize("kernel", [dmsgd.kernels.RBF(LOW, 2.0), dmsgd.kernels.RBF(LOW, 30.0)])
def test_a_kernel_of_low_numerical_rank_is_found_by_a_factor(kernel):
    everyone = np.arange(600)
    spectrum = dmsgd.kernels.exact(kernel)
    assert spectrum.route == "pivoted Cholesky"
    check_spectrum(kernel, spectrum)
    # As the n x n matrix has it, within what its rounding permits.
    whole = spectrum_of_matrix(kernel.block(everyone, everyone))
    assert abs(spectrum.rank - whole.rank) <= 0.02 * whole.rank + 2
    assert spectrum.rounding.hidden >= whole.rounding.hidden * 0.9
    found, known = (
        each.eigenvectors.weighted_squares(eigenvector_inclusion(each.values, 12))
        for each in (spectrum, whole)
    )
    assert np.abs(found - known).max() <= spectrum.inclusion_error(12)
    # Pairs, by enumeration: det(L_ij) = 1 - L_ij².
    pairs = 1 - kernel.block(everyone, everyone) ** 2
    np.testing.assert_allclose(
        dmsgd.KDPP(spectrum, 2).inclusion(), 2 * pairs.sum(1) / pairs.sum(), rtol=1e-9
    )


@pytest.mark.parametrize(
    "kernel",
    [
        dmsgd.kernels.RBF(LOW, 0.1),  # of full rank
        dmsgd.kernels.RBF(LOW[:400], 2.0),  # of few items
        dmsgd.kernels.with_quality(dmsgd.kernels.RBF(LOW, 2.0), np.linspace(0, 1, 600)),
    ],
)
def test_other_kernels_are_diagonalised_whole(kernel):
    spectrum = dmsgd.kernels.exact(kernel)
    assert spectrum.route == "primal"
    check_spectrum(kernel, spectrum)


def test_equal_eigenvalues_are_found():
    values = np.array([3.0, 2.0, 2.0 - 4e-16, 1.0, 1e-9, 1e-9, 1e-9])
    found = list(Rounding(0.5, 7).equal_groups(values))
    assert found == [slice(1, 3), slice(4, 7)]


def test_eigenvalues_that_lose_digits_are_cut_off_beside_huge_ones() -> None:
    """The eigenvector of 1e-320, a subnormal number, would have a length of 1 + 1e-5."""
    spread = sparse.diags_array([1e-160, 1.0, 1e150])
    found = dmsgd.kernels.exact(dmsgd.kernels.Linear(spread))
    np.testing.assert_allclose(found.values, [1e300, 1.0])
    np.testing.assert_allclose(np.asarray(found.vectors), [[0, 0], [0, 1], [1, 0]])
