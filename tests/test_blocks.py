"""Features read in blocks: the same spectrum, law and draws as in memory, and few passes."""

from __future__ import annotations

import os
import pickle
import threading
from collections import Counter
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse, stats

import dmsgd
from dmsgd import KDPP
from dmsgd.features import as_features
from dmsgd.features import blocks as blocks_module
from dmsgd.features.blocks import Blocks
from dmsgd.features.convert import open_features
from dmsgd.features.readers import NpyReader, Reader, even_bounds
from dmsgd.kernels import Linear, exact
from dmsgd.runtime.threads import one_blas_thread, thread_count
from dmsgd.spectra.eigenvectors import Projected

da = pytest.importorskip("dask.array")


@pytest.fixture(autouse=True)
def all_files_are_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are read in blocks, however small."""
    monkeypatch.setattr("dmsgd.runtime.memory.LARGE", 0)


class CountedReader(Reader):
    """A real .npy file in blocks of any size, that counts how often each is read."""

    kind, name = "in blocks, counted", "x.npy"

    def __init__(self, path: Path, edges: list[int]) -> None:
        self.file = NpyReader(np.load(path, mmap_mode="r"))
        self.n, self.d, self.states = self.file.n, self.file.d, self.file.states
        self.edges, self.reads = np.unique(edges), Counter()

    def bounds(self, width: int) -> np.ndarray:
        return self.edges

    def read(self, start: int, stop: int) -> np.ndarray:
        self.reads[start] += 1
        return self.file.read(start, stop)


def features(n: int = 300, d: int = 12, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, d))


@pytest.fixture
def cut(tmp_path):
    """Write an array to a file and return it as features in blocks with these edges."""

    def written(array: np.ndarray, *edges: int) -> Blocks:
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.npy"
        np.save(path, array)
        return Blocks(CountedReader(path, [0, *edges, len(array)]))

    return written


CHUNKINGS = {
    "one block": (),
    "several": (100, 130, 220),
    "one row each at the front": (1, 2, 3),
}


@pytest.mark.parametrize("edges", CHUNKINGS.values(), ids=CHUNKINGS)
def test_everything_is_as_in_memory(cut, edges: tuple[int, ...]) -> None:
    X, k = features(), 7
    memory = KDPP(Linear(X), k)
    blocks = KDPP(Linear(cut(X, *edges)), k)
    np.testing.assert_allclose(blocks.spectrum.values, memory.spectrum.values, rtol=1e-12)
    np.testing.assert_allclose(blocks.inclusion(), memory.inclusion(), rtol=1e-10)
    i = np.array([0, 299, 5, 120])
    np.testing.assert_allclose(blocks.joint(i[:, None], i), memory.joint(i[:, None], i), rtol=1e-9)
    batches = memory.sample(40, seed=1)
    np.testing.assert_allclose(blocks.log_prob(batches), memory.log_prob(batches), rtol=1e-10)
    np.testing.assert_array_equal(blocks.sample(40, seed=1), batches)
    np.testing.assert_array_equal(blocks.sample(10, seed=1, start=30), batches[30:])
    np.testing.assert_array_equal(blocks.sample(1, seed=1, start=7), batches[7:8])
    np.testing.assert_array_equal(blocks.sample(40, seed=1, workers=3), batches)
    assert blocks.fingerprint() == memory.fingerprint()


#: The draws are those of features in memory, as is tested above, so one law is that of all.
@pytest.mark.parametrize(
    "edges", [(3, 4), *(pytest.param(e, marks=pytest.mark.long) for e in ((), range(1, 8)))]
)
def test_the_law_is_the_k_dpp(cut, edges: tuple[int, ...]) -> None:
    X, k, size = features(8, 4, seed=2), 3, 30_000
    design = KDPP(Linear(cut(X, *edges)), k)
    L = X @ X.T
    sets = list(combinations(range(8), k))
    weights = np.array([np.linalg.det(L[np.ix_(Y, Y)]) for Y in sets])
    found = Counter(map(tuple, np.sort(design.sample(size, seed=5), axis=1).tolist()))
    observed = np.array([found[Y] for Y in sets])
    expected = size * weights / weights.sum()
    assert stats.chisquare(observed, expected).pvalue > 1e-3


def test_set_up_reads_the_data_once_and_a_schedule_once_or_twice(cut, tmp_path: Path) -> None:
    data = cut(features(), 100, 200)
    design = KDPP(Linear(data), 7)
    design.sample(0)
    assert set(data.reader.reads.values()) == {1}
    schedule = dmsgd.presample(design, 500, seed=0, path=tmp_path / "s.npy")
    design.inclusion()  # found on the way
    assert max(data.reader.reads.values()) <= 3
    memory = KDPP(Linear(features()), 7)
    np.testing.assert_array_equal(schedule.batches, memory.sample(500, seed=0))
    np.testing.assert_allclose(schedule.inclusion(), memory.inclusion(), rtol=1e-10)
    assert schedule.fingerprint() == memory.fingerprint()


def test_many_blocks_of_many_features_take_one_pass_more(
    cut, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks_module, "KEPT_BYTES", 0)  # no Gram matrices of single blocks
    data = cut(features(), 100, 200)
    design = KDPP(Linear(data), 7)
    memory = KDPP(Linear(features()), 7)
    np.testing.assert_array_equal(design.sample(50, seed=0), memory.sample(50, seed=0))
    assert max(data.reader.reads.values()) <= 4


def test_blocks_that_are_not_asked_about_are_not_read(cut) -> None:
    data = cut(features(), 100, 200)
    kernel = Linear(data)
    np.testing.assert_allclose(
        kernel.block([3, 250], [250]), features()[[3, 250]] @ features()[[250]].T
    )
    assert data.reader.reads == Counter({0: 1, 200: 2})


def test_draws_that_lack_an_item_go_on(cut, monkeypatch: pytest.MonkeyPatch) -> None:
    from dmsgd.samplers import blocks as sampler

    monkeypatch.setattr(sampler, "EXTRA", (-2.5, -2.5, 0.5, 40))
    X = features()
    design = KDPP(Linear(cut(X, 150)), 10)
    expected = KDPP(Linear(X), 10).sample(60, seed=3)
    np.testing.assert_array_equal(design.sample(60, seed=3), expected)
    monkeypatch.setattr(sampler, "EXTRA", (-2.5,))
    with pytest.raises(dmsgd.SamplingError, match="not completed"):
        design.sample(60, seed=3)


def test_memory_decides_how_many_draws_are_made_together(
    cut, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = cut(features(), 150)
    many = KDPP(Linear(data), 10)
    assert many.chunk > 50
    monkeypatch.setenv("DMSGD_MEMORY", "1MB")
    few = KDPP(Linear(data), 10)
    assert few.chunk < 50
    np.testing.assert_array_equal(few.sample(50, seed=2), many.sample(50, seed=2))
    assert KDPP(Linear(features()), 10).chunk == 1


def test_maps_are_applied_as_blocks_are_read(cut) -> None:
    X, y = np.abs(features()), np.random.default_rng(1).integers(4, size=300)
    for w in (0.0, 0.4, 1.0):
        labels = y if w else None
        memory = dmsgd.diversify(
            dmsgd.features.anneal(X, 0.5), 4, labels=labels, w=w, normalize=True, kernel="linear"
        )
        data = dmsgd.features.anneal(cut(X, 90, 91), 0.5)
        blocks = dmsgd.diversify(data, 4, labels=labels, w=w, normalize=True, kernel="linear")
        np.testing.assert_allclose(blocks.inclusion(), memory.inclusion(), rtol=1e-9)
        if w < 1:
            np.testing.assert_array_equal(blocks.sample(20, seed=0), memory.sample(20, seed=0))


def test_targets_are_prescribed_in_blocks(cut) -> None:
    X = features()
    design = dmsgd.diversify(
        cut(X, 70, 200), 6, target=np.arange(1.0, 301), kernel="linear", normalize=False
    )
    np.testing.assert_allclose(design.inclusion(), 6 * np.arange(1, 301) / 45150, rtol=1e-6)
    assert isinstance(design.spectrum.vectors, Projected)


def test_ill_conditioned_features_take_the_stable_route(cut) -> None:
    X = features(200, 6) * np.array([1, 1, 1, 1e-4, 1e-5, 1e-5])
    memory, blocks = exact(Linear(X)), exact(Linear(cut(X, 3, 120)))
    assert blocks.route == "dual"
    np.testing.assert_allclose(blocks.values, memory.values, rtol=1e-8)
    V = np.asarray(blocks.vectors)
    np.testing.assert_allclose(V.T @ V, np.eye(6), atol=1e-9)
    np.testing.assert_allclose(KDPP(blocks, 5).inclusion(), KDPP(memory, 5).inclusion(), rtol=1e-8)


def test_masses_from_gram_matrices_are_the_sums_of_squares(cut) -> None:
    X = features(4000, 8) * np.logspace(0, -2.9, 8)  # eigenvalues down to about 1e-6 of the largest
    spectrum = exact(Linear(cut(X, 1, 700, 3000)))
    assert spectrum.route == "dual"
    V = np.asarray(spectrum.vectors)
    sums = [np.sum(V[a:b] ** 2, axis=0) for a, b in ((0, 1), (1, 700), (700, 3000))]
    found = spectrum.vectors.masses(np.ones(8))
    np.testing.assert_allclose(found[:3], sums, rtol=1e-9)


def test_the_hash_is_found_once_and_not_inherited(cut) -> None:
    data = cut(features(), 100)
    kernel = Linear(data)
    exact(kernel)
    assert kernel.fingerprint() == Linear(features()).fingerprint()
    assert max(data.reader.reads.values()) == 1  # the pass of `exact` has found it
    unit = dmsgd.diversify(features(), 5, normalize=True, kernel="linear").fingerprint()
    assert dmsgd.diversify(data, 5, normalize=True, kernel="linear").fingerprint() == unit
    assert dmsgd.KDPP(Linear(dmsgd.features.normalize(data)), 5).fingerprint() == unit
    assert dmsgd.KDPP(kernel, 5).fingerprint() != unit


def test_features_without_full_rank(cut) -> None:
    X = features(200, 4) @ features(4, 9, seed=1)
    blocks = exact(Linear(cut(X, 77)))
    assert blocks.rank == 4
    with pytest.raises(dmsgd.RankError, match="4 independent"):
        KDPP(blocks, 5)


def test_rbf_by_landmarks(cut) -> None:
    X = features(400, 3)
    memory = dmsgd.kernels.nystrom(dmsgd.kernels.RBF(X, 1.0), 50, seed=1)
    blocks = dmsgd.kernels.nystrom(dmsgd.kernels.RBF(cut(X, 150, 300), 1.0), 50, seed=1)
    np.testing.assert_allclose(blocks.values, memory.values, rtol=1e-6)
    assert blocks.trace_error == pytest.approx(memory.trace_error, rel=1e-6)
    b = KDPP(blocks, 8).inclusion()
    np.testing.assert_allclose(b, KDPP(memory, 8).inclusion(), rtol=1e-6)
    assert dmsgd.kernels.RBF(cut(X, 150)).scale == pytest.approx(dmsgd.kernels.RBF(X).scale)
    factor = dmsgd.kernels.pivoted_cholesky(dmsgd.kernels.RBF(cut(X, 150), 1.0), 40, seed=0)
    assert factor.trace_error < 0.5
    kmeans = dmsgd.kernels.nystrom(dmsgd.kernels.RBF(cut(X, 150), 1.0), 50, "kmeans")
    assert kmeans.trace_error < memory.trace_error


def test_one_call_for_an_rbf_kernel_in_blocks(cut) -> None:
    X = features(300, 2)
    with pytest.warns(dmsgd.KernelWarning) as caught:
        dmsgd.diversify(cut(X, 150), 5, kernel="rbf", scale=1e-3)  # no two items look alike
    assert "trace" in str(caught[0].message) or "nearly uniform" in str(caught[0].message)
    design = dmsgd.diversify(cut(X, 150), 5, kernel="rbf", scale=0.5)
    np.testing.assert_allclose(
        design.inclusion(), dmsgd.diversify(X, 5, kernel="rbf", scale=0.5).inclusion(), rtol=1e-3
    )


def test_what_needs_the_whole_matrix_loads_it_if_it_fits(
    cut, monkeypatch: pytest.MonkeyPatch
) -> None:
    X = features()
    design = dmsgd.designs.clustered(cut(X, 100), 5)
    np.testing.assert_array_equal(design.stratum, dmsgd.designs.clustered(X, 5).stratum)
    monkeypatch.setenv("DMSGD_MEMORY", "10KB")
    with pytest.raises(MemoryError, match="a part of the data"):
        dmsgd.designs.clustered(cut(X, 100), 5)


def test_a_torch_sampler_reads_the_data_once_or_twice_an_epoch(cut) -> None:
    pytest.importorskip("torch")
    data = cut(features(), 100, 200)
    design = KDPP(Linear(data), 6)
    sampler = dmsgd.torch.DiverseSampler(design, steps=50, seed=3)
    expected = KDPP(Linear(features()), 6).sample(50, seed=3)
    assert list(sampler) == expected.ravel().tolist()
    assert max(data.reader.reads.values()) <= 3


# Files


@pytest.mark.parametrize("dtype", ["float32", "float64", "int16"])
def test_npy(tmp_path: Path, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    X = (10 * features()).astype(dtype)
    np.save(tmp_path / "x.npy", X)
    monkeypatch.setattr("dmsgd.features.readers.BLOCK_BYTES", 50 * 12 * 8)
    F = open_features(tmp_path / "x.npy")
    assert F.bounds.tolist() == [0, 50, 100, 150, 200, 250, 300]
    expected = dmsgd.diversify(X.astype(float), 5, kernel="linear", normalize=False)
    for given in (str(tmp_path / "x.npy"), tmp_path / "x.npy", F):
        design = dmsgd.diversify(given, 5, kernel="linear", normalize=False)
        np.testing.assert_array_equal(design.sample(20, seed=0), expected.sample(20, seed=0))


def test_npy_by_columns_is_held_in_memory_while_it_fits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.npy"
    np.save(path, np.asfortranarray(features()))
    design, expected = (
        dmsgd.diversify(path, 5, kernel="linear", normalize=False),
        dmsgd.diversify(features(), 5, kernel="linear", normalize=False),
    )
    assert design.fingerprint() == expected.fingerprint()
    np.testing.assert_array_equal(design.sample(20, seed=0), expected.sample(20, seed=0))
    monkeypatch.setenv("DMSGD_MEMORY", "20KB")
    with pytest.raises(MemoryError, match=r"x\.npy needs .*ascontiguousarray"):
        dmsgd.diversify(path, 5, kernel="linear", normalize=False)


def test_blocks_are_sized_by_the_width_they_will_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    np.save(tmp_path / "x.npy", features())
    monkeypatch.setattr("dmsgd.features.readers.BLOCK_BYTES", 50 * 12 * 8)
    F = open_features(tmp_path / "x.npy")
    wide = dmsgd.features.concat(F, np.arange(300) % 28, 0.5)
    assert F.bounds[1] == 50
    assert wide.bounds[1] == 50 * 12 // 40
    assert F.shape == (300, 12)


@pytest.mark.parametrize(("blocks", "cores"), [(12, 2), (1000, 8)])
def test_cores_share_the_memory(blocks: int, cores: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A core takes three blocks of memory at most, and all of them half of what is free."""
    threads, together = set(), threading.Barrier(cores, timeout=60)

    def piece(raw: np.ndarray, number: int) -> tuple[None, None]:
        threads.add(threading.get_ident())
        if number < cores:
            together.wait()
        return None, None

    monkeypatch.setattr("dmsgd.runtime.threads.available_cores", lambda: 8)
    monkeypatch.setattr("dmsgd.features.readers.BLOCK_BYTES", 64 * 12 * 8)
    monkeypatch.setattr("dmsgd.features.blocks.memory_limit", lambda: blocks * 64 * 12 * 8)
    F = blocks_module.in_blocks(features(1600))
    assert F.bounds.size == 26
    list(F._compute(piece, [(number,) for number in range(25)], "count"))
    assert len(threads) == cores


def test_passes_that_overlap_leave_blas_as_it_was(tmp_path: Path) -> None:
    from threadpoolctl import threadpool_info, threadpool_limits

    def threads() -> set[int]:
        return {each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"}

    np.save(tmp_path / "x.npy", features())
    F = open_features(tmp_path / "x.npy")
    with threadpool_limits(2, user_api="blas"):
        first, second = F.blocks(), F.blocks()
        next(first), next(second)
        first.close()  # the first one in is the first one out
        second.close()
        assert threads() == {2}


def test_blas_is_limited_after_ctrl_c_while_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(modules: int) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("dmsgd.runtime.threads._libraries", interrupted)
        with pytest.raises(KeyboardInterrupt), one_blas_thread:
            pass
    assert one_blas_thread._passes == 0


def test_a_pass_on_another_thread_leaves_blas_alone(tmp_path: Path) -> None:
    """Passes that limit BLAS are counted, too: what a thread reads back differs between builds."""
    from concurrent.futures import ThreadPoolExecutor

    from threadpoolctl import threadpool_info, threadpool_limits

    np.save(tmp_path / "x.npy", features())
    F = open_features(tmp_path / "x.npy")
    begun = []

    def limits() -> int:
        begun.append(F.blocks())  # kept, so that the pass is still on
        next(begun[-1])
        return one_blas_thread._passes

    def threads() -> set[int]:
        return {each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"}

    with threadpool_limits(2, user_api="blas"), ThreadPoolExecutor(1) as pool:
        assert pool.submit(limits).result() == 0
        assert threads() == {2}
        begun.clear()
    assert limits() == (1 if thread_count(-1) > 1 else 0)


CHANGED = {
    "another size": lambda path: np.save(path, features(299)),
    "other numbers, the same size": lambda path: np.save(path, 2 * features()),
}


@pytest.mark.parametrize("name", CHANGED)
def test_a_file_that_changes_after_set_up_is_noticed(name: str, tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    np.save(path, features())
    design = dmsgd.diversify(str(path), 6, kernel="linear", normalize=False)
    CHANGED[name](path)
    for ask in (lambda: design.sample(20, seed=0), lambda: design.joint([0], [1])):
        with pytest.raises(ValueError, match="has changed since it was opened"):
            ask()


@pytest.mark.parametrize("name", ["x.npy", "x.parquet", "x.zarr", "folder"])
def test_a_relative_path_stays_the_same_file_in_another_folder(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    X = features()
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", X)
    if name == "x.parquet":
        pytest.importorskip("pandas").DataFrame(X, columns=list("abcdefghijkl")).to_parquet(name)
    if name == "x.zarr":
        pytest.importorskip("zarr").save_array(name, X)
    (tmp_path / "folder").mkdir()
    sparse.save_npz("folder/x.npz", sparse.csr_array(X))
    design = dmsgd.diversify(name, 5, kernel="linear", normalize=False)
    monkeypatch.chdir("folder")
    np.testing.assert_array_equal(
        design.sample(9, seed=0),
        dmsgd.diversify(X, 5, kernel="linear", normalize=False).sample(9, seed=0),
    )


def test_a_change_that_the_file_system_does_not_show_is_found_by_the_hash(
    cut, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = cut(features(), 100, 200)
    design = dmsgd.diversify(data, 6, kernel="linear", normalize=False)
    monkeypatch.setattr(Reader, "check_unchanged", lambda self: None)
    np.save(data.reader.file.path, features(seed=1))
    with pytest.raises(ValueError, match="has changed since it was first read"):
        design.sample(300, seed=0)


def test_a_large_memory_map_is_read_in_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    np.save(tmp_path / "x.npy", features())
    array = np.load(tmp_path / "x.npy", mmap_mode="r")
    monkeypatch.setattr("dmsgd.runtime.memory.LARGE", 2**30)
    assert not isinstance(as_features(array), Blocks)
    monkeypatch.setenv("DMSGD_MEMORY", "100KB")
    assert isinstance(as_features(array), Blocks)
    assert not isinstance(as_features(array[5:]), Blocks)  # a part of a file is a small matter
    design = dmsgd.diversify(array, 5, kernel="linear", normalize=False)
    np.testing.assert_array_equal(
        design.sample(20, seed=0),
        dmsgd.diversify(features(), 5, kernel="linear", normalize=False).sample(20, seed=0),
    )
    monkeypatch.setenv("DMSGD_MEMORY", "10KB")
    with pytest.raises(MemoryError, match="do not need them"):
        np.asarray(design.spectrum.vectors)


def test_zarr(tmp_path: Path) -> None:
    zarr = pytest.importorskip("zarr")
    store = zarr.create_array(str(tmp_path / "x.zarr"), shape=(300, 12), chunks=(70, 5), dtype="f8")
    store[:] = features()
    F = open_features(tmp_path / "x.zarr")
    assert all(edge % 70 == 0 for edge in F.bounds[:-1].tolist())
    for given in (str(tmp_path / "x.zarr"), store):
        np.testing.assert_array_equal(
            dmsgd.diversify(given, 5, kernel="linear", normalize=False).sample(20, seed=0),
            dmsgd.diversify(features(), 5, kernel="linear", normalize=False).sample(20, seed=0),
        )
    zarr.create_group(str(tmp_path / "group.zarr"))
    with pytest.raises(ValueError, match=r"holds the arrays \(none\); select one as group"):
        open_features(tmp_path / "group.zarr")


def test_an_array_of_a_zarr_group_is_named(tmp_path: Path) -> None:
    zarr = pytest.importorskip("zarr")
    group = zarr.create_group(str(tmp_path / "g.zarr"))
    group.create_array("embedded", data=features())
    expected = dmsgd.diversify(features(), 5, kernel="linear", normalize=False).sample(20, seed=0)
    only = dmsgd.diversify(tmp_path / "g.zarr", 5, kernel="linear", normalize=False)
    np.testing.assert_array_equal(only.sample(20, seed=0), expected)
    group.create_group("deep").create_array("er", data=features())
    for name in ("embedded", "deep/er"):
        named = dmsgd.diversify(f"{tmp_path}/g.zarr:{name}", 5, kernel="linear", normalize=False)
        np.testing.assert_array_equal(named.sample(20, seed=0), expected)
    for path in ("g.zarr", "g.zarr:other"):
        with pytest.raises(ValueError, match=r"holds the arrays deep/er, embedded; select one as"):
            open_features(tmp_path / path)
    zarr.save_array(str(tmp_path / "x.zarr"), features())
    with pytest.raises(ValueError, match=r"x\.zarr is a single Zarr array"):
        open_features(f"{tmp_path}/x.zarr:embedded")


def test_damaged_zarr_stores_are_one_clear_error(tmp_path: Path) -> None:
    zarr = pytest.importorskip("zarr")
    zarr.save_array(str(tmp_path / "x.zarr"), features())
    chunk = tmp_path / "x.zarr/c/0/0"
    os.truncate(chunk, chunk.stat().st_size // 2)
    with pytest.raises(ValueError, match=r"x\.zarr is damaged"):
        dmsgd.diversify(tmp_path / "x.zarr", 5, kernel="linear", normalize=False)
    for content in ("{", "[" * 10**5, '{"zarr_format": 3, "node_type": "array"}'):
        (tmp_path / "x.zarr/zarr.json").write_text(content)
        with pytest.raises(ValueError, match=r"x\.zarr is damaged"):
            dmsgd.diversify(tmp_path / "x.zarr", 5, kernel="linear", normalize=False)


@pytest.mark.parametrize(
    ("shape", "chunks"), [((10**15, 3), (10, 3)), ((3, 10**15), (3, 10)), ((10**9, 9), (10**9, 9))]
)
def test_declared_sizes_of_zarr_are_refused_before_anything_is_allocated(
    shape, chunks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    zarr = pytest.importorskip("zarr")
    monkeypatch.setenv("DMSGD_MEMORY", "1GB")
    zarr.create_array(str(tmp_path / "x.zarr"), shape=shape, chunks=chunks, dtype="f8")
    with pytest.raises(MemoryError, match=r"x\.zarr needs .* and 1 GB may be used"):
        open_features(tmp_path / "x.zarr")


def test_parquet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    columns = {f"f{j}": column for j, column in enumerate(features().T)}
    table = pa.table({**columns, "label": ["a", "b", "c"] * 100})
    parquet.write_table(table, tmp_path / "x.parquet", row_group_size=80)
    monkeypatch.setattr("dmsgd.features.readers.BLOCK_BYTES", 100 * 12 * 8)
    F = open_features(tmp_path / "x.parquet", drop=("label",))
    assert F.bounds.tolist() == [0, 80, 160, 240, 300]
    monkeypatch.setattr("dmsgd.features.readers.BLOCK_BYTES", 30 * 12 * 8)
    small = open_features(tmp_path / "x.parquet", drop=("label",))
    assert np.diff(small.bounds).max() <= 30
    for given in (F, small):
        np.testing.assert_array_equal(
            dmsgd.diversify(given, 5, kernel="linear", normalize=False).sample(20, seed=0),
            dmsgd.diversify(features(), 5, kernel="linear", normalize=False).sample(20, seed=0),
        )
    with pytest.raises(ValueError, match="label"):
        open_features(tmp_path / "x.parquet")


def test_bad_files_are_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="there is no file"):
        dmsgd.diversify(tmp_path / "none.npy", 5, kernel="linear", normalize=False)
    (tmp_path / "x.hdf").write_bytes(b"")
    with pytest.raises(ValueError, match=r"x\.hdf"):
        dmsgd.diversify(tmp_path / "x.hdf", 5, kernel="linear", normalize=False)
    np.save(tmp_path / "wide.npy", features(5, 9))
    wide = dmsgd.diversify(
        str(tmp_path / "wide.npy"), 2, kernel="linear", normalize=False
    )  # small: taken into memory
    np.testing.assert_array_equal(
        wide.sample(9, seed=0),
        dmsgd.diversify(features(5, 9), 2, kernel="linear", normalize=False).sample(9, seed=0),
    )
    np.save(tmp_path / "line.npy", np.arange(5.0))
    with pytest.raises(ValueError, match=r"shape \(5,\).*X\.reshape\(-1, 1\)"):
        dmsgd.diversify(str(tmp_path / "line.npy"), 2, kernel="linear", normalize=False)
    np.save(tmp_path / "zero.npy", np.zeros((50, 3)))
    with pytest.raises(ValueError, match="all features are zero"):
        dmsgd.diversify(str(tmp_path / "zero.npy"), 2, kernel="linear", normalize=False)


def test_a_block_with_nan_is_named(cut) -> None:
    X = features()
    X[217, 3] = np.nan
    with pytest.raises(ValueError, match=r"rows from 200 on has 1 NaN .*\(17, 3\)"):
        dmsgd.diversify(cut(X, 100, 200), 4, kernel="linear", normalize=False)


def test_a_file_cut_short_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    np.save(path, features())
    F = open_features(path)
    path.write_bytes(path.read_bytes()[:-500])
    with pytest.raises(ValueError, match="has changed since it was opened"):
        exact(Linear(F))


def test_blocks_keep_to_the_memory_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DMSGD_MEMORY", "32MB")
    bounds = even_bounds(100_000, 16)
    assert (np.diff(bounds) * 16 * 8 <= 2**20).all()
    assert bounds[-1] == 100_000


def test_blocks_do_not_depend_on_what_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DMSGD_MEMORY", raising=False)
    found = []
    for free in (2**31, 2**22):
        sizes = {"MemTotal:": 2**31, "MemAvailable:": free}
        monkeypatch.setattr("dmsgd.runtime.memory._machine", sizes.__getitem__)
        found.append(even_bounds(100_000, 100).tolist())
    assert found[0] == found[1]


# Dask, without a cluster


@pytest.mark.parametrize(
    "chunks", [((300,), (12,)), ((100, 1, 199), (5, 7)), ((0, 150, 0, 150), (12,))]
)
def test_dask_arrays(chunks: tuple[tuple[int, ...], ...]) -> None:
    X, y = features(), np.random.default_rng(1).integers(4, size=300)
    array = da.from_array(X, chunks=chunks)
    for w, normalize in ((0.0, False), (0.4, True)):
        here, there = (y, da.from_array(y)) if w else (None, None)
        memory = dmsgd.diversify(X, 4, labels=here, w=w, normalize=normalize, kernel="linear")
        design = dmsgd.diversify(array, 4, labels=there, w=w, normalize=normalize, kernel="linear")
        np.testing.assert_array_equal(design.sample(20, seed=0), memory.sample(20, seed=0))
        np.testing.assert_allclose(design.inclusion(), memory.inclusion(), rtol=1e-9)
        assert design.fingerprint() == memory.fingerprint()


def test_dask_law() -> None:
    X = features(8, 4, seed=2)
    memory = KDPP(Linear(X), 3)
    design = dmsgd.diversify(
        da.from_array(X, chunks=((1, 0, 4, 3), 4)), 3, kernel="linear", normalize=False
    )
    sets = list(combinations(range(8), 3))
    np.testing.assert_allclose(design.log_prob(sets), memory.log_prob(sets), rtol=1e-9)
    np.testing.assert_array_equal(design.sample(2000, seed=6), memory.sample(2000, seed=6))


def test_dask_data_frames_and_ill_conditioned_arrays() -> None:
    pd = pytest.importorskip("pandas")
    dd = pytest.importorskip("dask.dataframe")
    frame = dd.from_pandas(pd.DataFrame(features()), npartitions=3)
    np.testing.assert_array_equal(
        dmsgd.diversify(frame, 5, kernel="linear", normalize=False).sample(9, seed=0),
        dmsgd.diversify(features(), 5, kernel="linear", normalize=False).sample(9, seed=0),
    )
    X = features(200, 6) * np.array([1, 1, 1, 1e-4, 1e-5, 1e-5])
    spectrum = exact(Linear(da.from_array(X, chunks=(30, 6))))
    assert spectrum.route == "dual"
    np.testing.assert_allclose(spectrum.values, exact(Linear(X)).values, rtol=1e-8)


def test_dask_chunk_with_nan_is_named() -> None:
    X = features()
    X[217, 3] = np.inf
    with pytest.raises(ValueError, match="rows from 200 on"):
        dmsgd.diversify(da.from_array(X, chunks=(100, 12)), 4, kernel="linear", normalize=False)


def test_a_streamed_design_can_be_pickled(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", features())
    design = dmsgd.diversify(str(tmp_path / "x.npy"), 5, kernel="linear", normalize=False)
    again = pickle.loads(pickle.dumps(design))
    np.testing.assert_array_equal(again.sample(9, seed=0), design.sample(9, seed=0))
