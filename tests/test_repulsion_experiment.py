"""The repulsion experiment: its models, designs and rules, and a tiny run."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import dmsgd
from dmsgd.commands.reproduce import experiment
from dmsgd.diagnostics import gradient_variance
from dmsgd.paper import storage
from dmsgd.paper.repulsion import nmf, settings
from dmsgd.paper.repulsion.claims import summary
from dmsgd.paper.repulsion.designs import Arm, arms, legendre, rbf
from dmsgd.paper.repulsion.models import Density, LeastSquares, Quantiser, Softmax
from dmsgd.paper.repulsion.result import SHUFFLED, UNIFORM, Fall, Outcome, ratio
from dmsgd.paper.repulsion.training import best, descend, looks, smooth, steps_to

repulsion = experiment("repulsion")

ROOT = Path(__file__).parent.parent


def models():
    """Return one small model of every kind."""
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-1, 1, size=(64, 2)), rng.integers(3, size=64)
    nodes, weights = settings._quadrature(2)
    return {
        "least squares": LeastSquares(X, X[:, 0] + rng.standard_normal(64)),
        "density": Density(legendre(X, 6)[:, 1:], legendre(nodes, 6)[:, 1:], weights),
        "softmax": Softmax(X, y, 3),
        "k-means": Quantiser(X, 4, 0),
    }


@pytest.mark.parametrize("name", ["least squares", "density", "softmax", "k-means"])
def test_gradients_are_those_of_the_loss(name):
    model, everyone = models()[name], np.arange(64)[None]
    rng = np.random.default_rng(1)
    theta = model.start + 0.1 * rng.standard_normal((1, 2, model.start.size))
    slopes = model.gradient(theta, everyone)
    for r in range(2):
        for p in range(model.start.size):
            step = np.zeros_like(theta[0, r])
            step[p] = 1e-5
            up, down = model.excess(theta[0, r] + step), model.excess(theta[0, r] - step)
            assert slopes[0, r, p] == pytest.approx((up - down) / 2e-5, abs=1e-6)


@pytest.mark.parametrize("name", ["least squares", "density", "softmax", "k-means"])
def test_the_optimum_is_one(name):
    model = models()[name]
    assert model.excess(model.optimum) == pytest.approx(0, abs=1e-9)
    assert np.allclose(model.gradient(model.optimum[None, None], np.arange(64)[None]), 0, atol=1e-3)
    assert model.excess(model.start) > 0.01


@pytest.mark.parametrize("name", ["least squares", "density", "softmax", "k-means"])
def test_a_batch_is_the_mean_of_its_items(name):
    model = models()[name]
    theta, batch = np.stack([model.start, model.optimum])[None], np.array([[3, 9, 27], [1, 2, 3]])
    found = model.gradient(np.repeat(theta, 2, axis=0), batch)
    ridge = getattr(model, "ridge", 0.0)
    for stream in range(2):
        for r, point in enumerate((model.start, model.optimum)):
            mean = model.item_gradients(point)[batch[stream]].mean(axis=0) + ridge * point
            assert np.allclose(found[stream, r], mean)


def test_quadrature_integrates_polynomials():
    """Legendre polynomials are orthonormal on the box."""
    for d in (1, 2, 3):
        nodes, weights = settings._quadrature(d)
        phi = legendre(nodes, settings.POLYNOMIALS[d])
        assert np.allclose((phi.T * weights) @ phi, np.eye(phi.shape[1]), atol=1e-12)


# designs


def test_all_arms_see_every_item_as_often():
    X = np.random.default_rng(0).uniform(-1, 1, size=(64, 2))
    made = arms({"x": X}, X, 8, 3.0)
    assert list(made) == [UNIFORM, SHUFFLED, "k-DPP on x", "cells of x", "k-DPP on polynomials"]
    for name, arm in made.items():
        if name != SHUFFLED:
            assert np.allclose(arm.design.inclusion(), 8 / 64, rtol=1e-5), name


def test_many_items_have_no_rbf_kernel():
    X = np.random.default_rng(0).uniform(-1, 1, size=(4096, 2))
    made = arms({"x": X}, X, 8, 3.0)
    assert list(made) == [UNIFORM, SHUFFLED, "cells of x", "k-DPP on polynomials"]
    g = X[:, :1] * X
    ratios = [made[name].variance([g])[0] for name in (UNIFORM, "k-DPP on polynomials")]
    assert ratios[0] == pytest.approx(1)
    assert ratios[1] < 0.9


def test_variances_are_those_of_the_diagnostics():
    rng = np.random.default_rng(0)
    X, g = rng.uniform(-1, 1, size=(64, 1)), rng.normal(size=(64, 3))
    for name, arm in arms({"x": X}, X, 4, 3.0).items():
        if name == SHUFFLED:
            assert arm.variance([g]) == 1
        else:
            exact = gradient_variance(arm.design, g)
            assert arm.variance([g])[0] == pytest.approx(exact.variance / exact.uniform, rel=1e-8)


def test_shuffled_epochs_hold_every_item_once():
    batches = Arm(64, 8, None).batches(20, 3, 0)
    assert batches.shape == (20, 3, 8)
    for stream in range(3):
        for epoch in (batches[:8, stream], batches[8:16, stream]):
            assert np.array_equal(np.sort(epoch.ravel()), np.arange(64))
    assert not np.array_equal(batches[:, 0], batches[:, 1])


def test_a_kernel_that_no_tilt_makes_equal_gives_way():
    """Half of the items are copies of one, so the few directions of a wide kernel cannot serve."""
    rng = np.random.default_rng(0)
    X = np.concatenate([np.zeros((64, 3)), rng.normal(size=(64, 3))])
    X += 1e-3 * rng.normal(size=X.shape)
    design = rbf(X, 32, 3.0)
    assert np.allclose(design.inclusion(), 32 / 128, rtol=1e-4)


# training


def test_looks_end_with_the_last_step():
    at = looks(100)
    assert at[0] == 1
    assert at[-1] == 100
    assert np.all(np.diff(at) > 0)


def test_steps_by_hand():
    at = np.array([1, 2, 4, 8, 16])
    curves = np.array([[8.0, 8], [6, 8], [4, 8], [2, 8], [0, 8]])
    assert np.allclose(smooth(curves)[:, 0], [8, 7.5, 6.5, 5, 3])
    assert np.array_equal(steps_to(5.0, smooth(curves), at), [8, 16])


def test_descent_by_hand():
    """One item at x = 1, y = 1: the error shrinks by (1 - rate) a step; a rate of 3 is lost."""
    model = LeastSquares(np.ones((1, 1)), np.ones(1))
    batches = np.zeros((40, 2, 1), dtype=np.int64)
    found = descend(model, batches, np.array([0.5, 1.0, 3.0]))
    for stream in (0, 1):
        assert np.allclose(found[:, stream, 0], 0.25 ** looks(40).astype(float))
        assert np.all(found[:, stream, 1] == 0)
        assert np.isinf(found[-1, stream, 2])
    decayed = descend(model, batches[:2], np.array([0.5]), decayed=True)
    assert np.allclose(decayed[:, 0, 0], [0.25, 0.25 * 0.75**2])


def test_a_lucky_rate_is_not_chosen():
    costs = np.array([[9.0, 1.0, 9.0, 3.0, 2.0, 3.0], [1.0, 1.0, 2.0, 4.0, np.inf, 8.0]])
    assert np.array_equal(best(costs), [4, 0])


def test_nmf_learns():
    X, _ = settings.some_digits(64, 0)
    batches = dmsgd.Uniform(64, 16).sample(40, 0)
    at, found = nmf.errors(X, batches, (0.1, 0.7), 0)
    assert found.shape == (at.size, 2)
    assert np.all(found[-1] < 0.8)
    assert np.all(found > -0.05)


# the experiment


@pytest.fixture(scope="module")
def small():
    config = replace(
        repulsion.QUICK, seeds=5, items=64, many=4096, ks=(4, 8), slow_ks=(8,), steps=80,
        early=5, late=30, streams=2, fall_ks=(2, 4, 8), fall_seeds=5, nmf_k=8, nmf_steps=15,
        nmf_early=2, nmf_late=5, forgetting=(0.1, 0.7), rates=(0.03, 0.1, 0.3, 1.0),
        settings=("1-d", "many items", "copies", "blobs", "nmf"),
    )  # fmt: skip
    return repulsion.run(config, None)


def test_every_problem_has_every_arm(small):
    cases = small.cases()
    assert ("density, 1-d", 4) in cases
    assert ("k-means, 2-d", 8) in cases
    for problem, k in cases:
        of = small.arms(problem, k)
        assert list(of)[:2] == [UNIFORM, SHUFFLED]
        assert len(of) >= 4
        for each in of.values():
            assert each.steps.shape == (5, 2)
            assert np.all((each.steps >= 1) & (each.steps <= 80))
        assert not small.logs(problem, k, UNIFORM, "late").any()


def test_uniform_batches_take_about_what_other_streams_took(small):
    steps = np.array([each.steps for each in small.outcomes if each.arm == UNIFORM])
    assert 3 < np.median(steps[..., 0]) < 12
    assert 10 < np.median(steps[..., 1]) < 80


def test_repulsion_lowers_variance_in_one_dimension(small):
    assert len(small.falls) == 3
    for fall in small.falls:
        assert fall.ks == (2, 4, 8)
        assert fall.ratio.shape == (5, 3)
        assert np.all(np.diff(fall.ratio.mean(axis=0)) < 0)
        assert fall.ratio[:, -1].max() < 0.5


def test_copies_are_kept_apart(small):
    arms_of = small.arms("near-copies, equally many", 8)
    assert arms_of["k-DPP on x"].variance[:, 1].mean() < 0.95


def test_results_are_stored(small, tmp_path):
    path = tmp_path / "result.json"
    storage.save(small, path)
    again = storage.load(repulsion.Result, path)
    assert again.config == small.config
    assert repulsion.claims(again) == repulsion.claims(small)
    pictures = repulsion.plot(again, tmp_path)
    assert len(pictures) == 4
    assert all(picture.stat().st_size > 1000 for picture in pictures)


def outcome(arm, steps, variance=1.0):
    steps = np.array(steps, dtype=float)
    return Outcome(
        "p", 4, arm, np.ones((steps.size, 2)), np.stack([steps, steps], axis=1),
        np.empty(0), np.full((steps.size, 2), variance),
    )  # fmt: skip


def test_verdicts_by_hand():
    """Half the steps in every seed is fewer; half and twice by turns is not."""
    uniform = outcome(UNIFORM, [100, 200, 100, 200, 100])
    half = outcome("k-DPP on x", [50, 100, 50, 101, 50], 0.5)
    luck = outcome("cells of x", [50, 400, 50, 400, 100])
    result = repulsion.Result(replace(repulsion.QUICK, seeds=5, ks=(4,)), (uniform, half, luck), ())
    found = repulsion.claims(result)
    assert [claim.holds for claim in found[:2]] == [True, False]
    assert found[0].ours.startswith("late 0.50 (0.50 to 0.50); early 0.50")
    assert found[0].ours.endswith("variance 0.50")
    assert ratio(np.log([0.5, 0.5, 0.5])) == pytest.approx((0.5, 0.5, 0.5))
    rows = summary(result)
    assert rows[1] == [
        "p", "x", "4", "0.50 (0.50 to 0.50)", "", "0.50", "1.00 (0.42 to 2.36)", "", "1.00", "",
    ]  # fmt: skip
    assert len(rows[0]) == len(rows[1])
    few = replace(result, config=replace(result.config, seeds=2))
    assert [claim.holds for claim in repulsion.claims(few)[:2]] == [None, None]


def test_the_fall_by_hand():
    """A ratio of 1/k at every k is one power of k more than uniform batches have."""
    config = replace(repulsion.QUICK, seeds=5, fall_ks=(2, 4, 8))
    fall = Fall("density, 1-d", "cells of x", (2, 4, 8), np.tile([1 / 2, 1 / 4, 1 / 8], (5, 1)))
    claim = repulsion.claims(repulsion.Result(config, (), (fall,)))[0]
    assert claim.ours.startswith("+1.00 ± 0.00")
    assert claim.holds


def test_the_page_quotes_the_claims():
    """Every interval of the text is one of the stored result's."""
    page = (ROOT / "docs/repulsion.md").read_text()
    text = re.sub(r"<!-- (table|claims) .*?<!-- end -->", "", page, flags=re.DOTALL)
    result = storage.load(repulsion.Result, ROOT / "docs/results/repulsion.json")
    stated = " ".join(claim.ours for claim in repulsion.claims(result))
    for pattern in (r"\d\.\d\d\s+\(\d\.\d\d\s+to\s+\d\.\d\d\)", r"[+-]\d\.\d\d\s+±\s+\d\.\d\d"):
        quoted = [" ".join(found.split()) for found in re.findall(pattern, text)]
        assert len(quoted) >= 6
        assert all(each in stated for each in quoted)


def test_only_what_is_asked_for_is_loaded():
    assert repulsion.load(repulsion.QUICK) is None
    with pytest.raises(ValueError, match="unknown setting 'plants'"):
        repulsion.load(replace(repulsion.QUICK, settings=("plants",)))


def test_the_makers_cover_all_settings():
    for maker in (settings.digits, settings.classes, settings.blobs, settings.parts):
        setting = maker(64, 0)
        assert all(len(F) == 64 for F in setting.features.values())
    images = np.random.default_rng(0).uniform(size=(100, 784)).astype(np.float32)
    assert settings.mnist(images, 64, 0).features["x"].shape == (64, settings.DIRECTIONS)
    shares = {skewed: settings.copies(skewed, 512, 0) for skewed in (False, True)}
    assert all(len(each.features["x"]) == 512 for each in shares.values())
    assert set(settings.gradients(2, 64, 0).features) == {
        "x", "x and y", "gradients", "final gradients",
    }  # fmt: skip
