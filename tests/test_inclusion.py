"""b of a linear k-DPP: the same for every kind of features, and without copies of large ones."""

from __future__ import annotations

import re
import tracemalloc
import warnings
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import dmsgd
from dmsgd.features import as_features
from dmsgd.features.blocks import SCRATCH

RNG = np.random.default_rng(15)
X = RNG.normal(size=(90, 12)) * np.geomspace(1, 30, 90)[:, None]
Y = np.repeat(["common", "rare", "single"], [70, 19, 1])
SETTINGS: dict[str, dict[str, Any]] = {
    "as they are": {},
    "unit rows": {"normalize": True},
    "labels": {"labels": Y, "w": 0.7},
    "labels and unit rows": {"labels": Y, "w": 0.7, "normalize": True},
}
every_setting = pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)


@contextmanager
def told():
    """Yield the list of what is warned of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield caught


@pytest.mark.parametrize("decades", [2, 3, 5, 7, 9, 11])
@pytest.mark.parametrize("k", [5, 20, 28])
@pytest.mark.parametrize("kind", ["sparse", "blocks"])
def test_ill_conditioned_features(decades, k, kind, tmp_path, monkeypatch):
    """Singular values over many decades: to 1e-9, or as near as the design's own warning says."""
    rng = np.random.default_rng(decades)
    U, _ = np.linalg.qr(rng.normal(size=(200, 30)))
    W, _ = np.linalg.qr(rng.normal(size=(30, 30)))
    F = (U * np.logspace(0, -decades, 30)) @ W.T
    with told() as of_array:
        expected = dmsgd.diversify(F, k).inclusion()
    given: Any = sparse.csr_array(F)
    if kind == "blocks":
        monkeypatch.setattr("dmsgd.runtime.memory.LARGE", 0)
        monkeypatch.setattr("dmsgd.features.readers.BLOCK_BYTES", 8 * 30 * 23)
        np.save(tmp_path / "x.npy", F)
        given = tmp_path / "x.npy"
    with told() as here:
        b = dmsgd.diversify(given, k).inclusion()
    stated = [float(re.search(r"by up to (\S+):", str(each.message))[1]) for each in here]
    assert len(stated) == len(of_array)
    np.testing.assert_allclose(b, expected, rtol=0, atol=max([1e-9, *stated]))


def test_columns_that_do_not_overlap_are_not_diagonalised():
    """Scales over twelve decades that rounding does not touch, as in `exact`."""
    rows = np.zeros((60, 6))
    rows[np.arange(60), np.arange(60) % 6] = np.logspace(0, -12, 6)[np.arange(60) % 6]
    with told() as here:
        b = dmsgd.KDPP(dmsgd.kernels.Linear(sparse.csr_array(rows)), 6).inclusion()
    assert here == []
    np.testing.assert_allclose(b, 0.1, rtol=1e-12)


@pytest.mark.parametrize(
    ("name", "cores"),
    [*((name, 16) for name in SETTINGS), ("as they are", 1),
     *(pytest.param(name, 1, marks=pytest.mark.long) for name in list(SETTINGS)[1:])],
)  # fmt: skip
def test_large_features_in_memory_are_not_copied(name, cores, monkeypatch):
    """Beside numbers for each item, every core takes a few blocks."""
    block, times = 2**14, 400
    monkeypatch.setattr("dmsgd.runtime.threads.available_cores", lambda: cores)
    monkeypatch.setattr("dmsgd.features.convert.is_large", lambda raw: raw.dtype.kind in "fiu")
    monkeypatch.setattr("dmsgd.features.readers.BLOCK_BYTES", block)
    big, n = np.tile(X, (times, 1)), 90 * times
    settings = SETTINGS[name]
    if "labels" in settings:
        settings = {**settings, "labels": np.tile(Y, times)}
    before = big.copy()
    F = as_features(big)
    dmsgd.diversify(X, 3, **SETTINGS[name]).inclusion()  # compiled
    tracemalloc.start()
    dmsgd.diversify(F, 3, **settings).inclusion()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    labelled = 8 * n * (1 + 8 * ("labels" in settings))  # names and numbers of classes, sorted
    scratch = cores * SCRATCH * block + 2**20
    assert peak < 8 * n * 4 + labelled + scratch < before.nbytes + labelled
    np.testing.assert_array_equal(big, before)


def test_two_passes_over_a_file(tmp_path, monkeypatch):
    from dmsgd.features.blocks import Blocks

    monkeypatch.setattr("dmsgd.runtime.memory.LARGE", 0)
    np.save(tmp_path / "x.npy", X)
    passes, run = [], Blocks.map_blocks

    def counted(self, work, name, arguments=None):
        passes.append(name)
        return run(self, work, name, arguments)

    monkeypatch.setattr(Blocks, "map_blocks", counted)
    b = dmsgd.diversify(tmp_path / "x.npy", 4, Y, 0.5, normalize=True).inclusion()
    assert passes == ["gram", "masses"]
    expected = dmsgd.diversify(X, 4, Y, 0.5, normalize=True).inclusion()
    np.testing.assert_allclose(b, expected, atol=1e-12)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")  # Dask's own
def test_on_a_cluster():
    da, distributed = pytest.importorskip("dask.array"), pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, memory_limit="700MB", dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        array = da.from_array(X, chunks=((40, 1, 49), (5, 7)))
        b = dmsgd.diversify(array, 5, Y, 0.5, normalize=True).inclusion()
        assert client.status == "running"
    expected = dmsgd.diversify(X, 5, Y, 0.5, normalize=True).inclusion()
    np.testing.assert_allclose(b, expected, atol=1e-12)
