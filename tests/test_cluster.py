"""Draws on a Dask cluster of two processes: the same schedules, whatever happens to a worker."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import dmsgd
from dmsgd.errors import ClusterError
from test_words import texts

sys.path.insert(0, str(Path(__file__).parent / "soak"))
from dask_processes import Child, DaskProcesses

dask, da = pytest.importorskip("dask"), pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")

# Dask's own, about sockets and sizes of graphs.
pytestmark = pytest.mark.filterwarnings("ignore")


def features(n: int = 600, d: int = 10) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(n, d))


@pytest.fixture(scope="module")
def processes() -> Iterator[DaskProcesses]:
    with DaskProcesses(workers=2) as processes:
        yield processes


@pytest.fixture(scope="module")
def client(processes: DaskProcesses) -> Iterator[Any]:
    with distributed.Client(processes.address, timeout=60) as client:
        wait_for_both(client, processes)
        yield client


def wait_for_both(client: Any, processes: DaskProcesses) -> None:
    """Wait for two workers, and start another for each that was killed."""
    processes.replace_dead()
    client.wait_for_workers(2, timeout=60)


def slow(array: Any, seconds: float) -> Any:
    """Return the array with chunks that take their time."""

    def wait(block: np.ndarray) -> np.ndarray:
        time.sleep(seconds if block.size > 1 else 0)
        return block

    return array.map_blocks(wait, dtype=array.dtype)


def test_schedules_drawn_on_a_cluster_are_the_same(client: Any, tmp_path: Path) -> None:
    here = dmsgd.presample(dmsgd.diversify(features(), 6), 600, seed=3)
    array = da.from_array(features(), chunks=(150, 10))
    with client.as_current():
        streamed = dmsgd.diversify(array, 6)
        drawn = dmsgd.presample(streamed, 600, seed=3, path=tmp_path / "s.npy")
    np.testing.assert_array_equal(drawn.batches, here.batches)
    np.testing.assert_allclose(drawn.inclusion(), here.inclusion(), rtol=1e-9)


def test_workers_read_a_store_themselves(client: Any, tmp_path: Path) -> None:
    zarr = pytest.importorskip("zarr")
    store = zarr.create_array(
        str(tmp_path / "x.zarr"), shape=(600, 10), chunks=(200, 10), dtype="f8"
    )
    store[:] = features()
    expected = dmsgd.diversify(features(), 6, target="uniform")
    with client.as_current():
        design = dmsgd.diversify(da.from_zarr(str(tmp_path / "x.zarr")), 6, target="uniform")
        drawn = dmsgd.presample(design, 40, path=tmp_path / "b.npy")
    np.testing.assert_allclose(drawn.inclusion(), expected.inclusion(), rtol=1e-6)
    assert np.load(tmp_path / "b.npy").shape == (40, 6)


def test_tasks_have_names_to_read(client: Any) -> None:
    array = da.from_array(features(), chunks=(150, 10))
    with client.as_current():
        dmsgd.diversify(array, 6).sample(20, seed=0)
    names = client.run_on_scheduler(lambda dask_scheduler: list(dask_scheduler.task_prefixes))
    assert {"dmsgd-gram", "dmsgd-answer"} <= set(names)


@pytest.mark.long
def test_sparse_rows_stay_on_the_workers(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    X, edges = texts(900, 30), [0, 1, 200, 200, 450, 900]
    parts = [dask.delayed(X[first:last]) for first, last in pairwise(edges)]
    chunks = [
        da.from_delayed(part, (last - first, 30), meta=sparse.csr_array((0, 0)))
        for part, (first, last) in zip(parts, pairwise(edges), strict=True)
    ]
    memory = dmsgd.diversify(X, 6)
    expected = memory.sample(100, seed=1)
    with client.as_current():
        for keep in (2**26, 0):  # a Gram matrix for each block, or one total
            monkeypatch.setattr("dmsgd.features.blocks.KEPT_BYTES", keep)
            design = dmsgd.diversify(da.concatenate(chunks), 6)
            np.testing.assert_array_equal(design.sample(100, seed=1), expected)
            np.testing.assert_allclose(design.inclusion(), memory.inclusion(), atol=1e-12)
        drawn = dmsgd.presample(design, 100, seed=1)
    np.testing.assert_array_equal(drawn.batches, expected)
    names = client.run_on_scheduler(lambda dask_scheduler: list(dask_scheduler.task_prefixes))
    assert {"dmsgd-add", "dmsgd-masses", "dmsgd-answer"} <= set(names)


@contextmanager
def connected(processes: DaskProcesses) -> Iterator[Any]:
    """Yield a client; it may have lost its scheduler in the end."""
    client = distributed.Client(processes.address, timeout=60, set_as_default=False)
    try:
        with client.as_current():
            yield client
    finally:
        with suppress(Exception):
            client.close(10)


def kill_a_worker_after(client: Any, seconds: float) -> threading.Timer:
    """Kill one so much later; a new one is the test's to start."""
    pid = next(iter(client.run(os.getpid, on_error="ignore").values()))
    timer = threading.Timer(seconds, Child(pid).kill)
    timer.start()
    return timer


@pytest.mark.long
def test_a_killed_worker_changes_nothing(
    client: Any, processes: DaskProcesses, tmp_path: Path
) -> None:
    array = slow(da.from_array(features(), chunks=(50, 10)), 0.15)  # a pass takes about a second
    expected = dmsgd.presample(dmsgd.diversify(features(), 6), 200, seed=1)
    with client.as_current():
        wait_for_both(client, processes)
        first = kill_a_worker_after(client, 0.5)
        design = dmsgd.diversify(array, 6)
        first.join()
        wait_for_both(client, processes)
        second = kill_a_worker_after(client, 1.5)
        path = tmp_path / "s.npy"
        schedule = dmsgd.presample(design, 200, seed=1, path=path)
        second.join()
    np.testing.assert_array_equal(schedule.batches, expected.batches)
    np.testing.assert_array_equal(dmsgd.Schedule.load(path).batches, expected.batches)


@pytest.fixture
def small_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that 600 items are chosen from in parts."""
    monkeypatch.setattr("dmsgd.selection.parts.SAMPLE", 200)
    monkeypatch.setattr("dmsgd.selection.parts.EACH", 1)


@pytest.mark.usefixtures("small_sample")
def test_sets_chosen_on_a_cluster_are_the_same(
    client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    array = da.from_array(features(), chunks=(150, 10))
    np.save(tmp_path / "x.npy", features())
    monkeypatch.setattr("dmsgd.features.readers.BLOCK_BYTES", 150 * 10 * 8)
    monkeypatch.setattr("dmsgd.runtime.memory.LARGE", 0)
    asked: Any = {"given": [3, 400], "groups": np.arange(600) % 5, "at_most": 6, "details": True}
    here = dmsgd.select(tmp_path / "x.npy", 20, **asked)
    with client.as_current():
        there = dmsgd.select(array, 20, **asked)
    np.testing.assert_array_equal(there.items, here.items)
    np.testing.assert_allclose(there.coverage, here.coverage, rtol=1e-12)
    names = client.run_on_scheduler(lambda dask_scheduler: list(dask_scheduler.task_prefixes))
    assert {"dmsgd-nearest", "dmsgd-cover", "dmsgd-covered"} <= set(names)


@pytest.mark.long
@pytest.mark.usefixtures("small_sample")
def test_a_killed_worker_does_not_change_a_chosen_set(
    client: Any, processes: DaskProcesses
) -> None:
    expected = dmsgd.select(da.from_array(features(), chunks=(50, 10)), 20)
    array = slow(da.from_array(features(), chunks=(50, 10)), 0.15)
    with client.as_current():
        for seconds in (0.3, 1.2):  # while the scale is found, and while blocks choose
            wait_for_both(client, processes)
            timer = kill_a_worker_after(client, seconds)
            found = dmsgd.select(array, 20)
            timer.join()
            np.testing.assert_array_equal(found, expected)
    wait_for_both(client, processes)


def test_an_error_on_a_worker_is_the_users_error_and_leaves_no_file(
    client: Any, tmp_path: Path
) -> None:
    X = features()
    X[470, 2] = np.nan
    array = da.from_array(X, chunks=(150, 10))
    with client.as_current(), pytest.raises(ValueError, match="rows from 450 on has 1 NaN"):
        dmsgd.presample(dmsgd.diversify(array, 6), 10, path=tmp_path / "s.npy")
    assert not list(tmp_path.iterdir())


NEVER_CONNECTED = """
import distributed, numpy as np, dask.array as da, dmsgd
try:
    distributed.Client("nonsense://x", timeout=1)
except ValueError:
    print(distributed.get_client().status)  # it stays Dask's default client
X = np.random.default_rng(0).normal(size=(600, 10))
design = dmsgd.diversify(da.from_array(X, chunks=(150, 10)), 6)
same = design.sample(9, seed=0) == dmsgd.diversify(X, 6).sample(9, seed=0)
print(same.all(), flush=True)
import os; os._exit(0)  # Dask itself would wait for that client
"""


@pytest.mark.long
def test_a_client_that_never_connected_is_not_waited_for() -> None:
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", NEVER_CONNECTED],
        capture_output=True, text=True, timeout=100,
    )  # fmt: skip
    assert run.stdout.split() == ["connecting", "True"], run.stderr


@contextmanager
def always_replaced(processes: DaskProcesses) -> Iterator[None]:
    """Start a worker for each that dies meanwhile."""
    over = threading.Event()

    def replace() -> None:
        while not over.wait(0.1):
            processes.replace_dead()

    replacing = threading.Thread(target=replace, daemon=True)
    replacing.start()
    try:
        yield
    finally:
        over.set()
        replacing.join()


def deadly(folder: Path, times: int) -> Any:
    """Return an array of one chunk, with which so many workers die."""

    def die(block: np.ndarray) -> np.ndarray:
        if block.size > 1 and len(list(folder.iterdir())) < times:
            (folder / str(os.getpid())).touch()
            time.sleep(0.3)  # what a second thread does meanwhile is done
            os.kill(os.getpid(), signal.SIGKILL)
        return block

    return da.from_array(features(), chunks=(600, 10)).map_blocks(die, dtype=float)


@pytest.mark.long
def test_a_task_that_kills_its_workers_is_an_error(
    client: Any, processes: DaskProcesses, tmp_path: Path
) -> None:
    def set_up() -> None:
        with client.as_current():
            dmsgd.diversify(deadly(tmp_path, 99), 6)

    with always_replaced(processes), pytest.raises(ClusterError, match="died on the same task"):
        within(100, set_up)
    wait_for_both(client, processes)


def within(seconds: float, work: Any) -> Any:
    """Return what `work()` returns; fail if it hangs."""
    outcome: list[Any] = []

    def run() -> None:
        try:
            outcome.append(work())
        except BaseException as error:
            outcome.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    assert outcome, f"it hangs for more than {seconds} seconds"
    if isinstance(outcome[0], BaseException):
        raise outcome[0]
    return outcome[0]


def test_a_cluster_in_this_process_is_known_too() -> None:
    with (
        distributed.LocalCluster(
            processes=False, n_workers=1, threads_per_worker=1, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster) as client,
        client.as_current(),
    ):
        design = dmsgd.diversify(da.from_array(features(), chunks=(150, 10)), 6)
        drawn = dmsgd.presample(design, 300, seed=3)
    expected = dmsgd.presample(dmsgd.diversify(features(), 6), 300, seed=3)
    np.testing.assert_array_equal(drawn.batches, expected.batches)


#: Enough that something can be lost in between.
LONG = 60_000


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return what sets the seconds in which a scheduler must answer."""
    for name in ("CHECK_SECONDS", "WORKERLESS_SECONDS"):
        monkeypatch.setattr(f"dmsgd.features.dask.{name}", 2.0)
    monkeypatch.setattr("dmsgd.schedules.files.SAVE_SECONDS", -1.0)
    monkeypatch.setattr("dmsgd.samplers.blocks.PROPOSAL_BYTES", 2**23)  # 1,600 draws at a time
    return lambda seconds: monkeypatch.setattr("dmsgd.features.dask.CONNECT_SECONDS", seconds)


def after(path: Path, draws: int, k: int, work: Any) -> threading.Thread:
    """Do `work` once so many draws are in the file at `path`."""

    def wait() -> None:
        while not path.exists() or path.stat().st_size < 8 * k * draws:
            time.sleep(0.01)
        work()

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    return thread


@pytest.mark.long
def test_whatever_is_lost_the_draws_stay(tmp_path: Path, impatient: Any) -> None:
    array, path = da.from_array(features(), chunks=(150, 10)), tmp_path / "s.npy"
    part = tmp_path / "s.part" / "batches.npy"
    with DaskProcesses(workers=2) as processes, connected(processes) as client:
        client.wait_for_workers(2, timeout=60)
        design = dmsgd.diversify(array, 6)

        def presample() -> Any:
            with client.as_current():
                return dmsgd.presample(design, LONG, 1, path)

        def draw() -> Any:
            return within(100, presample)

        after(part, 1000, 6, lambda: [processes.kill_worker() for _ in range(2)])
        with pytest.raises(ClusterError, match=f"{processes.address} has had no workers.*s.part"):
            draw()
        processes.add_worker()
        client.wait_for_workers(1, timeout=60)
        kept = part.stat().st_size

        def lose(number: int) -> None:
            processes.scheduler.send_signal(number)
            impatient(2.0)  # from now on

        after(part, kept // 48 + 1000, 6, lambda: lose(signal.SIGSTOP))
        with pytest.raises(ClusterError, match=f"{processes.address} .*no answer in 2 s.*s.part"):
            draw()
        assert part.stat().st_size > kept
        processes.scheduler.send_signal(signal.SIGCONT)
        impatient(10.0)
        kept = part.stat().st_size
        after(part, kept // 48 + 1000, 6, lambda: lose(signal.SIGKILL))
        with pytest.raises(ClusterError, match=f"scheduler at {processes.address} .*lost.*s.part"):
            draw()
        assert part.stat().st_size > kept
    design = dmsgd.diversify(features(), 6)
    np.testing.assert_array_equal(
        dmsgd.presample(design, LONG, 1, path).batches, design.sample(LONG, seed=1)
    )


@pytest.mark.long
def test_a_scheduler_that_is_lost_during_a_pass_is_named(tmp_path: Path, impatient: Any) -> None:
    def note(block: np.ndarray) -> np.ndarray:
        if block.size > 1:
            (tmp_path / "begun").touch()
            time.sleep(0.3)
        return block

    array = da.from_array(features(), chunks=(20, 10)).map_blocks(note, dtype=float)
    with DaskProcesses(workers=1) as processes, connected(processes) as client:
        client.wait_for_workers(1, timeout=60)

        def lose() -> None:
            processes.scheduler.kill()
            impatient(2.0)

        after(tmp_path / "begun", 0, 0, lose)

        def pass_over_all() -> Any:
            with client.as_current():
                return dmsgd.diversify(array, 6)

        with pytest.raises(ClusterError, match=f"scheduler at {processes.address} was lost"):
            within(100, pass_over_all)
