"""`diversify`: what it says of labels without effect and of targets, and what type checkers see."""

import pickle
import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine

import dmsgd
from contracts import check_closed_forms, kdpp_law

RNG = np.random.default_rng(2)
X = RNG.normal(size=(60, 12))
Y = np.repeat(["a", "b", "c"], [40, 15, 5])


@pytest.mark.parametrize("target", [None, "uniform", np.arange(60) + 60])
def test_labels_without_effect_get_a_word(target):
    with pytest.warns(dmsgd.KernelWarning, match="ignores them.*w=0.7") as said:
        design = dmsgd.diversify(X, 4, labels=Y, target=target)
    assert said[0].filename == __file__  # the line to change is the caller's
    np.testing.assert_array_equal(
        design.inclusion(), dmsgd.diversify(X, 4, target=target).inclusion()
    )


def test_labels_that_count_need_no_word():
    dmsgd.diversify(X, 4, labels=Y, w=0.5)
    dmsgd.diagnostics.inspect(X, 3, Y, dmsgd.designs.DesignOptions(normalize=True))


def test_unused_labels_are_still_checked():
    with pytest.raises(ValueError, match="5 entries for 60 items"):
        dmsgd.diversify(X, 4, labels=Y[:5])


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("uniform", "target='uniform'"),
        (1.0 + np.arange(60), "target=60 given numbers"),
    ],
)
def test_a_design_says_its_target(target, words):
    design, plain = dmsgd.diversify(X, 4, target=target), dmsgd.diversify(X, 4)
    assert f", {words}, sampler=" in repr(design)
    assert words in design.provenance()["design"]
    assert words in dmsgd.presample(design, 3).record.design
    for text in (repr(plain), str(plain.provenance())):
        assert "target" not in text


@pytest.mark.long
def test_type_checkers_know_the_names(tmp_path):
    script = tmp_path / "use.py"
    script.write_text(
        "import numpy as np\nimport dmsgd\n"
        "X = np.eye(3)\n"
        "design: dmsgd.KDPP = dmsgd.diversify(X, 2)\n"
        "kernel: dmsgd.kernels.Kernel = dmsgd.kernels.RBF(X)\n"
        'dmsgd.diversify(X, 2, kernel="rbf", target="uniform")\n'
        "dmsgd.diversify(X, 2, target=[1.0, 2.0, 1.0])\n"
        'dmsgd.diversify(X, 2, kernel="poly")\n'
        'dmsgd.diversify(X, 2, target="even")\n'
        "dmsgd.diversify(X, 2, target=X[0])\n"
        "reveal_type(dmsgd.torch.DiverseSampler)\n"
        "reveal_type(dmsgd.diagnostics.inspect(X, 2))\n"
        "dmsgd.divrsify(X, 2)\n"
        "reveal_type(dmsgd.select(X, 2))\n"
        "reveal_type(dmsgd.select(X, 2, details=True))\n"
        "dmsgd.select(X, 2, detail=True)\n"
    )
    settings = tmp_path / "mypy.ini"  # torch's own types alone would take half a minute
    settings.write_text(
        f"[mypy]\nstrict = true\ncache_dir = {tmp_path / 'cache'}\n"
        "[mypy-torch.*,pandas.*,sympy.*]\nfollow_imports = skip\n"
    )
    command = [sys.executable, "-m", "mypy", "--config-file", str(settings), str(script)]
    found = subprocess.run(command, capture_output=True, text=True).stdout
    said = {
        int(line.split(":")[1]): line
        for line in reversed(found.splitlines())
        if f"{script.name}:" in line
    }
    assert sorted(said) == [8, 9, 11, 12, 13, 14, 15, 16], found
    assert said[11].endswith('-> dmsgd.torch.sampler.DiverseSampler"')
    assert said[12].endswith('"dmsgd.diagnostics.inspection.Inspection"')
    assert 'Module has no attribute "divrsify"' in said[13]
    assert "numpy.ndarray" in said[14]
    assert said[15].endswith('"dmsgd.selection.result.Selection"')
    assert "overload" in said[16]


# What carries the whole kernel


def test_a_column_that_is_nearly_the_whole_kernel_is_named():
    X, y = load_wine(return_X_y=True)
    for given in (X, sparse.csr_array(X)):
        with pytest.warns(dmsgd.KernelWarning, match="column 12 of X.* 98.38%.* standardize=True"):
            dmsgd.diversify(given, 8, kernel="linear", normalize=False)
        with pytest.warns(dmsgd.KernelWarning, match="99.77% of all squared distances"):
            dmsgd.diversify(given, 32)
    dmsgd.diversify(X, 8, standardize=True)  # a warning is an error here
    dmsgd.diversify(X, 8, y, 0.7, standardize=True, normalize=True)
    dmsgd.diversify(X[:, 12:], 1)
    dmsgd.diversify(X[:, :12], 8)


def test_standardize_comes_before_normalize():
    X, y = load_wine(return_X_y=True)
    asked = {"labels": y, "w": 0.5, "standardize": True, "normalize": True}
    design = dmsgd.diversify(X, 5, **asked)
    by_hand = dmsgd.features.concat(dmsgd.features.normalize(dmsgd.features.standardize(X)), y, 0.5)
    np.testing.assert_allclose(
        design.inclusion(), dmsgd.diversify(by_hand, 5).inclusion(), atol=1e-12
    )
    with pytest.raises(dmsgd.RankError, match="1 distinct"):
        dmsgd.diversify(np.ones((10, 3)), 2, standardize=True)


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_one_of_equal_items_is_drawn_uniformly(value):
    for form in (np.asarray, sparse.csr_array):
        design = dmsgd.diversify(form(np.full((6, 3), value)), 1)
        np.testing.assert_allclose(design.inclusion(), 1 / 6, rtol=1e-12)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("name", ["nystrom", "pivoted_cholesky"])
def test_spectra_are_chosen_by_name(kernel, name):
    design = dmsgd.diversify(X, 4, kernel=kernel, spectrum=name, rank=9)
    assert design.spectrum.rank == 9
    assert pickle.loads(pickle.dumps(design)).fingerprint() == design.fingerprint()
    exact = dmsgd.diversify(X, 4, kernel=kernel, spectrum="exact")
    assert exact.fingerprint() == dmsgd.diversify(X, 4, kernel=kernel).fingerprint()


@pytest.mark.parametrize("target", [None, "uniform"])
@pytest.mark.parametrize("name", ["nystrom", "pivoted_cholesky"])
def test_spectra_are_chosen_by_name_whatever_kernel_is(name, target):
    design = dmsgd.diversify(X, 4, spectrum=name, rank=9, target=target)
    assert design.kernel.startswith("Linear")
    same = dmsgd.diversify(X, 4, kernel="linear", spectrum=name, rank=9, target=target)
    assert design.spectrum.rank == same.spectrum.rank == 9
    assert design.fingerprint() == same.fingerprint()
    few = dmsgd.diversify(X, 4, spectrum=name, rank=4, target=target)
    assert (few.kernel, few.spectrum.rank) == (design.kernel, 4)


def test_rho_is_what_anneal_does():
    counts = np.abs(X)
    design = dmsgd.diversify(counts, 4, rho=0.1, standardize=True, normalize=True)
    by_hand = dmsgd.diversify(
        dmsgd.features.anneal(counts, 0.1), 4, standardize=True, normalize=True
    )
    np.testing.assert_array_equal(design.sample(50, seed=0), by_hand.sample(50, seed=0))
    other = dmsgd.diversify(counts, 4, rho=0.2, standardize=True, normalize=True)
    assert design.fingerprint() != other.fingerprint()


@pytest.mark.parametrize("make", [dmsgd.KDPP, lambda L, k: dmsgd.DPP(L)])
def test_kernels_go_to_designs_as_they_are(make):
    kernel = dmsgd.kernels.Linear(X)
    fingerprint = make(dmsgd.kernels.exact(kernel), 4).spectrum.fingerprint()
    assert make(kernel, 4).spectrum.fingerprint() == fingerprint
    L = make(X @ X.T, 4)
    np.testing.assert_allclose(L.inclusion(), make(kernel, 4).inclusion(), atol=1e-9)


# The kernel that is chosen


@pytest.mark.filterwarnings("ignore:column 12 of X")
@pytest.mark.parametrize("load", [load_iris, load_wine, load_breast_cancer, load_digits])
def test_k_alone_is_enough(load):
    X, y = load(return_X_y=True)
    for options in ({}, {"labels": y, "w": 0.7}):
        design = dmsgd.diversify(X, 32, **options)
        assert design.kernel.startswith("Linear" if load is load_digits else "RBF")
        assert design.kernel in repr(design)
        assert design.inclusion().min() > 0.1 * 32 / len(X)
        assert design.sample(2, seed=0).shape == (2, 32)


def test_linear_kernels_have_unit_rows_and_directions_to_spare():
    X = RNG.normal(size=(60, 10)) * np.linspace(1, 9, 60)[:, None]
    unit = dmsgd.KDPP(dmsgd.kernels.Linear(dmsgd.features.normalize(X)), 8)
    np.testing.assert_allclose(dmsgd.diversify(X, 8).inclusion(), unit.inclusion(), rtol=1e-9)
    assert dmsgd.diversify(X, 9).kernel.startswith("RBF")  # 12 directions would be enough
    flat = np.hstack([X[:, :5], X[:, :5] @ RNG.normal(size=(5, 5))])
    assert dmsgd.diversify(flat, 4).kernel.startswith("Linear")
    assert dmsgd.diversify(flat, 5).kernel.startswith("RBF")  # 5 directions in 10 columns


def test_rows_that_differ_can_always_be_drawn():
    apart = RNG.normal(size=(40, 5))
    near = np.repeat(apart, 5, axis=0) + 1e-7 * RNG.normal(size=(200, 5))
    for X, k in ((near, 64), (apart[:, :1], 20), (np.repeat(apart, 3, axis=0), 40)):
        batches = dmsgd.diversify(X, k).sample(20, seed=0)
        assert min(len(np.unique(X[batch], axis=0)) for batch in batches) == k
    with pytest.raises(dmsgd.RankError, match="40 distinct items; batches of 41 need 41") as error:
        dmsgd.diversify(np.repeat(apart, 3, axis=0), 41)
    assert "rbf" not in str(error.value)  # it would not help
    assert dmsgd.diversify(np.ones((2, 3)), 1).inclusion() == pytest.approx([0.5, 0.5])


@pytest.mark.parametrize("columns", [2, 20])
def test_the_size_of_features_does_not_change_the_weight_of_labels(columns):
    X, y = RNG.normal(size=(120, columns)), np.repeat([0, 1], [100, 20])
    one, other, unlabelled = (
        dmsgd.diversify(F, 8, labels, w).inclusion()
        for F, labels, w in ((X, y, 0.5), (1000 * X, y, 0.5), (X, None, 0.0))
    )
    np.testing.assert_allclose(one, other, rtol=1e-6)
    assert np.abs(one - unlabelled).max() > 0.001


@pytest.mark.parametrize("quality", [None, np.linspace(0.5, 2, 8)])
def test_labels_are_mixed_into_distances_as_into_products(quality):
    X, y, w = RNG.normal(size=(8, 2)), np.array(list("aabbbbcc")), 0.6
    design = dmsgd.diversify(X, 3, y, w, kernel="rbf", scale=1.5, quality=quality)
    S = np.exp(-((X[:, None] - X) ** 2).sum(2) / (2 * 1.5**2))
    q = np.ones(8) if quality is None else quality
    L = q[:, None] * ((1 - w) ** 2 * S + w**2 * (y[:, None] == y)) * q
    check_closed_forms(design, kdpp_law(L, 3))
    alone = dmsgd.diversify(X, 3, y, 1.0, kernel="rbf", scale=1.5)
    np.testing.assert_allclose(alone.inclusion(), [0.5, 0.5, 0.25, 0.25, 0.25, 0.25, 0.5, 0.5])


def test_features_choose_the_kernel_unless_it_is_named():
    wide, narrow = RNG.normal(size=(50, 20)), RNG.normal(size=(50, 3))
    for kernel, of_wide, of_narrow in (
        ("auto", "Linear", "RBF"),
        ("linear", "Linear", "Linear"),
        ("rbf", "RBF", "RBF"),
    ):
        design = dmsgd.diversify(wide, 3, kernel=kernel)
        other = dmsgd.diversify(narrow, 3, kernel=kernel)
        assert design.kernel.startswith(of_wide)
        assert other.kernel.startswith(of_narrow)


def test_the_kernel_of_a_target_is_the_one_that_was_chosen():
    for X, kernel in ((RNG.normal(size=(50, 20)), "Linear(50"), (RNG.normal(size=(50, 3)), "RBF(")):
        for target in ("uniform", 1.0 + np.arange(50)):
            design = dmsgd.diversify(X, 4, target=target)
            assert design.kernel.startswith(kernel)
            assert design.kernel in repr(design)


def test_a_kernel_matrix_is_no_features():
    L = np.cov(RNG.normal(size=(6, 40)))
    with pytest.warns(dmsgd.KernelWarning, match="KDPP"):
        dmsgd.diversify(L, 2)
    dmsgd.diversify(L, 2, kernel="linear")  # a warning is an error here


# Quality


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("diversity", [0.5, 0.8])
def test_quality_equals_enumeration(kernel, diversity):
    X, q = RNG.normal(size=(8, 4)), RNG.uniform(0.5, 2, size=8)
    scale = None if kernel == "linear" else 1.5
    design = dmsgd.diversify(X, 3, quality=q, diversity=diversity, kernel=kernel, scale=scale)
    unit = dmsgd.features.normalize(X)
    distances = ((X[:, None] - X) ** 2).sum(2)
    S = unit @ unit.T if kernel == "linear" else np.exp(-distances / (2 * 1.5**2))
    worth = q ** ((1 - diversity) / diversity)
    check_closed_forms(design, kdpp_law(worth[:, None] * S * worth, 3))


def test_length_as_quality_is_the_kernel_of_the_paper():
    X = RNG.normal(size=(8, 5))
    check_closed_forms(dmsgd.diversify(X, 3, quality="length"), kdpp_law(X @ X.T, 3))


def test_quality_that_is_out_of_place_is_refused():
    X, q = RNG.normal(size=(20, 5)), np.ones(20)
    for given in (
        {"quality": q, "target": "uniform"},
        {"quality": "length", "target": q},
        {"quality": "length", "normalize": False},
        {"quality": "size"},
        {"quality": -q},
        {"quality": q[1:]},
        {"diversity": 0.3},
        {"quality": q, "diversity": 0},
    ):
        with pytest.raises(ValueError, match=r"quality|diversity"):
            dmsgd.diversify(X, 3, **given)
