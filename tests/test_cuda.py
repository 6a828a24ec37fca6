"""The contracts of k-DPPs on a GPU; without one they are skipped."""

from __future__ import annotations

import numpy as np
import pytest

import dmsgd
from contracts import (
    check_closed_forms,
    check_determinism,
    check_draws,
    check_exchangeable,
    kdpp_law,
)
from dmsgd.inputs.arrays import on_host

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("no CUDA device", allow_module_level=True)

RNG = np.random.default_rng(7)
FEATURES = RNG.normal(size=(8, 4))
DUPLICATED = np.vstack([FEATURES[:4], FEATURES[:3], FEATURES[:1]])
LABELS = np.array([0, 0, 0, 1, 1, 2, 2, 2])

#: Features, k, and what else `diversify` is told.
CASES = {
    "linear": (FEATURES, 3, {}),
    "k = rank": (FEATURES, 4, {}),
    "k = 1": (FEATURES, 1, {}),
    "wide": (RNG.normal(size=(7, 20)), 4, {}),
    "k = n": (RNG.normal(size=(6, 9)), 6, {}),
    "duplicated rows": (DUPLICATED, 4, {}),
    "a zero row": (np.vstack([FEATURES[:6], np.zeros((1, 4))]), 3, {}),
    "equal eigenvalues": (np.repeat(np.eye(4), 2, axis=0), 3, {}),
    "unit rows": (FEATURES * RNG.gamma(1, 1, (8, 1)), 3, {"normalize": True}),
    "unit columns": (FEATURES * [1, 100, 1, 1], 3, {"standardize": True}),
    "labels": (FEATURES, 5, {"labels": LABELS, "w": 0.7}),
    "labels alone": (FEATURES, 3, {"labels": LABELS, "w": 1.0}),
    "rbf": (FEATURES, 3, {"kernel": "rbf", "scale": 1.5}),
    "eight decades": (RNG.normal(size=(8, 5)) * np.logspace(0, -4, 5), 3, {}),
}


def there(X, dtype=torch.float64):
    return torch.tensor(X, dtype=dtype, device="cuda")


class Host:
    """A design whose draws are brought to the host, as the contracts look at them."""

    def __init__(self, design):
        self.design = design

    def __getattr__(self, name):
        return getattr(self.design, name)

    def sample(self, *args, **options):
        return on_host(self.design.sample(*args, **options))


@pytest.fixture(params=CASES, scope="module")
def case(request):
    X, k, options = CASES[request.param]
    kernel = dmsgd.diversify(X, k=k, **options).spectrum
    V = np.asarray(kernel.vectors)
    law = kdpp_law((V * kernel.values) @ V.T, k)
    return dmsgd.diversify(there(X), k=k, **options), law


@pytest.mark.filterwarnings("ignore:column 0 of X")  # one case is about just that
def test_closed_forms_equal_enumeration(case):
    check_closed_forms(*case)


@pytest.mark.filterwarnings("ignore:column 0 of X")  # one case is about just that
def test_draws_follow_the_law(case):
    design, law = case
    check_draws(Host(design), law, size=400_000)


@pytest.mark.parametrize("k", [2, 12, 14])
def test_draws_of_middle_size_follow_the_law(k, monkeypatch):
    monkeypatch.setattr("dmsgd.samplers.cuda.sampler.is_small", lambda *about: False)
    X = np.random.default_rng(3).normal(size=(14, 14))
    check_draws(
        Host(dmsgd.diversify(there(X), k=k, kernel="linear", normalize=False)),
        kdpp_law(X @ X.T, k),
        size=100_000,
    )


@pytest.mark.parametrize("k", [12, 14])
def test_draws_in_lockstep_follow_the_law(k, monkeypatch):
    monkeypatch.setattr("dmsgd.samplers.cuda.sampler.is_small", lambda *about: False)
    monkeypatch.setattr("dmsgd.samplers.cuda.sampler.is_medium", lambda *about: False)
    X = np.random.default_rng(3).normal(size=(14, 14))
    check_draws(
        Host(dmsgd.diversify(there(X), k=k, kernel="linear", normalize=False)),
        kdpp_law(X @ X.T, k),
        size=100_000,
    )


def test_determinism():
    check_determinism(Host(dmsgd.diversify(there(FEATURES), k=3, kernel="linear", normalize=False)))
    check_determinism(
        Host(
            dmsgd.diversify(
                there(RNG.normal(size=(400, 250))), k=200, kernel="linear", normalize=False
            )
        )
    )


def test_order_within_a_row_is_exchangeable():
    check_exchangeable(
        Host(dmsgd.diversify(there(FEATURES), k=3, kernel="linear", normalize=False))
    )


def check_rows(X, k, size):
    """The rows of both, from the same eigenvectors: rounding decides once in 1e12 or so."""
    spectrum = dmsgd.diversify(X, k=k, kernel="linear", normalize=False).spectrum
    from dmsgd.spectra.cuda import CudaVectors

    moved = dmsgd.spectra.Spectrum.__new__(dmsgd.spectra.Spectrum)
    moved.__dict__.update(spectrum.__dict__)
    moved.__dict__.pop("eigenvectors", None)
    object.__setattr__(moved, "vectors", CudaVectors(there(np.asarray(spectrum.vectors))))
    ours = dmsgd.KDPP(moved, k).sample(size, seed=1)
    assert ours.is_cuda
    assert ours.dtype == torch.int64
    assert (on_host(ours) == dmsgd.KDPP(spectrum, k).sample(size, seed=1, workers=-1)).all()


@pytest.mark.parametrize(
    "k", [1, 2, 7, 8, 9, 33, 56, 57, 96, 97, 112, 113, 144, 145, 200, 256, 257, 300]
)
def test_the_same_sets_in_the_same_order_as_on_the_processor(k):
    X = np.random.default_rng(k).normal(size=(2000, 320)) / np.arange(1, 321) ** 0.5
    check_rows(X, k, 2000 if k < 100 else 200)


@pytest.mark.parametrize("largest", [384, 768, 2048, 2**31])
def test_rounds_of_any_size_decide_alike(largest, monkeypatch):
    from dmsgd.samplers.cuda import large_batches

    sizes = large_batches.BLOCKS[largest]
    monkeypatch.setattr(large_batches, "BLOCKS", {2**31: sizes})
    X = np.random.default_rng(0).normal(size=(2000, 420)) / np.arange(1, 421) ** 0.5
    check_rows(X, 401, 100)


def test_float16_is_added_up_in_float32_whatever_torch_may_do():
    matmul = torch.backends.cuda.matmul
    if not hasattr(matmul, "allow_fp16_accumulation"):
        pytest.skip("this torch never adds up in float16")
    X = np.random.default_rng(0).normal(size=(2000, 320)) / np.arange(1, 321) ** 0.5
    matmul.allow_fp16_accumulation = True
    try:
        check_rows(X, 301, 200)
    finally:
        matmul.allow_fp16_accumulation = False


@pytest.mark.parametrize("k", [50, 200, 301])
def test_batches_are_the_same_where_training_asks_for_rougher_products(k):
    X = np.random.default_rng(0).normal(size=(2000, 320)) / np.arange(1, 321) ** 0.5
    with torch.autocast("cuda", dtype=torch.bfloat16):
        check_rows(X, k, 200)


@pytest.mark.parametrize("k", [57, 200, 300])
def test_without_memory_for_rows_in_float16_sets_are_the_same(k, monkeypatch):
    monkeypatch.setattr("dmsgd.samplers.cuda.sampler.rows_to_screen", lambda V: V)
    X = np.random.default_rng(k).normal(size=(2000, 321)) / np.arange(1, 322) ** 0.5
    check_rows(X, k, 200)


@pytest.mark.parametrize("k", [57, 200, 300])
def test_near_duplicates_are_decided_as_on_the_processor(k):
    """Float16 does not tell them apart."""
    rng = np.random.default_rng(k)
    X = rng.normal(size=(400, 320)) / np.arange(1, 321) ** 0.25
    check_rows(np.vstack([X, X + 1e-5 * rng.normal(size=X.shape)]), k, 200)


@pytest.mark.parametrize("k", [100, 300])
def test_items_of_which_little_is_left_are_projected_again(k, monkeypatch):
    """With the threshold so high that most directions are made orthogonal again."""
    from dmsgd.samplers.cuda import large_batches, program, sampler

    class Often(program.Program):
        def __init__(self, files, device, **constants):
            super().__init__(files, device, **constants, CLOSE=0.3)

    monkeypatch.setattr(sampler, "program", Often)
    monkeypatch.setattr(large_batches, "program", Often)
    X = np.random.default_rng(0).normal(size=(1000, 320)) / np.arange(1, 321) ** 0.5
    check_rows(X, k, 200)


def test_set_up_on_the_card_gives_the_same_draws():
    X = np.random.default_rng(5).normal(size=(3000, 120)) * np.logspace(0, -3, 120)
    here, card = (
        dmsgd.diversify(X, k=50, kernel="linear", normalize=False),
        dmsgd.diversify(there(X), k=50, kernel="linear", normalize=False),
    )
    np.testing.assert_allclose(card.spectrum.values, here.spectrum.values, rtol=1e-10)
    same = (on_host(card.sample(1000, seed=2)) == here.sample(1000, seed=2)).all(axis=1)
    assert same.mean() > 0.995
    assert card.fingerprint() == here.fingerprint()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.int32])
def test_other_kinds_of_numbers_are_used_as_float64(dtype):
    X = there(RNG.normal(size=(200, 20)) * 3, dtype)
    card, here = (
        dmsgd.diversify(X, k=5, kernel="linear", normalize=False),
        dmsgd.diversify(X.double().cpu().numpy(), k=5, kernel="linear", normalize=False),
    )
    np.testing.assert_allclose(card.inclusion(), here.inclusion(), rtol=1e-9)
    assert card.fingerprint() == here.fingerprint()


def test_given_items_targets_and_most_likely():
    X = RNG.normal(size=(60, 10))
    card, here = (
        dmsgd.diversify(there(X), k=6, kernel="linear", normalize=False),
        dmsgd.diversify(X, k=6, kernel="linear", normalize=False),
    )
    np.testing.assert_allclose(
        card.given([3, 5]).inclusion(), here.given([3, 5]).inclusion(), atol=1e-9
    )
    assert (card.greedy_map() == here.greedy_map()).all()
    even = dmsgd.diversify(there(X), k=6, target="uniform", kernel="linear", normalize=False)
    np.testing.assert_allclose(even.inclusion(), 0.1, rtol=1e-5)
    batches = even.sample(50, seed=0)
    assert batches.is_cuda
    assert np.isfinite(even.log_prob(batches)).all()


def test_approximations_take_tensors():
    X = RNG.normal(size=(300, 3))
    kernel, there_too = dmsgd.kernels.RBF(X, 1.0), dmsgd.kernels.RBF(there(X), 1.0)
    for make in (
        lambda kernel: dmsgd.kernels.pivoted_cholesky(kernel, 40),
        lambda kernel: dmsgd.kernels.nystrom(kernel, 40),
    ):
        np.testing.assert_allclose(make(there_too).values, make(kernel).values, rtol=1e-6)


def test_samplers_and_schedules_accept_it(tmp_path):
    design = dmsgd.diversify(
        there(RNG.normal(size=(100, 12))), k=8, kernel="linear", normalize=False
    )
    draws = on_host(design.sample(5, seed=0))
    sampler = dmsgd.torch.DiverseSampler(design, steps=5, seed=0)
    assert list(sampler) == draws.ravel().tolist()
    schedule = dmsgd.presample(design, steps=5, seed=0, path=tmp_path / "draws")
    assert (schedule.sample(5) == draws).all()


def test_bad_tensors_get_one_message():
    for X, words in (
        (there([[1.0, float("nan")]]), "NaN or infinite"),
        (there(np.ones(3)), "two dimensions"),
        (there(np.ones((3, 2, 2))), r"reshape"),
        (there(np.zeros((3, 2))), "all features are zero"),
        (there(np.zeros((0, 2))), "empty"),
    ):
        with pytest.raises(ValueError, match=words):
            dmsgd.diversify(X, k=1, kernel="linear", normalize=False)
    with pytest.raises(dmsgd.RankError):
        dmsgd.diversify(there(FEATURES), k=5, kernel="linear", normalize=False)


def test_vectors_that_are_not_orthonormal_are_noticed():
    from dmsgd.samplers.cuda.sampler import cuda_sampler

    V = there(np.zeros((50, 5)))
    V[:, 0] = 1.0
    with pytest.raises(dmsgd.SamplingError, match="orthonormal"):
        cuda_sampler(V, np.ones(5), 3).sample(1, 0, 10, 1)
