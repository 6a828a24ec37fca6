"""Prescribed inclusion probabilities: met, by the closest law, or refused in words."""

from __future__ import annotations

import os
from itertools import combinations

import numpy as np
import pytest
from scipy import sparse

import dmsgd
from dmsgd import KDPP
from dmsgd.features import as_features
from dmsgd.kernels import RBF, Linear, Precomputed, exact
from dmsgd.polynomials import eigenvector_inclusion, log_polynomial
from dmsgd.targets import Tilted, prescribe


def features(n: int, d: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, d))


def random_target(n: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).uniform(0.5, 1.5, size=n)


def inclusion(kernel: dmsgd.kernels.Kernel, k: int) -> np.ndarray:
    return KDPP(kernel, k).inclusion()


KERNELS = {
    "features": Linear(features(8, 4)),
    "wide features": Linear(features(7, 9)),
    "sparse features": Linear(sparse.csr_array(np.round(features(8, 5), 0) + np.eye(8, 5))),
    "labels and features": Linear(dmsgd.features.concat(features(8, 3), list("aabbbccc"), 0.5)),
    "matrix": Precomputed(features(8, 8) @ features(8, 8).T),
    "rbf": dmsgd.kernels.RBF(features(8, 2), 1.0),
    "identity": dmsgd.kernels.Linear(np.eye(8)),
}


@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("name", KERNELS)
def test_the_target_is_met_and_the_law_is_the_tilt(name: str, k: int) -> None:
    kernel = KERNELS[name]
    n = kernel.n
    weights = random_target(n)
    tilted = prescribe(kernel, k, weights, tol=1e-11)
    b = k * weights / weights.sum()
    np.testing.assert_allclose(inclusion(tilted, k), b, atol=1e-8)
    # The maximum-entropy tilt is the one law of the form P(Y) exp(c + Σ_{i∈Y} θ_i) with these b.
    sets = np.array(list(combinations(range(n), k)))
    before = KDPP(kernel, k).log_prob(sets)
    after = KDPP(tilted, k).log_prob(sets)
    possible = before > -30  # sets of determinant zero stay impossible
    assert (after[~possible] < -25).all()
    member = np.zeros((len(sets), n))
    np.put_along_axis(member, sets, 1.0, axis=1)
    change = after[possible] - before[possible]
    theta, *_ = np.linalg.lstsq(member[possible], change, rcond=None)
    np.testing.assert_allclose(member[possible] @ theta, change, atol=1e-7)
    np.testing.assert_allclose(np.exp(after).sum(), 1)
    np.testing.assert_allclose(np.exp(after) @ member, b, atol=1e-8)


def test_draws_follow_the_target() -> None:
    design = dmsgd.diversify(features(30, 6), 4, target=random_target(30))
    counts = np.bincount(design.sample(20_000, seed=0).ravel(), minlength=30) / 20_000
    b = design.inclusion()
    np.testing.assert_allclose(counts, b, atol=5 * np.sqrt(b.max() / 20_000))
    np.testing.assert_allclose(b, 4 * random_target(30) / random_target(30).sum(), rtol=1e-6)


def test_a_spectrum_whose_features_overflow_is_refused_by_name() -> None:
    V = np.linalg.qr(np.random.default_rng(0).normal(size=(6, 3)))[0]
    spectrum = dmsgd.spectra.Spectrum([1e307, 5e306, 1e306], V)
    with pytest.raises(ValueError, match="kernel"):
        prescribe(spectrum, 2, np.full(6, 1 / 3))


def test_uniform_needs_no_weights() -> None:
    design = dmsgd.diversify(features(200, 12), 6, target="uniform")
    np.testing.assert_allclose(dmsgd.unbiased_weights(design), 1 / 6, rtol=1e-5)
    b = design.inclusion()
    repulsion = design.joint(np.arange(199), np.arange(1, 200)) / (b[:-1] * b[1:]) - 1
    assert repulsion.mean() < -1 / 199  # still more diverse than plain batches


def test_a_spectrum_can_be_tilted_and_keeps_its_error() -> None:
    kernel = dmsgd.kernels.RBF(features(120, 2), 1.0)
    factor = dmsgd.kernels.pivoted_cholesky(kernel, 30)
    design = dmsgd.diversify(
        kernel.features, 5, kernel="rbf", scale=1.0, spectrum="pivoted_cholesky", rank=30,
        target="uniform",
    )  # fmt: skip
    np.testing.assert_allclose(design.inclusion(), 5 / 120, rtol=1e-6)
    assert design.spectrum.trace_error == factor.trace_error > 0


def test_every_plain_step_climbs_by_at_least_the_divergence() -> None:
    F, k = as_features(features(40, 8)), 5
    target = k * random_target(40) / random_target(40).sum()
    theta, height, gain = np.zeros(40), -np.inf, 0.0
    for _ in range(12):
        b, log_z = Tilted(F, k).inclusion(theta)
        phi = target @ theta - log_z
        assert phi >= height + gain - 1e-12
        height, gain = phi, float(target @ np.log(target / b))
        theta = theta + np.log(target / b)


@pytest.fixture
def path(monkeypatch: pytest.MonkeyPatch) -> list[tuple[np.ndarray, np.ndarray, float]]:
    """θ, b and log Z of each step of `prescribe`."""
    steps, original = [], Tilted.inclusion

    def watched(self: Tilted, theta: np.ndarray) -> tuple[np.ndarray, float]:
        found = original(self, theta)
        steps.append((theta, *found))
        return found

    monkeypatch.setattr(Tilted, "inclusion", watched)
    return steps


def test_extrapolation_needs_about_half_the_steps(path: list) -> None:
    # With labels mixed in, the number of items of a class hardly varies, and plain steps are slow.
    y, k = np.random.default_rng(0).integers(8, size=200), 8
    F = dmsgd.features.concat(0.3 * features(200, 12), y, 0.7)
    tilted = prescribe(Linear(F), k, "uniform", tol=1e-8)
    np.testing.assert_allclose(inclusion(tilted, k), k / 200, rtol=2e-8)
    fast, unit = len(path), as_features(dmsgd.features.normalize(F))
    theta, plain, error = np.zeros(200), 0, 1.0
    while error > 1e-8:
        b, _ = Tilted(unit, k).inclusion(theta)
        plain += 1
        error, theta = np.abs(b * 200 / k - 1).max(), theta + np.log(k / 200 / b)
    assert plain >= 20
    assert fast <= 0.6 * plain


@pytest.mark.parametrize("seed", [63, 79, 114])
def test_an_extrapolation_that_loses_ground_is_undone(seed: int, path: list) -> None:
    # Far from the solution gaps are not linear in θ, and extrapolations go astray.
    rng, k = np.random.default_rng(seed), 3
    F, target = rng.normal(size=(12, 4)), rng.uniform(size=12)
    target *= k / target.sum()
    far = as_features(F * np.exp(1.5 * rng.normal(size=12))[:, None])
    dmsgd.targets._solve(far, k, target, 1e-9)
    heights = np.array([target @ theta - log_z for theta, _, log_z in path])
    gains = np.array([target @ np.log(target / b) for _, b, _ in path])
    assert np.abs(path[-1][1] / target - 1).max() <= 1e-9
    lost = np.flatnonzero(np.diff(heights) < -0.01) + 1
    assert lost.size > 0
    # The next step is the guaranteed one, from where the extrapolation left.
    assert (heights[lost + 1] >= heights[lost - 1] + gains[lost - 1]).all()


def test_the_routes_agree() -> None:
    F, k = features(20, 6), 4
    theta = np.random.default_rng(3).normal(size=20)
    tilted = F * np.exp(theta / 2)[:, None]
    b, log_z = Tilted(as_features(F), k).inclusion(theta)
    np.testing.assert_allclose(b, inclusion(Linear(tilted), k), rtol=1e-9)
    for spectrum in (exact(Linear(tilted)), exact(Precomputed(tilted @ tilted.T))):
        pi = eigenvector_inclusion(spectrum.values, k)
        np.testing.assert_allclose(b, spectrum.eigenvectors.weighted_squares(pi), rtol=1e-9)
        assert log_z == pytest.approx(log_polynomial(spectrum.values, k), rel=1e-12)


@pytest.mark.parametrize(("k", "used"), [(12, True), (60, False)])
def test_as_many_columns_as_items_are_diagonalised_by_entries_where_that_is_precise(k, used):
    spectrum = exact(RBF(features(80, 4), 6.0))
    F = as_features(spectrum.vectors * np.sqrt(spectrum.values))
    theta = np.random.default_rng(3).normal(size=80)
    tilted = Tilted(F, k, allowed=1e-9)
    assert tilted.by_entries
    b, log_z = tilted.inclusion(theta)
    assert tilted.by_entries == used
    known, its_log_z = Tilted(F, k).inclusion(theta)
    np.testing.assert_allclose(b, known, atol=1e-9)
    assert log_z == pytest.approx(its_log_z, rel=1e-9)


def test_memory_is_asked_for_before_entries_are_computed(monkeypatch):
    monkeypatch.setenv("DMSGD_MEMORY", "5MB")
    tilted = Tilted(as_features(features(400, 400)), 5, allowed=1e-9)
    monkeypatch.setattr(type(tilted.F), "gram", None)
    with pytest.raises(MemoryError, match="400 items"):
        tilted.inclusion(np.zeros(400))


# Kernels without features


@pytest.mark.parametrize(("n", "k", "scale"), [(150, 20, 1.0), (150, 20, 4.0), (150, 3, 4.0)])
def test_a_kernel_without_features_gets_the_law_of_the_one_given_by_features(
    n: int, k: int, scale: float
) -> None:
    kernel, weights = RBF(features(n, 6), scale), random_target(n)
    spectrum = exact(kernel)
    known = prescribe(Linear(spectrum.vectors * np.sqrt(spectrum.values)), k, weights, tol=1e-9)
    found = prescribe(kernel, k, weights, tol=1e-9)
    np.testing.assert_allclose(inclusion(found, k), k * weights / weights.sum(), rtol=2e-9)
    sets = KDPP(kernel, k).sample(20, seed=0)
    np.testing.assert_allclose(
        KDPP(found, k).log_prob(sets), KDPP(known, k).log_prob(sets), atol=1e-6
    )


def test_badly_scaled_features_are_solved_by_the_samplers_own_route() -> None:
    F = features(60, 6) * np.array([1, 1, 1, 1e-4, 1e-5, 1e-5])
    tilted = prescribe(Linear(F), 5, "uniform", tol=1e-8)
    np.testing.assert_allclose(inclusion(tilted, 5), 5 / 60, rtol=2e-8)


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_a_tolerance_of_any_size() -> None:
    """One above 1 is met at once, and does not overflow, however long the rows are."""
    F = 1e100 * features(20, 6)
    assert prescribe(Linear(F), 3, np.arange(1, 21), tol=1e300).n == 20


# Targets out of reach


def test_a_share_above_one_names_the_item_and_a_k_that_works() -> None:
    weights = np.ones(20)
    weights[7] = 10
    with pytest.raises(ValueError, match=r"item 7 1\.72 times in a batch of 5 .*k <= 2"):
        prescribe(Linear(features(20, 6)), 5, weights)
    prescribe(Linear(features(20, 6)), 2, weights)
    with pytest.raises(ValueError, match="at most once; lower the largest values"):  # no k works
        prescribe(Linear(features(2, 2)), 1, [1.0, 1e-300])


def test_copies_that_ask_for_more_than_one_place_are_named() -> None:
    F = features(20, 6)
    F[11] = F[4] = 2 * F[3]  # one direction
    weights = np.ones(20)
    weights[[3, 4, 11]] = 3
    with pytest.raises(dmsgd.TargetError, match=r"1\.385 of 3 items .* rank 1.*3, 4, 11"):
        prescribe(Linear(F), 4, weights)
    with pytest.raises(dmsgd.TargetError, match="rank 1"):
        prescribe(Precomputed(F @ F.T + 0.0), 4, weights)


def test_a_group_in_a_small_subspace_is_named() -> None:
    F = features(40, 8)
    F[:15, 2:] = 0  # fifteen items in a plane
    weights = np.ones(40)
    weights[:15] = 6
    with pytest.raises(dmsgd.TargetError, match=r"of 15 items .*rank 2"):
        prescribe(Linear(F), 5, weights)


def test_more_places_than_rank_is_a_rank_error() -> None:
    with pytest.raises(dmsgd.RankError, match="3 independent"):
        prescribe(Linear(features(20, 3)), 4, "uniform")


def test_items_without_features_are_named() -> None:
    F = features(10, 4)
    F[6] = 0
    with pytest.raises(dmsgd.TargetError, match="item 6 has no features"):
        prescribe(Linear(F), 2, "uniform")


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (np.ones(9), r"shape \(10,\), got shape \(9,\)"),
        (np.r_[np.ones(9), 0], "is 0 for item 9"),
        (np.r_[np.nan, np.ones(9)], "is nan for item 0"),
        ("balanced", "unknown target 'balanced'"),
    ],
)
def test_bad_targets_are_refused(target: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        prescribe(Linear(features(10, 4)), 2, target)


def test_bad_calls_are_refused() -> None:
    with pytest.raises(TypeError, match=r"prescribe\(Linear\(X\)"):
        prescribe(features(10, 4), 2, "uniform")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="unknown target 'even'"):
        dmsgd.diversify(features(10, 4), 2, target="even")


@pytest.mark.skipif("DMSGD_DATA" not in os.environ, reason="DMSGD_DATA is not set")
@pytest.mark.parametrize("name", ["uniform", "balanced classes"])
def test_flowers(name: str) -> None:
    from experiments import datasets

    X, y = datasets.flowers().part("test")
    X = dmsgd.features.normalize(X[:, ::20])
    target = "uniform" if name == "uniform" else 1 / np.bincount(y)[y]
    design = dmsgd.diversify(X, 48, target=target)
    shares = np.bincount(y, design.inclusion()) / 48
    expected = np.bincount(y) / y.size if name == "uniform" else np.full(102, 1 / 102)
    np.testing.assert_allclose(shares, expected, rtol=1e-5)


def test_a_tilt_beyond_what_numbers_hold_is_no_answer_but_no_crash_either():
    """An extrapolation may leave the range of numbers; the iteration goes on from before it."""
    F = dmsgd.features.as_features(np.random.default_rng(0).normal(size=(30, 4)))
    for theta in (np.full(30, 800.0), np.full(30, -800.0), np.r_[np.full(29, 0.0), 800.0]):
        with pytest.raises(dmsgd.RankError, match="beyond"):
            Tilted(F, 3).inclusion(theta)


@pytest.mark.parametrize("smallest", [5e-324, 1e-300])
def test_items_that_are_as_good_as_never_asked_for_are_refused(smallest):
    target = [smallest, 1.0, 1.0, 1.0, 1.0]
    with pytest.raises(ValueError, match="item 0"):
        prescribe(Linear(features(5, 3)), 2, target)


def test_items_of_any_size_are_scaled_without_warnings_of_numpy():
    kernel = Linear(np.diag(np.geomspace(1e-160, 1e150, 6)))
    np.testing.assert_allclose(inclusion(prescribe(kernel, 2, "uniform"), 2), 1 / 3, rtol=1e-5)


@pytest.mark.parametrize("kernel", [Linear(features(8, 3)), RBF(features(8, 2), 1.0)])
@pytest.mark.parametrize(
    "target", [[0.99, 1e-20, 1, 1e-200, 1e-20, 0.9, 0.9, 1e-20], [1e-280] * 4 + [0.9] * 4]
)
def test_a_target_far_apart_is_met_or_refused_without_warnings_of_numpy(kernel, target):
    try:
        b = inclusion(prescribe(kernel, 3, target), 3)
    except dmsgd.TargetError:
        return
    np.testing.assert_allclose(b, 3 * np.array(target) / np.sum(target), rtol=1e-5, atol=1e-30)
