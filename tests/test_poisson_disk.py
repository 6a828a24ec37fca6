import pickle

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import pdist

import dmsgd
from contracts import check_determinism
from dmsgd.compiled.simple import is_far
from dmsgd.designs.poisson_disk import PoissonDisk, neighbour_radius

RNG = np.random.default_rng(3)
CLOUD = RNG.normal(size=(400, 5))
#: 19 of 20 items in a tight cluster, the rest far away.
CLUSTERS = np.concatenate([RNG.normal(size=(380, 3)) * 0.3, RNG.normal(size=(20, 3)) * 0.3 + 4])


def distances(X, batches):
    return np.array([pdist(X[batch]) for batch in batches])


@pytest.mark.parametrize("multiple", [0.5, 1.0, 1.5, 4.0])
def test_items_keep_the_radius_that_the_draw_came_down_to(multiple):
    radius = multiple * neighbour_radius(CLOUD, 20)
    design = PoissonDisk(CLOUD, 20, radius)
    batches, radii = design.sample(200, seed=0), design.radii(200, seed=0)
    least = distances(CLOUD, batches).min(axis=1)
    assert (least >= radii * (1 - 1e-12)).all()
    if multiple <= 1:
        assert (radii == radius).all()
    if multiple == 4:
        assert (radii < radius).all()
        times = np.log(radii / radius) / np.log(0.9)
        np.testing.assert_allclose(times, times.round(), atol=1e-9)


def test_only_misses_in_a_row_count():
    """A draw of 150 has about 80 misses, hardly ever 40 of them in a row."""
    design = PoissonDisk(CLOUD, 150, misses=40)
    assert (design.radii(100, seed=0) == design.radius).mean() > 0.9
    assert (PoissonDisk(CLOUD, 150, misses=2).radii(100, seed=0) < design.radius).all()


def test_a_small_case_by_enumeration():
    """Four points on a line, two of them close: k = 2 never takes both, else follows the darts."""
    design = PoissonDisk([[0.0], [0.1], [5.0], [9.0]], 2, radius=1.0)
    counts = np.zeros((4, 4))
    for batch in design.sample(20_000, seed=0):
        counts[tuple(batch)] += 1
    # First dart: 1/4 each. Second: uniform among those at least 1 away.
    law = np.array(
        [[0, 0, 1 / 2, 1 / 2], [0, 0, 1 / 2, 1 / 2], [1 / 3] * 4, [1 / 3] * 4]
    ) * (1 - np.eye(4)) / 4  # fmt: skip
    law = (law + law.T) / 2  # in random order
    assert not counts[law == 0].any()
    z = (counts / 20_000 - law)[law > 0] / np.sqrt(law * (1 - law) / 20_000)[law > 0]
    assert np.abs(z).max() < 4.5


def test_batches_are_wider_than_uniform_ones():
    design, plain = PoissonDisk(CLOUD, 20), dmsgd.Uniform(400, 20)
    ours = distances(CLOUD, design.sample(300, seed=1))
    theirs = distances(CLOUD, plain.sample(300, seed=1))
    error = np.hypot(ours.mean(axis=1).std(), theirs.mean(axis=1).std()) / np.sqrt(300)
    assert ours.mean() > theirs.mean() + 4 * error
    assert ours.min() >= design.radius > 3 * theirs.min()


@pytest.mark.parametrize(("multiple", "least"), [(1.0, 1.2), (1.5, 2.5)])
def test_a_rare_cluster_is_seen_more_often(multiple, least):
    design = PoissonDisk(CLUSTERS, 20, multiple * neighbour_radius(CLUSTERS, 20))
    b = dmsgd.diagnostics.estimate_inclusion(design, 2000, seed=0)
    assert b.sum() == pytest.approx(20)
    assert b[380:].mean() > least * 20 / 400  # 20/400 under uniform batches


def test_determinism():
    check_determinism(PoissonDisk(CLOUD, 6))
    check_determinism(PoissonDisk(CLOUD, 30, radius=4.0))  # relaxed


def test_radii_belong_to_their_draws():
    design = PoissonDisk(CLOUD, 30, radius=3.5)
    radii = design.radii(50, seed=2)
    assert np.unique(radii).size > 1
    np.testing.assert_array_equal(design.radii(20, seed=2, start=30, workers=3), radii[30:])


@pytest.mark.parametrize("radius", [None, 1e6])
def test_all_items(radius):
    batches = PoissonDisk(CLOUD[:60], 60, radius).sample(5, seed=0)
    assert (np.sort(batches, axis=1) == np.arange(60)).all()


def test_order_within_a_row_is_random():
    """The last dart of a draw is more often in the rare cluster; the last place of a row is not."""
    radius = 1.5 * neighbour_radius(CLUSTERS, 20)
    rare = PoissonDisk(CLUSTERS, 20, radius).sample(4000, seed=0) >= 380
    z = (rare.mean(axis=0) - rare.mean()) / np.sqrt(rare.mean() * (1 - rare.mean()) / 4000)
    assert np.abs(z).max() < 4


def test_duplicates():
    X = np.repeat(CLOUD[:10], 5, axis=0)
    few = PoissonDisk(X, 8)
    assert all(len(set(batch // 5)) == 8 for batch in few.sample(50, seed=0))
    many = PoissonDisk(X, 25)
    batches = many.sample(50, seed=0)
    assert all(len(set(batch)) == 25 for batch in batches.tolist())
    assert all(len(set(batch // 5)) == 10 for batch in batches)  # no copy before all were taken
    assert (many.radii(50, seed=0) == 0).all()
    alike = PoissonDisk(np.ones((9, 2)), 4, radius=1.0).sample(20, seed=0)
    assert all(len(set(batch)) == 4 for batch in alike.tolist())


def test_one_item_a_batch_is_uniform():
    design = PoissonDisk(CLUSTERS, 1)
    assert design.radius == 0
    counts = np.bincount(design.sample(40_000, seed=0).ravel(), minlength=400)
    assert abs(counts.var() / 100 - 1) < 0.3


def test_default_radius_is_the_median_distance_to_the_nearest_neighbour():
    line = np.arange(10.0)[:, None]
    assert PoissonDisk(line, 10).radius == 1.0
    assert neighbour_radius(3 * CLOUD, 20) == pytest.approx(3 * neighbour_radius(CLOUD, 20))


def test_is_far_is_the_numpy_line():
    items = np.array([3, 8, 1, 20])
    squares = ((CLOUD[items[:3]] - CLOUD[5]) ** 2).sum(axis=1)
    for bound in (squares.min() * 0.999, squares.min() * 1.001):
        assert is_far(CLOUD, 5, items, 3, bound) == (squares >= bound).all()


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"X": sparse.eye_array(9)}, TypeError, "dense rows; pass X.toarray"),
        ({"X": np.ones((9, 2))}, ValueError, "pass radius="),
        ({"X": [[np.nan], [1.0]]}, ValueError, "NaN"),
        ({"k": 401}, ValueError, "exceeds the number of items"),
        ({"radius": 0.0}, ValueError, "radius must be positive"),
        ({"misses": 0}, ValueError, "misses must be at least 1"),
    ],
)
def test_wrong_arguments(arguments, error, message):
    with pytest.raises(error, match=message):
        PoissonDisk(**{"X": CLOUD, "k": 2, **arguments})


def test_no_closed_forms():
    design = PoissonDisk(CLOUD, 3)
    assert not hasattr(design, "inclusion")
    with pytest.raises(TypeError, match="no closed form"):
        dmsgd.unbiased_weights(design)


def test_pickling_and_provenance():
    design = PoissonDisk(CLOUD, 3)
    again = pickle.loads(pickle.dumps(design))
    np.testing.assert_array_equal(again.sample(5, seed=0), design.sample(5, seed=0))
    assert again.fingerprint() == design.fingerprint()
    others = [PoissonDisk(CLOUD, 3, 1.0), PoissonDisk(CLOUD, 4), PoissonDisk(CLOUD + 1, 3)]
    assert design.fingerprint() not in {other.fingerprint() for other in others}
    assert design.provenance()["sampler"] == "dart throwing"
