"""The experiments and the demo: directions that must hold, and sentences that follow numbers."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

import dmsgd
from dmsgd.commands.demo import demo
from dmsgd.commands.demo_tables import accuracy_summary, rare_summary, toy_summary
from dmsgd.paper import intervals
from dmsgd.paper.longtail import result as longtail
from dmsgd.paper.longtail import run as longtail_run
from dmsgd.paper.longtail.figures import plot_accuracy, plot_shares
from dmsgd.paper.longtail.task import make_task
from dmsgd.paper.models import softmax
from dmsgd.paper.rare import result as rare
from dmsgd.paper.rare.documents import generated, help_pages
from dmsgd.paper.rare.figures import plot as plot_rare
from dmsgd.paper.rare.run import count
from dmsgd.paper.rare.run import run as run_rare
from dmsgd.paper.toy import result as toy
from dmsgd.paper.toy.figures import plot as plot_toy
from dmsgd.paper.toy.run import imbalance
from dmsgd.paper.toy.run import run as run_toy

SMALL_DIGITS = longtail.Config(seeds=3, checkpoints=(10, 50), early=10)
SMALL_RARE = rare.Config(seeds=3, draws=300)
SMALL_TOY = toy.Config(population=1500, k=20, seeds=4)
KDPP = "k-DPP w=0.7"


@pytest.fixture(scope="module")
def digits() -> longtail.Result:
    return longtail_run.run(SMALL_DIGITS)


@pytest.fixture(scope="module")
def documents() -> rare.Result:
    return run_rare(SMALL_RARE)


@pytest.fixture(scope="module")
def points() -> toy.Result:
    return run_toy(SMALL_TOY, None)


def assert_picture(path: Path) -> None:
    from matplotlib.image import imread

    pixels = imread(path)[..., :3]
    assert path.suffix == ".png"
    assert min(pixels.shape[:2]) > 300
    assert 0.01 < np.mean(pixels.min(axis=2) < 0.9) < 0.9  # neither blank nor all ink


# softmax


def test_a_step_of_softmax_follows_the_numerical_gradient() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(6, 3)), np.array([0, 1, 2, 2, 1, 0])
    targets, batch = np.eye(3)[y], np.array([0, 2, 3, 4])
    weights = softmax.initial_weights(3, 3, rng)

    def loss(flat: np.ndarray) -> float:
        p = softmax.probabilities(flat.reshape(weights.shape), X[batch])
        return float(-np.log(p[np.arange(4), y[batch]]).mean())

    steps = 1e-6 * np.eye(weights.size)
    gradient = [(loss(weights.ravel() + e) - loss(weights.ravel() - e)) / 2e-6 for e in steps]
    moved = softmax.train(weights, X, targets, batch[None], rate=0.3)
    assert moved - weights == pytest.approx(-0.3 * np.reshape(gradient, weights.shape), abs=1e-8)


def test_softmax_learns_what_is_separable_and_leaves_its_input_alone() -> None:
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 20)
    X = 4 * np.eye(3)[y] + 0.1 * rng.normal(size=(60, 3))
    start = softmax.initial_weights(3, 3, rng)
    before = start.copy()
    batches = rng.integers(0, 60, size=(100, 5))
    end = softmax.train(start, X, np.eye(3)[y], batches, rate=0.5)
    assert np.array_equal(start, before)
    assert np.array_equal(softmax.predict(end, X), y)


# long-tailed digits


def test_the_task_is_long_tailed_in_training_balanced_in_test_and_disjoint() -> None:
    task = make_task(SMALL_DIGITS, seed=1)
    assert np.bincount(task.y).tolist() == [120, 84, 59, 41, 29, 20, 14, 10, 7, 5]
    assert np.bincount(task.test_y).tolist() == [50] * 10
    seen = {row.tobytes() for row in task.X}
    assert not any(row.tobytes() in seen for row in task.test_X)  # no two digits are equal


def test_seeds_change_which_digit_is_rare() -> None:
    first, second = (make_task(SMALL_DIGITS, seed) for seed in (0, 1))
    means = [task.test_X[task.test_y == 9].mean(axis=0) for task in (first, second)]
    assert np.abs(means[0] - means[1]).max() > 0.3


def test_expected_shares_of_the_rare_classes_are_ordered(digits: longtail.Result) -> None:
    rare = {outcome.name: outcome.shares[-3:].sum() for outcome in digits.outcomes}
    assert rare["uniform"] < rare["k-DPP w=0"] < rare[KDPP] < rare["stratified"]
    assert rare[KDPP] > 2 * rare["uniform"]
    assert digits["uniform"].shares == pytest.approx(digits.sizes / digits.sizes.sum())
    assert digits["stratified"].shares == pytest.approx(np.full(10, 0.1))


def test_shares_are_those_of_the_batches_that_are_drawn() -> None:
    task = make_task(SMALL_DIGITS, seed=0)
    for name, build in longtail_run.methods(SMALL_DIGITS).items():
        design = build(task, 0)
        drawn = np.bincount(task.y[design.sample(4000, seed=5)].ravel(), minlength=10) / 80_000
        expected = np.bincount(task.y, design.inclusion()) / SMALL_DIGITS.k
        # Counts per batch vary no more than binomial ones: five standard deviations of those.
        slack = 5 * np.sqrt(expected * (1 - expected) / 80_000)
        assert np.all(np.abs(drawn - expected) < slack), name


def test_seeing_rare_classes_helps_early_on_a_balanced_test(digits: longtail.Result) -> None:
    mean = {outcome.name: outcome.accuracy[:, -1].mean() for outcome in digits.outcomes}
    assert mean[KDPP] > mean["uniform"] + 0.1
    assert mean["stratified"] > mean["uniform"] + 0.1


def test_the_digits_are_deterministic_seeds_differ_and_progress_ends_at_one(
    digits: longtail.Result,
) -> None:
    told: list[float] = []
    again = longtail_run.run(SMALL_DIGITS, told.append)
    assert told == pytest.approx([1 / 3, 2 / 3, 1])
    for one, two in zip(digits.outcomes, again.outcomes, strict=True):
        assert np.array_equal(one.accuracy, two.accuracy)
        assert np.array_equal(one.shares, two.shares)
        assert not np.array_equal(one.accuracy[0], one.accuracy[1])


def test_costs_are_per_batch_and_the_clock_starts_after_the_first_draws(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """On a clock that ticks once a look; the first draw of a k-DPP compiles."""
    events: list[str] = []
    draw = dmsgd.KDPP.sample

    def look() -> float:
        events.append("look")
        return float(events.count("look"))

    def sample(self: dmsgd.KDPP, size: int, *args: Any, **kwargs: Any) -> Any:
        events.append(f"draw {size}")
        return draw(self, size, *args, **kwargs)

    monkeypatch.setattr(longtail_run, "perf_counter", look)
    monkeypatch.setattr(dmsgd.KDPP, "sample", sample)
    result = longtail_run.run(replace(SMALL_DIGITS, seeds=1))
    assert events[: events.index("look")] == ["draw 1", "draw 1"]
    for outcome in result.outcomes:
        assert (outcome.setup, outcome.sample, outcome.step) == (1, 1 / 50, 2 / 50)


def test_margin_is_students() -> None:
    assert intervals.margin(np.array([1.0, 2.0, 3.0])) == pytest.approx(4.302653 / np.sqrt(3))


def test_pictures_of_the_digits(digits: longtail.Result, tmp_path: Path) -> None:
    plot_shares(digits, tmp_path / "shares.png")
    plot_accuracy(digits, tmp_path / "accuracy.png")
    assert_picture(tmp_path / "shares.png")
    assert_picture(tmp_path / "accuracy.png")


# points in the plane


def test_imbalance_by_hand() -> None:
    corners = np.array([[0.1, 0.1], [0.2, 0.2], [0.9, 0.9], [1.0, 1.0]])
    assert imbalance(corners, np.ones(4), cells=2) == 0
    assert imbalance(corners, np.array([2.0, 1.0, 1.0, 0.0]), cells=2) == pytest.approx(0.25)
    assert imbalance(corners[:3], np.ones(3), cells=2) == pytest.approx(1 / 6)


def test_designs_restore_balance_and_the_kdpp_does_it_best(points: toy.Result) -> None:
    mean = {name: values.mean() for name, values in points.imbalance.items()}
    assert np.all(points.imbalance["k-DPP"] < points.imbalance["observed"])
    assert mean["population"] < mean["k-DPP"]
    assert mean["k-DPP"] < min(mean["stratified"], mean["clustered"])
    assert max(mean["stratified"], mean["clustered"]) < mean["observed"]


def test_the_scene_is_an_imbalanced_subset_with_frequencies_of_k_items(points: toy.Result) -> None:
    scene = points.scene
    population = {row.tobytes() for row in scene.population}
    assert all(row.tobytes() in population for row in scene.observed)
    near = [
        np.mean(np.linalg.norm(part - np.array(SMALL_TOY.centre), axis=1) < 0.2)
        for part in (scene.population, scene.observed)
    ]
    assert near[1] > 3 * near[0]
    for name, b in scene.frequency.items():
        assert b.sum() == pytest.approx(20), name
    nearest = np.linalg.norm(scene.observed[:, None] - scene.centres, axis=2).argmin(axis=1)
    assert np.array_equal(nearest, scene.cluster)


def test_the_points_are_deterministic_and_follow_the_seed(points: toy.Result) -> None:
    same, other = run_toy(SMALL_TOY, None), run_toy(replace(SMALL_TOY, seed=1), None)
    for name, values in points.imbalance.items():
        assert np.array_equal(values, same.imbalance[name])
        assert not np.array_equal(values, other.imbalance[name])


def test_picture_of_the_points(points: toy.Result, tmp_path: Path) -> None:
    plot_toy(points, tmp_path)
    assert_picture(tmp_path / "toy.png")


# rare documents


def test_what_a_batch_holds_is_counted() -> None:
    """One of 4 items is looked for, then two: 1/2 and 5/6 of all batches of 2 hold them."""
    wanted = np.array([[True, True], [False, True], [False, False], [False, False]])
    found, expected = count(dmsgd.Uniform(4, 2), wanted, 20_000, seed=0)
    assert expected == pytest.approx([0.5, 1.0])
    assert found == pytest.approx([1 / 2, 5 / 6], abs=0.015)  # four standard errors


def test_documents_and_pages_are_what_is_said_of_them() -> None:
    counts, topic = generated(rare.Config(), 0)
    assert counts.shape == (1000, 200)
    assert np.all(counts.sum(axis=1) == 150)
    assert np.array_equal(np.bincount(topic), [198] * 5 + [10])
    pages, package = help_pages()
    assert len(set(pages)) == len(pages) == len(package) > 1000
    assert any("inverse fft" in page.lower() for page in pages)


def test_rare_documents_are_found_as_the_front_page_says(documents: rare.Result) -> None:
    found = {one.name: one.found.mean() for one in documents.outcomes}
    assert found["uniform"] < 0.25 < 0.5 < found["weighted"] < found["k-DPP"] < found["clustered"]
    assert documents["k-DPP"].expected == pytest.approx(documents["weighted"].expected)
    assert documents["uniform"].times == pytest.approx(1)
    assert 0 < max(documents.packages.values()) < 0.02 * documents.pages
    # k-means shows some packages much less often than uniform batches do, k-DPPs none.
    assert documents["clustered"].times.min() < 0.5 < 0.75 < documents["k-DPP"].times.min()


def test_picture_of_the_documents(documents: rare.Result, tmp_path: Path) -> None:
    plot_rare(documents, tmp_path / "rare.png")
    assert_picture(tmp_path / "rare.png")


# the demo


def with_accuracy(result: longtail.Result, name: str, values: np.ndarray) -> longtail.Result:
    outcomes = (replace(o, accuracy=values) if o.name == name else o for o in result.outcomes)
    return replace(result, outcomes=tuple(outcomes))


def test_the_sentence_on_documents_follows_the_numbers(documents: rare.Result) -> None:
    outcomes = tuple(
        replace(one, found=np.full(3, 0.1 * (n + 1)), times=np.array([[0.5, n + 1.0]]))
        for n, one in enumerate(documents.outcomes)
    )
    sentence = rare_summary(replace(documents, outcomes=outcomes))
    assert "in 10 % of uniform, 30 % of weighted and 40 % of k-DPP batches" in sentence
    assert "in 20 % of clustered" in sentence
    assert "50 % of the time clustered batches show one less often" in sentence
    assert "0.50 to 4.00 times" in sentence


def test_sentences_follow_the_numbers(digits: longtail.Result, points: toy.Result) -> None:
    uniform = digits["uniform"].accuracy
    noise = np.array([[0.02], [-0.02], [0.0]])
    better = accuracy_summary(with_accuracy(digits, KDPP, uniform + 0.04 + noise / 10))
    worse = accuracy_summary(with_accuracy(digits, KDPP, uniform - 0.04 + noise / 10))
    level = accuracy_summary(with_accuracy(digits, KDPP, uniform + noise))
    assert f"{KDPP} was 4.0 ± 0.5 points ahead after" in better
    assert f"{KDPP} was 4.0 ± 0.5 points behind after" in worse
    assert f"{KDPP} was level (+0.0 ± 5.0 points) after" in level
    same = digits.outcomes[-2]
    alike = accuracy_summary(with_accuracy(digits, KDPP, same.accuracy + 0.04 + noise / 10))
    early, final = digits.config.early, digits.config.checkpoints[-1]
    ahead = "4.0 ± 0.5 points ahead after"
    assert f"{ahead} {early} steps and {ahead} {final} against {same.name}" in alike
    clear = {**points.imbalance, "k-DPP": points.imbalance["clustered"] - 0.1}
    swapped = {**points.imbalance, "k-DPP": points.imbalance["observed"] + 0.1}
    assert "k-DPP restored the balance best" in toy_summary(replace(points, imbalance=clear))
    assert "best on 4 of 4" in toy_summary(replace(points, imbalance=clear))
    assert "k-DPP was not the best" in toy_summary(replace(points, imbalance=swapped))
    assert "best on 0 of 4" in toy_summary(replace(points, imbalance=swapped))


def test_demo_prints_the_table_and_writes_the_pictures(tmp_path: Path) -> None:
    app = typer.Typer()
    app.command()(demo)
    out = tmp_path / "new" / "folder"
    answer = CliRunner().invoke(app, ["--quick", "--out", str(out)])
    assert answer.exit_code == 0, answer.output
    for name in longtail_run.methods(longtail.Config()):
        assert f"{name}  " in answer.output
    for name in ("rare.png", "toy.png", "class-shares.png", "accuracy.png"):
        assert str(out / name) in answer.output
        assert_picture(out / name)
    assert "\x1b" not in answer.output  # no progress bars outside a terminal
    assert max(map(len, answer.output.splitlines())) <= max(80, len(str(out)) + 20)


def test_demo_refuses_a_file_as_folder_and_a_single_seed(tmp_path: Path) -> None:
    app = typer.Typer()
    app.command()(demo)
    (tmp_path / "file").write_text("")
    assert CliRunner().invoke(app, ["--out", str(tmp_path / "file")]).exit_code == 2
    assert CliRunner().invoke(app, ["--seeds", "1"]).exit_code == 2


def test_importing_the_demo_is_cheap() -> None:
    code = (
        "import sys, dmsgd.commands.demo, dmsgd.paper.toy.run, dmsgd.paper.longtail.run;"
        "print([m for m in ('sklearn', 'matplotlib', 'numba', 'torch') if m in sys.modules])"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert answer.stdout.strip() == "[]", answer.stderr
