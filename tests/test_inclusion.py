"""b of a linear k-DPP from sums over rows, against that of the design itself."""

from __future__ import annotations

import re
import tracemalloc
import warnings
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import dmsgd
from dmsgd.features import as_features

RNG = np.random.default_rng(15)
X = RNG.normal(size=(90, 12)) * np.geomspace(1, 30, 90)[:, None]
Y = np.repeat(["common", "rare", "single"], [70, 19, 1])
SETTINGS: dict[str, dict[str, Any]] = {
    "as they are": {},
    "unit rows": {"normalize": True},
    "labels": {"labels": Y, "w": 0.7},
    "labels and unit rows": {"labels": Y, "w": 0.7, "normalize": True},
    "labels alone": {"labels": Y, "w": 1.0, "normalize": True},
}
every_setting = pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)


@contextmanager
def told():
    """Yield the list of what is warned of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield caught


@every_setting
@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array, np.asfortranarray, list])
def test_it_is_the_inclusion_of_the_design(settings, k, kind, monkeypatch):
    monkeypatch.setattr("dmsgd.features.readers.BLOCK_BYTES", 7 * 12 * 8)  # several blocks
    b = dmsgd.inclusion(kind(X), k, **settings)
    np.testing.assert_allclose(b, dmsgd.diversify(X, k, **settings).inclusion(), rtol=0, atol=1e-12)
    assert b.sum() == pytest.approx(k)


@pytest.mark.parametrize("d", [90, 200])
def test_more_features_than_items(d):
    wide = RNG.normal(size=(90, d))
    for settings in SETTINGS.values():
        k = 3 if settings.get("w") == 1 else 40
        expected = dmsgd.diversify(wide, k, **settings).inclusion()
        np.testing.assert_allclose(dmsgd.inclusion(wide, k, **settings), expected, atol=1e-12)
        rows = sparse.csr_array(wide)
        np.testing.assert_allclose(dmsgd.inclusion(rows, k, **settings), expected, atol=1e-12)


@pytest.mark.parametrize("decades", [2, 3, 5, 7, 9, 11])
@pytest.mark.parametrize("k", [5, 20, 28])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array, "blocks"])
def test_ill_conditioned_features(decades, k, kind, tmp_path, monkeypatch):
    """Singular values over many decades: to 1e-9, or as near as the design's own warning says."""
    rng = np.random.default_rng(decades)
    U, _ = np.linalg.qr(rng.normal(size=(200, 30)))
    W, _ = np.linalg.qr(rng.normal(size=(30, 30)))
    F = (U * np.logspace(0, -decades, 30)) @ W.T
    given: Any = F
    if kind == "blocks":
        monkeypatch.setattr("dmsgd.features.readers.BLOCK_BYTES", 8 * 30 * 23)
        np.save(tmp_path / "x.npy", F)
        given = tmp_path / "x.npy"
    else:
        given = kind(F)
    with told() as of_design:
        expected = dmsgd.diversify(given, k).inclusion()
    with told() as here:
        b = dmsgd.inclusion(given, k)
    assert [str(each.message) for each in here] == [str(each.message) for each in of_design]
    assert {Path(each.filename).name for each in here} <= {Path(__file__).name}
    stated = [float(re.search(r"by up to (\S+):", str(each.message))[1]) for each in here]
    np.testing.assert_allclose(b, expected, rtol=0, atol=max([1e-9, *stated]))


def test_columns_that_do_not_overlap_are_not_diagonalised():
    """Scales over twelve decades that rounding does not touch, as in `exact`."""
    rows = np.zeros((60, 6))
    rows[np.arange(60), np.arange(60) % 6] = np.logspace(0, -12, 6)[np.arange(60) % 6]
    with told() as here:
        b = dmsgd.inclusion(sparse.csr_array(rows), 6)
    assert here == []
    np.testing.assert_allclose(b, 0.1, rtol=1e-12)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array, "path"])
def test_errors_are_those_of_diversify(kind, tmp_path):
    low = X[:, :3] @ RNG.normal(size=(3, 12))
    given: Any = low
    if kind == "path":
        np.save(tmp_path / "x.npy", low)
        given = tmp_path / "x.npy"
    else:
        given = kind(low)
    for arguments, settings in (
        ((given, 4), {}),
        ((given, 0), {}),
        ((given, 91), {}),
        ((given, 4, Y), {"w": 1.0}),
        ((given, 2), {"w": 0.5}),
        ((given, 2, Y[:5]), {"w": 0.5}),
        ((given, 2, Y), {"w": 1.5}),
        ((0 * X, 2), {}),
        ((1e-170 * X, 2), {}),
        ((X[:, 0], 2), {}),
    ):
        with pytest.raises((ValueError, TypeError)) as expected:
            dmsgd.diversify(*arguments, **settings)
        with pytest.raises(type(expected.value)) as found:
            dmsgd.inclusion(*arguments, **settings)
        assert str(found.value) == str(expected.value)


def test_labels_that_do_not_count_are_mentioned():
    with pytest.warns(dmsgd.KernelWarning, match="w=0 ignores them") as caught:
        b = dmsgd.inclusion(X, 3, Y)
    assert caught[0].filename == __file__
    np.testing.assert_array_equal(b, dmsgd.inclusion(X, 3))


@every_setting
def test_features_in_memory_are_not_copied(settings, monkeypatch):
    monkeypatch.setattr("dmsgd.features.readers.BLOCK_BYTES", 2**17)
    monkeypatch.setattr("dmsgd.features.large_array.BLOCK", 2**14)
    big, n = np.tile(X, (400, 1)), 36_000
    if "labels" in settings:
        settings = {**settings, "labels": np.tile(Y, 400)}
    before = big.copy()
    F = as_features(big)
    dmsgd.inclusion(F, 3, **settings)
    tracemalloc.start()
    dmsgd.inclusion(F, 3, **settings)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    labelled = 8 * n * (1 + 8 * ("labels" in settings))  # names and numbers of classes, sorted
    assert peak < 8 * n * 4 + labelled + 2**20 < before.nbytes + labelled
    np.testing.assert_array_equal(big, before)


def test_two_passes_over_a_file(tmp_path, monkeypatch):
    from dmsgd.features.blocks import Blocks

    np.save(tmp_path / "x.npy", X)
    passes, run = [], Blocks.map_blocks

    def counted(self, work, name, arguments=None):
        passes.append(name)
        return run(self, work, name, arguments)

    monkeypatch.setattr(Blocks, "map_blocks", counted)
    b = dmsgd.inclusion(tmp_path / "x.npy", 4, Y, 0.5, normalize=True)
    assert passes == ["gram", "norms"]
    np.testing.assert_allclose(b, dmsgd.inclusion(X, 4, Y, 0.5, normalize=True), atol=1e-12)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")  # Dask's own
def test_on_a_cluster():
    da, distributed = pytest.importorskip("dask.array"), pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, memory_limit="700MB", dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        array = da.from_array(X, chunks=((40, 1, 49), (5, 7)))
        b = dmsgd.inclusion(array, 5, Y, 0.5, normalize=True)
        assert client.status == "running"
    np.testing.assert_allclose(b, dmsgd.inclusion(X, 5, Y, 0.5, normalize=True), atol=1e-12)


def test_docstring_examples_run():
    import doctest
    import sys

    result = doctest.testmod(sys.modules["dmsgd.designs.inclusion"])
    assert (result.failed, result.attempted > 0) == (0, True)


def test_columns_are_standardized_as_in_diversify():
    for given in (X, sparse.csr_array(X)):
        for asked in ({"standardize": True}, {"standardize": True, "normalize": True}):
            expected = dmsgd.diversify(given, 3, **asked).inclusion()
            np.testing.assert_allclose(dmsgd.inclusion(given, 3, **asked), expected, atol=1e-12)
