"""Sparse features in blocks, from folders and Dask: the law and the draws of CSR in memory."""

from __future__ import annotations

import os
import pickle
import shutil
import tracemalloc
import zipfile
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import dmsgd
from command_line import CliRunner
from contracts import check_closed_forms, check_determinism, check_draws, kdpp_law
from dmsgd.commands import app
from dmsgd.features import as_features
from dmsgd.features import blocks as blocks_module
from dmsgd.features.blocks import Blocks
from dmsgd.features.convert import open_features
from dmsgd.features.products import add_sparse_gram, gram, mirrored
from dmsgd.features.readers import SparseReader
from dmsgd.spectra.eigenvectors import Projected
from test_words import texts

K = 8


@pytest.fixture(autouse=True)
def all_files_are_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are read in blocks, however small."""
    monkeypatch.setattr("dmsgd.runtime.memory.LARGE", 0)


def written(folder: Path, X: sparse.csr_array, *edges: int, compressed: bool = True) -> Path:
    """Write the rows of X to files that end at these edges."""
    folder.mkdir()
    for number, (first, last) in enumerate(pairwise([0, *edges, X.shape[0]])):
        path = folder / f"{number:03d}.npz"
        sparse.save_npz(path, X[first:last], compressed=compressed)
    return folder


@pytest.fixture(params=["grams kept", "one total"])
def kept(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "one total":
        monkeypatch.setattr(blocks_module, "KEPT_BYTES", 0)
    return str(request.param)


EIGHT = np.array(
    [[1, 0, 0, 2], [0, 1, 0, 0], [0, 0, 3, 1], [1, 1, 0, 0], [0, 0, 0, 0], [1, 0, 0, 2],
     [0, 2, 1, 0], [0, 0, 1, 1.0]]
)  # fmt: skip


@pytest.mark.parametrize("edges", [(), (3,), (1, 2, 3, 4, 5, 6, 7), (0, 4, 4, 8)])
def test_the_law_equals_enumeration(edges: tuple[int, ...], kept: str, tmp_path: Path) -> None:
    folder = written(tmp_path / "corpus", sparse.csr_array(EIGHT), *edges)
    if len(edges) == 7:
        small = open_features(folder)
        small.bounds = np.arange(9)  # a block for every row
        design = dmsgd.diversify(small, 3, kernel="linear", normalize=False)
    else:
        design = dmsgd.diversify(folder, 3, kernel="linear", normalize=False)
    assert isinstance(design.spectrum.vectors, Projected)
    law = kdpp_law(EIGHT @ EIGHT.T, 3)
    check_closed_forms(design, law)
    if edges == (3,):
        check_draws(design, law)
    memory = dmsgd.diversify(sparse.csr_array(EIGHT), 3, kernel="linear", normalize=False)
    different = (design.sample(1000, seed=0) != memory.sample(1000, seed=0)).any(axis=1)
    assert different.sum() <= 1  # where a random number falls between two roundings


def test_draws_are_determined(kept: str, tmp_path: Path) -> None:
    check_determinism(
        dmsgd.diversify(
            written(tmp_path / "corpus", texts(300, 20), 100, 101),
            3,
            kernel="linear",
            normalize=False,
        )
    )


@pytest.mark.parametrize(
    ("k", "compressed"),
    [(1, True), (8, True), (33, True), (8, False),
     *(pytest.param(k, False, marks=pytest.mark.long) for k in (1, 33))],
)  # fmt: skip
def test_draws_are_those_of_the_same_matrix_in_memory(
    k: int, compressed: bool, kept: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dmsgd.features.readers.BLOCK_BYTES", 2**15)
    X = texts(1500, 50, words=9)
    folder = written(tmp_path / "corpus", X, 1, 1, 700, 1300, compressed=compressed)
    for asked in ({}, {"labels": np.arange(1500) % 5, "w": 0.4, "normalize": True}):
        memory, blocks = dmsgd.diversify(X, k, **asked), dmsgd.diversify(folder, k, **asked)
        assert blocks.spectrum.vectors.features.bounds.size > 3
        np.testing.assert_allclose(blocks.inclusion(), memory.inclusion(), atol=1e-12)
        different = (blocks.sample(300, seed=2) != memory.sample(300, seed=2)).any(axis=1)
        assert different.sum() <= 1  # where a random number falls between two roundings


def test_a_sparse_matrix_in_blocks_has_the_fingerprint_of_its_array(tmp_path: Path) -> None:
    X = texts(300, 20)
    X.data[5] = 0.0  # stored, and no entry
    X.data[9] = -0.0
    folder = written(tmp_path / "corpus", X, 100)
    assert (
        dmsgd.kernels.Linear(folder).fingerprint()
        == dmsgd.kernels.Linear(X.toarray()).fingerprint()
    )
    assert dmsgd.kernels.Linear(dmsgd.features.normalize(open_features(folder))).fingerprint() == (
        dmsgd.diversify(X.toarray(), 3, normalize=True, kernel="linear").spectrum.data
    )


def test_few_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dmsgd.features.readers.BLOCK_BYTES", 2**14)
    monkeypatch.setattr(blocks_module, "KEPT_BYTES", 0)
    folder = written(tmp_path / "corpus", texts(900, 30), 300, 600)
    reads: Counter[int] = Counter()
    read = SparseReader.read

    def counted(self: SparseReader, start: int, stop: int) -> Any:
        reads[start] += 1
        return read(self, start, stop)

    monkeypatch.setattr(SparseReader, "read", counted)
    design = dmsgd.diversify(folder, K, kernel="linear", normalize=False)
    assert len(reads) > 1
    assert set(reads.values()) == {1}  # the Gram matrix, and with it the fingerprint
    design.inclusion()
    assert set(reads.values()) == {2}  # the masses, and with them b
    design.sample(300, seed=0)
    assert max(reads.values()) <= 4


def test_nothing_is_made_dense(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dmsgd.runtime.threads.available_cores", lambda: 2)  # each takes blocks
    monkeypatch.setattr("dmsgd.features.readers.BLOCK_BYTES", 2**19)
    X = texts(30_000, 400, words=5)  # 96 MB as an array, 2.2 MB as it is
    folder = written(tmp_path / "corpus", X, 10_000, 20_000)
    dmsgd.diversify(
        written(tmp_path / "small", X[:900], 500), K, kernel="linear", normalize=False
    ).sample(1, seed=0)  # compiled
    tracemalloc.start()
    design = dmsgd.diversify(
        folder, K, labels=np.arange(30_000) % 3, w=0.3, normalize=True, kernel="linear"
    )
    design.sample(5, seed=0)
    design.inclusion()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 30_000 * 400 * 8 / 4


def test_a_block_is_a_large_file_or_several_small_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    places = rng.integers(40, size=2000), np.arange(2001)
    short = sparse.csr_array((rng.random(2000), *places), shape=(2000, 40))
    X = sparse.csr_array(sparse.vstack([np.ones((100, 40)), short], format="csr"))
    monkeypatch.setattr("dmsgd.features.readers.BLOCK_BYTES", 12_000)
    for compressed in (True, False):
        folder = written(tmp_path / str(compressed), X, compressed=compressed)
        assert open_features(folder).bounds.tolist() == [0, 2100]  # a file is read as a whole
        wide = dmsgd.kernels.nystrom(
            dmsgd.kernels.RBF(open_features(folder), 1.0), 50
        ).vectors.features
        assert 8 * wide.d * np.diff(wide.bounds).max() <= 2 * 12_000  # of rows that become dense
    many = written(tmp_path / "many", X, *range(1, 2100, 9))
    assert open_features(many).bounds.size < 30  # files that follow each other share a block


@pytest.mark.parametrize("compressed", [True, False])
def test_large_single_files_are_read_as_one_block(
    compressed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, path = texts(2000, 30), tmp_path / "x.npz"
    sparse.save_npz(path, X, compressed=compressed)
    expected = dmsgd.diversify(X, K, kernel="linear", normalize=False).sample(20, seed=0)
    monkeypatch.setattr("dmsgd.runtime.memory.LARGE", 2**30)
    assert not isinstance(as_features(path), Blocks)
    monkeypatch.setenv("DMSGD_MEMORY", "500KB")
    assert isinstance(as_features(path), Blocks)
    monkeypatch.setenv("DMSGD_MEMORY", "800KB")
    np.testing.assert_array_equal(
        dmsgd.diversify(path, K, kernel="linear", normalize=False).sample(20, seed=0), expected
    )
    monkeypatch.setenv("DMSGD_MEMORY", "50KB")
    with pytest.raises(MemoryError, match=r"x\.npz needs .*write smaller files"):
        dmsgd.diversify(path, K, kernel="linear", normalize=False)


def test_texts_in_memory_need_room_for_blocks_and_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    X = texts(3000, 20)
    F = open_features(written(tmp_path / "corpus", X, 300))
    size = 8 * (2 * X.nnz + 3000)
    monkeypatch.setenv("DMSGD_MEMORY", f"{1.5 * size / 1024}KB")
    with pytest.raises(MemoryError, match="memory"):
        F.to_memory()
    monkeypatch.setenv("DMSGD_MEMORY", f"{2.1 * size / 1024}KB")
    assert F.to_memory().matrix.nnz == X.nnz


@pytest.mark.parametrize("kind", ["csc", "coo", "bsr", "csr_matrix"])
def test_all_sparse_formats(kind: str, tmp_path: Path) -> None:
    X = texts(300, 20)
    (tmp_path / "corpus").mkdir()
    for number, part in enumerate((X[:100], X[100:])):
        saved = sparse.csr_matrix(part) if kind == "csr_matrix" else part.asformat(kind)
        sparse.save_npz(tmp_path / f"corpus/{number}.npz", saved, compressed=False)
    np.testing.assert_array_equal(open_features(tmp_path / "corpus").to_memory().matrix.toarray(),
                                  X.toarray())  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "int16", "bool", ">f8"])
def test_all_types_of_numbers(dtype: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dmsgd.features.readers.BLOCK_BYTES", 2**12)
    X = texts(300, 20).astype(np.dtype(dtype).newbyteorder("="))
    folder = written(tmp_path / "corpus", X, 100, compressed=False)
    if dtype.startswith(">"):  # as another machine would have written it
        _rewrite(folder / "000.npz", data=X[:100].data.astype(dtype))
    found = open_features(folder)
    np.testing.assert_array_equal(found.to_memory().matrix.toarray(), X.toarray())


def _rewrite(path: Path, **changed: Any) -> None:
    """Replace arrays of an archive."""
    with np.load(path) as held:
        arrays = {name: held[name] for name in held.files}
    np.savez(path, **(arrays | changed))


# Bad files


def cut_short(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def flip_a_bit(path: Path) -> None:
    with zipfile.ZipFile(path) as archive:
        info = archive.getinfo("data.npy")
    content = bytearray(path.read_bytes())
    content[info.header_offset + 300] ^= 4
    path.write_bytes(content)


def an_index_out_of_range(path: Path) -> None:
    X = sparse.load_npz(path)
    X.indices[-1] = 10**6
    sparse.save_npz(path, X, compressed=False)


def a_negative_index(path: Path) -> None:
    X = sparse.load_npz(path)
    X.indices[-1] = -1
    sparse.save_npz(path, X, compressed=False)


def rows_that_go_back(path: Path) -> None:
    indptr = sparse.load_npz(path).indptr.copy()
    indptr[5], indptr[6] = indptr[6] + 3, indptr[5]
    _rewrite(path, indptr=indptr)


def rows_beyond_the_end(path: Path) -> None:
    indptr = sparse.load_npz(path).indptr.astype(np.int64)
    indptr[-1] += 10**12
    _rewrite(path, indptr=indptr)


def too_few_rows(path: Path) -> None:
    _rewrite(path, indptr=sparse.load_npz(path).indptr[:-1])


def indices_with_fractions(path: Path) -> None:
    _rewrite(path, indices=sparse.load_npz(path).indices.astype(float))


def objects(path: Path) -> None:
    _rewrite(path, data=np.array([None] * sparse.load_npz(path).nnz))


DAMAGE = [
    cut_short, flip_a_bit, an_index_out_of_range, a_negative_index, rows_that_go_back,
    rows_beyond_the_end, too_few_rows, indices_with_fractions, objects,
]  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_files_are_one_clear_error(damage: Any, tmp_path: Path) -> None:
    folder = written(tmp_path / "corpus", texts(600, 20), 300, compressed=False)
    damage(folder / "001.npz")
    with pytest.raises(
        ValueError, match=r"001\.npz (is|is not|holds)|corpus: the block .* damaged"
    ):
        dmsgd.diversify(folder, K, kernel="linear", normalize=False)


def test_what_a_folder_must_hold(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="there is no file"):
        dmsgd.diversify(tmp_path / "none", K, kernel="linear", normalize=False)
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match=r"empty is a folder without \.npz files"):
        dmsgd.diversify(tmp_path / "empty", K, kernel="linear", normalize=False)
    folder = written(tmp_path / "corpus", texts(300, 20), 100)
    (folder / "notes.txt").write_text("other files are no features")
    (folder / ".hidden.npz").write_text("nor are these")
    expected = dmsgd.diversify(texts(300, 20), K, kernel="linear", normalize=False).sample(
        9, seed=0
    )
    np.testing.assert_array_equal(
        dmsgd.diversify(f"{folder}/", K, kernel="linear", normalize=False).sample(9, seed=0),
        expected,
    )
    np.savez(folder / "labels.npz", y=np.arange(300))
    with pytest.raises(ValueError, match=r"labels\.npz is no SciPy sparse matrix"):
        dmsgd.diversify(folder, K, kernel="linear", normalize=False)
    (folder / "labels.npz").write_bytes(b"")
    with pytest.raises(ValueError, match=r"labels\.npz is damaged"):
        dmsgd.diversify(folder, K, kernel="linear", normalize=False)
    sparse.save_npz(folder / "labels.npz", texts(300, 19))
    with pytest.raises(ValueError, match=r"labels\.npz has 19 columns and .*000\.npz has 20"):
        dmsgd.diversify(folder, K, kernel="linear", normalize=False)
    for name in ("x.npy", "x.npz", "x.parquet"):
        (tmp_path / name).mkdir()
        with pytest.raises(IsADirectoryError, match="is a folder; give a file"):
            dmsgd.diversify(tmp_path / name, K, kernel="linear", normalize=False)


def test_numbers_that_are_none_are_named(tmp_path: Path) -> None:
    X = texts(300, 20)
    X.data[-1] = np.nan
    with pytest.raises(ValueError, match=r"corpus.* has 1 NaN"):
        dmsgd.diversify(written(tmp_path / "corpus", X, 100), K, kernel="linear", normalize=False)


def test_declared_sizes_are_refused_before_anything_is_allocated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DMSGD_MEMORY", "30MB")
    folder = written(tmp_path / "corpus", texts(300, 20))
    _rewrite(folder / "000.npz", format=b"coo", shape=[10**15, 20], row=[0], col=[0], data=[1.0])
    with pytest.raises(MemoryError, match=r"corpus needs .* and 30 MB may be used"):
        dmsgd.diversify(folder, K, kernel="linear", normalize=False)
    shutil.copy(folder / "000.npz", folder / "001.npz")
    for name in ("000.npz", "001.npz"):
        _rewrite(folder / name, shape=[2**62 + 1, 20])  # together more than 64 bits count
    with pytest.raises(MemoryError, match=r"corpus needs .* and 30 MB may be used"):
        dmsgd.diversify(folder, K, kernel="linear", normalize=False)
    (folder / "001.npz").unlink()
    np.savez_compressed(
        folder / "000.npz", format=b"csr", shape=[1, 20], indptr=[0, 10**7],
        indices=np.zeros(10**7, np.int8), data=np.zeros(10**7, np.int8),
    )  # fmt: skip
    with pytest.raises(MemoryError, match=r"000\.npz needs .*; write smaller files"):
        dmsgd.diversify(folder, K, kernel="linear", normalize=False)


CHANGES = {
    "another": lambda path: sparse.save_npz(path, 2 * texts(300, 20)),
    "one that is gone": lambda path: path.unlink(),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_file_that_changes_after_set_up_is_noticed(name: str, tmp_path: Path) -> None:
    folder = written(tmp_path / "corpus", texts(600, 20), 300)
    design = dmsgd.diversify(folder, K, kernel="linear", normalize=False)
    CHANGES[name](folder / "001.npz")
    for ask in (lambda: design.sample(20, seed=0), lambda: design.joint([0], [1])):
        with pytest.raises((ValueError, FileNotFoundError), match=r"has changed since|001\.npz"):
            ask()


def test_a_change_that_the_file_system_does_not_show_is_found_by_the_hash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = written(tmp_path / "corpus", texts(600, 20), 300)
    design = dmsgd.diversify(folder, K, kernel="linear", normalize=False)
    monkeypatch.setattr(SparseReader, "check_unchanged", lambda self: None)
    sparse.save_npz(folder / "001.npz", 2 * texts(600, 20)[300:])
    with pytest.raises(ValueError, match="has changed since it was first read"):
        design.sample(300, seed=0)


def test_a_design_can_be_pickled_and_does_not_hold_the_rows(tmp_path: Path) -> None:
    design = dmsgd.diversify(
        written(tmp_path / "corpus", texts(3000, 20), 100), 5, kernel="linear", normalize=False
    )
    held = pickle.dumps(design)
    assert len(held) < 3000 * 8
    np.testing.assert_array_equal(pickle.loads(held).sample(9, seed=0), design.sample(9, seed=0))


def test_the_command_line(tmp_path: Path) -> None:
    folder = written(tmp_path / "corpus", texts(300, 20), 100)
    given = ["sample", f"{folder}/", "-k", "4", "-n", "9", "-o", str(tmp_path / "b.npy")]
    outcome = CliRunner().invoke(app, given, catch_exceptions=False)
    assert outcome.exit_code == 0, outcome.output
    expected = dmsgd.diversify(texts(300, 20), 4).sample(9, seed=0)
    np.testing.assert_array_equal(np.load(tmp_path / "b.npy"), expected)


# The parts


def test_one_total_has_the_same_bits_however_rows_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    X = texts(500, 60)
    whole = gram(X)
    monkeypatch.setattr("dmsgd.features.products.SHARED", 0)
    parts = np.zeros((60, 60))
    for first, last in pairwise([0, 1, 1, 77, 400, 500]):
        add_sparse_gram(parts, X[first:last])
    np.testing.assert_array_equal(mirrored(parts), whole)


def test_small_eigenvalues_take_more_rounds(tmp_path: Path, kept: str) -> None:
    X = sparse.csr_array(texts(400, 12).toarray() * np.logspace(0, -5, 12))
    memory = dmsgd.kernels.exact(dmsgd.kernels.Linear(X))
    blocks = dmsgd.kernels.exact(dmsgd.kernels.Linear(written(tmp_path / "corpus", X, 50, 51)))
    assert blocks.route == "dual"
    np.testing.assert_allclose(blocks.values, memory.values, rtol=1e-8)
    b = dmsgd.KDPP(blocks, 6).inclusion()
    np.testing.assert_allclose(b, dmsgd.KDPP(memory, 6).inclusion(), rtol=1e-8)


# Dask


def test_dask_chunks_that_are_not_what_they_say(tmp_path: Path) -> None:
    dask, da = pytest.importorskip("dask"), pytest.importorskip("dask.array")
    X = texts(300, 20)
    part, csr = dask.delayed(X), sparse.csr_array((0, 0))
    for given, kind, message in (
        ([part, part], TypeError, "objects that are not numbers"),
        (da.from_delayed(part, (300, 20), dtype=float), TypeError, r"meta=scipy\.sparse"),
        (da.from_delayed(part, (0, 20), meta=csr), ValueError, "is empty"),
        (da.from_delayed(part, (299, 20), meta=csr), ValueError, r"and should have \(299, 20\)"),
    ):
        with pytest.raises(kind, match=message):
            dmsgd.diversify(given, K, kernel="linear", normalize=False)
