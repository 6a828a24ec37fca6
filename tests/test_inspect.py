import os
import re
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
from dmsgd.diagnostics import class_shares, gradient_variance, inspect
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


def figures(found, name):
    return {each.name: each for each in found.batches}[name]


def test_figures_are_those_of_the_designs():
    found = inspect(FEATURES, 8, LABELS, DesignOptions(w=0.5))
    assert [each.name for each in found.batches] == ["shuffle", "Stratified", "k-DPP"]
    designs = {
        "Stratified": dmsgd.Stratified(LABELS, 8),
        "k-DPP": dmsgd.diversify(FEATURES, 8, LABELS, 0.5),
    }
    for name, design in designs.items():
        each, b = figures(found, name), design.inclusion()
        shares = class_shares(design, LABELS)
        assert each.items == pytest.approx({c: 8 * share for c, share in shares.items()})
        for c in "abcde":  # n / k batches are an epoch
            assert each.per_epoch[c] == pytest.approx(b[c == LABELS].mean() * 250 / 8)
        assert each.seen == pytest.approx(1 - ((1 - b) ** 32).mean())
        batches = design.sample(32 * 300, seed=3).reshape(300, -1)
        seen = np.array([np.unique(row).size for row in batches]) / 250
        assert abs(seen.mean() - each.seen) < 4 * seen.std() / np.sqrt(300)
        exact = gradient_variance(design, FEATURES)
        assert each.noise == pytest.approx(exact.repulsion_factor)
        assert each.error == 0
    shuffled = found.batches[0]
    assert shuffled.items == {c: 8 * size / 250 for c, size in zip("abcde", SIZES, strict=True)}
    assert shuffled.seen == set(shuffled.per_epoch.values()).pop() == 248 / 250
    assert (shuffled.noise, shuffled.error) == (1, 0)


def test_noise_is_estimated_where_it_would_take_long(monkeypatch):
    monkeypatch.setattr("dmsgd.diagnostics.study.EXACT", 1)
    drawn = figures(inspect(PLACES, 8, options=DesignOptions(w=0.0, normalize=True)), "k-DPP")
    exact = gradient_variance(dmsgd.diversify(PLACES, 8, normalize=True), PLACES).repulsion_factor
    assert 0 < drawn.error < 0.02
    assert abs(drawn.noise - exact) < 4 * drawn.error


def test_noise_is_that_of_the_same_columns_for_all():
    """Of many columns those that vary most count, and each as much if units differ."""
    X = FEATURES * np.where(np.arange(40) == 3, 1000.0, 1.0)
    found = figures(inspect(X, 8, LABELS), "Stratified")
    standard = X / X.std(axis=0)
    exact = gradient_variance(dmsgd.Stratified(LABELS, 8), standard)
    assert found.noise == pytest.approx(exact.repulsion_factor)


def test_facts_about_classes_and_columns():
    X = np.column_stack([FEATURES, np.full(250, 3.0)])
    data = inspect(X, 8, LABELS).data
    p = np.array(SIZES) / 250
    assert data.classes == dict(zip("abcde", SIZES, strict=True))
    assert data.evenness == pytest.approx(np.exp(-p @ np.log(p)) / 5)
    assert data.constant == 1
    np.testing.assert_allclose(data.deviations, X.std(axis=0))
    assert data.column_ratio == pytest.approx(X.std(0).max() / np.median(FEATURES.std(0)))


@pytest.mark.parametrize("kind", ["array", "sparse", "wide"])
def test_the_effective_dimension_is_that_of_the_centred_covariance(kind):
    X = np.maximum(FEATURES, 0) + 5.0 * (kind == "array")
    if kind == "wide":  # the products of rows have the same eigenvalues
        X = np.hstack([X, np.zeros((250, 2000))])
    values = np.linalg.eigvalsh(np.cov(X.T, bias=True))[::-1]
    p = values[values > 1e-12] / values.sum()
    found = inspect(sparse.csr_array(X) if kind == "sparse" else X, 8).data
    assert found.dimension == pytest.approx(np.exp(-p @ np.log(p)), rel=1e-4)
    assert found.directions() == np.searchsorted(np.cumsum(p), 0.9) + 1
    assert found.measured == 250


def test_a_shuffled_batch_misses_a_class_by_the_hypergeometric_distribution():
    from itertools import combinations

    y = np.array(list("aaaabbbc"))
    found = inspect(np.random.default_rng(0).normal(size=(8, 3)), 3, y)
    batches = [set(y[list(batch)]) for batch in combinations(range(8), 3)]
    expected = {c: np.mean([c not in batch for batch in batches]) for c in "abc"}
    assert found.data.missed(3) == pytest.approx(expected)
    assert found.data.missed(5)["a"] == 0


def test_near_duplicates_are_exact_or_say_what_was_searched(monkeypatch):
    X = np.vstack([FEATURES, FEATURES[:30] + 1e-4])
    found = inspect(X, 8)
    assert found.data.duplicates.metric == "cosine"
    assert "60 items above cosine 0.995 (all searched)" in str(found)
    far = inspect(X + 100.0, 8).data  # all rows point the same way
    assert far.duplicates.metric == "euclidean"
    assert set(far.duplicates.pairs.ravel()) == {*range(30), *range(250, 280)}
    monkeypatch.setattr("dmsgd.diagnostics.facts.SEARCHED", 100)
    part = inspect(X, 8)
    assert part.data.duplicates.searched == 100
    assert "only 100 items searched" in str(part)


def test_no_kernel_is_decomposed_unless_a_k_dpp_is_asked_for(monkeypatch):
    for place in ("diagnostics.study", "designs.build"):
        whole = f"dmsgd.{place}.kdpp_of"
        monkeypatch.setattr(whole, lambda *given: pytest.fail("a kernel was decomposed"))
    inspect(FEATURES, 8, LABELS).html()


def test_a_sample_predicts_the_shares_of_the_data(monkeypatch):
    X = np.repeat(FEATURES, 8, axis=0) + 0.1 * RNG.normal(size=(2000, 40))
    y, asked = np.repeat(LABELS, 8), DesignOptions(w=0.5)
    whole = inspect(X, 8, y, asked)
    monkeypatch.setattr("dmsgd.diagnostics.study.OPERATIONS", 1)
    monkeypatch.setattr("dmsgd.diagnostics.study.FEWEST", 1000)
    part = inspect(X, 8, y, asked)
    assert [each.rows.size for each in part.batches] == [2000, 2000, 1000]
    assert "of a sample of 1,000" in str(part)
    one, other = (figures(each, "k-DPP").items for each in (part, whole))
    assert one == pytest.approx(other, abs=0.03 * 8)
    assert part.batches[0].items == whole.batches[0].items  # known without a sample
    assert figures(part, "k-DPP").per_epoch["e"] == pytest.approx(one["e"] * 2000 / 8 / 40)


def test_samples_are_larger_where_columns_are_few(monkeypatch):
    X = RNG.normal(size=(700, 20))
    monkeypatch.setattr("dmsgd.diagnostics.study.FEWEST", 60)
    monkeypatch.setattr("dmsgd.diagnostics.study.OPERATIONS", 500 * 20**2)
    y = np.arange(700) % 20
    for options, size in (
        (DesignOptions(kernel="linear"), 500),
        (DesignOptions(kernel="linear", w=0.5), 125),  # each class is a direction, too
        (DesignOptions(kernel="rbf", scale=5.0), 60),
        (DesignOptions(kernel="linear", target="uniform"), 60),
    ):
        assert inspect(X, 8, y, options).batches[-1].rows.size == size


# What is advised


def check_code(advice, X, y=None):
    """The advised line of Python makes the advised design."""
    if advice.name == "shuffled epochs":
        assert advice.code.endswith(f"batch_size={advice.k}, shuffle=True)")
        return
    scope, design = {"dmsgd": dmsgd, "X": X, "y": y}, advice.design(X, y)
    exec(advice.code, scope)
    np.testing.assert_array_equal(scope["design"].sample(5, 0), design.sample(5, 0))
    assert type(scope["design"]) is type(design)


def hint(advice, X):
    """Return the design that the reason offers as a line of Python."""
    code = re.search(r"dmsgd\.Partition\(.*\)\)", advice.reason)[0]
    return eval(code, {"dmsgd": dmsgd, "X": X})


@pytest.mark.parametrize("k", [8, 30])
def test_uneven_classes_get_strata(k):
    """On all data we have, strata did better than any w (docs/results/advice.md)."""
    advice = inspect(FEATURES, k, LABELS).advice
    assert advice.name == "Stratified"
    assert "class a has 30 times the items of class e" in advice.reason
    assert f"{0.85 if k == 8 else 0.52:.0%} of shuffled batches hold no e" in advice.reason
    assert "each item of class e is seen" in advice.price
    assert "Shuffle if" in advice.price
    assert isinstance(advice.design(FEATURES, LABELS), dmsgd.Stratified)
    check_code(advice, FEATURES, LABELS)


def test_even_classes_and_equal_items_get_shuffled_epochs():
    X = np.kron(np.eye(100), np.ones((2, 1)))
    advice = inspect(X, 8, np.arange(200) % 2).advice
    assert advice.name == "shuffled epochs"
    assert "classes are even" in advice.reason
    assert isinstance(advice.design(X), dmsgd.Partition)
    assert inspect(X, 8).advice.name == "shuffled epochs"


@pytest.mark.parametrize("X", [RARE, PLACES], ids=["rare", "places"])
@pytest.mark.parametrize("labels", [None, np.arange(250) % 5], ids=["none", "even"])
def test_without_uneven_classes_there_are_shuffled_epochs_whatever_a_kdpp_does(X, labels):
    """Drawing what is unusual more often cost accuracy on average (docs/results/advice.md)."""
    advice = inspect(X, 8, labels, DesignOptions(normalize=True)).advice
    assert advice.name == "shuffled epochs"
    assert ("there are no labels" if labels is None else "classes are even") in advice.reason


@pytest.mark.filterwarnings("ignore:column 12 of X")
@pytest.mark.parametrize("load", [load_wine, load_breast_cancer, load_digits])
@pytest.mark.parametrize("k", [4, 8])
def test_advice_is_never_less_even_than_uniform_batches(load, k):
    X, y = load(return_X_y=True)
    found = inspect(X, k, y)
    uniform, design = dmsgd.Uniform(len(X), k), found.advice.design(X, y)
    check_code(found.advice, X, y)
    shares = (np.array([*class_shares(each, y).values()]) for each in (design, uniform))
    advised, before = (np.exp(-p @ np.log(p)) / len(p) for p in shares)
    assert advised > before - 0.005
    assert design.n**2 / np.sum(1 / design.inclusion()) >= 0.95 * k  # Kish's effective size
    units = load is not load_digits
    assert found.data.standardized == units
    assert any("columns in different units" in each for each in found.warnings) == units


@pytest.mark.filterwarnings("ignore:column 0 of X")
def test_columns_in_different_units_are_standardized_in_the_hint():
    units = np.where(np.arange(10) == 0, 1000.0, 1.0)
    raw, plain = (
        inspect(X, 8, options=DesignOptions(standardize=True)).advice
        for X in (PLACES * units, PLACES)
    )
    expected = hint(plain, dmsgd.features.standardize(PLACES)).sample(5, 0)
    np.testing.assert_array_equal(hint(raw, PLACES * units).sample(5, 0), expected)


def test_strong_repulsion_gets_a_hint_at_cells():
    asked = DesignOptions(normalize=True)
    found = inspect(PLACES, 8, options=asked)
    assert figures(found, "k-DPP").noise < 0.5
    assert found.advice.name == "shuffled epochs"
    assert re.search(
        r"would remove \d\d% of the variance of a batch's columns", found.advice.reason
    )
    assert isinstance(hint(found.advice, PLACES), dmsgd.Partition)
    assert "cells" not in inspect(RARE, 8, options=asked).advice.reason
    assert "cells" not in inspect(PLACES, 8).advice.reason  # no k-DPP was asked for


@pytest.mark.parametrize("exact", [1e10, 1])
def test_gradients_say_more_about_repulsion_than_features(monkeypatch, exact):
    """Items of a place have one gradient, or each its own: the features cannot know."""
    monkeypatch.setattr("dmsgd.diagnostics.study.EXACT", exact)
    own = np.random.default_rng(2).normal(size=(250, 40))
    assert "cells" in inspect(PLACES, 8, gradients=PLACES).advice.reason
    found = inspect(PLACES, 8, gradients=own)
    assert "cells" not in found.advice.reason
    assert "of the variance of these gradients" in found.advice.reason
    control = gradient_variance(dmsgd.diversify(PLACES, 8), own)
    drawn = figures(found, "k-DPP")
    assert abs(drawn.variance.variance - control.variance) <= 4 * drawn.variance.error + 1e-12
    assert drawn.variance.frequency_matched == pytest.approx(control.frequency_matched)
    uneven = inspect(FEATURES, 8, LABELS, gradients=FEATURES[:, :3])
    assert uneven.advice.name == "Stratified"
    exactly = gradient_variance(dmsgd.Stratified(LABELS, 8), FEATURES[:, :3])
    assert figures(uneven, "Stratified").variance.variance == pytest.approx(exactly.variance)


def test_a_target_is_kept():
    settings = DesignOptions(target="uniform", kernel="linear")
    advice = inspect(FEATURES, 8, LABELS, settings).advice
    assert (advice.name, advice.options) == ("k-DPP", settings)
    check_code(advice, FEATURES, LABELS)


def test_a_kdpp_whose_rank_is_too_small_is_a_warning():
    X = RNG.normal(size=(300, 2))
    linear = inspect(X, 12, options=DesignOptions(kernel="linear"))
    assert "rank is too small" in linear.warnings[0]
    assert [each.name for each in linear.batches] == ["shuffle"]
    found = inspect(X, 12, options=DesignOptions(diversity=0.5, normalize=False))
    assert found.options.kernel == "rbf"
    assert (
        inspect(RNG.normal(size=(6000, 2)), 12, options=found.options).batches[-1].rows.size == 1500
    )


def test_rows_on_disk_are_sampled(tmp_path, monkeypatch):
    monkeypatch.setattr("dmsgd.runtime.memory.LARGE", 0)  # files are read in blocks
    path = tmp_path / "features.npy"
    np.save(path, np.repeat(FEATURES, 2, axis=0))
    y, asked = np.repeat(LABELS, 2), DesignOptions(w=0.5)
    whole, read = (inspect(each, 8, y, asked) for each in (np.load(path), path))
    assert (read.data.n, read.data.rows.size) == (500, 500)
    assert figures(read, "k-DPP").items == pytest.approx(figures(whole, "k-DPP").items)
    assert read.data.dimension == pytest.approx(whole.data.dimension)
    monkeypatch.setattr("dmsgd.diagnostics.facts.ITEMS", 300)
    monkeypatch.setattr("dmsgd.diagnostics.facts.NUMBERS", 1)
    part = inspect(path, 8, y)
    assert (part.data.n, part.data.rows.size) == (500, 300)
    assert part.data.classes == whole.data.classes
    assert part.batches[0].items == whole.batches[0].items
    assert part.data.duplicates.pairs.size > 0
    assert re.search("sample +! 300 items", str(part))
    assert len(part.csv().splitlines()) == 301
    assert "random sample of 300 items" in part.html()


def test_a_class_that_a_sample_lacks_has_the_figures_of_all_labels(tmp_path, monkeypatch):
    y = np.repeat(["common", "rare"], [498, 2])
    X = np.repeat(FEATURES, 2, axis=0)
    np.save(tmp_path / "x.npy", X)
    whole = inspect(X, 8, y)
    monkeypatch.setattr("dmsgd.runtime.memory.LARGE", 0)  # files are read in blocks
    monkeypatch.setattr("dmsgd.diagnostics.facts.ITEMS", 20)
    monkeypatch.setattr("dmsgd.diagnostics.facts.NUMBERS", 1)
    part = inspect(tmp_path / "x.npy", 8, y)
    assert set(y[part.data.rows]) == {"common"}
    one, other = (figures(each, "Stratified") for each in (part, whole))
    assert (one.items, one.per_epoch, one.seen) == (other.items, other.per_epoch, other.seen)
    assert part.advice == whole.advice
    assert one.noise is not None
    assert set(part.csv().splitlines()[1:]) < {
        line.rpartition(",")[0] + "," for line in whole.csv().splitlines()
    }
    texts = np.arange(500).astype(str)
    assert "Stratified: 2 of 2 classes" in part.html(texts=texts)


# What is warned of


@pytest.mark.filterwarnings("ignore:column 0 of X")
def test_warnings():
    assert inspect(FEATURES, 8, LABELS).warnings == ()
    copies = inspect(np.vstack([FEATURES, FEATURES[:50]]), 8)
    assert "100 items above cosine 0.995 (all searched; 50 equal to another)" in str(copies)
    longer = FEATURES * np.linspace(1, 10, 250)[:, None]
    empty = np.vstack([FEATURES, np.zeros((2, 40))])
    flat = np.eye(10)[:1] + 0.01 * RNG.normal(size=(100, 10))
    linear = DesignOptions(kernel="linear")
    raw = DesignOptions(kernel="linear", normalize=False)
    for X, k, y, options, words in (
        (empty, 8, None, None, "2 items with only zeros"),
        (empty, 8, None, linear, "never drawn by a linear kernel"),
        (np.eye(100), 2, None, linear, "near-uniform kernel"),
        (flat, 8, None, linear, "8 times the kernel's effective rank"),
        (longer, 8, None, raw, "norms dominate"),
        (FEATURES, 4, LABELS, None, "5 classes and k = 4"),
        (FEATURES, 8, np.append(LABELS[:-1], "alone"), None, "single item"),
    ):
        found = inspect(X, k, y, options).warnings
        assert any(re.search(words, each) for each in found), words
    assert not any("near-uniform" in each for each in inspect(longer, 1, options=linear).warnings)


def test_rows_that_differ_beside_a_large_column_are_no_duplicates():
    """A time in nanoseconds is 1e18: all else is small beside it, and tells items apart."""
    time = np.full(200, 1.7e18)
    X = np.column_stack([time, RNG.normal(size=(200, 3))])
    again = np.vstack([X, X[:20]])
    for given in (again, sparse.csr_array(again)):
        assert inspect(given, 2, options=DesignOptions(standardize=True)).data.equal == 20


@pytest.mark.parametrize("k", [1, 2])
def test_items_that_are_all_alike(k):
    """No kernel tells them apart, and none has a scale."""
    found = inspect(np.ones((9, 3)), k, np.arange(9) > 0)
    assert found.advice.name == "Stratified"
    assert found.batches[1].noise is None  # nothing varies
    assert found.data.dimension == 0
    assert "noise" in str(found)
    found.html()


# The command


def test_one_screen(folder):
    result = run("inspect features.npy --labels y.npy -k 8")
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    lines = result.stdout.splitlines()
    assert len(lines) <= 40
    assert max(len(line) for line in lines if not line.startswith("  dmsgd")) <= 80
    assert "features.npy: 250 items x 40, 5 classes of 5 to 150" in result.stdout
    assert re.search(r"classes +! 30 : 1, as uneven as 3 equal classes", result.stdout)
    assert re.search(r"dimension +\d+ effective", result.stdout)
    assert re.search(r"^class \(items\) +shuffle Stratified Stratified$", result.stdout, re.M)
    assert re.search(r"^e \(5\) +0\.16 +1\.6 +10$", result.stdout, re.M)
    for row in ("items seen per epoch", "noise", "equivalent random batch"):
        assert re.search(rf"^{row} .*\d", result.stdout, re.M), row
    assert "Use Stratified: class a has 30 times the items of class e" in result.stdout
    assert sorted(os.listdir(folder)) == ["features.npy", "y.npy"]


def test_large_numbers_are_written_out():
    y = np.repeat(["common", "rare"], [1190, 10])
    found = inspect(np.random.default_rng(0).normal(size=(1200, 12)), 300, y)
    assert re.search(r"^common \(1,190\) +298 +290 +0.97$", str(found), re.M)
    assert "e+" not in str(found) + found.html()


def test_all_classes_are_shown_up_to_two_dozen(folder):
    for count in (24, 30):
        np.save("y.npy", np.arange(250) % count)
        shown = run("inspect features.npy --labels y.npy -k 8").stdout
        assert len(re.findall(r"^\d+ \(\d+\) ", shown, re.M)) == 24
        assert ("of 30 classes the commonest and the rarest" in shown) == (count == 30)


@pytest.mark.parametrize(
    ("features", "labels", "kind"),
    [
        (FEATURES, LABELS, "Stratified"),
        (FEATURES, None, "shuffled epochs"),
        (FEATURES[:, :3], None, "shuffled epochs"),
        (PLACES, None, "shuffled epochs"),
    ],
    ids=["labels", "alike", "few columns", "places"],
)
def test_what_is_recommended_makes_the_recommended_design(folder, features, labels, kind):
    k = 8
    np.save("features.npy", features)
    named = "" if labels is None else "--labels y.npy"
    result = run(f"inspect features.npy {named} -k {k}")
    assert f"Use {kind}: " in result.stdout
    design = inspect(features, k, labels).advice.design(features, labels)
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
    "--no-normalize": {"normalize": False},
    "--standardize --normalize": {"standardize": True, "normalize": True},
    "-w 0.7": {"w": 0.7},
    "-w 0.65 --normalize": {"w": 0.65, "normalize": True},
    "--kernel rbf --scale 6": {"kernel": "rbf", "scale": 6.0},
    "--kernel rbf -w 0.5 --normalize": {"kernel": "rbf", "w": 0.5, "normalize": True},
    "--target uniform": {"target": "uniform"},
    "--target uniform -w 0.3 --normalize": {"target": "uniform", "w": 0.3, "normalize": True},
}


@pytest.mark.parametrize("flags", FLAGS)
def test_the_same_flags_are_the_same_design_in_all_commands(folder, flags):
    """Predicted and drawn: the shares of `diversify` with the same arguments."""
    arguments, steps, k = FLAGS[flags], 4000, 5
    counts = arguments.get("w", 0) > 0
    X = np.array(FEATURES)
    X[LABELS == "e"] *= 0.4  # short rows of a rare class: --normalize makes a difference
    np.save("features.npy", X)
    design = dmsgd.diversify(X, k, LABELS if counts else None, **arguments)
    shares = class_shares(design, LABELS)

    found = run(f"inspect features.npy --labels y.npy -k {k} {flags} --csv items.csv --force")
    assert found.exit_code == 0, found.output
    heading = re.search(r"^class \(items\) +(.*)$", found.stdout, re.M)[1].split()
    column = heading.index("k-DPP")
    for label in "abcde":
        row = re.search(rf"^{label} \(\d+\) +(.*)$", found.stdout, re.M)[1].split()
        assert row[column] == f"{k * shares[label]:.2g}"
    table = np.genfromtxt("items.csv", delimiter=",", names=True, dtype=None, encoding="utf-8")
    np.testing.assert_allclose(table["times_uniform"], design.inclusion() * 250 / k, rtol=1e-5)

    result = run(f"sample features.npy --labels y.npy -k {k} -n {steps} {flags} -o b.npy")
    assert result.exit_code == 0, result.output
    batches = np.load("b.npy")
    np.testing.assert_array_equal(batches, design.sample(steps, seed=0))
    for label in "abcde":
        drawn = np.mean(LABELS[batches] == label, axis=1)
        error = drawn.std() / np.sqrt(steps)
        assert abs(drawn.mean() - shares[label]) < 4.5 * error + 1e-9  # one in 10^5 by chance
    assert ("did not count" in result.stdout) == (not counts)


@pytest.mark.parametrize("batches", ["k-DPP", "weighted", "stratified", "uniform"])
@pytest.mark.parametrize(
    "options",
    [
        DesignOptions(),
        DesignOptions(w=1 / 3, normalize=True),
        DesignOptions(kernel="rbf", scale=6 + 1 / 3),
        DesignOptions(w=0.5, target="uniform"),
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


@pytest.mark.parametrize("command", ["inspect features.npy -k 8 --page page.html", "demo"])
def test_an_error_of_reading_is_not_one_of_writing_the_page(folder, monkeypatch, command):
    def read(*arguments, **more):
        raise FileNotFoundError(2, "No such file or directory", "x.npy")

    monkeypatch.setattr("dmsgd.diagnostics.inspection.page_of", read)
    monkeypatch.setattr(sys.modules["dmsgd.commands.demo"], "SEEDS", 2)
    fails(command, "x.npy: No such file")
    assert not list(folder.rglob("*.html*"))
