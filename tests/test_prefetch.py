"""Draws made ahead: the same, whatever was kept from the epoch before."""

import multiprocessing
import os
import pickle
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import dmsgd

pytest.importorskip("torch")
from dmsgd.torch import DiverseSampler, prefetch

K, STEPS = 6, 5


class Counting(dmsgd.Uniform):
    """Says which draws were asked for."""

    def __init__(self, n=40, k=K):
        super().__init__(n, k)
        self.asked = []

    def sample(self, size, seed=None, *, start=0, workers=1):
        self.asked.append((start, size))
        return super().sample(size, seed, start=start, workers=workers)


@pytest.fixture(autouse=True, params=[0, 2])
def free(request, monkeypatch):
    monkeypatch.setattr(prefetch, "_free_cores", lambda: request.param)
    return request.param


def epoch(design, number, seed=0):
    return design.sample(STEPS, seed, start=number * STEPS).ravel().tolist()


def test_a_lot_goes_on_in_the_next_epochs(free):
    design = Counting()
    sampler = DiverseSampler(design, steps=STEPS)
    seen = [list(sampler) for _ in range(20)]
    # never more beyond an epoch than were made before it
    waited = [(0, 5), (5, 10), (15, 20), (35, 40), (75, 80)]
    beside = [(0, 5), (5, 5), (10, 10), (20, 20), (40, 40), (80, 80)]
    assert design.asked == (beside if free else waited)
    assert seen == [epoch(design, number) for number in range(20)]


def test_a_lot_is_bounded(monkeypatch):
    monkeypatch.setattr(prefetch, "MAX_INDICES", 11 * K)
    design = Counting()
    sampler = DiverseSampler(design, steps=STEPS)
    assert [list(sampler) for _ in range(12)] == [epoch(design, number) for number in range(12)]
    assert {size for _, size in design.asked} <= set(range(13))


def test_what_does_not_follow_is_drawn_anew():
    design = Counting()
    sampler = DiverseSampler(design, steps=STEPS)
    list(sampler)
    list(sampler)  # and two more epochs kept
    for number in (9, 2, 3, 3):
        sampler.set_epoch(number)
        assert list(sampler) == epoch(design, number)
    other = Counting(40, K)
    other.sample = lambda size, seed=None, *, start=0, workers=1: np.full((size, K), start)
    list(sampler)
    sampler.update(other)
    assert set(sampler) == {5 * STEPS}


def test_an_epoch_left_early_and_two_passes_at_once():
    design = Counting()
    sampler = DiverseSampler(design, steps=STEPS)
    for _ in range(3):
        list(sampler)
    early = iter(sampler)
    assert next(early) == epoch(design, 3)[0]
    sampler.set_epoch(3)
    assert list(sampler) == epoch(design, 3)
    assert list(early) == epoch(design, 3)[1:]
    assert list(sampler) == epoch(design, 4)


def test_a_schedule_ends_where_it_ends():
    schedule = dmsgd.presample(Counting(), steps=3 * STEPS, seed=1)
    sampler = DiverseSampler(schedule, steps=STEPS)
    seen = [index for _ in range(3) for index in sampler]
    assert seen == schedule.batches.ravel().tolist()


def test_a_copy_keeps_nothing():
    sampler = DiverseSampler(dmsgd.Uniform(40, K), steps=STEPS)
    for _ in range(5):
        list(sampler)
    size = len(pickle.dumps(DiverseSampler(dmsgd.Uniform(40, K), steps=STEPS)))
    copy = pickle.loads(pickle.dumps(sampler))
    assert len(pickle.dumps(copy)) < size + 200
    assert list(copy) == list(sampler)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_process_that_was_forked_draws_for_itself():
    design = dmsgd.diversify(np.random.default_rng(0).normal(size=(40, 9)), k=K)
    sampler = DiverseSampler(design, steps=STEPS)
    list(sampler)
    list(sampler)
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    child = context.Process(target=lambda: theirs.send(list(sampler)))
    child.start()
    assert ours.poll(60)
    assert ours.recv() == list(sampler) == epoch(design, 2)
    child.join()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_pass_goes_on_in_a_process_that_was_forked(monkeypatch):
    monkeypatch.setattr(prefetch, "MAX_INDICES", K)  # lots of two draws, the next one under way
    design = dmsgd.Uniform(40, K)
    stream = iter(DiverseSampler(design, steps=STEPS))
    first = next(stream)
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    child = context.Process(target=lambda: theirs.send([first, *stream]), daemon=True)
    child.start()
    assert ours.poll(20)
    assert ours.recv() == [first, *stream] == epoch(design, 0)
    child.join()


TRAINING = """
import threading, time
import dmsgd
from dmsgd.torch import DiverseSampler, prefetch

prefetch._free_cores = lambda: 2
prefetch.MAX_INDICES = 6
prefetch.THREAD_OPERATIONS = 1  # several threads per chunk
sampler = DiverseSampler(dmsgd.Uniform(40, 6), steps=50)

def train():
    threading.main_thread().join()
    print(sum(map(sum, (sampler, sampler))))

threading.Thread(target=train).start()
"""


@pytest.mark.long
@pytest.mark.parametrize("free", [2], indirect=True)
def test_training_in_a_thread_outlives_the_main_one():
    drawn = dmsgd.Uniform(40, 6).sample(100, seed=0)  # and compiled, which prints a line
    done = subprocess.run(
        [sys.executable, "-c", TRAINING], capture_output=True, text=True, timeout=60, check=True
    )
    assert (done.stdout.strip(), done.stderr) == (str(drawn.sum()), "")


def test_nothing_is_read_in_vain(free):
    """Draws that read the data each time go on in the next epochs, but only once these come."""
    design = Counting()
    design.__class__ = type("Reading", (Counting,), {"chunk": 1000})
    sampler = DiverseSampler(design, steps=STEPS)
    for number in range(8):
        assert list(sampler) == epoch(design, number)
        design.asked.pop()
    assert design.asked == [(0, 5), (5, 10), (15, 20), (35, 40)]


def test_chunks_of_draws_that_cost_more_than_is_known_stay_short(monkeypatch):
    """As those of chains and of rejection: no closed form, and any time per draw."""

    class Slow(dmsgd.Design):
        n, k, asked = 40, K, []

        def _draw(self, key, start, size, workers):
            self.asked.append(size)
            time.sleep(0.002 * size)
            return dmsgd.Uniform(self.n, self.k).sample(size, key, start=start)

        def fingerprint(self):
            return "slow"

    monkeypatch.setattr(prefetch, "LONG", 0.01)
    monkeypatch.setattr(prefetch, "thread_count", lambda workers: 2)
    design = Slow()
    drawn = list(DiverseSampler(design, steps=40))
    assert max(design.asked) <= 16  # four times the 4 draws that take less than LONG
    assert design.asked[0] == 2
    assert drawn == design.sample(40, seed=0).ravel().tolist()


class Pieces(dmsgd.Uniform):
    """Calls before(number) in the thread that makes a draw; says which thread made which draw."""

    def __init__(self, before):
        super().__init__(40, K)
        self.before, self.threads = before, {}

    def sample(self, size, seed=None, *, start=0, workers=1):
        for number in range(start, start + size):
            assert number not in self.threads, "drawn twice"
            self.threads[number] = threading.current_thread()
            self.before(number)
        return super().sample(size, seed, start=start, workers=workers)


@pytest.fixture
def single_draws(monkeypatch):
    """Chunks are cut into pieces of one draw."""
    monkeypatch.setattr(prefetch, "THREAD_OPERATIONS", 1)


def join_background():
    for thread in threading.enumerate():
        if thread.name == "dmsgd":
            thread.join(20)
            assert not thread.is_alive()


@pytest.mark.parametrize("free", [1], indirect=True)
def test_training_draws_what_nobody_has_begun_instead_of_waiting(single_draws):
    main, begun, helped = threading.current_thread(), threading.Event(), threading.Event()

    def before(number):
        if threading.current_thread() is main:
            assert begun.wait(20)
            helped.set()
        else:  # the first piece in the background ends after one that training draws
            begun.set()
            assert helped.wait(20)

    design = Pieces(before)
    drawn = list(DiverseSampler(design, steps=12))
    join_background()
    assert drawn == dmsgd.Uniform(40, K).sample(12, seed=0).ravel().tolist()


@pytest.mark.parametrize("free", [1, 3], indirect=True)
def test_draws_come_in_order_whoever_makes_them(single_draws):
    pauses = np.random.default_rng(0).choice([0, 0.001, 0.004], size=1000)
    design = Pieces(lambda number: time.sleep(pauses[number]))
    sampler = DiverseSampler(design, steps=STEPS)
    drawn = [index for _ in range(12) for index in sampler]
    join_background()
    assert drawn == dmsgd.Uniform(40, K).sample(12 * STEPS, seed=0).ravel().tolist()
    assert sorted(design.threads) == list(range(len(design.threads)))
    assert len(set(design.threads.values())) > 1


@pytest.mark.parametrize("free", [1, 3], indirect=True)
def test_an_error_comes_where_its_draw_would_and_ends_the_others(free, single_draws):
    def before(number):
        time.sleep(0.002)
        if number >= 7:
            raise RuntimeError(f"draw {number} failed")

    design, seen = Pieces(before), []
    with pytest.raises(RuntimeError, match="draw 7"):
        seen.extend(DiverseSampler(design, steps=40))
    join_background()
    assert seen == dmsgd.Uniform(40, K).sample(7, seed=0).ravel().tolist()
    assert len(design.threads) <= 7 + free + 1  # at most one failure for each thread


@pytest.mark.parametrize("free", [1, 3], indirect=True)
def test_ctrl_c_in_a_draw_of_training_is_raised_at_once(free, single_draws):
    main, interrupted = threading.current_thread(), threading.Event()

    def before(number):
        if threading.current_thread() is main:
            interrupted.set()
            raise KeyboardInterrupt
        assert interrupted.wait(20)
        time.sleep(0.05)

    design = Pieces(before)
    with pytest.raises(KeyboardInterrupt):
        list(DiverseSampler(design, steps=40))
    join_background()
    assert len(design.threads) <= 2 * free + 1


@pytest.mark.parametrize("free", [1], indirect=True)
def test_a_process_that_ends_does_not_wait_for_a_chunk(single_draws, monkeypatch):
    """Threads in the background stop with the main one; training in another goes on alone."""
    ended = threading.Thread()
    monkeypatch.setattr(prefetch, "main_thread", lambda: ended)
    design = Pieces(lambda number: None)
    assert list(DiverseSampler(design, steps=STEPS)) == epoch(dmsgd.Uniform(40, K), 0)
    join_background()
    assert set(design.threads.values()) == {threading.current_thread()}
