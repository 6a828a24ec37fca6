"""Kills a process that draws a schedule at every line it runs; run by test_schedules.py.

A kill leaves what is on disk before the line. So one run is watched, every state that it leaves
between two lines is gone on from, and real kills must leave the same bytes.

python schedule_crashes.py FOLDER lines | overwrite | torn | full [sampled]
python schedule_crashes.py FOLDER kills COUNT [SEED]

sampled: of a design without closed forms, whose draws depend on each other, and no file of b.
kills:   COUNT SIGKILLs at random moments, from outside, of new schedules and of ones that replace
         another; FOLDER is emptied as it goes.
"""

from __future__ import annotations

import io
import os
import shutil
import signal
import sys
import time
from pathlib import Path

import numpy as np

import dmsgd
from dmsgd.schedules import files, presampling

STEPS = 18
SAMPLED = sys.argv[3:4] == ["sampled"]
FINAL = ("npy", "json") if SAMPLED else ("npy", "inclusion.npy", "json")
SOURCE = str(Path(files.__file__).parent)
KERNEL = dmsgd.kernels.RBF(np.random.default_rng(0).normal(size=(30, 2)))


def new_design():
    """The design, knowing nothing of draws made before."""
    if SAMPLED:
        return dmsgd.designs.SwapChain(KERNEL, 2, burn_in=10, thin=3, chain_length=7)
    return dmsgd.Uniform(30, 2)


def draw(path, overwrite=False):
    return dmsgd.presample(new_design(), STEPS, 0, path, overwrite=overwrite)


def draw_old(path, seed):
    """What is there before; it always has a file of b."""
    return dmsgd.presample(dmsgd.Uniform(30, 2), STEPS, seed, path)


def contents(path):
    """The bytes of every file that belongs to the schedule at `path`."""
    folder, found = path.parent, {}
    for file in folder.rglob("*"):
        name = str(file.relative_to(folder))
        found[name] = None if file.is_dir() else file.read_bytes()
    return found


def suicide():
    os.kill(os.getpid(), signal.SIGKILL)


def in_child(work, seconds=None):
    """Run `work` in a process of its own, killed after so many seconds if that is given.

    Return True if it was killed, by itself or from outside.
    """
    pid = os.fork()
    if pid == 0:
        try:
            work()
        except BaseException as error:
            print("child:", repr(error), flush=True)
            os._exit(1)
        os._exit(0)
    if seconds is not None:
        time.sleep(seconds)
        os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, status
    return os.WIFSIGNALED(status)


def traced(work, at_line):
    """Run `work` and call `at_line(line)` before each line of dmsgd.schedules that it runs."""

    def trace(frame, event, argument):
        if not frame.f_code.co_filename.startswith(SOURCE):
            return None
        if event == "line":
            at_line((frame.f_code.co_filename, frame.f_lineno))
        return trace

    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(None)


def states_of(path, work):
    """The states of the disk before each line of `work`, as (how many lines have run, bytes)."""
    lines, states = [0], []

    def look(line):
        lines[0] += 1
        state = contents(path)
        if not states or state != states[-1][1]:
            states.append((lines[0], state))

    traced(work, look)
    return states, lines[0]


def killed_at_line(moment, work):
    """Run `work` in a child that is killed before its `moment`-th line."""
    left = [moment]

    def at_line(line):
        left[0] -= 1
        if left[0] == 0:
            suicide()

    return in_child(lambda: traced(work, at_line))


def killed_in_write(number, work):
    """Run `work` in a child whose `number`-th write to a file stops half-way."""
    left = [number]

    class Torn(io.FileIO):
        def write(self, content):
            left[0] -= 1
            if left[0] == 0:
                content = memoryview(content).cast("B")
                super().write(content[: len(content) // 2])
                suicide()
            return super().write(content)

    def patched():
        files.open = lambda path, mode, buffering=-1: (
            Torn(path, mode) if "x" in mode or "+" in mode else open(path, mode, buffering)  # noqa: SIM115
        )
        work()

    return in_child(patched)


def loaded(path):
    """What `load` makes of the files at this moment: their bytes, or None if it refuses."""
    try:
        return dmsgd.Schedule.load(path).batches.tobytes()
    except (ValueError, FileNotFoundError):
        return None


class Outcome:
    """What must come of every crash: old, nothing or new, and in the end the undisturbed bytes."""

    def __init__(self, folder, before=None):
        reference = new_path(folder, "reference")
        self.overwrite = bool(before)
        self.new = draw(reference).batches.tobytes()
        self.expected = contents(reference)
        self.old = {draw_old(None, before).batches.tobytes()} if before else set()
        self.accepted = set()
        assert set(self.expected) == {f"s.{ending}" for ending in FINAL}

    def goes_on(self, path, moment):
        """Read and go on with what a crash left at `path`."""
        self.accepted.add(loaded(path))
        draw(path, overwrite=self.overwrite)
        assert contents(path) == self.expected, f"moment {moment}: {sorted(contents(path))}"

    def end(self):
        assert self.accepted == {None, self.new, *self.old}, "accepted while half written"


def crash_in_writes(folder):
    outcome, kills = Outcome(folder), 0
    for moment in range(1, 13):
        path = new_path(folder, str(moment))
        kills += killed_in_write(moment, lambda path=path: draw(path))
        outcome.goes_on(path, moment)
    outcome.end()
    print(f"{kills} kills")


def crash_at_lines(folder, before):
    """Go on from every state between two lines; kill at some of them and compare what is left."""
    outcome = Outcome(folder, before)

    def start(name):
        path = new_path(folder, name)
        if before:
            draw_old(path, before)
        return path, lambda: draw(path, overwrite=bool(before))

    states, lines = states_of(*start("watched"))
    for moment, state in states:
        path = new_path(folder, f"state {moment}")
        for name, content in sorted(state.items()):
            if content is None:
                (path.parent / name).mkdir()
            else:
                (path.parent / name).write_bytes(content)
        outcome.goes_on(path, moment)
    outcome.end()
    for moment, state in states:
        path, work = start(f"killed {moment}")
        assert killed_at_line(moment, work)
        assert contents(path) == state, f"a kill at line {moment} leaves something else"
    print(f"{len(states)} kills among {lines} lines")


def new_path(folder, name):
    (folder / name).mkdir()
    return folder / name / "s"


def kill_at_random(folder, kills, seed=0):
    """Kill until there were so many; whoever goes on must end with the undisturbed bytes.

    Every other schedule replaces one. Moments cover what an undisturbed run takes.
    """
    rng = np.random.default_rng(seed)
    reference = new_path(folder, "reference")
    began = time.perf_counter()
    new = draw_slowly(reference).batches.tobytes()
    seconds = time.perf_counter() - began
    expected = contents(reference)
    old = draw_old(None, 7).batches.tobytes()
    killed = finished = 0
    while killed < kills:
        most = killed + 1000  # whoever goes on gets further
        path, before = new_path(folder, str(finished)), finished % 2
        if before:
            draw_old(path, 7)
        states = {None, new, *([old] if before else [])}
        while in_child(
            lambda p=path, b=before: draw_slowly(p, bool(b)), float(rng.uniform(0, seconds))
        ):
            killed += 1
            assert killed < most, f"{path} is not finished after 1,000 kills"
            assert loaded(path) in states, "accepted while half written"
        assert contents(path) == expected, sorted(contents(path))
        shutil.rmtree(path.parent)
        finished += 1
    print(f"{finished} schedules finished after {killed} kills")


def draw_slowly(path, overwrite=False):
    """Draw so that a kill can come between any two draws: every few are vouched for."""
    sample = dmsgd.Uniform.sample

    def slow(self, *arguments, **keywords):
        time.sleep(0.001)
        return sample(self, *arguments, **keywords)

    dmsgd.Uniform.sample = slow
    try:
        return draw(path, overwrite)
    finally:
        dmsgd.Uniform.sample = sample


def full_disk(folder):
    """A limit on the size of files stands for a full disk; then there is room again."""
    import resource

    fresh, path = new_path(folder, "fresh"), new_path(folder, "full")
    draw(fresh)
    expected = contents(fresh)
    dmsgd.presample(dmsgd.Uniform(30, 1), STEPS, path=path)
    before = contents(path)
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    sizes = {name: len(content) for name, content in expected.items()}
    assert sizes["s.inclusion.npy"] < sizes["s.npy"] < sizes["s.json"]
    # no room for the record, for the draws, for the record of all
    for size in (10, sizes["s.npy"] - 1, sizes["s.json"] - 1):
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, limit[1]))
        try:
            draw(path, overwrite=True)
        except OSError as error:
            assert "cannot write the schedule" in str(error), error  # noqa: PT017
        else:
            raise AssertionError("the limit was not noticed")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        assert before.items() <= contents(path).items()
        assert not list(path.parent.rglob("*.new"))
    draw(path, overwrite=True)
    assert contents(path) == expected
    print("full disk")


def main():
    folder, mode = Path(sys.argv[1]), sys.argv[2]
    presampling.CHUNK_SECONDS = 0.0  # chunks do not grow
    files.SAVE_SECONDS = -1.0  # every chunk is recorded
    new_design().sample(1, 0)  # compile here rather than in each child
    if mode == "full":
        full_disk(folder)
        return
    if mode == "kills":
        global STEPS
        STEPS = 400
        kill_at_random(folder, int(sys.argv[3]), *map(int, sys.argv[4:5]))
        return
    os.fsync = lambda descriptor: None  # killed processes need none, and it is slow
    if mode == "torn":
        crash_in_writes(folder)
    else:
        crash_at_lines(folder, before=7 if mode == "overwrite" else None)


if __name__ == "__main__":
    main()
