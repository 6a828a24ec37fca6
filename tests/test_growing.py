"""Landmarks of large RBF kernels grow from few until their error is small, and no further."""

import numpy as np
import pytest

import dmsgd
from dmsgd.designs import build
from dmsgd.features import products
from dmsgd.kernels import RBF, landmarks, nystrom
from dmsgd.kernels.landmarks import GrowingLandmarks
from dmsgd.kernels.pivoted_cholesky import PartialCholesky, factor
from dmsgd.runtime import progress

X = np.random.default_rng(0).normal(size=(1500, 2))


@pytest.fixture
def a_fifth(monkeypatch):
    """Landmarks from 1,000 items on, 320 at most unless more are enough, and none too many."""
    for name, value in (("EXACT_ITEMS", 1000), ("FACTOR_RANK", 320), ("QUICK", 0.0)):
        monkeypatch.setattr(build, name, value)


@pytest.fixture
def sampled(monkeypatch):
    """Landmarks are chosen among 1,280 of the items, and 150 others tell how good they are."""
    for name, value in (("WHOLE", 1000), ("SAMPLE", 600), ("HELD", 150)):
        monkeypatch.setattr(landmarks, name, value)
    monkeypatch.setattr(build, "GROWTH", 1)


def whole_error(design, X):
    """The share of a batch's items that differs from the exact kernel's, by inclusion."""
    exactly = dmsgd.KDPP(RBF(X, dmsgd.designs.suggest_scale(X, design.k)), design.k)
    return np.abs(design.inclusion() - exactly.inclusion()).sum() / (2 * design.k)


@pytest.mark.filterwarnings("error")
@pytest.mark.usefixtures("a_fifth")
def test_few_landmarks_are_taken_where_few_are_enough():
    design = dmsgd.diversify(X, 10, kernel="rbf")
    assert whole_error(design, X) < design.spectrum.batch_error(10) <= 0.01
    assert 40 < design.spectrum.rank < 160
    assert f"Nyström, {design.spectrum.rank} landmarks (pivots)" in repr(design)
    kernel = RBF(X, dmsgd.designs.suggest_scale(X, 10))
    same = nystrom(kernel, design.spectrum.rank, "pivots")
    np.testing.assert_allclose(dmsgd.KDPP(same, 10).inclusion(), design.inclusion(), rtol=1e-8)
    fewer = nystrom(kernel, int(0.9 * design.spectrum.rank), "pivots")
    assert fewer.batch_error(10) > 0.01
    again = dmsgd.diversify(X, 10, kernel="rbf")
    assert again.fingerprint() == design.fingerprint()
    np.testing.assert_array_equal(again.sample(20, seed=0), design.sample(20, seed=0))


@pytest.mark.usefixtures("a_fifth")
def test_a_design_is_the_same_if_rounding_decides_for_one_landmark_more(monkeypatch):
    asked = {"kernel": "rbf", "scale": 0.5}
    design, grow = dmsgd.diversify(X, 10, **asked), GrowingLandmarks.grow
    other = dmsgd.diversify(X, 11, **asked)
    assert other.spectrum.fingerprint() != design.spectrum.fingerprint()

    def grow_more(self, k, goal):
        enough = grow(self, k, goal)
        self.count += 1
        return enough

    monkeypatch.setattr(GrowingLandmarks, "grow", grow_more)
    more = dmsgd.diversify(X, 10, **asked)
    assert more.spectrum.rank == design.spectrum.rank + 1
    assert more.fingerprint() == design.fingerprint()


@pytest.mark.usefixtures("a_fifth")
def test_landmarks_that_take_no_time_are_not_spared(monkeypatch):
    few = dmsgd.diversify(X, 10, kernel="rbf").spectrum
    monkeypatch.setattr(build, "QUICK", 1500 * 250.0**2)
    more = dmsgd.diversify(X, 10, kernel="rbf").spectrum
    assert few.rank < more.rank == 250
    assert more.batch_error(10) < 0.01 * few.batch_error(10)


@pytest.mark.filterwarnings("error")
@pytest.mark.usefixtures("a_fifth", "sampled")
def test_items_that_are_no_landmarks_tell_what_landmarks_of_a_sample_leave_out(tmp_path):
    """Student's t: outliers beyond the sample are far from all landmarks."""
    far = np.random.default_rng(0).standard_t(4, size=(1500, 2))
    design = dmsgd.diversify(far, 10, kernel="rbf")
    assert whole_error(design, far) < design.spectrum.batch_error(10) <= 0.01
    assert design.spectrum.rank < 320
    kernel = RBF(far, dmsgd.designs.suggest_scale(far, 10))
    landmarks = GrowingLandmarks(kernel, 0, 320, 320)
    assert landmarks.items.size == 1280
    assert landmarks.grow(10, 0.009)
    left_out = landmarks._left[landmarks.count] / 1500
    assert left_out == pytest.approx(landmarks.spectrum().trace_error, rel=0.3)
    np.save(tmp_path / "x.npy", far)
    path = dmsgd.diversify(str(tmp_path / "x.npy"), 10, kernel="rbf")
    assert path.fingerprint() == design.fingerprint()


@pytest.mark.filterwarnings("error")
@pytest.mark.usefixtures("a_fifth")
@pytest.mark.parametrize("part", ["whole", "sampled"])
def test_landmarks_grow_on_where_the_estimate_was_too_low(monkeypatch, request, part):
    if part == "sampled":
        request.getfixturevalue("sampled")
    right, made = GrowingLandmarks._ratio, []
    monkeypatch.setattr(GrowingLandmarks, "_ratio", lambda self, k: 4 * right(self, k))
    spectrum = GrowingLandmarks.spectrum
    monkeypatch.setattr(
        GrowingLandmarks, "spectrum", lambda self: made.append(self.count) or spectrum(self)
    )
    design = dmsgd.diversify(X, 10, kernel="rbf")
    assert design.spectrum.batch_error(10) <= 0.01
    assert made == sorted(set(made))
    assert len(made) > 1


@pytest.mark.usefixtures("a_fifth")
def test_growth_stops_where_it_does_not_help_and_that_is_said():
    wide = np.random.default_rng(0).normal(size=(1500, 40))
    with pytest.warns(dmsgd.KernelWarning, match=r"320 of the 1,500 .* more would hardly help or"):
        assert dmsgd.diversify(wide, 10, kernel="rbf").spectrum.rank == 320


def test_a_narrower_factor_is_the_beginning_of_a_wider_one():
    kernel = RBF(X[:400], 0.3)
    F, pivots = factor(kernel, 150, 0.0, 7)
    for rank in (1, 40, 128, 149):
        some, first = factor(kernel, rank, 0.0, 7)
        np.testing.assert_array_equal(first, pivots[:rank])
        np.testing.assert_allclose(some, F[:, :rank], atol=1e-12)
    growing = PartialCholesky(kernel, 60, 7)
    while growing.grow():
        pass
    growing.widen(150)
    while growing.grow():
        pass
    np.testing.assert_array_equal(growing.pivots[:60], pivots[:60])
    assert np.unique(growing.pivots).size == 150
    rest = kernel.block(range(400), range(400)) - growing.F @ growing.F.T
    assert np.abs(rest[growing.pivots]).max() < 1e-12
    assert np.linalg.eigvalsh(rest).min() > -1e-12


def test_pivots_are_chosen_among_the_eligible_alone():
    growing = PartialCholesky(RBF(X[:300], 0.3), 50, 0, eligible=100)
    while growing.grow():
        pass
    assert growing.pivots.size == 50
    assert growing.pivots.max() < 100


def test_products_in_pieces_are_those_of_the_whole(monkeypatch):
    A, B = X[:90] @ X[:50].T, X[:50] @ X[:30].T
    whole, square = A @ B, A.T @ A
    features = nystrom(RBF(X[:200], 0.5), 40).values
    monkeypatch.setattr(products, "AT_A_TIME", 7 * 50.0 * 30)
    np.testing.assert_allclose(products.product(A, B), whole, rtol=1e-12)
    np.testing.assert_allclose(products.gram(A), square, rtol=1e-12)
    np.testing.assert_allclose(nystrom(RBF(X[:200], 0.5), 40).values, features, rtol=1e-9)


def test_parts_of_one_work_share_their_half_minute(monkeypatch, caplog):
    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])

    def part(name):
        tell = progress.Progress(name)
        now[0] += 20
        tell(1.0)

    with progress.one_work():
        for name in ("first", "second", "third", "fourth"):
            part(name)
    for name in ("fifth", "sixth"):
        part(name)
    assert [line.split(":")[0] for line in caplog.messages] == ["second", "fourth"]


@pytest.mark.usefixtures("a_fifth")
@pytest.mark.parametrize("part", ["whole", "sampled"])
def test_every_part_of_the_set_up_says_how_far_it_is(monkeypatch, caplog, request, part):
    if part == "sampled":
        request.getfixturevalue("sampled")
    monkeypatch.setattr(progress, "EVERY", 0.0)
    monkeypatch.setattr(products, "AT_A_TIME", 1e6)
    dmsgd.diversify(X, 10, kernel="rbf")
    told = {line.split(" of ")[0] for line in caplog.messages}
    assert {"a factor", "the Gram matrix", "the eigenvectors"} <= told
    assert ("the similarity" in told) == (part == "sampled")
