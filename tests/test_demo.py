"""`dmsgd demo`: its data, the direction of its numbers, and words that follow them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from command_line import CliRunner
from dmsgd.commands import app
from dmsgd.commands import demo_comparisons as demo

SEEDS = 3


def run(part):
    return demo.repeat(part, SEEDS, lambda fraction: None)


@pytest.fixture(scope="module")
def documents() -> demo.Found:
    return run(demo.draw_documents)


@pytest.fixture(scope="module")
def digits() -> demo.Found:
    return run(demo.train_digits)


def test_documents_have_common_topics_a_rare_one_and_odd_ones() -> None:
    counts, topic = demo.documents(0)
    assert counts.shape == (1000, 200)
    assert np.all(counts.sum(axis=1) == 150)
    assert np.bincount(topic).tolist() == [196] * 5 + [10] + [1] * 10


def test_digits_are_long_tailed_in_training_balanced_in_test_and_disjoint() -> None:
    X, y, test_X, test_y = demo.digits(1)
    assert np.bincount(y).tolist() == [120, 84, 59, 41, 29, 20, 14, 10, 7, 5]
    assert np.bincount(test_y).tolist() == [50] * 10
    seen = {row.tobytes() for row in X}
    assert not any(row.tobytes() in seen for row in test_X)  # no two digits are equal
    other = demo.digits(0)[2]
    assert np.abs(test_X[test_y == 9].mean(axis=0) - other[test_y == 9].mean(axis=0)).max() > 0.3


def test_rare_documents_are_drawn_as_the_front_page_says(documents: demo.Found) -> None:
    held = {arm: own["held"].mean() for arm, own in documents.items()}
    assert held["shuffled"] < 25 < 50 < held["frequency-matched"] < held["k-DPP"] < 75
    assert documents["shuffled"]["times"] == pytest.approx(1)
    times = documents["k-DPP"]["times"]
    assert times == pytest.approx(documents["frequency-matched"]["times"])
    assert times.min() > 4
    assert documents["clustered"]["times"].min() < 1.5


def test_rare_digits_are_learnt_as_the_front_page_says(digits: demo.Found) -> None:
    share = {arm: own["share"].mean() for arm, own in digits.items()}
    assert share["shuffled"] == pytest.approx(100 * 22 / 389)
    assert share["stratified"] == pytest.approx(30)
    assert 2 * share["shuffled"] < share["k-DPP"] == pytest.approx(share["frequency-matched"])
    early = {
        arm: own["right"][:, demo.STEPS.index(demo.EARLY)].mean() for arm, own in digits.items()
    }
    assert early["shuffled"] + 5 < early["k-DPP"] < early["stratified"]


def test_the_same_seed_gives_the_same_numbers_and_another_does_not(
    documents: demo.Found, digits: demo.Found
) -> None:
    again = {"held": demo.draw_documents(0), "right": demo.train_digits(0)}
    for key, found in (("held", documents), ("right", digits)):
        for arm, own in again[key].items():
            changed = [name for name in own if not np.array_equal(own[name], found[arm][name][0])]
            assert set(changed) <= {"price"}
        assert not np.array_equal(found["k-DPP"][key][0], found["k-DPP"][key][1])


def test_words_follow_the_documents(documents: demo.Found) -> None:
    made = {arm: {"held": np.full(3, 10.0 * n), "times": np.full((3, 2), n + 0.5)}
            for n, arm in enumerate(documents)}  # fmt: skip
    words = demo.show_documents(made)[1]
    assert "30 % of k-DPP" in words
    assert "0 % of shuffled" in words
    assert "at least 3.5 times" in words
    assert "some 1.5 times" in words


@pytest.mark.parametrize(
    ("gain", "expected"),
    [(4.0, "4.0 points ahead of"), (-4.0, "4.0 points behind"), (0.5, "level with")],
)
def test_words_follow_the_digits(digits: demo.Found, gain: float, expected: str) -> None:
    noise = np.array([[0.5], [-0.5], [0.0]])
    changed = {**digits["k-DPP"], "right": digits["shuffled"]["right"] + gain + noise}
    assert f"{expected} shuffled" in demo.show_digits({**digits, "k-DPP": changed})[1]


def test_margin_is_students() -> None:
    assert demo.margin(np.array([1.0, 2.0, 3.0])) == pytest.approx(4.302653 / np.sqrt(3))


def test_demo_prints_tables_and_writes_pictures_and_a_page(tmp_path: Path) -> None:
    from matplotlib.image import imread

    out = tmp_path / "new" / "folder"
    answer = CliRunner().invoke(app, ["demo", "--seeds", "2", "--out", str(out)])
    assert answer.exit_code == 0, answer.output
    for arm in demo.COLOURS:
        assert f"{arm}  " in answer.output
    for name in ("documents.png", "digits.png"):
        assert str(out / name) in answer.output
        pixels = imread(out / name)[..., :3]
        assert min(pixels.shape[:2]) > 300
        assert 0.01 < np.mean(pixels.min(axis=2) < 0.9) < 0.9  # neither blank nor all ink
    assert "Long-tailed digits" in (out / "report.html").read_text(encoding="utf-8")
    assert "\x1b" not in answer.output  # no progress bars outside a terminal
    assert max(map(len, answer.output.splitlines())) <= max(80, len(str(out)) + 20)


def test_demo_refuses_a_file_as_folder_and_a_single_seed(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert CliRunner().invoke(app, ["demo", "--out", str(tmp_path / "file")]).exit_code == 2
    assert CliRunner().invoke(app, ["demo", "--seeds", "1"]).exit_code == 2
