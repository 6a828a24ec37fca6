"""Each compiled loop against the NumPy line it stands for."""

import ast
import gc
import re
import weakref
from pathlib import Path

import numpy as np
import pytest
from numba.types import float64, int64

import dmsgd
from dmsgd.compiled import linear_algebra as la
from dmsgd.compiled import microkernels, projection
from dmsgd.compiled.jit import address, callback, float64_ptr
from dmsgd.compiled.llvm import BLOCK, LANES
from dmsgd.compiled.philox import fill_uniform
from dmsgd.compiled.tables import FRACTIONS, GROUP, TABLES, locate
from dmsgd.runtime.threads import parallel_map
from dmsgd.samplers.rejection_sampling import INT8_COLUMNS, DenseTables, kdpp_sampler

RNG = np.random.default_rng(0)


def philox(key, counter):
    """Philox4x32-10 in Python's own integers."""
    low, (a, b, c, d) = 2**32 - 1, counter
    for turn in range(10):
        first, second = 0xD2511F53 * a, 0xCD9E8D57 * c
        keys = [(key[0] + turn * 0x9E3779B9) & low, (key[1] + turn * 0xBB67AE85) & low]
        a, b, c, d = (
            second >> 32 ^ b ^ keys[0],
            second & low,
            first >> 32 ^ d ^ keys[1],
            first & low,
        )
    return a, b, c, d


@pytest.mark.parametrize(
    ("key", "counter", "expected"),
    [
        ((0, 0), (0, 0, 0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
        (
            (0xFFFFFFFF, 0xFFFFFFFF),
            (0xFFFFFFFF,) * 4,
            (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD),
        ),
        (
            (0xA4093822, 0x299F31D0),
            (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
            (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
        ),
    ],
)
def test_philox_gives_the_published_test_vectors(key, counter, expected):
    assert philox(key, counter) == expected


@pytest.mark.parametrize("size", [1, 2, 7, 8, 9, 16, 17, 40])
@pytest.mark.parametrize(
    ("key", "draw", "block"), [(0, 0, 0), (2**64 - 3, 2**64 - 1, 5), (2**40 + 9, 2**35, 2**32 - 3)]
)
def test_uniforms_are_those_of_philox(key, draw, block, size):
    low, expected = 2**32 - 1, []
    for c in range(block, block + (size + 1) // 2):
        words = philox((key & low, key >> 32), (c & low, 0, draw & low, draw >> 32))
        for high, rest in (words[:2], words[2:]):
            expected.append(((high << 20 | rest >> 12) + 0.5) / 2**52)
    out = np.full(size + 20, -1.0)
    after = fill_uniform(key, draw, block, out[:size])
    assert out[:size].tolist() == expected[:size]
    assert after == block + (size + 1) // 2
    assert (out[size:] == -1.0).all()


def test_uniforms_are_uniform_and_continue_where_they_stopped():
    out = np.empty(100_001)
    fill_uniform(5, 2**40, 0, out)
    assert 0 < out.min() < 1e-3 < 1 - 1e-3 < out.max() < 1
    assert np.histogram(out, 20, (0, 1))[0].std() < 200
    assert abs(np.corrcoef(out[:-1], out[1:])[0, 1]) < 0.02
    rest = np.empty(11)
    first = np.empty(10)
    block = fill_uniform(5, 2**40, 0, first)
    fill_uniform(5, 2**40, block, rest)
    np.testing.assert_array_equal(np.append(first, rest), out[:21])


# Loops that only compiled code calls, as Python can call them.


@callback(float64(float64_ptr, *3 * [int64], *3 * [float64_ptr]))
def reflect(strip, rows, width, column, v, y, squares):
    return la.reflect(strip, rows, width, column, v, y, squares)


@callback(int64(float64_ptr, int64, int64, float64_ptr))
def squares_of(strip, rows, width, out):
    la.squares(strip, rows, width, out)
    return 0


@callback(int64(float64_ptr, int64, float64_ptr))
def take_strip(Z, rows, strip):
    microkernels.take_strip(Z, rows, strip)
    return 0


@callback(int64(float64_ptr, float64_ptr, int64, float64_ptr))
def compact_wy(gram, taus, count, S):
    la.compact_wy(gram, taus, 0, count // 2, S)
    la.compact_wy(gram, taus, count // 2, count, S)
    return 0


@callback(int64(projection.WORK.record))
def begin(work):
    projection.begin(work)
    return 0


def padded(matrix, rows, columns):
    """The matrix with room to the right and below, filled with what must not matter."""
    room = np.full((rows, columns), np.nan)
    room[: matrix.shape[0], : matrix.shape[1]] = matrix
    return room


@pytest.mark.parametrize("rows", [1, 4, 7, 8, 19])
@pytest.mark.parametrize("inner", [0, 1, 5, 130])
@pytest.mark.parametrize("columns", [1, 8, 9, 16, 17, 32])
@pytest.mark.parametrize("add", [False, True])
def test_product(rows, inner, columns, add):
    A, B = RNG.normal(size=(rows, inner)), RNG.normal(size=(inner, columns))
    C = padded(RNG.normal(size=(rows, columns)), 24, 32)
    expected = A @ B + (C[:rows, :columns] if add else 0)
    left, right = padded(A, 24, inner + 1), padded(B, inner + 1, 32)
    la.product(left, inner + 1, 1, right, 32, C, 32, rows, inner, columns, int(add))
    np.testing.assert_allclose(C[:rows, :columns], expected, atol=1e-13)


def test_product_of_a_transposed_factor():
    A, B, C = RNG.normal(size=(5, 8)), RNG.normal(size=(5, 20)), np.zeros((8, 32))
    la.product(A, 1, 8, padded(B, 5, 32), 32, C, 32, 8, 5, 20, 0)
    np.testing.assert_allclose(C[:, :20], A.T @ B, atol=1e-13)


@pytest.mark.parametrize("rows", [2, 3, 4, 5, 9, 30])
@pytest.mark.parametrize(("width", "column"), [(LANES, 0), (LANES, 7), (BLOCK, 3), (BLOCK, 31)])
def test_reflections_send_a_column_to_the_last_axis(rows, width, column):
    Z = padded(RNG.normal(size=(rows, BLOCK)), rows + 4, BLOCK)
    strip, v = np.full((rows + 4, LANES), np.nan), np.full(rows + 4, np.nan)
    if width == BLOCK:
        strip = Z.copy()
    else:
        take_strip(Z, rows, strip)
    squares, before = np.empty(width), Z[:rows, :width]
    np.testing.assert_array_equal(strip[:rows], before)
    squares_of(strip, rows, width, squares)
    np.testing.assert_allclose(squares, (before**2).sum(axis=0), atol=1e-13)
    tau = reflect(strip, rows, width, column, v, np.empty(width), squares)
    H = np.eye(rows) - tau * np.outer(v[:rows], v[:rows])
    np.testing.assert_allclose(H @ H.T, np.eye(rows), atol=1e-13)
    np.testing.assert_allclose((H @ before[:, column])[:-1], 0, atol=1e-13)
    expected = (H @ before)[:-1]
    np.testing.assert_allclose(strip[: rows - 1], expected, atol=1e-13)
    assert (strip[rows - 1] == 0).all()
    np.testing.assert_allclose(squares, (expected**2).sum(axis=0), atol=1e-13)


@pytest.mark.parametrize("count", [1, 2, 9, BLOCK])
def test_a_group_is_the_product_of_its_reflections(count):
    k = 40
    V, taus, expected = RNG.normal(size=(k, count)), np.empty(count), np.eye(k)
    for i in range(count):
        taus[i] = 2 / (V[:, i] @ V[:, i])
        expected = (np.eye(k) - taus[i] * np.outer(V[:, i], V[:, i])) @ expected
    S = np.full((BLOCK, BLOCK), np.nan)
    compact_wy(padded(V.T @ V, BLOCK, BLOCK), taus, count, S)
    S = S[:count, :count]
    np.testing.assert_allclose(np.eye(k) + V @ S @ V.T, expected, atol=1e-12)


@pytest.mark.parametrize("size", [BLOCK, 5])
@pytest.mark.parametrize("k", [1, 2, 15, 16, 17, 50, 130])
def test_a_draw_accepts_what_gram_schmidt_accepts(k, size):
    """The same proposals, decided one by one by projection on all that was accepted before."""
    blocks = 40 * BLOCK // size
    X = RNG.normal(size=(blocks, k, BLOCK)) + 0.3
    thresholds = RNG.uniform(size=(blocks, BLOCK))
    Q, expected = np.zeros((k, 0)), []
    for block in range(blocks):
        for p in range(size):
            x, u = X[block, :, p], thresholds[block, p]
            rest = x - Q @ (Q.T @ x)
            rest -= Q @ (Q.T @ rest)
            if len(expected) < k and rest @ rest > u * (x @ x):
                Q = np.column_stack([Q, rest / np.linalg.norm(rest)])
                expected.append(block * BLOCK + p)
    workspace = projection.Workspace(k)
    begins = projection.WORK.dtype.itemsize // 8
    workspace.room[begins:] = np.nan  # nothing may depend on what is there before
    padded_X = np.full((blocks, k + 16, BLOCK), np.nan)
    padded_X[:, :k] = X
    items, out = np.arange(blocks * BLOCK).reshape(blocks, BLOCK), np.full(k, -1)
    begin(workspace.fields)
    left = k
    for block in range(blocks):
        if left:
            decided = items[block], padded_X[block], thresholds[block]
            left = projection.accept(workspace.fields, *decided, size, out)
    assert k - left == len(expected)
    assert out[: k - left].tolist() == expected


def columns_to_search(n):
    """Columns whose squares lie evenly, in one place, in a few, at the ends and on plateaus."""
    V = np.zeros((n, 7))
    V[:, 0] = RNG.normal(size=n)
    V[n // 2, 1] = 1.0
    V[:: max(n // 5, 1), 2] = RNG.normal(size=V[:: max(n // 5, 1), 2].size)
    V[0, 3] = V[-1, 3] = 1.0
    V[:, 4] = np.logspace(0, -12, n)
    V[:, 5] = np.logspace(-12, 0, n)
    V[:, 6] = 1.0
    return V / np.linalg.norm(V, axis=0)


@pytest.mark.parametrize("columns", [slice(0, 7), slice(2, 3), np.arange(19) % 7])
@pytest.mark.parametrize("n", [1, 8, GROUP - 1, GROUP, GROUP + 1, 1000])
def test_tables_find_the_row_at_which_squares_reach_a_sum(n, columns):
    V = np.ascontiguousarray(columns_to_search(n)[:, columns])
    count, r = 20_000, V.shape[1]
    tables, sums = DenseTables(V), np.cumsum(V**2, axis=0)
    table, totals = tables.sums, tables.totals
    np.testing.assert_allclose(totals[:r], sums[-1], rtol=1e-12)
    before, squares = table[:, :r, 0], np.zeros((GROUP * table.shape[0], r))
    squares[:n] = V**2
    np.testing.assert_array_equal(before[0], 0.0)
    np.testing.assert_allclose(before[1:], sums[GROUP - 1 : n - 1 : GROUP], rtol=1e-12, atol=1e-15)
    parts = np.cumsum(squares.reshape(-1, GROUP, r), axis=1)
    with np.errstate(invalid="ignore"):  # where a group has only zeros
        shares = parts[:, :-1] / parts[:, -1:] * FRACTIONS
    fractions = table.view(np.uint16)[:, :r, 8:].transpose(0, 2, 1)
    some = np.isfinite(shares)
    assert (fractions[some] < shares[some] + 1e-6).all()
    assert (fractions[some] > np.minimum(shares[some], FRACTIONS - 1) - 1 - 1e-6).all()

    chosen, shares = RNG.integers(0, r, count), RNG.uniform(size=count)
    shares[:2] = 2.0**-53, 1 - 2.0**-53
    targets, items = shares * totals[chosen], np.full(count, -1)
    bounds = table[RNG.integers(0, table.shape[0], count), chosen, 0]
    exactly = (bounds > 0) & (bounds < totals[chosen]) & (np.arange(count) % 2 == 1)
    targets[exactly] = bounds[exactly]  # where one group ends and the next begins
    locate(tables.arguments(1).record, chosen, targets, items, count)
    assert (items >= 0).all()
    assert (items < n).all()
    assert (sums[items, chosen] > targets * (1 - 1e-12)).all()
    before = np.where(items > 0, sums[items - 1, chosen], 0.0)
    assert (before < targets * (1 + 1e-12)).all()
    assert (V[items, chosen] != 0).all()


@pytest.mark.parametrize("array", [np.zeros(3, np.float32), np.zeros((4, 4))[:, ::2]])
def test_arrays_of_another_type_or_order_are_refused(array):
    with pytest.raises(TypeError, match="contiguous"):
        fill_uniform(0, 0, 0, array)


@pytest.mark.parametrize(
    "array", [np.zeros(3, np.float32), np.zeros(3, int), np.zeros((4, 4)).T[1]]
)
def test_tables_refuse_arrays_of_another_type_or_order(array):
    with pytest.raises(TypeError, match="contiguous"):
        TABLES.new(V=array)


def test_tables_refuse_unknown_names():
    with pytest.raises(KeyError, match="rows"):
        TABLES.new(rows=3)


def test_records_hold_numbers_and_the_addresses_of_arrays_and_callbacks():
    V, work = np.zeros((5, 2)), projection.WORK
    record = TABLES.new(V=V, n=5, r=2, int8_rows=None)
    assert record["V"] == address(V, float)
    assert (record["n"], record["r"], record["int8_rows"], record["sums"]) == (5, 2, 0, 0)
    code = work.new(product=la.product, source=record)
    assert code["product"] == la.product.address
    assert code["source"] == address(record, TABLES.dtype)


@pytest.mark.parametrize("workers", [1, 3])
def test_callbacks_run_in_threads(workers):
    out = [np.empty(1000) for _ in range(8)]
    parallel_map(lambda t: fill_uniform(7, t, 0, out[t]), range(8), workers)
    again = np.empty(1000)
    fill_uniform(7, 5, 0, again)
    np.testing.assert_array_equal(out[5], again)


#: What numba documents for programs that use it.
PUBLIC = {"numba", "numba.extending", "numba.types", "numba.core.cgutils", "numba.core.event"}
PRIVATE = re.compile(
    r"pipeline_class|\b_cache\b|_compile_for_args|get_call_template|_dynfunc|JITCodeLibrary|"
    r"global_compiler_lock|CacheLocator|\.overloads|get_pointer_to_function|\.pointee|"
    r"no_cpython_wrapper|no_cfunc_wrapper|PointerType\(\w"
)


def private_uses(text):
    """Return what a module that imports numba or llvmlite uses of them and should not."""
    used = {name.name for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Import)
            for name in node.names}  # fmt: skip
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and node.module == "numba.core":
            used |= {f"numba.core.{name.name}" for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            used.add(node.module or "")
    ours = {name for name in used if name.partition(".")[0] in ("numba", "llvmlite")}
    return {name for name in ours if "numba" in name} - PUBLIC | set(
        PRIVATE.findall(text) if ours else ()
    )


@pytest.mark.parametrize(
    "line", ["from numba.core import cgutils, caching", "import numba\nf._cache = None"]
)
def test_private_uses_are_found(line):
    assert private_uses(line)


def test_numba_and_llvmlite_are_used_by_their_public_names():
    sources = {path: path.read_text() for path in Path(dmsgd.__file__).parent.rglob("*.py")}
    assert {path: found for path, text in sources.items() if (found := private_uses(text))} == {}
    # Pointers have no type, except for the one by which llvmlite calls a function.
    assert sum(text.count(".as_pointer(") for text in sources.values()) == 1


def test_tables_are_freed_with_their_sampler():
    tables = DenseTables(np.eye(5))
    kdpp_sampler(tables, np.ones(5), 2).sample(0, 0, 1, 1)
    known = weakref.ref(tables.sums)
    gc.disable()  # without it, only what is in no cycle is freed
    try:
        del tables
        assert known() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("kind", ["gaussian", "heavy tails", "one row stands out", "sparse"])
@pytest.mark.parametrize("k", [1, 2, 40, 130])
def test_the_sieve_changes_no_draw(monkeypatch, kind, k):
    n, r = 700, 130
    X = np.random.default_rng(k).normal(size=(n, r))
    if kind == "heavy tails":
        X **= 5
    elif kind == "one row stands out":
        X[3] *= 1e6
    elif kind == "sparse":
        X *= np.random.default_rng(1).uniform(size=X.shape) < 0.05
    V, values = np.ascontiguousarray(np.linalg.qr(X)[0]), np.logspace(0, -8, r)
    assert r >= INT8_COLUMNS
    sifted = kdpp_sampler(DenseTables(V), values, k).sample(5, 0, 200, 1)
    monkeypatch.setitem(kdpp_sampler.__globals__, "INT8_COLUMNS", r + 1)
    np.testing.assert_array_equal(
        sifted, kdpp_sampler(DenseTables(V), values, k).sample(5, 0, 200, 1)
    )


@pytest.mark.parametrize("k", [1, 2, 15, 16, 17, 33, 64, 130])
def test_a_draw_stays_within_its_scratch(monkeypatch, k):
    """Compiled loops check no bounds, so what lies behind each array must come out untouched."""
    sizes, guard, made = projection.array_sizes(k), 8, []

    larger = {field: -(-size // 8) * 8 + guard for field, size in sizes.items()}
    monkeypatch.setattr(projection, "array_sizes", lambda k: larger)
    original = projection.Workspace.__init__

    def guards(workspace):
        start = address(workspace.room, np.float64)
        for field, size in sizes.items():
            end = (int(workspace.fields[field]) - start) // 8 + size
            yield workspace.room[end : end + guard]

    def watched(self, k):
        original(self, k)
        made.append(self)
        for each in guards(self):
            each[:] = 77

    monkeypatch.setattr(projection.Workspace, "__init__", watched)
    X = np.random.default_rng(k).normal(size=(300, 130))
    V = np.ascontiguousarray(np.linalg.qr(X)[0])
    kdpp_sampler(DenseTables(V), np.ones(130), k).sample(5, 0, 50, 1)
    assert made
    assert all((each == 77).all() for one in made for each in guards(one))
