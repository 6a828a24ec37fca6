"""Long work is announced before it is done, and short work is not."""

from __future__ import annotations

import logging
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import dmsgd
from dmsgd.features import products
from dmsgd.features.contract import SHORTER
from dmsgd.inputs.arrays import IntArray
from dmsgd.kernels import pivoted_cholesky
from dmsgd.runtime import progress
from dmsgd.runtime.threads import draw_in_parallel, in_background
from dmsgd.spectra import decompose


class Stopped(Exception):
    """Where the work would begin."""


@pytest.fixture
def nothing_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: object) -> None:
        raise Stopped

    assert dmsgd.diversify  # a module that is loaded later would keep `stop` for its eigh
    monkeypatch.setattr("dmsgd.spectra.decompose.eigh", stop)
    monkeypatch.setattr("dmsgd.features.array.products.gram", stop)
    monkeypatch.setenv("DMSGD_MEMORY", "1TB")


@pytest.mark.usefixtures("nothing_is_done")
def test_texts_with_many_words_are_announced(caplog: pytest.LogCaptureFixture) -> None:
    X = sparse.random_array((20_000, 30_000), density=1e-4, rng=np.random.default_rng(0))
    with caplog.at_level(logging.WARNING, "dmsgd"), pytest.raises(Stopped):
        dmsgd.diversify(X, 64, kernel="linear", normalize=False)
    (line,) = caplog.messages
    assert "20,000 items" in line
    assert " takes about 40 minutes and 14.9 GB; without it dmsgd.designs.SwapChain(" in line


@pytest.mark.usefixtures("nothing_is_done")
@pytest.mark.parametrize(("n", "announced"), [(5000, False), (8000, True)])
def test_a_minute_is_long(n: int, announced: bool, caplog: pytest.LogCaptureFixture) -> None:
    X = sparse.random_array((n, n), density=1e-3, rng=np.random.default_rng(0))
    with caplog.at_level(logging.WARNING, "dmsgd"), pytest.raises(Stopped):
        dmsgd.diversify(X, 64, kernel="linear", normalize=False)
    assert bool(caplog.messages) == announced


@pytest.mark.usefixtures("nothing_is_done")
def test_short_work_is_not(caplog: pytest.LogCaptureFixture) -> None:
    X = sparse.random_array((3000, 2000), density=1e-3, rng=np.random.default_rng(0))
    with caplog.at_level(logging.WARNING, "dmsgd"), pytest.raises(Stopped):
        dmsgd.diversify(X, 64, kernel="linear", normalize=False)
    assert caplog.messages == []


def test_it_is_printed_where_nobody_has_asked_for_anything_else() -> None:
    code = (
        "from dmsgd.runtime.progress import announce\n"
        "announce(1e18, 2**27, 'this', 'do that')\nannounce(1e3, 9, 'another', 'do that')"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    assert re.fullmatch(r"this takes about \d+ (minutes|hours) and 1 GB; do that\n", run.stderr)


@pytest.mark.parametrize(
    ("seconds", "words"), [(61, "61 seconds"), (200, "3 minutes"), (7200, "2 hours")]
)
def test_times_in_words(seconds: float, words: str) -> None:
    assert progress.format_seconds(seconds) == words


@pytest.mark.parametrize("advised", re.findall(r"dmsgd\.[\w.]+\(.*?, k\)", SHORTER))
def test_what_is_advised_works(advised: str) -> None:
    X = sparse.random_array((300, 400), density=0.1, rng=np.random.default_rng(0), format="csr")
    design = eval(advised, {"dmsgd": dmsgd, "X": X, "k": 4})
    assert design.sample(2, seed=0).shape == (2, 4)


def test_two_ways_are_advised() -> None:
    assert len(re.findall(r"dmsgd\.[\w.]+\(.*?, k\)", SHORTER)) == 2


@pytest.mark.usefixtures("nothing_is_done")
def test_too_little_memory_gets_the_same_advice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DMSGD_MEMORY", "4GB")
    X = sparse.random_array((20_000, 30_000), density=1e-4, rng=np.random.default_rng(0))
    with pytest.raises(MemoryError, match=r"needs 14.9 GB and 4 GB may be used; without it dmsgd"):
        dmsgd.diversify(X, 64, kernel="linear", normalize=False)


# While it lasts

#: Sparse, so that its Gram matrix is quick; one thread takes some twenty seconds for the rest.
SLOW = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
import numpy as np
from scipy import sparse
from dmsgd.features import products
from dmsgd.runtime import progress
from dmsgd.inputs.arrays import IntArray
from dmsgd.runtime.threads import in_background
progress.LONG, progress.EVERY = 1e-3, 0.2
X = sparse.random_array((5000, 5000), density=1e-3, rng=np.random.default_rng(0), format="csr")
"""
IN_PYTHON = SLOW + "import dmsgd; dmsgd.diversify(X, 8)"
AT_THE_TERMINAL = SLOW + (
    "sparse.save_npz('x.npz', X)\n"
    "sys.argv = 'dmsgd sample x.npz -k 8 -n 3 -o out.npy'.split()\n"
    "from dmsgd.commands import main; main()"
)


@contextmanager
def eigendecomposition(code: str, folder: Path) -> Iterator[subprocess.Popen[str]]:
    """Yield a process that runs `code` and has logged the progress of its eigendecomposition."""
    with subprocess.Popen(
        [sys.executable, "-c", code],
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=folder,
    ) as process:
        try:
            assert process.stderr
            for line in process.stderr:
                if re.match(r"the eigendecomposition of 5,000 rows and columns: \d+ sec", line):
                    break
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize(
    ("code", "returned"),
    [pytest.param(IN_PYTHON, -signal.SIGINT, marks=pytest.mark.long), (AT_THE_TERMINAL, 130)],
)
def test_ctrl_c_ends_an_eigendecomposition(tmp_path: Path, code: str, returned: int) -> None:
    with eigendecomposition(code, tmp_path) as process:
        sent = time.monotonic()
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=100)
    assert process.returncode == returned
    assert not (tmp_path / "out.npy").exists()  # it did not go on to the end
    assert time.monotonic() - sent < 60
    ended = [line for line in errors.splitlines() if not line.startswith("the eigendecomposition")]
    if returned == 130:
        assert ended == []
    else:
        assert ended[0].startswith("Traceback")
        assert ended[-1] == "KeyboardInterrupt"
        assert "Exception ignored" not in errors


def test_long_work_in_a_thread_returns_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Up to rounding: np.linalg and scipy.linalg bring a LAPACK each. Signs are free."""
    F = np.random.default_rng(0).normal(size=(150, 120))
    (values, vectors), alone = decompose.eigh(F.T @ F), decompose.eigenvalues(F.T @ F)
    monkeypatch.setattr(progress, "LONG", 1e-9)
    threads = []
    monkeypatch.setattr(
        progress, "in_background", lambda *a, **b: threads.append(1) or in_background(*a, **b)
    )
    again, turned = decompose.eigh(F.T @ F)
    close = {"rtol": 0, "atol": 1e-13 * values[0]}
    np.testing.assert_allclose(again, values, **close)
    np.testing.assert_allclose(abs(vectors.T @ turned), np.eye(120), atol=1e-11)
    np.testing.assert_allclose(decompose.eigenvalues(F.T @ F), alone, **close)
    assert len(threads) == 2


def test_long_batches_are_drawn_in_a_thread_and_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    F, sizes, threads = np.random.default_rng(0).normal(size=(40, 30)), [], []
    design = dmsgd.KDPP(dmsgd.kernels.exact(dmsgd.kernels.Linear(F)), 20)
    expected = design.sample(2000, seed=0)  # more than NumPy draws, so that loops are loaded
    monkeypatch.setattr(progress, "LONG", 1e-9)
    monkeypatch.setattr(
        progress, "in_background", lambda *a, **b: threads.append(1) or in_background(*a, **b)
    )
    monkeypatch.setattr("dmsgd.runtime.threads.PRODUCTS", 1.0)
    np.testing.assert_array_equal(design.sample(5, seed=0), expected[:5])
    assert len(threads) == 5

    def draw(first: int, out: IntArray) -> int:
        sizes.append((first, len(out)))
        return len(out)

    draw_in_parallel(draw, 0, 4, 20, 1, products=0.5)
    assert sizes == [(0, 2), (2, 2)]


def test_ctrl_c_does_not_wait_for_a_second_of_work() -> None:
    thread = threading.current_thread
    assert progress.run_interruptible(thread, progress.SPEED, "this") is not thread()
    assert progress.run_interruptible(thread, 1e6, "this") is thread()


def test_long_work_raises_its_own_error() -> None:
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        progress.run_interruptible(lambda: np.linalg.cholesky(-np.eye(30)), 1e18, "this")


def test_progress_is_told_now_and_then(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    now = iter([0.0, 10.0, 31.0, 40.0, 62.0, 100.0])
    monkeypatch.setattr("time.monotonic", lambda: next(now))
    tell = progress.Progress("this")
    for share in (0.1, 0.25, 0.4, 0.5, 1.2):
        tell(share)
    assert caplog.messages == [
        "this: 31 seconds of about 2 minutes",
        "this: 62 seconds of about 2 minutes",
        "this: 2 minutes, longer than expected",
    ]


@pytest.fixture
def everything_is_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "LONG", 1e-9)
    monkeypatch.setattr(progress, "EVERY", 0.0)


@pytest.mark.usefixtures("everything_is_long")
@pytest.mark.parametrize(
    ("work", "told"),
    [
        (lambda X: dmsgd.KDPP(dmsgd.kernels.Linear(X), 4), "the eigendecomposition of 30 rows"),
        (lambda X: dmsgd.diversify(X, 4, target="uniform"), "prescribed inclusion of 60 items"),
        (lambda X: dmsgd.KDPP(dmsgd.kernels.Linear(sparse.csr_array(X)), 4), "the Gram matrix of "),
        (lambda X: dmsgd.diversify(X, 4, kernel="rbf"), "a product of 60 x 30"),
        (lambda X: dmsgd.kernels.Precomputed(X @ X.T), "the check of the matrix"),
        (lambda X: pivoted_cholesky(dmsgd.kernels.Linear(X), 9), "a factor of 60 items x 14"),
        (lambda X: dmsgd.designs.SwapChain(dmsgd.kernels.Linear(X), 4), "a factor of 60 items x 4"),
    ],
)  # fmt: skip
def test_long_parts_say_how_far_they_are(
    work: Any, told: str, caplog: pytest.LogCaptureFixture
) -> None:
    X = np.abs(np.random.default_rng(0).normal(size=(60, 30)))
    X[X < 1] = 0
    work(X)
    assert any(line.startswith(told) for line in caplog.messages), caplog.messages


def test_passes_over_files_say_how_far_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(progress, "EVERY", 0.0)
    monkeypatch.setattr("dmsgd.runtime.memory.LARGE", 0)  # files are read in blocks
    X = np.abs(np.random.default_rng(0).normal(size=(60, 30)))
    np.save(tmp_path / "x.npy", X)
    (tmp_path / "corpus").mkdir()
    sparse.save_npz(tmp_path / "corpus" / "x.npz", sparse.csr_array(np.where(X < 1.5, 0, X)))
    for name in ("x.npy", "corpus"):
        caplog.clear()
        dmsgd.diversify(tmp_path / name, 4, kernel="linear", normalize=False)
        assert "a pass over 60 items: " in caplog.text


def test_many_equal_eigenvalues_say_how_far_they_are(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(progress, "EVERY", 0.0)
    monkeypatch.setattr(progress, "LONG", 1e-9)
    dmsgd.diversify(
        np.linalg.qr(np.ones((30, 20)) + np.eye(30, 20))[0], 4, kernel="linear", normalize=False
    )
    assert "the basis of 20 equal eigenvalues: " in caplog.text


def test_a_search_says_how_far_it_is(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(progress, "EVERY", 0.0)
    dmsgd.diversify(
        np.random.default_rng(0).normal(size=(60, 30)),
        4,
        target="uniform",
        kernel="linear",
        normalize=False,
    )
    assert "prescribed inclusion of 60 items: " in caplog.text


@pytest.mark.usefixtures("everything_is_long")
def test_an_indefinite_matrix_is_refused_wherever_it_is_checked() -> None:
    with pytest.raises(ValueError, match="not positive semi-definite"):
        dmsgd.kernels.Precomputed(np.diag([1.0, -1.0, 2.0]))


def test_the_tables_of_texts_say_how_far_they_are(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("dmsgd.features.array.STORED", 0)
    monkeypatch.setattr(progress, "EVERY", 0.0)
    X = sparse.random_array((300, 40), density=0.1, rng=np.random.default_rng(0), format="csr")
    dmsgd.diversify(X, 4, kernel="linear", normalize=False).sample(1, seed=0)
    assert "the tables of 300 items x 40 eigenvectors: " in caplog.text


def test_the_gram_matrix_does_not_depend_on_its_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    X = sparse.random_array((300, 40), density=0.1, rng=np.random.default_rng(0), format="csr")
    X = sparse.csr_array(sparse.vstack([X, np.ones((3, 40))]))
    whole = products.gram(X)
    for name in ("WORK", "PIECE"):
        monkeypatch.setattr(products, name, 7)
    np.testing.assert_allclose(products.gram(X), whole, rtol=1e-14)
    np.testing.assert_allclose(whole, (X.T @ X).toarray(), rtol=1e-12)


def test_k_means_is_announced_and_says_how_far_it_is(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    X = np.random.default_rng(0).normal(size=(3000, 8))
    with caplog.at_level(logging.WARNING, "dmsgd"):
        dmsgd.designs.clustered(X, 200)
        assert not caplog.messages  # what is short is not mentioned
        for name, value in (("LONG", 0.0), ("EVERY", 1e-9), ("TICK", 1e-3)):
            monkeypatch.setattr(progress, name, value)
        dmsgd.designs.clustered(X, 200)
    first, *others = caplog.messages
    what = "k-means of 3,000 items x 8 features in 200 clusters"
    assert re.fullmatch(f"{what} takes about .* seconds and .*; fewer clusters take less", first)
    assert others
    assert all(line.startswith(f"{what}: ") for line in others)
