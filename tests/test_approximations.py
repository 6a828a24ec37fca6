"""Approximations are exact for their own kernel, and say how far that is from the one meant."""

import re
from functools import partial

import numpy as np
import pytest
from scipy.optimize import linprog

import dmsgd
from contracts import check_closed_forms, check_draws, kdpp_law
from dmsgd.designs import build
from dmsgd.kernels import coreset, nystrom, pivoted_cholesky

RNG = np.random.default_rng(4)
POINTS = RNG.normal(size=(8, 2))
CLOUD = np.vstack([RNG.normal(size=(450, 6)), 0.3 * RNG.normal(size=(150, 6)) + 2])


def matrix(spectrum):
    return (spectrum.vectors * spectrum.values) @ spectrum.vectors.T


MADE = {
    "pivoted Cholesky": lambda kernel, size, seed=1: pivoted_cholesky(kernel, size, seed=seed),
    "plain pivoted Cholesky": lambda kernel, size, seed=1: pivoted_cholesky(
        kernel, size, seed=seed, oversampling=1.0
    ),
    "Nyström": lambda kernel, size, seed=1: nystrom(kernel, size, seed=seed),
    "Nyström, pivots": lambda kernel, size, seed=1: nystrom(kernel, size, "pivots", seed),
    "Nyström, k-means": lambda kernel, size, seed=1: nystrom(kernel, size, "kmeans", seed=seed),
    "coreset": lambda kernel, size, seed=1: coreset(kernel, size, seed=seed),
}


@pytest.mark.parametrize("name", MADE)
@pytest.mark.parametrize(
    "kernel", [dmsgd.kernels.RBF(POINTS), dmsgd.kernels.Linear(RNG.normal(size=(8, 6)))]
)
def test_the_law_is_exact_for_the_approximate_kernel(name, kernel):
    spectrum = MADE[name](kernel, 5)
    np.testing.assert_allclose(
        spectrum.vectors.T @ spectrum.vectors, np.eye(spectrum.rank), atol=1e-9
    )
    assert spectrum.trace_error > 0
    design, law = dmsgd.KDPP(spectrum, 3), kdpp_law(matrix(spectrum), 3)
    check_closed_forms(design, law)
    check_draws(design, law)


@pytest.mark.parametrize("name", ["pivoted Cholesky", "plain pivoted Cholesky", "Nyström"])
def test_the_stated_trace_error_is_the_true_one(name):
    kernel = dmsgd.kernels.RBF(CLOUD)
    spectrum = MADE[name](kernel, 40)
    assert spectrum.rank == 40
    assert spectrum.trace_error == pytest.approx(1 - spectrum.values.sum() / 600, rel=1e-6)
    L = kernel.block(np.arange(600), np.arange(600))
    assert np.linalg.eigvalsh(L - matrix(spectrum)).min() > -1e-9  # L̂ <= L


@pytest.mark.parametrize("name", MADE)
def test_errors_fall_as_the_size_grows(name):
    """On average over seeds, both the stated error and the distance of the inclusion."""
    kernel = dmsgd.kernels.RBF(CLOUD)
    b = dmsgd.KDPP(kernel, 15).inclusion()
    errors, distances = [], []
    for size in (20, 60, 180):
        spectra = [MADE[name](kernel, size, seed) for seed in range(4)]
        errors.append(np.mean([s.trace_error for s in spectra]))
        inclusions = [dmsgd.KDPP(s, 15).inclusion() for s in spectra]
        distances.append(np.mean([np.abs(c - b).sum() / 30 for c in inclusions]))
    assert errors[0] > errors[1] > errors[2]
    assert distances[0] > distances[1] > distances[2]


@pytest.mark.parametrize("decay", ["i^-1", "i^-2", "0.95^i"])
def test_pivoted_cholesky_is_within_twice_the_best(decay):
    i = np.arange(1, 501.0)
    values = {"i^-1": 1 / i, "i^-2": i**-2, "0.95^i": 0.95**i}[decay]
    Q, _ = np.linalg.qr(RNG.normal(size=(500, 500)))
    kernel = dmsgd.kernels.Precomputed((Q * values) @ Q.T)
    for rank in (20, 100):
        best = values[rank:].sum() / values.sum()
        assert pivoted_cholesky(kernel, rank).trace_error < 2 * best


def test_tolerance_stops_early_and_full_rank_is_exact():
    kernel = dmsgd.kernels.RBF(CLOUD)
    spectrum = pivoted_cholesky(kernel, tol=0.01)
    assert spectrum.trace_error <= 0.01
    assert 10 < spectrum.rank < 400
    low = dmsgd.kernels.Linear(RNG.normal(size=(300, 7)))
    found = pivoted_cholesky(low, 50)
    assert found.rank == 7
    assert found.trace_error < 1e-9
    np.testing.assert_allclose(matrix(found), low.block(range(300), range(300)), atol=1e-8)
    np.testing.assert_allclose(nystrom(low, 50).trace_error, 0, atol=1e-9)


def test_duplicates_are_pivots_once():
    kernel = dmsgd.kernels.RBF(np.repeat(RNG.normal(size=(20, 2)), 30, axis=0), scale=0.5)
    spectrum = pivoted_cholesky(kernel, 100)
    assert spectrum.rank <= 20
    assert spectrum.trace_error < 1e-9


@pytest.mark.long
def test_blocks_have_the_law_of_single_pivots():
    """First two pivots of three items: the blocked draw against the sequential one, by χ²."""
    from scipy.stats import chi2_contingency

    from dmsgd.kernels.pivoted_cholesky import factor

    B = np.array([[1.0, 0, 0], [0.9, 0.5, 0], [0.2, 0.1, 0.7], [0.5, 0.5, 0.5]])
    kernel = dmsgd.kernels.Linear(B)
    counts = []
    for block in (1, 3):
        spans: dict[tuple[float, ...], int] = {}
        for seed in range(3000):
            F, pivots = factor(kernel, 2, 0.0, 10_000 * block + seed, block)
            np.testing.assert_allclose(F @ F[pivots].T, kernel.columns(pivots), atol=1e-12)
            key = tuple(np.round(np.einsum("ij,ij->i", F, F), 6))
            spans[key] = spans.get(key, 0) + 1
        counts.append(spans)
    keys = sorted(set(counts[0]) | set(counts[1]))
    table = np.array([[spans.get(key, 0) for key in keys] for spans in counts])
    assert chi2_contingency(table[:, table.sum(axis=0) > 10]).pvalue > 1e-4


def test_given_landmarks_and_bad_ones():
    kernel = dmsgd.kernels.RBF(CLOUD)
    given = nystrom(kernel, [3, 1, 3, 40])
    partly_zero = dmsgd.kernels.Linear(np.vstack([np.eye(2), np.zeros((20, 2))]))
    assert given.rank == 3
    assert given.route == "Nyström, 3 landmarks (given)"
    for call, error, message in [
        (lambda: nystrom(kernel, 601), ValueError, "exceeds the number of items, 600"),
        (lambda: nystrom(kernel, []), ValueError, "landmarks is empty"),
        (lambda: nystrom(kernel, [700]), ValueError, r"0..599"),
        (
            lambda: nystrom(partly_zero, [9, 7]),
            ValueError,
            "2 items .* are zero .*item 7",
        ),
        (lambda: coreset(partly_zero, 1), ValueError, "1 item .* are zero .*choose more"),
        (lambda: nystrom(kernel, 5, "best"), ValueError, "'best'; use 'pivots', 'uniform' or 'km"),
        (
            lambda: coreset(dmsgd.kernels.Precomputed(np.eye(9)), 3),
            TypeError,
            "Precomputed has none",
        ),
        (lambda: coreset(kernel, 601), ValueError, "cores=601"),
        (lambda: pivoted_cholesky(kernel, 10, oversampling=0.5), ValueError, "at least 1"),
        (lambda: pivoted_cholesky(kernel, tol=2.0), ValueError, r"\[0, 1\]"),
    ]:
        with pytest.raises(error, match=message):
            call()


def test_memory_is_asked_for_first(monkeypatch):
    monkeypatch.setenv("DMSGD_MEMORY", "1MB")
    kernel = dmsgd.kernels.RBF(CLOUD)
    with pytest.raises(MemoryError, match=r"13.7 MB and 1 MB may be used; use pivoted_cholesky"):
        dmsgd.kernels.exact(kernel)
    with pytest.raises(MemoryError, match="a factor of 600 items x 450"):
        pivoted_cholesky(kernel, 300)
    with pytest.raises(MemoryError, match="fewer landmarks"):
        nystrom(kernel, 200)
    monkeypatch.setenv("DMSGD_MEMORY", "much")
    with pytest.raises(ValueError, match="such as 8GB"):
        dmsgd.kernels.exact(kernel)


@pytest.fixture
def a_fifth(monkeypatch):
    """Factors from 1,000 items on and of 300 landmarks: the same rule in a fifth of the size."""
    assert (build.EXACT_ITEMS, build.FACTOR_RANK) == (
        5000,
        1600,
    )  # as documented
    monkeypatch.setattr(build, "EXACT_ITEMS", 1000)
    monkeypatch.setattr(build, "FACTOR_RANK", 300)


@pytest.mark.usefixtures("a_fifth")
def test_large_rbf_designs_use_a_factor_and_say_so():
    X = RNG.normal(size=(1040, 2))
    design = dmsgd.diversify(X, 10, kernel="rbf")
    assert re.search(r"Nyström, .*batch error at most 0\.\d\d%", repr(design))
    assert 10 * design.spectrum.batch_error(10) < 1e-6  # as good as exact, and so no warning
    for scale in (0.5, 4.0):
        with pytest.warns(dmsgd.KernelWarning, match=r"up to [1-9]\d.\d% of the items of a batch"):
            dmsgd.diversify(RNG.normal(size=(1040, 40)), 10, kernel="rbf", scale=scale)


@pytest.mark.usefixtures("a_fifth")
def test_the_default_factor_depends_on_n_and_k_alone(monkeypatch, tmp_path):
    X = RNG.normal(size=(1060, 2))
    np.save(tmp_path / "x.npy", X)
    design = dmsgd.diversify(X, 10, kernel="rbf", scale=1.0)
    monkeypatch.setenv("DMSGD_MEMORY", "8MB")
    path = dmsgd.diversify(str(tmp_path / "x.npy"), 10, kernel="rbf", scale=1.0)
    assert dmsgd.diversify(X, 10, kernel="rbf", scale=1.0).spectrum.rank == design.spectrum.rank
    assert path.fingerprint() == design.fingerprint()
    np.testing.assert_allclose(path.inclusion(), design.inclusion(), rtol=1e-8)
    monkeypatch.setenv("DMSGD_MEMORY", "2MB")
    with pytest.raises(MemoryError, match="a factor of 1060 items x 300"):
        dmsgd.diversify(X, 10, kernel="rbf", scale=1.0)


def off(design, exactly):
    """The share of a batch's items by which inclusion probabilities are off."""
    return np.abs(design.inclusion() - exactly.inclusion()).sum() / (2 * design.k)


@pytest.mark.filterwarnings("error")
@pytest.mark.usefixtures("a_fifth")
def test_landmarks_are_added_where_that_makes_the_error_small(monkeypatch, tmp_path):
    X = np.random.default_rng(0).normal(size=(1100, 14))
    scale = 2 * dmsgd.designs.suggest_scale(X, 20)
    few = dmsgd.kernels.nystrom(dmsgd.kernels.RBF(X, scale), 300, "pivots")
    assert few.batch_error(20) > 0.02
    design = dmsgd.diversify(X, 20, kernel="rbf", scale=scale)
    assert 300 < design.spectrum.rank <= 733
    assert f"Nyström, {design.spectrum.rank} landmarks" in repr(design)
    exactly = dmsgd.diversify(X, 20, kernel="rbf", scale=scale, spectrum="exact")
    assert 1e-4 < off(design, exactly) < design.spectrum.batch_error(20) < 0.01
    np.save(tmp_path / "x.npy", X)
    monkeypatch.setattr("dmsgd.runtime.memory.LARGE", 0)  # files are read in blocks
    path = dmsgd.diversify(str(tmp_path / "x.npy"), 20, kernel="rbf", scale=scale)
    assert path.fingerprint() == design.fingerprint()
    np.testing.assert_allclose(path.inclusion(), design.inclusion(), rtol=1e-8)


@pytest.mark.usefixtures("a_fifth")
@pytest.mark.parametrize("limit", [{}, {"GROWTH": 1}, {"LARGEST": 1100 * 350}])
def test_landmarks_are_not_added_in_vain_or_beyond_the_limits(monkeypatch, limit):
    X = np.random.default_rng(0).normal(size=(1100, 14))
    scale = (2 if limit else 1) * dmsgd.designs.suggest_scale(X, 20)
    for name, value in limit.items():
        monkeypatch.setattr(build, name, value)
    with pytest.warns(dmsgd.KernelWarning, match=r"300 of the 1,100 items .* exact"):
        assert dmsgd.diversify(X, 20, kernel="rbf", scale=scale).spectrum.rank == 300


@pytest.mark.long
@pytest.mark.filterwarnings("error")
def test_6000_items_have_the_inclusion_probabilities_of_the_whole_matrix_to_one_per_cent():
    X = np.random.default_rng(0).normal(size=(6000, 14))
    scale = 2 * dmsgd.designs.suggest_scale(X, 64)
    design = dmsgd.diversify(X, 64, kernel="rbf", scale=scale)
    exactly = dmsgd.diversify(X, 64, kernel="rbf", scale=scale, spectrum="exact")
    assert 1600 < design.spectrum.rank <= 4000
    assert off(design, exactly) < design.spectrum.batch_error(64) < 0.01


def test_small_kernels_are_exact_from_a_file_too(tmp_path):
    X = RNG.normal(size=(60, 3))
    np.save(tmp_path / "x.npy", X)
    path = dmsgd.diversify(str(tmp_path / "x.npy"), 5, kernel="rbf")
    memory = dmsgd.diversify(X, 5, kernel="rbf")
    assert path.spectrum.route == memory.spectrum.route == "primal"
    assert path.fingerprint() == memory.fingerprint()
    np.testing.assert_array_equal(path.sample(20, seed=0), memory.sample(20, seed=0))


def test_pivots_find_rare_groups_that_uniform_landmarks_miss():
    rare = np.full((3, 2), 40.0) + RNG.normal(size=(3, 2))
    kernel = dmsgd.kernels.RBF(np.vstack([RNG.normal(size=(600, 2)), rare]), scale=1.0)
    spectra = [dmsgd.kernels.exact(kernel), nystrom(kernel, 40), nystrom(kernel, 40, "pivots")]
    seen, uniform, pivots = (dmsgd.KDPP(s, 12).inclusion()[-3:].sum() for s in spectra)
    assert uniform < 0.01 * seen
    assert pivots == pytest.approx(seen, rel=0.3)


@pytest.mark.parametrize("name", ["nystrom", "pivoted_cholesky"])
def test_the_distance_to_the_exact_law_is_bounded(name):
    """Total variation by the share of items that differ, against all subsets of 8 items."""
    make = {"nystrom": nystrom, "pivoted_cholesky": partial(pivoted_cholesky, oversampling=1.0)}
    for seed in range(6):
        kernel = dmsgd.kernels.RBF(np.random.default_rng(seed).normal(size=(8, 2)), 1.5)
        spectrum = make[name](kernel, 6, seed=seed)
        exactly = kdpp_law(kernel.block(range(8), range(8)), 3)
        nearly = kdpp_law(matrix(spectrum), 3)
        off = sum(abs(nearly[Y] - P) for Y, P in exactly.items()) / 2
        assert 1e-6 < off <= 3 * spectrum.batch_error(3) < 20 * off


@pytest.mark.parametrize("name", ["nystrom", "pivoted_cholesky"])
def test_the_share_of_items_that_differ_is_bounded(name):
    """The least mean number of items that differ, over all ways to draw two batches together."""
    make = {"nystrom": nystrom, "pivoted_cholesky": partial(pivoted_cholesky, oversampling=1.0)}
    for seed, scale in enumerate((0.5, 1.0, 2.0, 4.0)):
        kernel = dmsgd.kernels.RBF(np.random.default_rng(seed).normal(size=(6, 2)), scale)
        spectrum = make[name](kernel, 4, seed=seed)
        exactly = kdpp_law(kernel.block(range(6), range(6)), 3)
        nearly = kdpp_law(matrix(spectrum), 3)
        differ = np.array([[3 - len({*A} & {*B}) for B in nearly] for A in exactly])
        first = np.kron(np.eye(20), np.ones(20))
        second = np.kron(np.ones(20), np.eye(20))
        laws = [*exactly.values(), *(max(p, 0.0) for p in nearly.values())]
        found = linprog(differ.ravel(), A_eq=np.vstack([first, second]), b_eq=laws)
        assert 1e-6 < found.fun / 3 <= spectrum.batch_error(3) < 12 * found.fun / 3


def rest(kind, V, rng):
    """What an approximation with eigenvectors V leaves out: the worst kinds of it."""
    n = len(V)
    one = {"of a direction that is known": V[:, 0], "of the weakest": V[:, -1], "of one item": None}
    if kind in one:
        v = np.eye(n)[2] if one[kind] is None else one[kind]
        return np.outer(v, v)
    if kind == "the same for all":
        return np.eye(n)
    B = rng.normal(size=(n, 2)) + (5 * V[:, :2] if kind == "nearly known" else 0)
    return B @ B.T


@pytest.mark.parametrize(
    "kind",
    ["of a direction that is known", "of the weakest", "of one item", "the same for all",
     "nearly known", "random"],
)  # fmt: skip
def test_inclusion_probabilities_are_off_by_no_more_than_the_batch_error(kind):
    """Against all subsets of 7 items, from nearly nothing left out to nearly everything."""
    closest = 0.0
    for seed, (rank, k) in enumerate([(2, 2), (3, 2), (4, 3), (5, 3), (6, 5), (4, 4)] * 4):
        rng = np.random.default_rng(seed)
        V = np.linalg.qr(rng.normal(size=(7, rank)))[0]
        values = np.sort(rng.gamma(0.3, size=rank) + 1e-3)[::-1]
        left_out = rest(kind, V, rng)
        left_out *= 10 ** rng.uniform(-3, 1) * values.sum() / np.trace(left_out)
        L = (V * values) @ V.T + left_out
        error = np.trace(left_out) / np.trace(L)
        spectrum = dmsgd.spectra.Spectrum(values, V, trace_error=error)
        b, nearly = np.zeros(7), np.zeros(7)
        for Y, P in kdpp_law(L, k).items():
            b[list(Y)] += P
        for Y, P in kdpp_law((V * values) @ V.T, k).items():
            nearly[list(Y)] += P
        share = np.abs(b - nearly).sum() / (2 * k)
        assert share <= spectrum.batch_error(k) + 1e-9
        closest = max(closest, share / spectrum.batch_error(k))
    assert closest > 0.01


def test_the_share_of_items_that_differ_does_not_saturate():
    kernel = dmsgd.kernels.RBF(CLOUD[:300], 1.0)
    spectrum = pivoted_cholesky(kernel, 150)
    b = dmsgd.KDPP(dmsgd.kernels.exact(kernel), 60).inclusion()
    off = np.abs(dmsgd.KDPP(spectrum, 60).inclusion() - b).sum() / 120
    assert off < spectrum.batch_error(60) < 4 * off < 0.5
    assert 0 < dmsgd.kernels.exact(kernel).batch_error(60) < 1e-11  # rounding alone
