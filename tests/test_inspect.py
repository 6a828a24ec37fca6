import json
import os
import re

import numpy as np
import pytest
from scipy import sparse

import dmsgd
from dmsgd.diagnostics import Settings, advise, class_shares, concerns, examine
from dmsgd.diagnostics.examination import sample_rows
from test_commands import fails, run

RNG = np.random.default_rng(1)
SIZES = (150, 60, 25, 10, 5)
LABELS = np.repeat(["a", "b", "c", "d", "e"], SIZES)
CENTRES = RNG.normal(size=(5, 40))
FEATURES = np.repeat(CENTRES, SIZES, axis=0) + RNG.normal(size=(250, 40))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("features.npy", FEATURES)
    np.save("y.npy", LABELS)
    return tmp_path


# What is found


def test_predictions_are_those_of_the_designs():
    found = examine(FEATURES, 8, LABELS)
    assert (found.n, found.d, found.k, found.sampled) == (250, 40, 8, 250)
    assert found.classes == dict(zip("abcde", SIZES, strict=True))
    names = ["uniform", "w = 0", "w = 0.3", "w = 0.5", "w = 0.7", "w = 0.9", "stratified"]
    assert [each.name for each in found.prospects] == names
    for each in found.prospects[1:-1]:
        labels = LABELS if each.settings.w > 0 else None
        design = dmsgd.diversify(FEATURES, 8, labels, each.settings.w)
        assert each.shares == pytest.approx(dmsgd.diagnostics.class_shares(design, LABELS))
        assert each.seen == pytest.approx(float(dmsgd.diagnostics.coverage(design, 32)))
    assert found.prospects[-1].evenness == pytest.approx(1)
    assert found.room.rank == 40


def test_a_sample_predicts_the_shares_of_the_data(monkeypatch):
    X = np.repeat(FEATURES, 8, axis=0) + 0.1 * RNG.normal(size=(2000, 40))
    y = np.repeat(LABELS, 8)
    whole = examine(X, 8, y, Settings(w=0.5), ws=())
    monkeypatch.setattr("dmsgd.diagnostics.examination.OPERATIONS", 1e6)
    monkeypatch.setattr("dmsgd.diagnostics.examination.SAMPLES", (1000,))
    part = examine(X, 8, y, Settings(w=0.5), ws=())
    assert (whole.sampled, part.sampled) == (2000, 1000)
    assert part.prospects[1].shares == pytest.approx(whole.prospects[1].shares, abs=0.03)
    assert part.prospects[0].shares == whole.prospects[0].shares  # known without a sample


def test_samples_are_larger_where_features_are_few():
    for d, size in ((256, 200_000), (512, 50_000), (1280, 2000), (20_000, 1500)):
        rows = sample_rows(200_000, d, k=64)
        assert rows.size == np.unique(rows).size == size
    assert sample_rows(300, 20_000, k=64).size == 300


# What is advised


def test_uneven_classes_get_a_w_that_evens_them():
    found = examine(FEATURES, 8, LABELS)
    advice = advise(found)
    assert advice.kind == "k-DPP"
    by_w = {each.settings.w: each.evenness for each in found.candidates}
    uniform, best = found.prospects[0].evenness, max(by_w.values())
    assert by_w[advice.settings.w] >= uniform + 0.9 * (best - uniform)
    assert all(even < by_w[advice.settings.w] for w, even in by_w.items() if w < advice.settings.w)
    design = advice.design(FEATURES, 8, LABELS)
    X, y = FEATURES, LABELS
    scope = {"dmsgd": dmsgd, "X": X, "y": y}
    exec(advice.code(8), scope)
    np.testing.assert_array_equal(scope["design"].sample(5, 0), design.sample(5, 0))


def test_classes_that_no_w_evens_get_strata():
    advice = advise(examine(FEATURES, 30, LABELS))
    assert advice.kind == "stratified"
    assert isinstance(advice.design(FEATURES, 30, LABELS), dmsgd.Stratified)
    assert "5 directions for k = 30" in advice.reason
    assert advice.options() == ""


def test_what_cannot_be_advised_is_not_decomposed():
    even, uneven = np.arange(len(FEATURES)) % 4, LABELS
    assert [each.settings.w for each in examine(FEATURES, 8, even).candidates] == [0.0]
    assert len(examine(FEATURES, 8, uneven).candidates) == 5


def test_even_classes_and_equal_items_get_uniform_batches():
    X = np.kron(np.eye(100), np.ones((2, 1)))
    advice = advise(examine(X, 8, np.arange(200) % 2))
    assert advice.kind == "uniform"
    assert "classes are even" in advice.reason
    assert isinstance(advice.design(X, 8), dmsgd.Uniform)
    assert advise(examine(X, 8)).kind == "uniform"


def test_unlabelled_data_gets_w_zero():
    advice = advise(examine(FEATURES, 8))
    assert advice.kind == "k-DPP"
    assert advice.settings.w == 0
    assert "no labels" in advice.reason


def test_few_columns_get_an_rbf_kernel():
    X = RNG.normal(size=(300, 2))
    found = examine(X, 12)
    assert "rank too small" in concerns(found)[0]
    assert [each.name for each in found.prospects] == ["uniform"]  # what was asked for is not there
    settings = found.candidates[0].settings
    assert (settings.kernel, settings.normalize) == ("rbf", False)
    assert settings.scale == pytest.approx(dmsgd.suggest_scale(X, 12), rel=1e-3)
    assert "--kernel rbf --scale" in advise(found).options()


def test_an_rbf_kernel_of_many_items_is_that_of_a_sample():
    found = examine(RNG.normal(size=(6000, 2)), 12)
    assert found.sampled == 1500
    assert found.candidates[0].settings.kernel == "rbf"


def test_rows_on_disk_are_sampled(tmp_path, monkeypatch):
    path = tmp_path / "features.npy"
    np.save(path, np.repeat(FEATURES, 2, axis=0))
    y = np.repeat(LABELS, 2)
    asked = Settings(w=0.5)
    whole = examine(np.load(path), 8, y, asked, ws=())
    read = examine(path, 8, y, asked, ws=())
    assert (read.n, read.sampled, read.counted) == (500, 500, 500)
    assert read.prospects[1].shares == pytest.approx(whole.prospects[1].shares)
    monkeypatch.setattr("dmsgd.diagnostics.examination.SAMPLES", (300,))
    part = examine(path, 8, y, asked, ws=())
    assert (part.n, part.sampled, part.counted) == (500, 300, 300)
    assert part.classes == whole.classes
    assert any("duplicates" in each for each in concerns(part))


def test_words_are_annealed():
    X = sparse.csr_array(np.maximum(FEATURES, 0))
    found = examine(X, 8)
    assert found.words
    assert found.prospects[1].settings.rho is None  # as sample has it, unless told otherwise
    assert found.candidates[0].settings.rho == 0.1
    assert "anneal(X, 0.1)" in advise(found).code(8)
    asked = examine(X, 8, settings=Settings(rho=0.5))
    assert {each.settings.rho for each in (*asked.prospects[1:], *asked.candidates)} == {0.5}


# What is warned of


def test_concerns():
    assert concerns(examine(FEATURES, 8, LABELS)) == []
    longer = FEATURES * np.linspace(1, 10, 250)[:, None]
    copies = np.vstack([FEATURES, FEATURES[:50]])
    empty = np.vstack([FEATURES, np.zeros((2, 40))])
    flat = np.eye(10)[:1] + 0.01 * RNG.normal(size=(100, 10))
    for X, k, y, words in (
        (longer, 8, None, "norms dominate"),
        (copies, 8, None, r"duplicates: 50 items \(16.7%\)"),
        (empty, 8, None, "2 items have only zeros"),
        (np.eye(100), 2, None, "near-uniform kernel"),
        (flat, 8, None, "8 times the effective rank"),
        (FEATURES, 4, LABELS, "5 classes and k = 4"),
        (FEATURES, 8, np.append(LABELS[:-1], "alone"), "single item"),
    ):
        assert any(re.search(words, each) for each in concerns(examine(X, k, y))), words


# The command


def test_one_screen(folder):
    result = run("inspect features.npy --labels y.npy -k 8")
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    lines = result.stdout.splitlines()
    assert len(lines) <= 40
    assert max(len(line) for line in lines if not line.startswith("  dmsgd")) <= 80
    assert "250 items x 40, 5 classes of 5 to 150" in result.stdout
    assert re.search(r"rank +40, effective \d+\.\d, k 8", result.stdout)
    assert "strata" in result.stdout
    assert re.search(r"^ e \(5\) +2.0% +\d+\.\d%", result.stdout, re.M)
    assert "Recommended: k-DPP. Reason: classes are uneven" in result.stdout
    assert os.listdir(folder) == ["features.npy", "y.npy"] or len(os.listdir(folder)) == 2


@pytest.mark.parametrize(
    ("features", "labels", "k"),
    [(FEATURES, LABELS, 8), (FEATURES, None, 8), (FEATURES[:, :3], None, 8)],
    ids=["labels", "no labels", "few columns"],
)
def test_the_recommended_command_draws_from_the_recommended_design(folder, features, labels, k):
    np.save("features.npy", features)
    named = "" if labels is None else "--labels y.npy"
    result = run(f"inspect features.npy {named} -k {k}")
    command = re.search(r"^  dmsgd (sample .*)$", result.stdout, re.M)[1]
    assert run(command).exit_code == 0
    advice = advise(examine(features, k, labels))
    design = advice.design(features, k, labels)
    np.testing.assert_array_equal(np.load("batches.npy"), design.sample(1000, seed=0))
    scope = {"dmsgd": dmsgd, "X": features, "y": labels}
    exec(re.search(r"^  (design = .*)$", result.stdout, re.M)[1], scope)
    assert scope["design"].fingerprint() == design.fingerprint()


# One set of options, one design


FLAGS = {
    "": {},
    "--normalize": {"normalize": True},
    "-w 0.7": {"w": 0.7},
    "-w 0.65 --normalize": {"w": 0.65, "normalize": True},
    "--kernel rbf --scale 6": {"kernel": "rbf", "scale": 6.0},
    "--kernel rbf -w 0.5 --normalize": {"kernel": "rbf", "w": 0.5, "normalize": True},
    "--target uniform": {"target": "uniform"},
    "--target balanced --normalize": {"target": "balanced", "normalize": True},
    "--target density -w 0.3": {"target": "density", "w": 0.3},
}


@pytest.mark.parametrize("flags", FLAGS)
def test_the_same_flags_are_the_same_design_in_all_commands(folder, flags):
    """Predicted, drawn and reported: the shares of `diversify` with the same arguments."""
    arguments, steps, k = FLAGS[flags], 4000, 5
    counts = arguments.get("w", 0) > 0 or arguments.get("target") == "balanced"
    RARE = np.array(FEATURES)
    RARE[LABELS == "e"] *= 0.4  # short rows of a rare class: --normalize makes a difference
    np.save("features.npy", RARE)
    design = dmsgd.diversify(RARE, k, LABELS if counts else None, **arguments)
    shares = class_shares(design, LABELS)

    asked = Settings(**arguments)
    predicted = {e.settings: e for e in examine(RARE, k, LABELS, asked).prospects}[asked]
    assert predicted.shares == pytest.approx(shares, rel=1e-9)
    found = run(f"inspect features.npy --labels y.npy -k {k} {flags}")
    assert found.exit_code == 0, found.output
    heading = re.search(r"^ ?class \(items\) +(.*)$", found.stdout, re.M)[1].split()
    column = heading.index(f"w={asked.w:g}")
    for label in "abcde":
        row = re.search(rf"^ ?{label} \(\d+\) +(.*)$", found.stdout, re.M)[1].split()
        assert row[column] == f"{shares[label]:.1%}"

    result = run(f"sample features.npy --labels y.npy -k {k} -n {steps} {flags} -o b.npy")
    assert result.exit_code == 0, result.output
    batches = np.load("b.npy")
    np.testing.assert_array_equal(batches, design.sample(steps, seed=0))
    for label in "abcde":
        drawn = np.mean(LABELS[batches] == label, axis=1)
        error = drawn.std() / np.sqrt(steps)
        assert abs(drawn.mean() - shares[label]) < 4.5 * error + 1e-9  # one in 10^5 by chance
    assert ("did not count" in result.stdout) == (not counts)

    result = run(f"report features.npy --labels y.npy -k {k} {flags} -o page.html")
    assert result.exit_code == 0, result.output
    page = (folder / "page.html").read_text()
    content = json.loads(re.search(r'id="data">(.*?)</script>', page, re.S)[1])
    choice = content["choices"][content["ws"].index(asked.w)][content["ks"].index(k)]
    reported = dict(
        zip((each["name"] for each in content["classes"]), choice["shares"], strict=True)
    )
    assert reported == pytest.approx(shares, abs=1e-6)
    assert content["w"] == asked.w  # where the sliders begin
    if asked.target is not None:
        assert (content["ws"], content["ks"]) == ([asked.w], [k])


def test_settings_write_themselves():
    for settings in (
        Settings(),
        Settings(w=1 / 3, normalize=True),
        Settings(kernel="rbf", scale=6 + 1 / 3),
        Settings(w=0.5, target="balanced"),
        Settings(target="uniform"),
    ):
        scope = {"dmsgd": dmsgd, "X": FEATURES, "y": LABELS}
        exec(f"design = {settings.code(5)}", scope)
        same = settings.design(FEATURES, 5, LABELS)
        assert scope["design"].fingerprint() == same.fingerprint()
    assert Settings(rho=0.1).code(5) == "dmsgd.diversify(dmsgd.anneal(X, 0.1), k=5)"


def test_class_names_are_no_markup(folder):
    np.save("y.npy", np.where(LABELS == "a", "[red]<script>", LABELS.astype("U16")))
    assert "[red]<script> (150)" in run("inspect features.npy --labels y.npy -k 8").stdout


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("none.npy -k 8", "there is no file none.npy"),
        ("features.npy -k 0", "k must be at least 1"),
        ("features.npy -k 251", "k=251 exceeds the number of items, 250"),
        ("features.npy --labels short.npy -k 8", "3 entries for 250 items"),
        ("features.npy -k 8 --rho 0.5", "negative entries"),
    ],
)
def test_errors_are_one_line(folder, command, message):
    np.save("short.npy", LABELS[:3])
    fails(f"inspect {command}", message)
