"""Features of every kind, under every map, in the hands of everyone who takes features.

A new kind of features is one line in KINDS.
"""

import warnings
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from scipy import sparse

import dmsgd
from dmsgd.diagnostics import gradient_variance
from dmsgd.features import as_features
from dmsgd.features.blocks import in_blocks
from dmsgd.features.products import sampled_pairs
from dmsgd.inputs.arrays import on_host
from dmsgd.samplers import reference

RNG = np.random.default_rng(6)
N, D, K = 60, 5, 4
POINTS = RNG.uniform(0.1, 1.0, size=(N, D))
LABELS = np.arange(N) % 6


@pytest.fixture(autouse=True)
def all_files_are_large(monkeypatch):
    """Files are read in blocks, however small."""
    monkeypatch.setattr("dmsgd.runtime.memory.LARGE", 0)


def npy(X, folder):
    np.save(folder / "x.npy", X)
    return str(folder / "x.npy")


def npz(X, folder):
    np.savez(folder / "x.npz", X=X, y=np.arange(len(X)))
    return folder / "x.npz"


def sparse_npz(X, folder):
    sparse.save_npz(folder / "sparse.npz", sparse.csr_array(X))
    return str(folder / "sparse.npz")


def sparse_folder(X, folder):
    (folder / "corpus").mkdir()
    edges = [0, 1, 14, 14, 40, N]  # one of them is empty, and one is read in parts
    for number, (first, last) in enumerate(pairwise(edges)):
        part, path = sparse.csr_array(X[first:last]), folder / f"corpus/{number}.npz"
        sparse.save_npz(path, part, compressed=number < 3)
    return str(folder / "corpus")


def memory_map(X, folder):
    return np.load(npy(X, folder), mmap_mode="r")


def zarr_file(X, folder):
    zarr = pytest.importorskip("zarr")
    stored = zarr.create_array(str(folder / "x.zarr"), shape=X.shape, chunks=(17, 3), dtype="f8")
    stored[:] = X
    return str(folder / "x.zarr")


def parquet(X, folder):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    table = pa.table({f"f{j}": column for j, column in enumerate(X.T)})
    pq.write_table(table, folder / "x.parquet", row_group_size=23)
    return folder / "x.parquet"


def dask_array(X, folder):
    return pytest.importorskip("dask.array").from_array(X, chunks=((20, 0, 1, 39), (2, 3)))


def dask_sparse(X, folder):
    dask, da = pytest.importorskip("dask"), pytest.importorskip("dask.array")
    parts = [
        da.from_delayed(
            dask.delayed(sparse.csr_matrix)(X[first:last]), (last - first, D),
            meta=sparse.csr_matrix((0, 0)),
        )
        for first, last in pairwise([0, 1, 14, 14, N])
    ]  # fmt: skip
    return da.concatenate(parts)


def dask_frame(X, folder):
    pd, dd = pytest.importorskip("pandas"), pytest.importorskip("dask.dataframe")
    return dd.from_pandas(pd.DataFrame(X), npartitions=3)


def has_cuda():
    try:
        import torch
    except ImportError:
        return False
    return torch.cuda.is_available()


def cuda(X, folder):
    import torch

    return torch.tensor(X, device="cuda")


#: How users hold an (n, d) matrix: (array, folder) -> what they pass.
KINDS = {
    "array": lambda X, folder: X,
    "sparse": lambda X, folder: sparse.csr_array(X),
    "large array": lambda X, folder: in_blocks(X),
    "npy": npy,
    "npz": npz,
    "sparse npz": sparse_npz,
    "sparse folder": sparse_folder,
    "memory map": memory_map,
    "zarr": zarr_file,
    "parquet": parquet,
    "dask array": dask_array,
    "dask frame": dask_frame,
    "dask sparse": dask_sparse,
    **({"CUDA tensor": cuda} if has_cuda() else {}),
}

#: What is done to features before a kernel sees them.
MAPS = {
    "as they are": lambda X: X,
    "annealed": lambda X: dmsgd.features.anneal(X, 0.5),
    "standardised": lambda X: dmsgd.features.normalize(dmsgd.features.standardize(X)),
    "normalised": dmsgd.features.normalize,
    "with labels": lambda X: dmsgd.features.concat(X, LABELS, 0.5),
    "labels only": lambda X: dmsgd.features.concat(X, LABELS, 1.0),
    "all of these": lambda X: dmsgd.features.concat(
        dmsgd.features.normalize(dmsgd.features.anneal(X, 0.5)), LABELS, 0.3
    ),
}


@pytest.fixture
def small_memory(monkeypatch):
    """So little that blocks are a few rows."""
    monkeypatch.setattr("dmsgd.features.readers.BLOCK_BYTES", 21 * 8 * D)
    monkeypatch.setattr("dmsgd.features.array.BLOCK", 21 * D)


def kdpp(F):
    return dmsgd.KDPP(dmsgd.kernels.Linear(F), K)


def draws_of_dpp(F):
    batches = dmsgd.DPP(dmsgd.kernels.Linear(F)).sample(5, seed=1)
    return np.concatenate(batches)


def quiet(call):
    """The result of a call that may warn of an approximation."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dmsgd.KernelWarning)
        return call()


GRADIENTS = RNG.normal(size=(N, 2))

#: Everyone who takes features: (features) -> numbers that depend on them.
CONSUMERS = {
    "draws": lambda F: kdpp(F).sample(8, seed=3),
    "inclusion": lambda F: kdpp(F).inclusion(),
    "joint": lambda F: kdpp(F).joint([[0], [7]], [1, 7]),
    "log_prob": lambda F: kdpp(F).log_prob([[0, 1, 2, 3], [5, 20, 33, 58]]),
    "given items, b": lambda F: kdpp(F).given([7, 33]).inclusion(),
    "given items, draws": lambda F: kdpp(F).given([7, 33]).sample(3, seed=0),
    "most likely": lambda F: kdpp(F).greedy_map(),
    "reference sampler": lambda F: dmsgd.KDPP(
        dmsgd.kernels.exact(dmsgd.kernels.Linear(F)), K, sampler=reference
    ).sample(3, seed=0),
    "DPP": draws_of_dpp,
    "diversify": lambda F: dmsgd.diversify(F, K, labels=LABELS, w=0.4, normalize=True).inclusion(),
    "rbf": lambda F: dmsgd.diversify(F, K, kernel="rbf", scale=0.7).inclusion(),
    "kernel blocks": lambda F: dmsgd.kernels.RBF(F, 1.0).block([3, 50], [50, 0, 3]),
    "kernel columns": lambda F: dmsgd.kernels.Linear(F).columns([2, 59]),
    "diagonal": lambda F: dmsgd.kernels.Linear(F).diag(),
    "median scale": lambda F: dmsgd.kernels.RBF(F).scale,
    "nystrom": lambda F: dmsgd.kernels.nystrom(dmsgd.kernels.RBF(F, 0.7), 20).values,
    "nystrom of a linear kernel": lambda F: (
        dmsgd.kernels.nystrom(dmsgd.kernels.Linear(F), 20).values
    ),
    "nystrom, pivots": lambda F: (
        dmsgd.kernels.nystrom(dmsgd.kernels.RBF(F, 0.7), 20, "pivots").values
    ),
    "nystrom, k-means": lambda F: (
        dmsgd.kernels.nystrom(dmsgd.kernels.RBF(F, 0.7), 12, "kmeans").values
    ),
    "pivoted Cholesky": lambda F: (
        dmsgd.kernels.pivoted_cholesky(dmsgd.kernels.RBF(F, 0.7), 20).values
    ),
    "coreset": lambda F: dmsgd.kernels.coreset(dmsgd.kernels.RBF(F, 0.7), 12).values,
    "target, uniform": lambda F: dmsgd.diversify(F, K, target="uniform").inclusion(),
    "target, rbf": lambda F: quiet(
        lambda: dmsgd.diversify(F, K, kernel="rbf", scale=0.4, target="uniform").inclusion()
    ),
    "clustered": lambda F: dmsgd.designs.clustered(F, K).stratum,
    "SwapChain": lambda F: dmsgd.designs.SwapChain(dmsgd.kernels.Linear(F), K, burn_in=50).sample(
        2, seed=0
    ),
    "select": lambda F: dmsgd.select(F, K),
    "suggest_scale": lambda F: dmsgd.designs.suggest_scale(F, K),
    "gradient variance": lambda F: gradient_variance(kdpp(F), GRADIENTS).variance,
    "schedule": lambda F: dmsgd.presample(kdpp(F), 6, seed=1).batches,
}


#: Maps under which everyone takes features; the others change what rows are, not who asks.
FOR_EVERYONE = ("as they are", "all of these")

#: Who between them ask features for all that they answer: rows, columns, products, sums and blocks.
EVERY_QUESTION = (
    "draws", "inclusion", "given items, b", "diversify", "kernel blocks",
    "kernel columns", "diagonal", "nystrom", "pivoted Cholesky", "target, uniform",
)  # fmt: skip

#: Kinds that meet every map in `make test`.
ALL_MAPS = {"array", "sparse", "npy"}

#: Kinds that share all code behind what opens them with one of the others: two maps will do.
OPENED_ONLY = {"npz", "sparse npz", "memory map", "zarr", "parquet", "dask frame"}
CASES = [
    pytest.param(
        kind,
        map_name,
        tuple(CONSUMERS if map_name in FOR_EVERYONE else EVERY_QUESTION),
        # One map that is all others after each other holds for every kind; the rest is for long.
        marks=()
        if kind in ALL_MAPS and (kind, map_name) != ("npy", "as they are")
        else pytest.mark.long,
        id=f"{kind}-{map_name}",
    )
    for kind in KINDS
    for map_name in MAPS
    if kind not in OPENED_ONLY or map_name in FOR_EVERYONE
] + [
    pytest.param(kind, "all of these", EVERY_QUESTION, id=f"{kind}-every question")
    for kind in KINDS
    if kind not in (*ALL_MAPS, *OPENED_ONLY, "sparse folder")
]


@cache
def expectation(name, map_name, is_sparse):
    """What a consumer makes of an array under a map, or the error that it raises."""
    features = MAPS[map_name](sparse.csr_array(POINTS) if is_sparse else POINTS)
    try:
        return CONSUMERS[name](features.toarray() if sparse.issparse(features) else features)
    except ValueError as error:  # a target out of reach, say: then so it is for all kinds
        return error


@pytest.mark.parametrize(("kind", "map_name", "names"), CASES)
def test_every_kind_under_every_map_for_everyone(kind, map_name, names, tmp_path, small_memory):
    given = MAPS[map_name](KINDS[kind](POINTS, tmp_path))
    for name in names:
        consumer = CONSUMERS[name]
        expected = expectation(name, map_name, "sparse" in kind)
        if isinstance(expected, ValueError):
            with pytest.raises(type(expected)):
                consumer(given)
            continue
        found = on_host(consumer(given))
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-9, err_msg=name)


#: What is asked for beside features, by name.
ASKED = {
    "nothing": {},
    "labels": {"labels": LABELS, "w": 0.3, "normalize": True},
    "rbf": {"kernel": "rbf"},
    "target": {"target": "uniform"},
    "standardised": {"standardize": True, "normalize": True},
}


@cache
def fingerprint_of_points(asked):
    return dmsgd.diversify(POINTS, K, **ASKED[asked]).fingerprint()


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_numbers_have_one_fingerprint(kind, tmp_path, small_memory):
    if kind in ("sparse", "sparse npz"):
        pytest.skip("CSR in memory is another matrix than its dense form: a stored zero is no zero")
    given = KINDS[kind](POINTS, tmp_path)
    for asked, settings in ASKED.items():
        if "sparse" in kind and asked == "standardised":
            continue
        found = dmsgd.diversify(given, K, **settings).fingerprint()
        assert found == fingerprint_of_points(asked), asked


@pytest.mark.parametrize("kind", ["array", "sparse"])
def test_changing_the_callers_array_changes_nothing(kind, tmp_path):
    X = KINDS[kind](POINTS.copy(), tmp_path)
    kernels = [dmsgd.kernels.Linear(X), dmsgd.kernels.RBF(X, 0.7)]
    designs = [dmsgd.designs.SwapChain(kernels[0], K, burn_in=50), dmsgd.diversify(X, K)]
    before = [(k.fingerprint(), k.block(range(9), range(9))) for k in kernels]
    drawn = [(d.fingerprint(), d.sample(3, seed=0)) for d in designs]
    late = dmsgd.kernels.Linear(X)  # not yet hashed
    hashed = kernels[0].fingerprint()
    values = X.data if sparse.issparse(X) else X
    values *= RNG.uniform(0.5, 2.0, size=values.shape)
    for kernel, (name, block) in zip(kernels, before, strict=True):
        assert kernel.fingerprint() == name
        np.testing.assert_array_equal(kernel.block(range(9), range(9)), block)
    for design, (name, batches) in zip(designs, drawn, strict=True):
        assert design.fingerprint() == name
        np.testing.assert_array_equal(design.sample(3, seed=0), batches)
    assert late.fingerprint() == hashed


@pytest.mark.parametrize("dtype", [np.float32, np.int64])
def test_changing_the_places_of_a_sparse_matrix_changes_nothing(dtype):
    """Numbers of another type are converted, which leaves the caller's places as they are."""
    X = sparse.csr_array(np.diag(np.arange(1, 7)).astype(dtype))
    kernel = dmsgd.kernels.Linear(X)
    block = kernel.block(range(6), range(6))
    X.indices[:] = 0
    np.testing.assert_array_equal(kernel.block(range(6), range(6)), block)


def test_masked_arrays_are_refused():
    with pytest.raises(ValueError, match=r"X is masked at 3 entries.*fill"):
        dmsgd.diversify(np.ma.masked_greater(POINTS, np.sort(POINTS.ravel())[-4]), K)
    unmasked = dmsgd.diversify(np.ma.masked_greater(POINTS, 9), K)
    np.testing.assert_array_equal(unmasked.inclusion(), dmsgd.diversify(POINTS, K).inclusion())


def test_a_sparse_matrix_with_bad_indices_is_refused():
    S = sparse.csr_array(POINTS)
    S.indices[7] = 10**6
    with pytest.raises(ValueError, match="X is a damaged sparse matrix"):
        dmsgd.diversify(S, K)


def test_maps_leave_their_source_alone(tmp_path):
    F = as_features(npy(POINTS, tmp_path))
    dmsgd.features.concat(dmsgd.features.normalize(F), LABELS, 0.5)
    assert F.shape == (N, D)
    np.testing.assert_array_equal(F.to_memory().matrix, POINTS)


def test_the_gram_of_sparse_rows_is_that_of_the_array_however_full_they_are():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(90, 70)) * (rng.random((90, 70)) < rng.choice([0.01, 0.3, 1.0], (90, 1)))
    for rows in (X, X.T, X[(X != 0).sum(axis=1) < 3], np.abs(X) + 1):
        F = as_features(sparse.csr_array(rows))
        np.testing.assert_allclose(F.gram(), rows.T @ rows, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(F.transposed().gram(), rows @ rows.T, rtol=1e-12, atol=1e-12)


def test_pairs_of_few_sizes_are_kept():
    for n in range(100, 130):
        sampled_pairs(n)
    assert sampled_pairs.cache_info().currsize < 30
