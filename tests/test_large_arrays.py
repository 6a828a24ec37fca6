"""Arrays in memory that are too large for a copy: exact draws without an eigenvector in memory."""

from __future__ import annotations

import pickle
import tracemalloc

import numpy as np
import numpy.typing as npt
import pytest

import dmsgd
from contracts import check_closed_forms, check_determinism, check_draws, kdpp_law
from dmsgd.compiled.microkernels import GROUP
from dmsgd.features.blocks import Blocks, in_blocks
from dmsgd.features.convert import as_features
from dmsgd.spectra.eigenvectors import Projected

LABELS = np.random.default_rng(12).integers(4, size=200)


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every array is large, and read in blocks of 8 KB."""
    monkeypatch.setattr("dmsgd.features.convert.is_large", lambda raw: raw.dtype.kind in "fiu")
    monkeypatch.setattr("dmsgd.features.readers.BLOCK_BYTES", 2**13)


def rows(n: int, d: int, kind: npt.DTypeLike = np.float32) -> npt.NDArray[np.floating]:
    """Rows of all lengths, one of them zero, one twice."""
    rng = np.random.default_rng([n, d])
    X = (rng.normal(size=(n, d)) * rng.exponential(size=(n, 1))).astype(kind)
    X[n // 2], X[n // 3] = 0, X[0]
    return X


@pytest.mark.usefixtures("large")
@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("k", [1, 2, 3])
def test_the_law_equals_enumeration(k: int, kind: npt.DTypeLike) -> None:
    X = rows(7, 3, kind)
    design = dmsgd.diversify(X, k, kernel="linear", normalize=False)
    assert isinstance(design.spectrum.vectors, Projected)
    law = kdpp_law(X.astype(float) @ X.T.astype(float), k)
    check_closed_forms(design, law)
    check_draws(design, law, size=20_000 if (k, kind) == (3, np.float32) else 4000)
    check_determinism(dmsgd.diversify(rows(300, 20, kind), k, kernel="linear", normalize=False))


def test_the_law_with_labels_and_a_target_equals_enumeration(
    request: pytest.FixtureRequest,
) -> None:
    X, labels = rows(7, 3), [0, 1, 1, 0, 2, 2, 1]
    asked = {"normalize": True, "target": "uniform", "kernel": "linear"}
    memory = dmsgd.diversify(X, 2, labels, 0.4, **asked)
    request.getfixturevalue("large")
    design = dmsgd.diversify(X, 2, labels, 0.4, normalize=True, kernel="linear")
    assert isinstance(design.spectrum.vectors, Projected)
    given = X.astype(float)
    lengths = np.linalg.norm(given, axis=1, keepdims=True)
    F = np.hstack([0.6 * given / np.where(lengths > 0, lengths, 1), 0.4 * np.eye(3)[labels]])
    law = kdpp_law(F @ F.T, 2)
    check_closed_forms(design, law)
    check_draws(design, law, size=4000)
    even = dmsgd.diversify(X, 2, labels, 0.4, **asked)
    assert isinstance(even.spectrum.vectors, Projected)
    V = np.asarray(even.spectrum.vectors)
    L = V * even.spectrum.values @ V.T
    check_closed_forms(even, kdpp_law(L, 2))
    np.testing.assert_allclose(even.inclusion(), memory.inclusion(), rtol=1e-6)
    different = (even.sample(1000, seed=0) != memory.sample(1000, seed=0)).any(axis=1)
    assert different.sum() <= 1  # where a random number falls between two roundings


#: What is read becomes float64, however many rows there are: other types meet one shape.
SHAPES = [(GROUP - 10, 9), (8 * GROUP - 40, 32), (200, 37)]


@pytest.mark.parametrize(
    ("n", "d", "kind"),
    [
        pytest.param(
            *shape,
            kind,
            marks=() if kind == np.float32 or shape == SHAPES[-1] else pytest.mark.long,
        )
        for shape in SHAPES
        for kind in (np.float32, np.float64, np.int8)
    ],
)
@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("w", [0.0, 0.3])
def test_draws_are_those_of_eigenvectors_in_memory(
    n: int, d: int, w: float, normalize: bool, kind: npt.DTypeLike, request: pytest.FixtureRequest
) -> None:
    X, labels = rows(n, d, kind), LABELS[:n] if w else None
    X[:, 0] += 1
    kept = [dmsgd.diversify(X, k, labels, w, normalize=normalize, kernel="linear") for k in (1, 5)]
    request.getfixturevalue("large")
    for known in kept:
        made = dmsgd.diversify(X, known.k, labels, w, normalize=normalize, kernel="linear")
        assert isinstance(made.spectrum.vectors, Projected)
        np.testing.assert_allclose(made.inclusion(), known.inclusion(), atol=1e-12)
        different = (made.sample(200, seed=2) != known.sample(200, seed=2)).any(axis=1)
        assert different.sum() <= 1  # where a random number falls between two roundings
        assert made.fingerprint() == known.fingerprint()
        again = pickle.loads(pickle.dumps(made))
        np.testing.assert_array_equal(again.sample(5, seed=1), made.sample(5, seed=1))


@pytest.mark.usefixtures("large")
def test_large_batches_and_batches_of_the_whole_rank() -> None:
    X = rows(400, 80)
    design = dmsgd.diversify(X, 80, kernel="linear", normalize=False)
    batches = design.sample(20, seed=0)
    assert all(np.unique(batch).size == 80 for batch in batches)
    counts = (
        np.bincount(
            dmsgd.diversify(X, 70, kernel="linear", normalize=False).sample(400, seed=0).ravel(),
            minlength=400,
        )
        / 400
    )
    b = dmsgd.diversify(X, 70, kernel="linear", normalize=False).inclusion()
    often = b > 0.05  # the others are not seen often enough for a normal law
    error = np.sqrt(b * (1 - b) / 400)
    assert (np.abs(counts - b)[often] <= 5 * error[often] + 1e-12).all()
    assert abs((counts - b)[~often].sum()) <= 5 * np.sqrt((error[~often] ** 2).sum())


@pytest.mark.usefixtures("large")
def test_rows_that_are_copied_are_what_is_counted() -> None:
    torch = pytest.importorskip("torch")
    X = torch.randn(300, 8)
    assert (
        dmsgd.diversify(X, 4, kernel="linear", normalize=False).fingerprint()
        == dmsgd.diversify(X.numpy(), 4, kernel="linear", normalize=False).fingerprint()
    )
    for order in (X.numpy()[:, ::2], np.asfortranarray(X.numpy())):  # is_large says no to these
        whole = as_features(np.ascontiguousarray(order))
        np.testing.assert_array_equal(whole.take(np.arange(300)), order.astype(float))


def test_what_is_large_follows_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    X = np.zeros((2**16, 64), dtype=np.float32)
    X[:, 0] = 1
    monkeypatch.setenv("DMSGD_MEMORY", "1GB")
    assert not isinstance(as_features(X), Blocks)
    monkeypatch.setenv("DMSGD_MEMORY", "100MB")
    assert isinstance(as_features(X), Blocks)
    assert not isinstance(as_features(X[:, ::2]), Blocks)  # it is copied in any case
    assert not isinstance(as_features(X[:10]), Blocks)
    monkeypatch.setenv("DMSGD_MEMORY", "1TB")
    assert not isinstance(as_features(X), Blocks)
    monkeypatch.setattr("dmsgd.runtime.memory.LARGE", 2**25 - 1)
    assert isinstance(as_features(X), Blocks)


@pytest.mark.usefixtures("large")
def test_a_change_of_the_array_is_noticed_by_passes() -> None:
    X = rows(500, 6)
    design = dmsgd.diversify(X, 4, kernel="linear", normalize=False)
    X[17] += 1
    with pytest.raises(ValueError, match="has changed since it was first read"):
        design.inclusion()


def test_nothing_as_large_as_the_array_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    X = rows(60_000, 96)
    monkeypatch.setattr("dmsgd.features.convert.is_large", lambda raw: True)
    monkeypatch.setattr("dmsgd.runtime.threads.available_cores", lambda: 2)  # each takes blocks
    monkeypatch.setattr("dmsgd.features.readers.BLOCK_BYTES", 2**19)
    dmsgd.diversify(X[:500], 16, kernel="linear", normalize=False).sample(1, seed=0)  # compiled
    tracemalloc.start()
    design = dmsgd.diversify(X, 16, normalize=True, kernel="linear")
    design.sample(3, seed=0)
    design.inclusion()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < X.nbytes  # half of what the eigenvectors would take


@pytest.mark.parametrize("block", [2**16, 2**30])
def test_rows_are_joined_in_the_memory_of_the_result(
    block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    X = rows(20_000, 30, float)
    monkeypatch.setattr("dmsgd.features.readers.BLOCK_BYTES", block)
    F = in_blocks(X)
    for make in (lambda: F.to_memory().matrix, lambda: F.times(np.eye(30))):
        tracemalloc.start()
        found = make()
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        np.testing.assert_array_equal(found, X)
        assert not np.shares_memory(found, X)
        assert peak < 1.5 * X.nbytes or block > X.nbytes
    assert F.reader.fingerprint is not None


@pytest.mark.usefixtures("large")
def test_bad_numbers_in_large_arrays_are_named() -> None:
    X = rows(500, 6)
    X[400, 3] = np.nan
    with pytest.raises(ValueError, match="rows count from the block's first"):
        dmsgd.diversify(X, 4, kernel="linear", normalize=False)
