import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_digits, load_wine

import dmsgd
from dmsgd.designs import DesignOptions
from dmsgd.designs.build import make_design
from dmsgd.diagnostics import (
    class_shares,
    compare,
    data,
    effective_batch,
    estimate_repulsion,
    evenness,
    recommend,
)
from dmsgd.diagnostics.data import sample_size
from dmsgd.diagnostics.gradients import GradientVariance
from dmsgd.errors import as_options
from test_commands import fails, run

RNG = np.random.default_rng(1)
SIZES = (150, 60, 25, 10, 5)
LABELS = np.repeat(["a", "b", "c", "d", "e"], SIZES)
CENTRES = RNG.normal(size=(5, 40))
FEATURES = np.repeat(CENTRES, SIZES, axis=0) + RNG.normal(size=(250, 40))
#: Most items in one place, each of the others in one of its own: who is seen matters.
RARE = 2 * np.eye(31)[np.where(np.arange(250) < 220, 0, np.arange(250) - 219)]
RARE += 0.2 * RNG.normal(size=RARE.shape)
#: Ten places with 25 items each: who meets matters.
PLACES = np.kron(np.eye(10), np.ones((25, 1))) + 0.05 * RNG.normal(size=(250, 10))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("features.npy", FEATURES)
    np.save("y.npy", LABELS)
    return tmp_path


# What is found


def test_predictions_are_those_of_the_designs():
    found = compare(FEATURES, 8, LABELS)
    assert (found.data.n, found.data.d, found.k, found.rows.size) == (250, 40, 8, 250)
    assert found.data.classes == dict(zip("abcde", SIZES, strict=True))
    names = ["uniform", "w = 0", "w = 0.3", "w = 0.5", "w = 0.7", "w = 0.9", "stratified"]
    assert [each.name for each in found.summaries] == names
    for each in found.summaries[1:-1]:
        labels = LABELS if each.options.w > 0 else None
        design = dmsgd.diversify(FEATURES, 8, labels, each.options.w)
        assert each.shares == pytest.approx(dmsgd.diagnostics.class_shares(design, LABELS))
        assert each.coverage == pytest.approx(float(dmsgd.diagnostics.coverage(design, 32)))
        again = estimate_repulsion(design, seed=9)
        gap = abs(each.repulsion.value - again.value)
        assert gap < 4 * np.hypot(each.repulsion.error, again.error)
        assert each.seconds_per_batch > 0
        np.testing.assert_allclose(each.inclusion, design.inclusion())
        np.testing.assert_array_equal(each.examples, design.sample(3, seed=0))
    for each in (found.summaries[0], found.summaries[-1]):
        assert (each.repulsion.value, each.repulsion.error) == (0, 0)
    assert found.summaries[-1].evenness == pytest.approx(1)
    assert found.rank == 40


def test_repulsion_is_what_it_does_to_the_variance_of_the_features():
    design = dmsgd.diversify(PLACES, 8)
    exact = dmsgd.diagnostics.gradient_variance(design, PLACES)
    found = estimate_repulsion(design, draws=2000)
    assert found.value > 0.5
    assert abs(found.value - (1 - exact.repulsion_factor)) < 4 * found.error
    assert found.error < 0.02
    nothing = estimate_repulsion(dmsgd.Uniform(250, 8), design.spectrum, draws=2000)
    assert abs(nothing.value) < 4 * nothing.error
    everyone = estimate_repulsion(dmsgd.Uniform(250, 250), design.spectrum)
    assert (everyone.value, everyone.error) == (0, 0)


def test_a_sample_predicts_the_shares_of_the_data(monkeypatch):
    X = np.repeat(FEATURES, 8, axis=0) + 0.1 * RNG.normal(size=(2000, 40))
    y = np.repeat(LABELS, 8)
    whole = compare(X, 8, y, DesignOptions(w=0.5), ws=())
    monkeypatch.setattr("dmsgd.diagnostics.data.OPERATIONS", 1e6)
    monkeypatch.setattr("dmsgd.diagnostics.data.SAMPLES", (1000,))
    part = compare(X, 8, y, DesignOptions(w=0.5), ws=())
    assert (whole.rows.size, part.rows.size) == (2000, 1000)
    assert part.summaries[1].shares == pytest.approx(whole.summaries[1].shares, abs=0.03)
    assert part.summaries[0].shares == whole.summaries[0].shares  # known without a sample


def test_samples_are_larger_where_features_are_few():
    for d, size in ((256, 200_000), (512, 50_000), (1280, 2000), (20_000, 1500)):
        assert sample_size(200_000, d, 64, most=200_000) == size
    assert sample_size(300, 20_000, 64, most=300) == 300


# What is advised


def check_code(advice, X, k, y=None):
    """The advised line of Python makes the advised design."""
    if advice.name == "shuffled epochs":
        assert advice.code(k).endswith(f"batch_size={k}, shuffle=True)")
        return
    scope, design = {"dmsgd": dmsgd, "X": X, "y": y}, advice.design(X, k, y)
    exec(advice.code(k), scope)
    np.testing.assert_array_equal(scope["design"].sample(5, 0), design.sample(5, 0))
    assert type(scope["design"]) is type(design)


def test_compiling_is_not_timed():
    """In a new process the first batches are drawn by NumPy, and nothing compiled is loaded."""
    code = """if True:
        import sys, numpy, dmsgd
        draw, loaded = dmsgd.KDPP.sample, []
        def sample(*given):
            loaded.append("dmsgd.compiled.kdpp" in sys.modules)
            return draw(*given)
        dmsgd.KDPP.sample = sample
        dmsgd.diagnostics.compare(numpy.random.default_rng(0).normal(size=(40, 9)), 4)
        sys.exit(not loaded or not all(loaded))"""
    assert subprocess.run([sys.executable, "-c", code], timeout=300).returncode == 0


def hint(advice, X):
    """Return the design that the reason offers as a line of Python."""
    code = re.search(r"dmsgd\.Partition\(.*\)", advice.reason)[0]
    return eval(code, {"dmsgd": dmsgd, "X": X})


@pytest.mark.parametrize("k", [8, 30])
def test_uneven_classes_get_strata(k):
    """On all data we have, strata did better than any w (docs/results/advice.md)."""
    found = compare(FEATURES, k, LABELS)
    advice = recommend(found)
    assert advice.name == "stratified"
    assert "classes uneven (0.59, where 1 is even)" in advice.reason
    best = max(each.evenness for each in found.summaries if each.options.batches == "k-DPP")
    assert f"where k-DPPs reach {best:.2f}" in advice.reason
    assert isinstance(advice.design(FEATURES, k, LABELS), dmsgd.Stratified)
    check_code(advice, FEATURES, k, LABELS)


def test_what_cannot_be_advised_is_not_decomposed():
    even, uneven = np.arange(len(FEATURES)) % 4, LABELS
    assert compare(FEATURES, 8, even).candidate.options == DesignOptions(kernel="linear")
    assert compare(FEATURES, 8, uneven).candidate is None


def test_even_classes_and_equal_items_get_uniform_batches():
    X = np.kron(np.eye(100), np.ones((2, 1)))
    advice = recommend(compare(X, 8, np.arange(200) % 2))
    assert advice.name == "shuffled epochs"
    assert "classes are even" in advice.reason
    assert isinstance(advice.design(X, 8), dmsgd.Partition)
    assert recommend(compare(X, 8)).name == "shuffled epochs"


def test_rare_items_without_labels_get_shuffled_epochs():
    """Drawing what is unusual more often cost accuracy on average (docs/results/advice.md)."""
    found = compare(RARE, 8)
    advice = recommend(found)
    assert found.candidate.effective_items < 0.95
    assert found.candidate.repulsion.value < 0.4
    assert advice.name == "shuffled epochs"
    assert "there are no labels" in advice.reason


def test_even_classes_get_shuffled_epochs_whatever_a_kdpp_does():
    for X in (RARE, PLACES):
        advice = recommend(compare(X, 8, np.arange(len(X)) % 5))
        assert advice.name == "shuffled epochs"
        assert "classes are even" in advice.reason


@pytest.mark.filterwarnings("ignore:column 12 of X")
@pytest.mark.parametrize("load", [load_wine, load_breast_cancer, load_digits])
@pytest.mark.parametrize("k", [4, 8])
def test_advice_is_never_less_even_than_uniform_batches(load, k):
    X, y = load(return_X_y=True)
    found = compare(X, k, y, ws=())
    advice, uniform = recommend(found), dmsgd.Uniform(len(X), k)
    design = advice.design(X, k, y)
    check_code(advice, X, k, y)
    advised, before = (evenness(class_shares(each, y)) for each in (design, uniform))
    assert advised > before - 0.005
    assert effective_batch(design) >= 0.95 * k
    units = load is not load_digits
    assert found.candidate.options.standardize == units
    assert any("columns in different units" in each for each in found.warnings()) == units
    if units:
        raw = compare(X, k, y, DesignOptions(kernel="linear", normalize=False), ws=())
        assert raw.effective_rank < 1.1
        standard = compare(X, k, y, DesignOptions(standardize=True), ws=())
        assert standard.effective_rank > 5
        assert not any("columns in different units" in each for each in standard.warnings())


@pytest.mark.filterwarnings("ignore:column 0 of X")
def test_columns_in_different_units_are_standardized_in_the_hint():
    units = np.where(np.arange(10) == 0, 1000.0, 1.0)
    raw, plain = (recommend(compare(X, 8)) for X in (PLACES * units, PLACES))
    expected = hint(plain, dmsgd.features.standardize(PLACES)).sample(5, 0)
    np.testing.assert_array_equal(hint(raw, PLACES * units).sample(5, 0), expected)


def test_strong_repulsion_gets_a_hint_at_cells():
    found = compare(PLACES, 8)
    advice = recommend(found)
    assert found.candidate.repulsion.value > 0.5
    assert advice.name == "shuffled epochs"
    assert re.search(r"repulsion removes \d\d% \(± \d%\) of the variance", advice.reason)
    assert isinstance(hint(advice, PLACES), dmsgd.Partition)
    assert "cells" not in recommend(compare(RARE, 8)).reason


def test_gradients_say_more_about_repulsion_than_features():
    def split(repulsion_factor):
        return GradientVariance(250, 8, repulsion_factor, 0, 0, 1.0, 1.0, 1.0, 0)

    strong, weak = compare(PLACES, 8), compare(RARE, 8)
    assert recommend(strong, split(0.9)).name == "shuffled epochs"
    assert "removes 10% of the variance of these gradients" in recommend(strong, split(0.9)).reason
    assert "cells" not in recommend(strong, split(0.9)).reason
    assert "cells" in recommend(weak, split(0.3)).reason
    assert "cells" not in recommend(weak, split(1.2)).reason
    labelled = compare(FEATURES, 8, LABELS)
    assert recommend(labelled, split(0.1)).name == "stratified"


def test_a_target_is_kept():
    settings = DesignOptions(target="uniform", kernel="linear")
    advice = recommend(compare(FEATURES, 8, LABELS, settings))
    assert (advice.name, advice.options) == ("k-DPP", settings)


def test_few_columns_get_an_rbf_kernel():
    X = RNG.normal(size=(300, 2))
    linear = compare(X, 12, options=DesignOptions(kernel="linear"))
    assert "rank too small" in linear.warnings()[0]
    assert [each.name for each in linear.summaries] == ["uniform"]  # what was asked is not there
    found = compare(X, 12)
    assert found.candidate.options == found.options == DesignOptions(kernel="rbf")
    assert recommend(found).name == "shuffled epochs"


def test_an_rbf_kernel_of_many_items_is_that_of_a_sample():
    found = compare(RNG.normal(size=(6000, 2)), 12)
    assert found.rows.size == 1500
    assert found.candidate.options.kernel == "rbf"


def test_rows_on_disk_are_sampled(tmp_path, monkeypatch):
    monkeypatch.setattr("dmsgd.inputs.memory.LARGE", 0)  # files are read in blocks
    path = tmp_path / "features.npy"
    np.save(path, np.repeat(FEATURES, 2, axis=0))
    y = np.repeat(LABELS, 2)
    asked = DesignOptions(w=0.5)
    whole = compare(np.load(path), 8, y, asked, ws=())
    read = compare(path, 8, y, asked, ws=())
    assert (read.data.n, read.rows.size, read.data.counted) == (500, 500, 500)
    assert read.summaries[1].shares == pytest.approx(whole.summaries[1].shares)
    monkeypatch.setattr("dmsgd.diagnostics.data.SAMPLES", (300,))
    part = compare(path, 8, y, asked, ws=())
    assert (part.data.n, part.rows.size, part.data.counted) == (500, 300, 300)
    assert part.data.classes == whole.data.classes
    assert any("duplicates" in each for each in part.warnings())


def test_words_are_annealed():
    X = sparse.csr_array(np.maximum(FEATURES, 0))
    found = compare(X, 8)
    assert found.data.has_counts
    assert found.summaries[1].options.rho is None  # as sample has it, unless told otherwise
    assert found.candidate.options.rho == 0.1
    code = found.candidate.options.code(8)
    assert code == "dmsgd.diversify(X, k=8, rho=0.1, kernel='linear')"
    asked = compare(X, 8, options=DesignOptions(rho=0.5))
    assert {each.options.rho for each in (*asked.summaries[1:], asked.candidate)} == {0.5}


# What is warned of


@pytest.mark.filterwarnings("ignore:column 0 of X")
def test_warnings():
    assert compare(FEATURES, 8, LABELS).warnings() == []
    longer = FEATURES * np.linspace(1, 10, 250)[:, None]
    copies = np.vstack([FEATURES, FEATURES[:50]])
    empty = np.vstack([FEATURES, np.zeros((2, 40))])
    flat = np.eye(10)[:1] + 0.01 * RNG.normal(size=(100, 10))
    for X, k, y, words in (
        (copies, 8, None, r"duplicates: 50 items \(16.7%\)"),
        (empty, 8, None, "2 items with only zeros"),
        (np.eye(100), 2, None, "near-uniform kernel"),
        (flat, 8, None, "8 times the effective rank"),
        (FEATURES, 4, LABELS, "5 classes and k = 4"),
        (FEATURES, 8, np.append(LABELS[:-1], "alone"), "single item"),
    ):
        assert any(re.search(words, each) for each in compare(X, k, y).warnings()), words
    raw = DesignOptions(kernel="linear", normalize=False)
    assert any("norms dominate" in each for each in compare(longer, 8, options=raw).warnings())
    assert not any("near-uniform" in each for each in compare(longer, 1).warnings())


def test_rows_that_differ_beside_a_large_column_are_no_duplicates():
    """A time in nanoseconds is 1e18: all else is small beside it, and tells items apart."""
    time = np.full(200, 1.7e18)
    X = np.column_stack([time, RNG.normal(size=(200, 3))])
    again = np.vstack([X, X[:20]])
    for given in (again, sparse.csr_array(again)):
        assert compare(given, 2, options=DesignOptions(standardize=True)).data.duplicates == 20


@pytest.mark.parametrize("k", [1, 2])
def test_items_that_are_all_alike(k):
    """No kernel tells them apart, and none has a scale."""
    found = compare(np.ones((9, 3)), k)
    assert recommend(found).name == "shuffled epochs"
    assert (found.candidate is not None) == (k == 1)


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
    assert "stratified" in result.stdout
    assert re.search(r"^ e \(5\) +2.0% +\d+\.\d%", result.stdout, re.M)
    for row in ("effective items", "noise removed", "µs per batch"):
        assert re.search(rf"^ {row} .*\d", result.stdout, re.M), row
    assert "Recommended: stratified. Reason: labels are known and classes uneven" in result.stdout
    assert os.listdir(folder) == ["features.npy", "y.npy"] or len(os.listdir(folder)) == 2


@pytest.mark.parametrize(
    ("features", "labels", "kind"),
    [
        (FEATURES, LABELS, "stratified"),
        (FEATURES, None, "shuffled epochs"),
        (RARE, None, "shuffled epochs"),
        (FEATURES[:, :3], None, "shuffled epochs"),
        (PLACES, None, "shuffled epochs"),
    ],
    ids=["labels", "alike", "rare", "few columns", "places"],
)
def test_what_is_recommended_makes_the_recommended_design(folder, features, labels, kind):
    k = 8
    np.save("features.npy", features)
    named = "" if labels is None else "--labels y.npy"
    result = run(f"inspect features.npy {named} -k {k}")
    assert f"Recommended: {kind}." in result.stdout
    advice = recommend(compare(features, k, labels))
    design = advice.design(features, k, labels)
    scope = {"dmsgd": dmsgd, "X": features, "y": labels}
    command = re.search(r"^  dmsgd (sample .*)$", result.stdout, re.M)
    if kind == "shuffled epochs":  # which a plain loader draws
        assert command is None
        assert "shuffle=True" in result.stdout
        return
    exec(re.search(r"^  (design = .*)$", result.stdout, re.M)[1], scope)
    assert scope["design"].fingerprint() == design.fingerprint()
    assert run(command[1]).exit_code == 0
    np.testing.assert_array_equal(np.load("batches.npy"), design.sample(1000, seed=0))


# One set of options, one design


FLAGS = {
    "": {},
    "--no-normalize": {"normalize": False},
    "--standardize --normalize": {"standardize": True, "normalize": True},
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
    X = np.array(FEATURES)
    X[LABELS == "e"] *= 0.4  # short rows of a rare class: --normalize makes a difference
    np.save("features.npy", X)
    design = dmsgd.diversify(X, k, LABELS if counts else None, **arguments)
    shares = class_shares(design, LABELS)

    asked = DesignOptions(**arguments)
    predicted = compare(X, k, LABELS, asked).requested
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
    figures = (choice["items"], choice["seen"], choice["repulsion"]["value"])
    same = (predicted.effective_items, predicted.coverage, predicted.repulsion.value)
    assert figures == pytest.approx(same)  # inspect and the page show one comparison
    assert content["w"] == asked.w  # where the sliders begin
    if asked.target is not None:
        assert (content["ws"], content["ks"]) == ([asked.w], [k])


@pytest.mark.parametrize("batches", ["k-DPP", "weighted", "partition", "stratified", "uniform"])
@pytest.mark.parametrize(
    "options",
    [
        DesignOptions(),
        DesignOptions(w=1 / 3, normalize=True),
        DesignOptions(kernel="rbf", scale=6 + 1 / 3),
        DesignOptions(w=0.5, target="balanced"),
        DesignOptions(target="uniform"),
        DesignOptions(rho=0.5, spectrum="nystrom", rank=12),
    ],
)
def test_options_write_the_code_of_their_design(options, batches):
    X, options = np.abs(FEATURES), replace(options, batches=batches)
    scope = {"dmsgd": dmsgd, "X": X, "y": LABELS}
    exec(f"design = {options.code(5)}", scope)
    assert scope["design"].fingerprint() == make_design(options, X, 5, LABELS).fingerprint()


def test_options_take_numbers_of_any_kind():
    options = DesignOptions(
        w=Fraction(1, 2), kernel="rbf", scale=Fraction(5, 2), rho=np.float32(0.5)
    )
    plain = DesignOptions(w=0.5, kernel="rbf", scale=2.5, rho=0.5)
    assert options == plain
    assert options.code(3) == plain.code(3)
    assert as_options(options.changed()) == "-w 0.5 --rho 0.5 --kernel rbf --scale 2.5"


def test_class_names_are_no_markup(folder):
    np.save("y.npy", np.where(LABELS == "a", "[red]<script>", LABELS.astype("U16")))
    assert "[red]<script> (150)" in run("inspect features.npy --labels y.npy -k 8").stdout


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("none.npy -k 8", "there is no file none.npy"),
        ("features.npy -k 251", "k=251 exceeds the number of items, 250"),
        ("features.npy --labels short.npy -k 8", "3 entries for 250 items"),
        ("features.npy -k 8 --rho 0.5", "negative entries"),
    ],
)
def test_errors_are_one_line(folder, command, message):
    np.save("short.npy", LABELS[:3])
    fails(f"inspect {command}", message)


def test_thousands_of_classes_are_looked_at_on_a_sample(monkeypatch):
    """Each class is a direction of the kernel, as costly as a column."""
    monkeypatch.setattr("dmsgd.diagnostics.data.MANY_CLASSES", 100)
    X, y = RNG.normal(size=(600, 12)), np.arange(600) // 3
    found = compare(X, 5, y, ws=(0.5,))
    assert (found.data.n, found.rows.size, len(found.data.classes)) == (600, 100, 200)
    uniform, plain = found.summaries[:2]
    assert set(uniform.shares) == set(plain.shares)  # evenness is of the same classes
    assert compare(X, 5, y, DesignOptions(target="uniform")).rows.size == 600  # no w is tried
    monkeypatch.setattr("dmsgd.diagnostics.data.NEIGHBOURS", 300)
    assert compare(X, 5, options=DesignOptions(target="density")).rows.size == 300
    monkeypatch.setattr("dmsgd.diagnostics.data.PRESCRIBED", 60)
    by_entries = DesignOptions(kernel="rbf", target="uniform")
    assert compare(X, 5, options=by_entries).rows.size == 60


def test_no_eigendecomposition_is_made_twice(monkeypatch):
    """The candidate has the kernel of the request here, and w = 0 is among the label weights."""
    made, make_kdpp = [], data.make_kdpp
    monkeypatch.setattr(data, "make_kdpp", lambda *given: made.append(given) or make_kdpp(*given))
    rng = np.random.default_rng(0)
    found = compare(rng.normal(size=(60, 20)), 5, np.arange(60) % 3, ws=(0.0, 0.5))
    assert found.candidate is found.summaries[1]
    assert len(made) == 2
