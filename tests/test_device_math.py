"""What is computed on a GPU before draws, on CPU tensors: the same code."""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import pytest

import dmsgd
import stored_draws

torch = pytest.importorskip("torch")

from dmsgd.features import as_features  # noqa: E402
from dmsgd.features.cuda import Cuda, cuda_features  # noqa: E402
from dmsgd.features.maps import (  # noqa: E402  # noqa: E402
    Anneal,
    Normalize,
    NystromFeatures,
    ScaleRows,
    concat_labels,
    standardize_map,
)
from dmsgd.inputs.arrays import on_host  # noqa: E402
from dmsgd.spectra.cuda import CudaVectors  # noqa: E402
from dmsgd.spectra.decompose import settle  # noqa: E402
from dmsgd.spectra.eigenvectors import Eigenvectors  # noqa: E402
from dmsgd.spectra.rounding import Rounding  # noqa: E402

RNG = np.random.default_rng(2)
X = RNG.uniform(0.1, 1.0, size=(60, 5))
LABELS = np.arange(60) % 6


def there(array):
    return Cuda(torch.from_numpy(np.array(array)))


def native(F, array):
    return torch.from_numpy(array) if isinstance(F, Cuda) else array


@pytest.fixture(autouse=True)
def _no_gpu(monkeypatch):
    monkeypatch.setattr("dmsgd.spectra.cuda.reserve_on", lambda *about: None)
    monkeypatch.setattr("dmsgd.features.cuda.reserve_on", lambda *about: None)


MAPS = {
    "none": lambda F: F,
    "unit rows": lambda F: F.mapped(Normalize()),
    "unit columns": lambda F: F.mapped(standardize_map(F)),
    "labels": lambda F: concat_labels(F, LABELS, 0.7),
    "labels alone": lambda F: concat_labels(F, LABELS, 1.0),
    "row factors": lambda F: F.mapped(ScaleRows(np.linspace(0.5, 2, 60))),
    "power": lambda F: F.mapped(Anneal(0.5)),
    "landmarks": lambda F: F.mapped(NystromFeatures(X[:6], 0.6, np.eye(6))),
}


@pytest.mark.parametrize("name", MAPS)
def test_features_answer_as_those_in_memory(name):
    ours, known = MAPS[name](there(X)), MAPS[name](as_features(X)).to_memory()
    B = RNG.normal(size=(known.d, 3))
    items = np.array([5, 0, 59])
    as_array = lambda found: found.toarray() if hasattr(found, "toarray") else on_host(found)  # noqa: E731
    for ask in (
        lambda F: F.take(items),
        lambda F: np.concatenate([as_array(rows) for rows in F.blocks()]),
        lambda F: F.row_norms2(),
        lambda F: F.times(B),
        lambda F: F.similarities(as_array(F.take(items)), 0.9),
        lambda F: F.gram(),
        lambda F: F.gram_of(native(F, B)),
        lambda F: F.gram_times(native(F, B))[0],
        lambda F: F.to_memory().matrix,
    ):
        np.testing.assert_allclose(as_array(ask(ours)), as_array(ask(known)), atol=1e-11)
    assert ours.gram_times(native(ours, B))[1] == pytest.approx(known.gram_times(B)[1])
    assert ours.fingerprint() == known.fingerprint()


def test_zero_has_no_sign():
    zeros = np.array([[1.0, -0.0], [0.0, 2.0]])
    assert there(zeros).fingerprint() == there(zeros + 0.0).fingerprint()
    assert there(zeros).fingerprint() == as_features(zeros + 0.0).fingerprint()


def test_lengths_whose_squares_vanish_are_lengths():
    small = np.vstack([X[:3], 1e-170 * X[3:6], np.zeros((1, 5))])
    ours, known = (
        F.mapped(Normalize()).to_memory().matrix for F in (there(small), as_features(small))
    )
    np.testing.assert_allclose(ours, known, rtol=1e-14)


REFUSED = {
    "sparse": (torch.eye(3).to_sparse(), TypeError, r"X is a torch.sparse_coo .*X\.to_dense\(\)"),
    "complex": (torch.ones(3, 2, dtype=torch.complex64), TypeError, "X must hold real numbers"),
    "images": (torch.ones(3, 2, 2), ValueError, r"got shape \(3, 2, 2\); .*X\.reshape"),
    "empty": (torch.ones(0, 2), ValueError, r"X is empty: shape \(0, 2\)"),
    "missing": (torch.tensor([[1.0, torch.nan]]), ValueError, "X has 1 NaN or infinite value"),
    "too large": (torch.eye(3).double() * 1e200, ValueError, "squares overflow; rescale it"),
    "zero": (torch.zeros(3, 2), ValueError, "all features are zero"),
    "too small": (torch.eye(3).double() * 1e-170, ValueError, "squares vanish; rescale it"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_tensors_that_are_no_features_are_refused(name):
    tensor, kind, message = REFUSED[name]
    with pytest.raises(kind, match=message):
        cuda_features(tensor, "X", allow_tiny=False)


def test_a_part_may_be_zero():
    assert cuda_features(torch.zeros(3, 2), "X", allow_tiny=True).shape == (3, 2)


@pytest.mark.parametrize("shape", [(5, 3), (3, 5)])
def test_there_is_no_spectrum_of_zeros(shape):
    with pytest.raises(ValueError, match="zero"):
        there(np.zeros(shape)).spectrum()


def test_eigenvectors_answer_as_those_in_memory():
    V, U = (np.linalg.qr(RNG.normal(size=(n, 5)))[0] for n in (40, 5))
    items, every, some = np.array([7, 0, 39]), np.arange(5), np.array([3, 1])
    for ask in (
        lambda vectors: vectors.rows(items),
        lambda vectors: vectors.columns(some),
        lambda vectors: vectors.select(every),
        lambda vectors: vectors.select(some),
        lambda vectors: vectors.times(np.linspace(1, 2, 5)),
        lambda vectors: vectors.rotate(U, items),
        lambda vectors: vectors.weighted_squares(np.linspace(0, 1, 5)),
        lambda vectors: vectors.sampler_any_size(np.full(5, 0.5))(3, 4),
    ):
        ours, known = (ask(each) for each in (CudaVectors(torch.tensor(V)), Eigenvectors(V)))
        np.testing.assert_allclose(np.asarray(ours), known, atol=1e-14)


@pytest.mark.parametrize("shape", [(50, 8), (200, 20), (30, 60)])
@pytest.mark.parametrize("decades", [0, 3, 7])
def test_spectra_are_those_of_exact(shape, decades):
    F = RNG.normal(size=shape) * np.logspace(0, -decades, shape[1])
    F[[0, 9]] = 0.0
    ours, known = there(F).spectrum(), dmsgd.kernels.exact(dmsgd.kernels.Linear(F))
    assert (ours.route, ours.rank, ours.rounding) == (known.route, known.rank, known.rounding)
    np.testing.assert_allclose(ours.values, known.values, rtol=1e-8)
    V, W = np.asarray(ours.vectors), np.asarray(known.vectors)
    assert not V[[0, 9]].any()
    np.testing.assert_allclose(V.T @ V, np.eye(ours.rank), atol=1e-12)
    np.testing.assert_allclose((V * ours.values) @ V.T, (W * known.values) @ W.T, atol=1e-11)


def test_kernels_by_entries():
    kernel = dmsgd.kernels.RBF(there(X), 0.5)
    known = dmsgd.kernels.exact(dmsgd.kernels.RBF(X, 0.5))
    ours = dmsgd.kernels.exact(kernel)
    assert ours.route == known.route
    few = min(ours.rank, known.rank, 40)
    np.testing.assert_allclose(ours.values[:few], known.values[:few], rtol=1e-6)


def test_pivoted_cholesky_is_that_of_memory():
    ours = dmsgd.kernels.pivoted_cholesky(dmsgd.kernels.RBF(X, 0.5), rank=20)
    from dmsgd.kernels.pivoted_cholesky import factor

    F, pivots = factor(dmsgd.kernels.RBF(there(X), 0.5), 30, 0.0, 1, 8)
    G, known = factor(dmsgd.kernels.RBF(X, 0.5), 30, 0.0, 1, 8)
    assert (pivots == known).all()
    np.testing.assert_allclose(F.numpy(), G, atol=1e-7)
    assert ours.rank == 20


def test_one_basis_where_eigenvalues_are_equal():
    V = np.linalg.qr(RNG.normal(size=(40, 12)))[0]
    values = np.array([5, 5, 5, 4, 3, 3, 2, 1, 1, 1, 1, 0.5])
    ours, known = torch.from_numpy(V.copy()), V.copy()
    settle(values, ours, Rounding(1.0, 40))
    settle(values, known, Rounding(1.0, 40))
    np.testing.assert_allclose(ours.numpy(), known, atol=1e-13)


def test_draws_are_those_that_were_stored(monkeypatch):
    """Set up by tensors, drawn by the sampler in memory."""
    monkeypatch.setattr(
        CudaVectors, "sampler", lambda self, *about: Eigenvectors(np.asarray(self)).sampler(*about)
    )
    assert stored_draws.draws(there) == json.loads(stored_draws.FILE.read_text())


@pytest.mark.parametrize(("most", "largest", "twice"), [(232_448, 256, 144), (166_912, 208, 112)])
def test_batches_of_middle_size_fit_into_shared_memory(most, largest, twice):
    """That of an H100 and of an A100, which have another KiB in all."""
    from dmsgd.samplers.cuda.sampler import MOST, blocks_at_once, medium_bytes

    card = SimpleNamespace(shared_memory_per_multiprocessor=most + 1024)
    assert max(k for k in range(57, MOST + 1) if medium_bytes(k) <= most) == largest
    assert max(k for k in range(57, MOST + 1) if blocks_at_once(k, card) == 2) == twice


@pytest.mark.parametrize(("free", "kind"), [(8_000, torch.float16), (7_999, torch.float64)])
def test_rows_are_screened_in_float16_where_memory_allows(free, kind, monkeypatch):
    from dmsgd.samplers.cuda.sampler import rows_to_screen

    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (free - 3_000, 10_000))
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda device: 5_000)
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda device: 2_000)
    V = torch.from_numpy(np.linalg.qr(RNG.normal(size=(100, 20)))[0].copy())
    rows = rows_to_screen(V)
    assert rows.dtype == kind
    scale = 2.0**15 if kind == torch.float16 else 1.0
    np.testing.assert_allclose(rows.double() / scale, V, rtol=2.0**-11, atol=2.0**-40)


def ask(setting, value):
    """Ask torch for TF32 in one of three ways; return what it says of it then, and before."""
    matmul = torch.backends.cuda.matmul
    if setting == "set_float32_matmul_precision":
        before = torch.get_float32_matmul_precision()
        torch.set_float32_matmul_precision(value)
        return torch.get_float32_matmul_precision, before
    if not hasattr(matmul, setting):
        pytest.skip(f"this torch has no {setting}")
    before = getattr(matmul, setting)
    setattr(matmul, setting, value)
    return lambda: getattr(matmul, setting), before


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("fp32_precision", "tf32"),
        ("fp32_precision", "ieee"),
        ("allow_tf32", True),
        ("set_float32_matmul_precision", "medium"),
    ],
)
def test_similarities_are_in_float32_whatever_training_asks_for(setting, value):
    """Settings of torch are as before afterwards, whichever of its ways a user has taken."""
    from dmsgd.selection.cuda import CudaRows

    def similarities():
        rows = CudaRows(torch.from_numpy(X.astype(np.float32)), None, 0.3)
        low, weights = torch.zeros(60), torch.arange(60.0)
        return [*rows.row(3).tolist(), *rows.gained(None, None, low, 1.0, weights).tolist()]

    usual = similarities()
    says, before = ask(setting, value)
    try:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            found = similarities()
        assert says() == value
    finally:
        ask(setting, before)
    assert found == usual
    exact = np.exp(-((X[:, None] - X) ** 2).sum(-1) / 0.3)
    np.testing.assert_allclose(found[:60], exact[3], rtol=1e-5)
    np.testing.assert_allclose(found[60:], exact @ np.arange(60), rtol=1e-5)
