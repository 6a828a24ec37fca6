"""Exact on every processor: what rounding does to b, what the user is told, and who is who.

The law itself is held against enumeration in the contracts; here are its edges.
"""

import json
import os
import platform
import subprocess
import sys
import warnings
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from scipy import sparse

import dmsgd
import precise
from dmsgd.features.blocks import Blocks
from dmsgd.features.readers import NpyReader

RNG = np.random.default_rng(8)


def orthonormal(n, d):
    return np.linalg.qr(RNG.normal(size=(n, d)))[0]


def conditioned(decades, n=30, d=8):
    """An (n, d) matrix with singular values from 1 to 10^-decades."""
    return (orthonormal(n, d) * np.logspace(0, -decades, d)) @ orthonormal(d, d).T


def with_row(factor):
    X = RNG.normal(size=(30, 8))
    X[7] *= factor
    return X


def with_near_copy(gap):
    X = RNG.normal(size=(8, 8))
    X[1] = X[0] * (1 + gap * RNG.normal(size=8))
    return X


FEW = RNG.normal(size=(30, 3))

EDGES = {
    "six eigenvalues around the old cut-off": (
        orthonormal(30, 8) * np.r_[1, np.full(6, 1.05e-6), 0.99e-6],
        5,
    ),
    "condition 1e6": (conditioned(6), 7),
    "condition 1e7.5": (conditioned(7.5), 8),
    "condition 1e6, more columns than rows": (conditioned(6).T, 7),
    "condition 1e7.5, more columns than rows": (conditioned(7.5).T, 8),
    "one row times 1e7": (with_row(1e7), 8),
    "features of weight 1e-6": (dmsgd.features.concat(FEW, np.arange(30) % 4, 1 - 1e-6), 6),
    "labels of weight 1e-6": (dmsgd.features.concat(FEW, np.arange(30) % 4, 1e-6), 6),
    "a near copy at 1e-5": (with_near_copy(1e-5), 8),
}

#: Every way in which features come to a spectrum.
FORMS = {"dense": np.asarray, "sparse": sparse.csr_array}


def streamed(X):
    import dask.array

    return dask.array.from_array(np.asarray(X), chunks=(7, -1))


@pytest.mark.filterwarnings("ignore:column 0 of X")  # one case is about just that
@pytest.mark.parametrize("form", [*FORMS, "in blocks"])
@pytest.mark.parametrize("name", EDGES)
def test_small_eigenvalues_are_resolved(name, form):
    X, k = EDGES[name]
    design = dmsgd.diversify(
        FORMS.get(form, streamed)(X), k, kernel="linear", normalize=False
    )  # a warning is an error here
    np.testing.assert_allclose(design.inclusion(), precise.inclusion(X, k), atol=1e-9)
    assert len(set(design.sample(1, seed=0)[0])) == k


def routes(F, folder):
    """The kernel F Fᵀ in every form that has a route of its own to its spectrum, by name."""
    import dask.array

    wide = np.hstack([F, np.zeros((F.shape[0], F.shape[0]))])
    np.save(folder / "f.npy", F)
    store = NpyReader(np.load(folder / "f.npy", mmap_mode="r"))
    return {
        "dual": F,
        "dual, sparse": sparse.csr_array(F),
        "primal": wide,
        "primal, sparse": sparse.csr_array(wide),
        "in blocks, file": Blocks(store),
        "in blocks, Dask": dask.array.from_array(F, chunks=(7, -1)),
        "entries": dmsgd.kernels.Precomputed(F @ F.T),
    }


def told(kernel, k):
    """Return the design, or None if there is none, and what the user is told ("" for nothing)."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            design = dmsgd.KDPP(kernel, k)
        except dmsgd.RankError as error:
            return None, str(error)
    return design, str(caught[0].message) if caught else ""


@pytest.mark.parametrize("decades", [0, 2, 3, 4, 6, 8, 10, 12, 14, 15])
@pytest.mark.parametrize("shape", ["rotated", "diagonal"])
def test_every_route_is_right_to_1e_9_or_warns(decades, shape, tmp_path):
    k = 5
    F = conditioned(decades) if shape == "rotated" else np.eye(30, 8) * np.logspace(0, -decades, 8)
    b = precise.inclusion(F, k)
    for name, form in routes(F, tmp_path).items():
        kernel = form if isinstance(form, dmsgd.kernels.Kernel) else dmsgd.kernels.Linear(form)
        design, message = told(kernel, k)
        if design is None:
            assert decades > 12, name
            assert "independent direction" in message, name
        else:
            off = np.abs(design.inclusion() - b).max()
            assert off < 1e-9 or "rounding may move" in message, (name, off)
            assert decades > 8 or name == "entries" or not message, name


@pytest.mark.parametrize("decades", range(16))
@pytest.mark.parametrize("k", [4, 7, 8])
def test_no_loss_above_1e_9_is_silent(decades, k):
    X = conditioned(decades)
    design, message = told(dmsgd.kernels.Linear(X), k)
    if design is None:
        assert decades == 15
        assert "independent direction" in message
        return
    off = np.abs(design.inclusion() - precise.inclusion(X, k)).max()
    assert (
        off <= design.spectrum.inclusion_error(k) + 1e-10
    )  # what a Gram matrix loses at its limit
    assert off < 1e-9 or "rounding may move" in message
    assert decades > 7 or not message


@pytest.mark.parametrize("k", [3, 8, 12, 13, 15])
@pytest.mark.parametrize("scale", [0.3, 1.2])
def test_rbf_on_a_line(k, scale):
    X = np.linspace(-3, 3, 25)[:, None]
    design, message = told(dmsgd.kernels.RBF(X, scale), k)
    if design is None:
        assert "independent direction" in message
        return
    off = np.abs(design.inclusion() - precise.rbf_inclusion(X, scale, k)).max()
    assert off <= 10 * design.spectrum.inclusion_error(k) + 1e-12
    assert off < 1e-9 or "rounding may move" in message


def test_random_matrices_of_deficient_rank():
    """Eigenvalues just above eps whose F u is exactly 0 divided by zero."""
    rng = np.random.default_rng(0)
    for _ in range(500):
        n, d = rng.integers(3, 30), rng.integers(2, 12)
        rank = int(rng.integers(1, min(n, d)))
        X = rng.integers(-3, 4, (n, rank)) @ rng.integers(-3, 4, (rank, d))
        if X.any():
            true = np.linalg.matrix_rank(X)
            assert dmsgd.kernels.exact(dmsgd.kernels.Linear(X)).rank == true
            assert (
                dmsgd.kernels.exact(dmsgd.kernels.Linear(sparse.csr_array(X.astype(float)))).rank
                == true
            )


def test_a_dpp_of_any_size_says_so_too():
    with pytest.warns(dmsgd.KernelWarning, match="rounding may move"):
        dmsgd.DPP(dmsgd.kernels.Linear(1e13 * conditioned(13)))


# -- scale ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("factor", [2.0**-380, 2.0**-100, 2.0**100, 2.0**500])
def test_scale_does_not_matter(factor):
    X = RNG.normal(size=(40, 6))
    for make in (
        lambda X: dmsgd.diversify(X, 4, kernel="linear", normalize=False),
        lambda X: dmsgd.designs.SwapChain(dmsgd.kernels.Linear(X), 4),
    ):
        same = make(X).sample(50, seed=0) == make(factor * X).sample(50, seed=0)
        assert same.all()
    for given in ({"target": "uniform"}, {"kernel": "rbf"}, {"normalize": True}):
        one, other = (dmsgd.diversify(Z, 4, **given).inclusion() for Z in (X, factor * X))
        np.testing.assert_allclose(one, other, rtol=1e-9)


@pytest.mark.parametrize("factor", [1e-155, 1e-162, 1e-300])
@pytest.mark.parametrize("form", FORMS)
def test_values_whose_squares_vanish_are_refused(factor, form):
    X = FORMS[form](factor * RNG.normal(size=(40, 6)))
    for call in (
        dmsgd.kernels.Linear,
        dmsgd.kernels.RBF,
        lambda X: dmsgd.diversify(X, 4, target="uniform", kernel="linear", normalize=False),
    ):
        with pytest.raises(ValueError, match="so small that their squares vanish; rescale it"):
            call(X)


def test_so_they_are_in_blocks():
    with pytest.raises(ValueError, match="so small that their squares vanish"):
        dmsgd.diversify(
            streamed(1e-162 * RNG.normal(size=(40, 6))), 4, kernel="linear", normalize=False
        )
    X = RNG.normal(size=(40, 6))
    X[:7] *= 1e-162  # a block of its own: small beside the others, which is no mistake
    assert dmsgd.diversify(
        streamed(X), 4, kernel="linear", normalize=False
    ).inclusion().sum() == pytest.approx(4)


@pytest.mark.parametrize("form", FORMS)
def test_short_rows_are_normalised(form):
    X = RNG.normal(size=(6, 4)) * np.array([1, 1e-100, 1e-150, 1e-170, 1e-310, 0])[:, None]
    unit = dmsgd.features.normalize(FORMS[form](X))
    lengths = np.linalg.norm(unit.toarray() if sparse.issparse(unit) else unit, axis=1)
    np.testing.assert_allclose(lengths, [1, 1, 1, 1, 1, 0], rtol=1e-9)


# -- prescribe -----------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
def test_targets_of_badly_conditioned_features(form):
    X = conditioned(4.5, 40, 6)
    target = RNG.uniform(0.7, 1.3, 40)
    kernel = dmsgd.targets.prescribe(dmsgd.kernels.Linear(FORMS[form](X)), 6, target)
    b = dmsgd.KDPP(kernel, 6).inclusion()
    np.testing.assert_allclose(b, target * 6 / target.sum(), rtol=1e-6)


@pytest.mark.parametrize("form", [*FORMS, "in blocks"])
def test_the_lengths_of_rows_are_free(form):
    X = RNG.normal(size=(40, 6))
    long = X.copy()
    long[7] *= 1e7
    one, other = (
        dmsgd.diversify(
            FORMS.get(form, streamed)(Z), 4, target="uniform", kernel="linear", normalize=False
        )
        for Z in (X, long)
    )
    np.testing.assert_allclose(other.inclusion(), 0.1, rtol=1e-6)
    batches = one.sample(20, seed=0)
    np.testing.assert_allclose(other.log_prob(batches), one.log_prob(batches), atol=1e-4)


def test_so_they_are_for_matrices():
    X = RNG.normal(size=(30, 2))
    L = dmsgd.kernels.RBF(X, 0.5).block(range(30), range(30))
    scale = 10.0 ** RNG.uniform(-4, 4, 30)
    kernel = dmsgd.targets.prescribe(
        dmsgd.kernels.Precomputed(L * np.outer(scale, scale)), 5, "uniform"
    )
    np.testing.assert_allclose(dmsgd.KDPP(kernel, 5).inclusion(), 5 / 30, rtol=1e-6)


@pytest.mark.parametrize(("n", "k", "scale"), [(300, 20, 0.1), (100, 10, 0.3), (300, 20, 0.003)])
@pytest.mark.filterwarnings("ignore:rounding may move")
def test_rbf_targets_in_one_dimension(n, k, scale):
    kernel = dmsgd.kernels.RBF(np.sort(np.random.default_rng(0).random(n))[:, None], scale)
    b = dmsgd.KDPP(
        dmsgd.kernels.exact(dmsgd.targets.prescribe(kernel, k, "uniform")), k
    ).inclusion()
    np.testing.assert_allclose(b, k / n, rtol=2e-6)


# -- spectra made by hand, and memory ------------------------------------------------------------


def test_a_spectrum_made_by_hand_needs_no_more_than_its_numbers():
    V = orthonormal(9, 3)
    design = dmsgd.KDPP(dmsgd.spectra.Spectrum([3, 2, 1], V.tolist()), 2)
    same = dmsgd.KDPP(dmsgd.kernels.Linear(V * np.sqrt([3.0, 2.0, 1.0])), 2)
    np.testing.assert_allclose(design.inclusion(), same.inclusion(), rtol=1e-12)


@pytest.mark.parametrize(
    ("values", "vectors", "message"),
    [
        ([2, -1, 1], orthonormal(9, 3), "positive"),
        ([2, np.nan, 1], orthonormal(9, 3), "nan for eigenvector 1"),
        ([1, 2, 3], orthonormal(9, 3), "largest first"),
        ([], np.zeros((9, 0)), "one number per eigenvector"),
        ([2, 1, 1], orthonormal(9, 2), "one column for each of the 3 values"),
        ([2, 1, 1], RNG.normal(size=(9, 3)), "orthonormal, but VᵀV is off by"),
        ([2, 1, 1], np.full((9, 3), np.nan), "vectors has 27 NaN"),
        ([2, 1, 1], np.ones((9, 3)), "orthonormal"),
    ],
)
@pytest.mark.parametrize("more", [{}, {"route": "x"}, {"data": "x"}, {"tol": 0.5}])
def test_a_spectrum_made_by_hand_is_checked(values, vectors, message, more):
    with pytest.raises(ValueError, match=message):
        dmsgd.spectra.Spectrum(values, vectors, **more)


def test_so_is_one_that_is_made_of_another():
    spectrum = dmsgd.kernels.exact(dmsgd.kernels.Linear(RNG.normal(size=(9, 3))))
    assert replace(spectrum).fingerprint() == spectrum.fingerprint()
    with pytest.raises(ValueError, match="orthonormal"):
        replace(spectrum, vectors=np.ones((9, 3)))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("route", 3), ("tol", "x"), ("tol", 1.0), ("tol", np.nan), ("trace_error", "x"),
        ("trace_error", -1), ("rounding", 3), ("rounding", None), ("kernel", 3), ("data", None),
        ("method", object()),
    ],
)  # fmt: skip
def test_so_is_all_else_that_a_spectrum_is_given(name, value):
    with pytest.raises((TypeError, ValueError), match=name):
        dmsgd.spectra.Spectrum([2, 1], np.eye(3)[:, :2], **{name: value})


@pytest.mark.parametrize("name", ["kernel", "data", "method"])
def test_what_a_spectrum_says_of_its_kernel_is_text(name):
    with pytest.raises(TypeError, match=name):
        dmsgd.spectra.Spectrum([3, 2, 1], orthonormal(9, 3), **{name: 3})


def test_the_identity_kernel_is_guarded_like_any_other(monkeypatch):
    monkeypatch.setenv("DMSGD_MEMORY", "10MB")
    with pytest.raises(MemoryError, match=r"2000 items in 2000 strata.*Uniform and Stratified"):
        dmsgd.kernels.exact(dmsgd.kernels.Linear(sparse.eye_array(2000)))


# -- the same identity everywhere ----------------------------------------------------------------


def factorial():
    """One-hot of two factors, balanced: every eigenvalue but the first is tied with others."""
    first, second = np.divmod(np.arange(60) % 30, 6)
    return np.hstack([np.eye(5)[first], np.eye(6)[second]]) + 0.0


def designs():
    """Designs whose numbers are rounded results, by name."""
    rng = np.random.default_rng(5)
    X, y = rng.normal(size=(70, 6)), rng.integers(0, 3, 70)
    rbf = dmsgd.kernels.RBF(X)
    grid = np.stack(np.meshgrid(np.arange(6.0), np.arange(6.0)), -1).reshape(-1, 2)
    return {
        "linear": dmsgd.diversify(X, 4, kernel="linear", normalize=False),
        "rbf": dmsgd.diversify(X, 4, kernel="rbf"),
        "uniform": dmsgd.diversify(X, 4, target="uniform", kernel="linear", normalize=False),
        "given": dmsgd.diversify(X, 4, target=1 + y, kernel="linear", normalize=False),
        "rbf target": dmsgd.diversify(X, 4, kernel="rbf", target="uniform"),
        "nystrom": dmsgd.KDPP(dmsgd.kernels.nystrom(rbf, 30), 4),
        "pivots": dmsgd.KDPP(dmsgd.kernels.nystrom(rbf, 30, "pivots"), 4),
        "cholesky": dmsgd.KDPP(dmsgd.kernels.pivoted_cholesky(rbf, 30), 4),
        "coreset": dmsgd.KDPP(dmsgd.kernels.coreset(rbf, 20), 4),
        "ties": dmsgd.KDPP(dmsgd.kernels.Linear(factorial()), 7),
        "ties, sparse": dmsgd.KDPP(
            dmsgd.kernels.exact(dmsgd.kernels.Linear(sparse.csr_array(factorial()))), 7
        ),
        "ties, in blocks": dmsgd.KDPP(
            dmsgd.kernels.exact(dmsgd.kernels.Linear(streamed(factorial()))), 7
        ),
        "ties, more columns": dmsgd.KDPP(
            dmsgd.kernels.exact(dmsgd.kernels.Linear(factorial()[:30].T)), 7
        ),
        "ties, rbf": dmsgd.KDPP(dmsgd.kernels.RBF(grid, 1.0), 7),
    }


@cache
def identities(draws=200):
    """Fingerprint and draws of each design, as JSON."""
    return {
        name: [design.fingerprint(), design.sample(draws, seed=1).tolist()]
        for name, design in designs().items()
    }


#: Other BLAS kernels than this machine's own, on processors that run them.
CORES = {"x86_64": ["Prescott", "Haswell"], "aarch64": ["ARMV8", "NEOVERSEN1"]}


@pytest.mark.long
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("core", CORES.get(platform.machine(), []))
def test_fingerprints_and_draws_are_the_same_under_another_blas(core, threads):
    asked = {"OPENBLAS_CORETYPE": core, "OPENBLAS_NUM_THREADS": str(threads)}
    code = "import json, test_guarantees as t; print(json.dumps(t.identities()))"
    run = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | asked | {"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    here, there = identities(), json.loads(run.stdout.splitlines()[-1])
    assert {name: found[0] for name, found in there.items()} == {
        name: found[0] for name, found in here.items()
    }
    differing = {
        name: int(np.any(np.array(here[name][1]) != np.array(there[name][1]), axis=1).sum())
        for name in here
    }
    assert sum(differing.values()) == 0, differing


def test_what_is_asked_is_part_of_the_identity():
    X = RNG.normal(size=(70, 6))
    rbf, linear = dmsgd.kernels.RBF(X), dmsgd.kernels.Linear(X)
    spectra = [
        dmsgd.kernels.exact(rbf),
        dmsgd.kernels.exact(rbf, tol=1e-3),
        dmsgd.kernels.exact(linear),
        dmsgd.kernels.nystrom(rbf, 30),
        dmsgd.kernels.nystrom(rbf, 31),
        dmsgd.kernels.nystrom(rbf, 30, seed=1),
        dmsgd.kernels.nystrom(rbf, 30, "pivots"),
        dmsgd.kernels.nystrom(rbf, range(30)),
        dmsgd.kernels.nystrom(rbf, range(1, 31)),
        dmsgd.kernels.nystrom(linear, 30),
        dmsgd.kernels.pivoted_cholesky(rbf, 30),
        dmsgd.kernels.pivoted_cholesky(rbf, 31),
        dmsgd.kernels.pivoted_cholesky(rbf, 30, seed=1),
        dmsgd.kernels.pivoted_cholesky(rbf, tol=0.1),
        dmsgd.kernels.coreset(rbf, 20),
        dmsgd.kernels.coreset(rbf, 21),
        dmsgd.kernels.coreset(rbf, 20, seed=1),
        dmsgd.kernels.exact(dmsgd.kernels.RBF(X, rbf.scale)),
        *(dmsgd.kernels.exact(dmsgd.targets.prescribe(linear, k, "uniform")) for k in (3, 4)),
        dmsgd.kernels.exact(dmsgd.targets.prescribe(linear, 4, np.arange(1, 71))),
        dmsgd.kernels.exact(dmsgd.targets.prescribe(linear, 4, "uniform", tol=1e-4)),
        dmsgd.kernels.exact(dmsgd.targets.prescribe(rbf, 4, "uniform")),
        dmsgd.kernels.exact(dmsgd.targets.prescribe(dmsgd.kernels.exact(linear), 4, "uniform")),
        dmsgd.spectra.Spectrum([1.0], orthonormal(70, 1)),
    ]
    assert len({spectrum.fingerprint() for spectrum in spectra}) == len(spectra)


def test_rounding_is_no_part_of_the_identity():
    spectrum = dmsgd.kernels.nystrom(dmsgd.kernels.RBF(RNG.normal(size=(70, 6))), 30)
    rounded = replace(spectrum, values=spectrum.values * (1 + 1e-15), route="another way")
    assert rounded.fingerprint() == spectrum.fingerprint()


def test_tied_eigenvectors_do_not_depend_on_how_they_were_found():
    """Any rotation of a tied eigenspace is settled into the same basis."""
    from dmsgd.spectra.decompose import settle
    from dmsgd.spectra.rounding import Rounding

    V = orthonormal(20, 6)
    values = np.array([5.0, 3.0, 3.0, 3.0, 1.0, 1.0])
    turned = V.copy()
    turned[:, 1:4] = V[:, 1:4] @ orthonormal(3, 3)
    turned[:, 4:] = V[:, 4:] @ orthonormal(2, 2)
    for vectors in (V, turned):
        settle(values, vectors, Rounding(1.0, 20))
    np.testing.assert_allclose(turned[:, 1:], V[:, 1:], atol=1e-12)
    np.testing.assert_allclose(V.T @ V, np.eye(6), atol=1e-13)


@pytest.mark.parametrize("shape", [(150, 150), (400, 90)], ids=str)
def test_a_canonical_basis_is_that_of_its_span(shape):
    from dmsgd.spectra.decompose import canonical_basis

    basis = np.linalg.qr(np.random.default_rng(9).normal(size=shape))[0]
    other = basis @ orthonormal(shape[1], shape[1])
    found = canonical_basis(basis)
    np.testing.assert_allclose(canonical_basis(other), found, atol=1e-11)
    np.testing.assert_allclose(found @ found.T, basis @ basis.T, atol=1e-12)
