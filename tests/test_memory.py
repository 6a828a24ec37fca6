import os
import signal
import threading
import time
import tracemalloc

import numpy as np
import pytest

import dmsgd
from dmsgd.runtime import memory
from dmsgd.runtime import threads as parallel
from dmsgd.runtime.threads import available_cores, parallel_map, thread_count

X = np.random.default_rng(0).normal(size=(60, 4))
LABELS = np.arange(60) % 3


def new_designs():
    """One of every kind, those without a fixed k too."""
    kdpp = dmsgd.diversify(X, 3)
    return {
        "KDPP": kdpp,
        "Uniform": dmsgd.Uniform(60, 3),
        "Stratified": dmsgd.Stratified(LABELS, 3),
        "Weighted": dmsgd.Weighted.like(kdpp),
        "Partition": dmsgd.Partition(dmsgd.Stratified(LABELS, 3)),
        "SwapChain": dmsgd.designs.SwapChain(dmsgd.kernels.Linear(X), 3),
        "DPP": dmsgd.DPP(dmsgd.kernels.Linear(X)),
    }


DESIGNS = new_designs()


def group(folder, limit, used=0, cache=0, version=2):
    """Write the files of a control group."""
    folder.mkdir(parents=True, exist_ok=True)
    names = ("memory.max", "memory.current", "inactive_file")
    old = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
    names = names if version == 2 else old
    (folder / names[0]).write_text(f"{limit}\n")
    (folder / names[1]).write_text(f"{used}\n")
    (folder / "memory.stat").write_text(f"anon 100000\n{names[2]} {cache}\n")


def test_a_container_has_less_than_its_machine(tmp_path, monkeypatch):
    group(tmp_path, 1_000_000, used=400_000, cache=50_000)
    assert memory._cgroups(True, tmp_path, "0::/") == 650_000
    assert memory._cgroups(False, tmp_path, "0::/") == 1_000_000
    monkeypatch.setattr(memory, "_cgroups", lambda free: 650_000 if free else 1_000_000)
    monkeypatch.delenv("DMSGD_MEMORY", raising=False)
    assert memory.memory_limit() == 650_000
    assert memory.total_memory() == 1_000_000
    assert memory.fits_in_memory(250_000)
    assert not memory.fits_in_memory(250_001)
    with pytest.raises(MemoryError, match="635 KB may be used"):
        memory.reserve(10_000_000, "this", "do less")


def test_older_control_groups_and_none(tmp_path):
    group(tmp_path, "max")
    assert memory._cgroups(True, tmp_path, "") == memory.UNKNOWN
    group(tmp_path / "memory", 3000, used=1000, cache=500, version=1)
    assert memory._cgroups(True, tmp_path, "") == 2500
    assert memory._cgroups(True, tmp_path / "nowhere", "") == memory.UNKNOWN


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("least", [0, 1, 2, 3])
def test_the_least_limit_of_nested_control_groups_counts(tmp_path, version, least):
    """SLURM and systemd limit a group around the one that a process is in."""
    top = tmp_path / "memory" if version == 1 else tmp_path
    path, controllers = "/system.slice/job_7/step_0", "cpu,memory" if version == 1 else ""
    for depth, folder in enumerate(("", "system.slice", "system.slice/job_7", path[1:])):
        limit = 1000 if depth == least else 5000 if depth % 2 else 9_000 if version == 1 else "max"
        group(top / folder, limit, used=100, version=version)
    own = f"3:cpuset:/elsewhere\n0:{controllers}:{path}\n"
    assert memory._cgroups(False, tmp_path, own) == 1000
    assert memory._cgroups(True, tmp_path, own) == 900
    away = own.replace("system", "no")  # a path of the host's, which a container does not see
    assert memory._cgroups(False, tmp_path, away) == (memory._cgroups(False, tmp_path, "0::/"))


@pytest.mark.parametrize("name", DESIGNS)
@pytest.mark.parametrize("workers", [1, -1])
def test_too_many_draws_are_refused_before_any_is_made(name, workers, monkeypatch):
    monkeypatch.delenv("DMSGD_MEMORY", raising=False)
    with pytest.raises(
        MemoryError, match=r"10,000,000,000,000 batches needs .* draw fewer at a time"
    ):
        DESIGNS[name].sample(10**13, seed=0, workers=workers)
    monkeypatch.setenv("DMSGD_MEMORY", "8KB")
    with pytest.raises(MemoryError, match=r"8 KB may be used; draw fewer at a time.*DMSGD_MEMORY"):
        DESIGNS[name].sample(1000, seed=0, workers=workers)
    assert len(DESIGNS[name].sample(2, seed=0, workers=workers)) == 2


def test_what_else_holds_draws_is_refused_too(monkeypatch, tmp_path):
    with pytest.raises(MemoryError, match=r"presample\(path=\)"):
        dmsgd.presample(DESIGNS["Uniform"], 10**13)
    monkeypatch.setenv("DMSGD_MEMORY", "100KB")
    schedule = dmsgd.presample(DESIGNS["Uniform"], 20_000, path=tmp_path / "s")  # as advised
    assert schedule.batches.shape == (20_000, 3)


def test_sample_takes_little_more_than_its_result(monkeypatch):
    monkeypatch.setattr(parallel, "PIECE", 2**13)
    design = dmsgd.diversify(X, 4)
    design.sample(1, seed=0)
    size = 8 * parallel.PIECE // design.k
    tracemalloc.start()
    try:
        batches = design.sample(size, seed=0)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert batches.nbytes < peak < 1.5 * batches.nbytes
    np.testing.assert_array_equal(batches[-9:], design.sample(9, seed=0, start=size - 9))


def test_probabilities_of_batches_take_little_more_than_these():
    design = dmsgd.Stratified(np.arange(4000) % 1000, 100)
    batches = design.sample(8000, seed=0)
    last = design.log_prob(batches[-3:])  # loads scipy.special
    tracemalloc.start()
    try:
        logs = design.log_prob(batches)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 10 * batches.nbytes
    np.testing.assert_array_equal(logs[-3:], last)
    assert np.isfinite(logs).all()


@pytest.mark.parametrize("setting", ["1.2.3MB", "much", "-1GB", "", "."])
def test_a_limit_that_is_no_size_is_refused(setting, monkeypatch):
    monkeypatch.setenv("DMSGD_MEMORY", setting)
    with pytest.raises(ValueError, match="DMSGD_MEMORY must be a size such as 8GB"):
        dmsgd.Uniform(5, 2).sample(1)


def test_no_more_threads_than_cores(monkeypatch):
    assert thread_count(100_000) == thread_count(-1) == available_cores()
    assert thread_count(1) == 1
    counts, start, before = [], threading.Thread.start, threading.active_count()

    def counting(thread):
        start(thread)
        counts.append(threading.active_count())

    monkeypatch.setattr(threading.Thread, "start", counting)
    for name, design in DESIGNS.items():
        counts.clear()
        alone = design.sample(50, seed=1)
        drawn = new_designs()[name].sample(50, seed=1, workers=100_000)
        assert max(counts, default=0) <= before + available_cores()
        assert all((a == b).all() for a, b in zip(alone, drawn, strict=True))


def test_work_is_spread_in_order_and_ends_at_the_first_error():
    assert parallel_map(lambda i: i * i, range(1000), 7) == [i * i for i in range(1000)]
    done = []

    def work(i):
        if i == 5:
            raise KeyError("five")
        done.append(i)

    with pytest.raises(KeyError, match="five"):
        parallel_map(work, range(10**7), 3)
    assert len(done) < 10**6


@pytest.fixture
def hears_ctrl_c():
    """As in a terminal: frameworks that ran in this process before may have changed it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("hears_ctrl_c")
@pytest.mark.parametrize("moment", [0, 5])  # 0: threads are still being started
def test_work_ends_at_ctrl_c(moment):
    done, before = [], set(threading.enumerate())

    def work(i):
        if i == moment:
            os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.001)
        done.append(i)

    with pytest.raises(KeyboardInterrupt):
        parallel_map(work, range(20_000), 3)
    for thread in set(threading.enumerate()) - before:
        thread.join(60)  # one that was just being started ends what it has begun
        assert not thread.is_alive()
    assert len(done) < 10_000
