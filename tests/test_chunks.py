"""Draws made in chunks: the same, whatever was kept from the epoch before."""

import multiprocessing
import os
import pickle
import subprocess
import sys
import time

import numpy as np
import pytest

import dmsgd

pytest.importorskip("torch")
from dmsgd.designs import stream
from dmsgd.torch import DiverseSampler

K, STEPS = 6, 5


class Counting(dmsgd.Uniform):
    """Says which draws were asked for."""

    def __init__(self, n=40, k=K):
        super().__init__(n, k)
        self.asked = []

    def sample(self, size, seed=None, *, start=0, workers=1):
        self.asked.append((start, size))
        return super().sample(size, seed, start=start, workers=workers)


def epoch(design, number, seed=0):
    return design.sample(STEPS, seed, start=number * STEPS).ravel().tolist()


def test_a_chunk_goes_on_in_the_next_epochs():
    design = Counting()
    sampler = DiverseSampler(design, steps=STEPS)
    seen = [list(sampler) for _ in range(20)]
    # never more beyond an epoch than were made before it
    assert design.asked == [(0, 5), (5, 10), (15, 20), (35, 40), (75, 80)]
    assert seen == [epoch(design, number) for number in range(20)]


def test_a_chunk_is_bounded(monkeypatch):
    monkeypatch.setattr(stream, "MAX_INDICES", 11 * K)
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
    monkeypatch.setattr(stream, "MAX_INDICES", K)  # chunks of two draws
    design = dmsgd.Uniform(40, K)
    indices = iter(DiverseSampler(design, steps=STEPS))
    first = next(indices)
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    child = context.Process(target=lambda: theirs.send([first, *indices]), daemon=True)
    child.start()
    assert ours.poll(20)
    assert ours.recv() == [first, *indices] == epoch(design, 0)
    child.join()


TRAINING = """
import threading, time
import dmsgd
from dmsgd.designs import stream
from dmsgd.torch import DiverseSampler

stream.MAX_INDICES = 6
stream.THREAD_OPERATIONS = 1  # several threads per chunk
sampler = DiverseSampler(dmsgd.Uniform(40, 6), steps=50)

def train():
    threading.main_thread().join()
    print(sum(map(sum, (sampler, sampler))))

threading.Thread(target=train).start()
"""


@pytest.mark.long
def test_training_in_a_thread_outlives_the_main_one():
    drawn = dmsgd.Uniform(40, 6).sample(100, seed=0)  # and compiled, which prints a line
    done = subprocess.run(
        [sys.executable, "-c", TRAINING], capture_output=True, text=True, timeout=60, check=True
    )
    assert (done.stdout.strip(), done.stderr) == (str(drawn.sum()), "")


def test_nothing_is_read_in_vain():
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

    monkeypatch.setattr(stream, "LONG", 0.01)
    monkeypatch.setattr(stream, "thread_count", lambda workers: 2)
    design = Slow()
    drawn = list(DiverseSampler(design, steps=40))
    assert max(design.asked) <= 16  # four times the 4 draws that take less than LONG
    assert design.asked[0] == 2
    assert drawn == design.sample(40, seed=0).ravel().tolist()
