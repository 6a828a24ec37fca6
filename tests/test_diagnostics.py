"""Diagnostics against enumeration of all batches, and against draws."""

import doctest
import warnings
from importlib import import_module
from itertools import combinations

import numpy as np
import pytest
from scipy import sparse

import dmsgd
from dmsgd import diagnostics
from dmsgd.diagnostics.measures import GradientVariance

RNG = np.random.default_rng(3)
N, K = 8, 3
X = RNG.normal(size=(N, 5))
Y = np.array([0, 0, 0, 0, 1, 1, 1, 2])
DESIGNS = {
    "linear": dmsgd.diversify(X, K, kernel="linear", normalize=False),
    "rbf": dmsgd.diversify(X, K, kernel="rbf", scale=2.5),
    "labels": dmsgd.diversify(X, K, Y, 0.5, normalize=True, kernel="linear"),
    "equal eigenvalues": dmsgd.KDPP(dmsgd.kernels.Linear(np.eye(N)), K),
    "uniform": dmsgd.Uniform(N, K),
    "stratified": dmsgd.Stratified(Y, K),
    "uneven strata": dmsgd.Stratified(Y, 4),
    "weighted": dmsgd.Weighted(weights=np.arange(1.0, N + 1), k=K),
    "in every batch": dmsgd.Weighted(weights=[9.0, 1, 1, 2, 0, 1, 3, 1], k=K),
}
every_design = pytest.mark.parametrize("design", DESIGNS.values(), ids=DESIGNS)


class Pairs(dmsgd.designs.ClosedForm):
    """A k-DPP that shows nothing but the contract, so that the general route is taken."""

    def __init__(self, design):
        self.inner, self.n, self.k = design, design.n, design.k

    def inclusion(self):
        return self.inner.inclusion()

    def _joint(self, i, j):
        return self.inner._joint(i, j)

    _draw = _log_prob = fingerprint = None


Pairs.__abstractmethods__ = frozenset()


def enumerate_batches(design):
    batches = np.array(list(combinations(range(design.n), design.k)))
    return batches, np.exp(design.log_prob(batches))


def variance_by_enumeration(design, g, a):
    batches, p = enumerate_batches(design)
    steps = np.einsum("bk,bkp->bp", a[batches], g[batches])
    mean = p @ steps
    return p @ np.sum((steps - mean) ** 2, axis=1), mean


# The gradient's variance


@every_design
@pytest.mark.parametrize("p", [1, 4, 20])
@pytest.mark.parametrize("unbiased", [False, True])
def test_variance_and_its_two_terms_equal_enumeration(design, p, unbiased):
    g = RNG.normal(size=(N, p)) + 3
    if unbiased and (design.inclusion() == 0).any():
        pytest.skip("no weights make an item count that is never drawn")
    a = dmsgd.unbiased_weights(design) if unbiased else np.full(N, 1 / design.k)
    result = diagnostics.gradient_variance(design, g, a if unbiased else None)
    exact, mean = variance_by_enumeration(design, g, a)
    assert result.variance == pytest.approx(exact, rel=1e-10, abs=1e-12)
    if unbiased:
        np.testing.assert_allclose(mean, g.mean(axis=0), rtol=1e-10)
    # The theorem as printed, with C from its definition.
    b, y, items = design.inclusion(), a[:, None] * g, np.arange(N)
    products = np.outer(b, b)
    joint = design.joint(items[:, None], items)
    C = np.divide(joint, products, out=np.ones((N, N)), where=products > 0) - 1  # 0: never drawn
    np.fill_diagonal(C, 0.0)
    first = np.sum((b - b**2) * np.sum(y**2, axis=1))
    second = np.sum(C * np.outer(b, b) * (y @ y.T))
    assert result.independent == pytest.approx(first, rel=1e-10)
    assert result.correlation == pytest.approx(second, rel=1e-10, abs=1e-10)
    assert abs(first + second - exact) < 1e-10


def without_repulsion_by_enumeration(design):
    """The batches and probabilities of P(Y) ∝ Π w_i with the design's b, w found by a root."""
    from scipy.optimize import root

    b = design.inclusion()
    batches = np.array(list(combinations(range(design.n), design.k)))
    member = np.zeros((len(batches), design.n))
    np.put_along_axis(member, batches, 1.0, axis=1)
    drawn, sure = (b > 0) & (b < 1 - 1e-12), b >= 1 - 1e-12
    possible = member[:, sure].all(axis=1) & ~member[:, b == 0].any(axis=1)
    batches, member = batches[possible], member[possible]

    def law(logs):
        score = member[:, drawn] @ logs
        p = np.exp(score - score.max())
        return p / p.sum()

    logs = np.log(b[drawn] / (1 - b[drawn]))
    if logs.size:
        found = root(lambda x: law(x) @ member[:, drawn] - b[drawn] + x.mean() - 1, logs, tol=1e-14)
        logs = found.x
    p = law(logs)
    np.testing.assert_allclose(p @ member, b, atol=1e-11)
    return batches, p


@every_design
@pytest.mark.parametrize("unbiased", [False, True])
def test_the_split_into_frequency_and_repulsion_equals_enumeration(design, unbiased):
    g = RNG.normal(size=(N, 3)) + 2
    if unbiased and (design.inclusion() == 0).any():
        pytest.skip("no weights make an item count that is never drawn")
    a = dmsgd.unbiased_weights(design) if unbiased else np.full(N, 1 / design.k)
    result = diagnostics.gradient_variance(design, g, a)
    batches, p = without_repulsion_by_enumeration(design)
    steps = np.einsum("bk,bkp->bp", a[batches], g[batches])
    same_b = p @ np.sum((steps - p @ steps) ** 2, axis=1)
    assert result.frequency_matched == pytest.approx(same_b, rel=1e-10, abs=1e-10)
    # The two steps from uniform batches make up the whole way.
    whole = result.frequency_factor * result.repulsion_factor
    assert whole == pytest.approx(result.variance / result.reweighted, rel=1e-9, abs=1e-9)
    assert f"frequency-matched {result.frequency_matched:.3g}" in str(result)


def test_designs_without_repulsion_have_the_variance_of_the_same_b():
    g = RNG.normal(size=(N, 3))
    for name in ("uniform", "weighted", "in every batch", "equal eigenvalues"):
        result = diagnostics.gradient_variance(DESIGNS[name], g)
        assert result.repulsion_factor == pytest.approx(1, abs=1e-9)
    uniform = diagnostics.gradient_variance(DESIGNS["uniform"], g)
    assert uniform.frequency_factor == pytest.approx(1, abs=1e-9)
    # Copies of few items repel each other, and their gradients are copies too.
    copies = np.repeat(np.eye(4), 2, axis=0)
    apart = diagnostics.gradient_variance(
        dmsgd.diversify(copies, 3, kernel="linear", normalize=False), copies
    )
    assert apart.repulsion_factor < 0.5
    assert apart.frequency_factor == pytest.approx(1, abs=1e-9)
    constant = diagnostics.gradient_variance(DESIGNS["uniform"], np.ones((N, 2)))
    assert (constant.frequency_factor, constant.repulsion_factor) == pytest.approx((1, 1))


@every_design
def test_all_routes_agree(design):
    g = RNG.normal(size=(N, 3))
    assert diagnostics.gradient_variance(Pairs(design), g).variance == pytest.approx(
        diagnostics.gradient_variance(design, g).variance, rel=1e-10
    )


@every_design
def test_estimated_variance_agrees(design):
    g = RNG.normal(size=(N, 3))
    estimate = diagnostics.gradient_variance(design, g, draws=5000, seed=1)
    exact = diagnostics.gradient_variance(design, g)
    assert abs(estimate.variance - exact.variance) < 4 * estimate.error + 1e-12
    assert estimate.frequency_matched == exact.frequency_matched  # baselines are always exact
    assert exact.error == 0


def test_variance_of_a_larger_problem_agrees_with_draws():
    features = RNG.uniform(size=(400, 2))
    design = dmsgd.diversify(features, 12, kernel="rbf", scale=0.3)
    g = np.column_stack([features, np.sin(4 * features)]) + 0.1 * RNG.normal(size=(400, 4))
    weights = dmsgd.unbiased_weights(design)
    result = diagnostics.gradient_variance(design, g, weights)
    estimate = diagnostics.gradient_variance(design, g, weights, draws=4000)
    assert abs(estimate.variance - result.variance) < 4 * estimate.error
    assert result.correlation < 0  # gradients follow the features, so diversity helps
    assert result.equivalent_batch_size > 20


def test_baselines():
    g = RNG.normal(size=(N, 4))
    uniform = diagnostics.gradient_variance(dmsgd.Uniform(N, K), g)
    assert uniform.variance == pytest.approx(uniform.uniform, rel=1e-10)
    assert uniform.reweighted == pytest.approx(uniform.uniform, rel=1e-10)
    assert uniform.equivalent_batch_size == pytest.approx(K)
    design = DESIGNS["linear"]
    result = diagnostics.gradient_variance(design, g)
    # Uniform batches of all items, weighted, have the expected gradient of the design.
    weighted = N * design.inclusion()[:, None] * g / K
    exact, mean = variance_by_enumeration(dmsgd.Uniform(N, K), weighted, np.full(N, 1 / K))
    assert result.reweighted == pytest.approx(exact, rel=1e-10)
    np.testing.assert_allclose(mean, design.inclusion() @ g / K)
    unbiased = diagnostics.gradient_variance(design, g, dmsgd.unbiased_weights(design))
    assert unbiased.reweighted == pytest.approx(unbiased.uniform, rel=1e-10)


def test_equivalent_batch_size_is_the_uniform_batch_size_of_the_same_variance():
    g = RNG.normal(size=(N, 4))
    for size in (1, 2, 5, 7):
        at_size = diagnostics.gradient_variance(dmsgd.Uniform(N, size), g).variance
        at_k = diagnostics.gradient_variance(dmsgd.Uniform(N, K), g)
        given = GradientVariance(N, K, at_size, 0, 0, 0, at_k.uniform, at_k.uniform, 0)
        assert given.equivalent_batch_size == pytest.approx(size)
    constant = diagnostics.gradient_variance(dmsgd.Uniform(N, K), np.ones((N, 2)))
    assert constant.variance == constant.uniform == 0
    assert constant.equivalent_batch_size == K
    assert "variance of a uniform one of 3" in str(at_k)


@pytest.mark.parametrize(
    ("gradients", "coefficients", "message"),
    [
        (np.ones((5, 2)), None, "gradients has 5 items, the design 8"),
        (np.ones(N), None, "two dimensions"),
        (np.full((N, 1), np.nan), None, "NaN"),
        (np.ones((N, 1)), np.ones(3), r"one number per item, .* got shape \(3,\)"),
    ],
)
def test_bad_gradients_are_refused(gradients, coefficients, message):
    with pytest.raises(ValueError, match=message):
        diagnostics.gradient_variance(DESIGNS["uniform"], gradients, coefficients)


def test_a_schedule_has_no_exact_variance_but_an_estimate():
    schedule = dmsgd.presample(DESIGNS["linear"], 300)
    with pytest.raises(TypeError, match="draws"):
        diagnostics.gradient_variance(schedule, np.ones((N, 1)))
    assert diagnostics.gradient_variance(schedule, X, draws=300).variance > 0


# Sampling frequency


@every_design
def test_class_shares_equal_enumeration(design):
    batches, p = enumerate_batches(design)
    shares = diagnostics.class_shares(design, Y)
    for label in range(3):
        assert shares[label] == pytest.approx(p @ np.mean(Y[batches] == label, axis=1), abs=1e-10)


@pytest.mark.parametrize("name", ["measures", "study", "inspection"])
def test_docstring_examples_run(name):
    result = doctest.testmod(import_module(f"dmsgd.diagnostics.{name}"))
    assert result.failed == 0
    assert result.attempted > 0


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array], ids=["array", "sparse"])
def test_features_of_zeros_are_one_error_and_no_warning(make):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match="zero"):
            diagnostics.inspect(make(np.zeros((5, 4))), 3)
