import json
import os
import pickle
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import dmsgd
from dmsgd.samplers import reference, rejection
from dmsgd.schedules import files
from dmsgd.schedules import presampling as drawing
from dmsgd.schedules.files import ScheduleFiles, json_checksum

RNG = np.random.default_rng(11)
X = RNG.normal(size=(60, 8))
DESIGNS = {
    "kdpp": dmsgd.diversify(X, k=5, kernel="linear", normalize=False),
    "kdpp, reference": dmsgd.KDPP(
        dmsgd.kernels.exact(dmsgd.kernels.RBF(X, 2.0)), 4, sampler=reference
    ),
    "uniform": dmsgd.Uniform(60, 7),
    "stratified": dmsgd.Stratified(np.arange(60) % 4, 6),
    "swap chain": dmsgd.designs.SwapChain(
        dmsgd.kernels.RBF(X, 2.0), 4, burn_in=40, thin=5, chain_length=30
    ),
}
#: Those whose inclusion probabilities have no closed form.
SAMPLED = ("swap chain",)
DESIGN = DESIGNS["kdpp"]
STEPS = 70


@pytest.fixture
def path(tmp_path):
    return tmp_path / "s"


def contents(path):
    folder = path.parent
    return {
        str(file.relative_to(folder)): file.read_bytes()
        for file in folder.rglob("*")
        if file.is_file()
    }


def edit(path, **changes):
    """Change fields of the record, and make its checksum that of what it now says."""
    record = path.with_name("s.json")
    content = {**json.loads(record.read_text()), **changes}
    content.pop("json_checksum", None)
    content["json_checksum"] = json_checksum(content)
    record.write_text(json.dumps(content))


# --- what a schedule is


@pytest.mark.parametrize("place", ["memory", "disk"])
@pytest.mark.parametrize("name", DESIGNS)
def test_a_schedule_is_its_designs_draws(name, place, path):
    design = DESIGNS[name]
    draws = design.sample(STEPS, seed=3)
    schedule = dmsgd.presample(design, STEPS, seed=3, path=path if place == "disk" else None)
    assert (schedule.n, schedule.k, len(schedule), schedule.seed) == (60, design.k, STEPS, 3)
    np.testing.assert_array_equal(schedule.batches, draws)
    if name not in SAMPLED:
        np.testing.assert_array_equal(schedule.inclusion(), design.inclusion())
    for size, start in ((STEPS, 0), (4, 0), (9, 61), (0, STEPS)):
        rows = schedule.sample(size, start=start, workers=2)
        np.testing.assert_array_equal(rows, draws[start : start + size])
        assert rows.dtype == np.int64
        assert rows.flags.writeable
    np.testing.assert_array_equal(schedule.sample(5, seed=3), draws[:5])
    assert schedule.record.design == repr(design)
    assert schedule.record.sampler == SAMPLERS[name]
    assert schedule.fingerprint() == design.fingerprint()


SAMPLERS = {
    "kdpp": "rejection",
    "kdpp, reference": "reference",
    "uniform": "",
    "stratified": "",
    "swap chain": "swap chain",
}


@pytest.mark.parametrize("name", SAMPLED)
def test_without_a_closed_form_a_schedule_has_no_inclusion_and_says_so(name, path):
    design = DESIGNS[name]
    stored = dmsgd.presample(design, STEPS, path=path)
    assert set(contents(path)) == {"s.npy", "s.json"}
    assert json.loads(Path(f"{path}.json").read_text())["inclusion_checksum"] == ""
    for schedule in (
        dmsgd.presample(design, STEPS),
        stored,
        dmsgd.presample(design, STEPS, path=path),
        dmsgd.Schedule.load(path),
        pickle.loads(pickle.dumps(stored)),
        pickle.loads(pickle.dumps(dmsgd.presample(design, STEPS))),
    ):
        np.testing.assert_array_equal(schedule.batches, design.sample(STEPS, 0))
        assert "70 draws of" in repr(schedule)
        kind = type(design).__name__
        for ask in (schedule.inclusion, lambda schedule=schedule: dmsgd.unbiased_weights(schedule)):
            with pytest.raises(ValueError, match=f"under {kind}.*KDPP.*np.bincount"):
                ask()


@pytest.mark.parametrize("first", ["kdpp", "swap chain"])
def test_with_and_without_inclusion_replace_each_other(first, path):
    second = "swap chain" if first == "kdpp" else "kdpp"
    dmsgd.presample(DESIGNS[second], STEPS, path=path)
    expected = contents(path)
    dmsgd.presample(DESIGNS[first], STEPS, path=path, overwrite=True)
    assert contents(path) != expected
    dmsgd.presample(DESIGNS[second], STEPS, path=path, overwrite=True)
    assert contents(path) == expected


def test_a_sampler_may_be_a_partial_or_an_object(path):
    """Their names tell schedules apart, and are the same in every process."""

    class Slow:
        def __call__(self, spectrum, k):
            return rejection(spectrum, k)

    def choose(spectrum, k, draw=rejection, effort=1):
        return draw(spectrum, k)

    samplers = [partial(choose, effort=1), partial(choose, effort=2), Slow(), rejection]
    designs = [dmsgd.KDPP(DESIGN.spectrum, 5, sampler=sampler) for sampler in samplers]
    names = [design.provenance()["sampler"] for design in designs]
    assert names == ["choose(effort=1)", "choose(effort=2)", "Slow", "rejection"]
    assert all(f"sampler={name})" in repr(d) for name, d in zip(names, designs, strict=True))
    dmsgd.presample(designs[0], STEPS, path=path)
    with pytest.raises(ValueError, match=r"another schedule: sampler is choose\(effor"):
        dmsgd.presample(designs[1], STEPS, path=path)


def test_batches_and_inclusion_cannot_be_changed(path):
    for schedule in (dmsgd.presample(DESIGN, 5), dmsgd.presample(DESIGN, 5, path=path)):
        with pytest.raises(ValueError, match="read-only"):
            schedule.batches[0, 0] = 1
        schedule.inclusion()[0] = 7
        assert schedule.inclusion()[0] < 1


def test_a_schedule_has_its_seed():
    schedule = dmsgd.presample(DESIGN, 5, seed=3)
    for seed in (4, np.random.default_rng(3), np.random.SeedSequence(3)):
        with pytest.raises(ValueError, match=r"already drawn, with seed 3"):
            schedule.sample(1, seed)


def test_rows_past_the_end_are_refused():
    schedule = dmsgd.presample(DESIGN, 20)
    with pytest.raises(ValueError, match=r"15\.\.25 .* has 20; presample 25 steps with seed 0"):
        schedule.sample(10, start=15)
    longer = dmsgd.presample(DESIGN, 25, seed=schedule.seed)
    np.testing.assert_array_equal(longer.sample(20), schedule.batches)


@pytest.mark.parametrize(
    "make", [lambda: np.random.default_rng(5), lambda: np.random.SeedSequence(5), lambda: None]
)
def test_any_seed_becomes_an_int_that_gives_the_draws_again(make):
    schedule = dmsgd.presample(DESIGN, 9, seed=make())
    assert isinstance(schedule.seed, int)
    np.testing.assert_array_equal(DESIGN.sample(9, schedule.seed), schedule.batches)
    if make() is not None:
        assert dmsgd.presample(DESIGN, 9, seed=make()).seed == schedule.seed


@pytest.mark.parametrize(("size", "start"), [(1, 2**63), (2, 2**63 - 1), (1, 2**64 - 1)])
@pytest.mark.parametrize("name", DESIGNS)
def test_draws_whose_numbers_would_begin_again_are_refused(name, size, start):
    with pytest.raises(ValueError, match=r"2\*\*63|2\^63"):
        DESIGNS[name].sample(size, 0, start=start)
    assert DESIGNS[name].sample(1, 0, start=2**63 - 1).shape == (1, DESIGNS[name].k)


def test_weights_and_loops_take_a_schedule():
    schedule = dmsgd.presample(DESIGN, 5)
    np.testing.assert_array_equal(dmsgd.unbiased_weights(schedule), dmsgd.unbiased_weights(DESIGN))


@pytest.mark.parametrize("place", ["memory", "disk"])
def test_pickles(place, path, monkeypatch):
    schedule = dmsgd.presample(DESIGN, 300, path=path if place == "disk" else None)
    pickled = pickle.dumps(schedule)
    monkeypatch.chdir("/")
    again = pickle.loads(pickled)
    np.testing.assert_array_equal(again.batches, schedule.batches)
    assert repr(again) == repr(schedule)
    if place == "disk":
        assert len(pickled) < 500
        dmsgd.presample(DESIGN, 300, seed=1, path=path, overwrite=True)
        with pytest.raises(ValueError, match="not the schedule that was pickled"):
            pickle.loads(pickled)


def test_repr_is_short(path):
    assert repr(dmsgd.presample(DESIGN, 5)) == "Schedule(5 draws of 5 out of 60, seed 0, in memory)"
    assert str(path) in repr(dmsgd.presample(DESIGN, 5, path=path))


@pytest.mark.parametrize(
    ("arguments", "error", "match"),
    [
        ((DESIGN, 0), ValueError, "steps must be at least 1"),
        ((DESIGN, 2.5), TypeError, "steps must be an integer"),
        ((DESIGN, 5, -1), ValueError, "seed must not be negative"),
        ((DESIGN, 5, "a"), TypeError, "seed must be"),
        ((DESIGN, 5, 0, None, 0), ValueError, "workers must be at least 1"),
        ((dmsgd.DPP(DESIGN.spectrum), 5), TypeError, "fixed k .* got DPP"),
        ((dmsgd.presample(DESIGN, 2), 5), TypeError, "fixed k .* got Schedule"),
    ],
)
def test_bad_arguments_are_refused(arguments, error, match):
    with pytest.raises(error, match=match):
        dmsgd.presample(*arguments)


# --- on disk


@pytest.mark.parametrize("name", ["kdpp", "uniform", "stratified", *SAMPLED])
def test_any_number_of_workers_writes_the_same_bytes(name, tmp_path, monkeypatch):
    monkeypatch.setattr(files, "SAVE_SECONDS", -1.0)
    written = []
    for workers in (1, 2, 4, -1):
        path = tmp_path / str(workers) / "s"
        path.parent.mkdir()
        dmsgd.presample(DESIGNS[name], 500, seed=1, path=path, workers=workers)
        written.append(contents(path))
    assert all(one == written[0] for one in written)
    assert set(written[0]) == {"s.npy", "s.inclusion.npy", "s.json"} - (
        {"s.inclusion.npy"} if name in SAMPLED else set()
    )


def test_the_files_are_plain(path):
    """Anybody can read them, and the header is the one NumPy writes."""
    schedule = dmsgd.presample(DESIGN, STEPS, seed=4, path=str(path) + ".npy")
    batches = np.load(f"{path}.npy", mmap_mode="r", allow_pickle=False)
    np.testing.assert_array_equal(batches, DESIGN.sample(STEPS, 4))
    np.save(path.with_name("plain.npy"), np.array(batches))
    assert path.with_name("plain.npy").read_bytes() == Path(f"{path}.npy").read_bytes()
    for steps, k in ((1, 1), (10**12, 10**6)):
        assert len(files.header("<i8", (steps, k))) == 128
    written = json.loads(Path(f"{path}.json").read_text())
    checksum = written.pop("json_checksum")
    assert checksum == json_checksum(written)
    assert written == {
        "format": "dmsgd schedule",
        "version": 3,
        "steps": STEPS,
        "k": 5,
        "n": 60,
        "seed": 4,
        "design": repr(DESIGN),
        "kernel": "Linear(60 items, 8 dense features)",
        "sampler": "rejection",
        "data": dmsgd.kernels.Linear(X).fingerprint(),
        "fingerprint": DESIGN.fingerprint(),
        "dmsgd": dmsgd.__version__,
        "done": STEPS,
        "checksum": schedule.checksum,
        "complete": True,
        "inclusion_checksum": files.sha256(Path(f"{path}.inclusion.npy")).hexdigest(),
    }
    b = np.load(f"{path}.inclusion.npy")
    np.save(path.with_name("plain.npy"), b)
    assert path.with_name("plain.npy").read_bytes() == Path(f"{path}.inclusion.npy").read_bytes()
    for name in (path, str(path), f"{path}.npy"):
        assert isinstance(dmsgd.Schedule.load(name).batches, np.memmap)


def test_a_finished_schedule_is_returned_without_drawing(path, monkeypatch):
    dmsgd.presample(DESIGN, STEPS, path=path)
    before = contents(path)
    monkeypatch.setattr(dmsgd.KDPP, "_draw", None)
    monkeypatch.setattr(files, "_write_new", None)
    for seed in (0, None):  # None: whatever is there
        again = dmsgd.presample(DESIGN, STEPS, seed, path, workers=2, overwrite=seed == 0)
        assert len(again) == STEPS
    assert contents(path) == before


OTHER = {
    "seed is 0, not 1": {"seed": 1},
    "steps is 70, not 71": {"steps": 71},
    "k is 5, not 4": {"design": dmsgd.diversify(X, k=4, kernel="linear", normalize=False)},
    "sampler is rejection, not reference": {
        "design": dmsgd.KDPP(DESIGN.spectrum, 5, sampler=reference)
    },
    "data is [0-9a-f]{12}, not [0-9a-f]{12}": {
        "design": dmsgd.diversify(X[::-1], k=5, kernel="linear", normalize=False)
    },
    "data is [0-9a-f]{12}, not none": {"design": dmsgd.Uniform(60, 5)},
    "fingerprint is [0-9a-f]{12}, not [0-9a-f]{12}": {
        "design": dmsgd.KDPP(dmsgd.kernels.exact(dmsgd.kernels.Linear(X), tol=0.01), 5)
    },
}


@pytest.mark.parametrize("state", ["finished", "unfinished"])
@pytest.mark.parametrize("difference", OTHER)
def test_another_schedule_is_not_replaced_unless_asked(difference, state, path):
    arguments = {"design": DESIGN, "steps": STEPS, "seed": 0, "path": path}
    if state == "finished":
        dmsgd.presample(**arguments)
    else:
        interrupt(path)
    before = contents(path)
    with pytest.raises(ValueError, match=f"another schedule: .*{difference}.*overwrite=True"):
        dmsgd.presample(**{**arguments, **OTHER[difference]})
    assert contents(path) == before
    replaced = {**arguments, **OTHER[difference]}
    schedule = dmsgd.presample(**replaced, overwrite=True)
    draws = replaced["design"].sample(replaced["steps"], replaced["seed"])
    np.testing.assert_array_equal(dmsgd.Schedule.load(path).batches, draws)
    assert set(contents(path)) == {"s.npy", "s.inclusion.npy", "s.json"}
    assert schedule.fingerprint() == replaced["design"].fingerprint()


@pytest.mark.parametrize("flag", ["overwrite", "progress"])
@pytest.mark.parametrize("value", ["no", 0, 1, None, np.ones(1, bool)], ids=repr)
def test_what_is_no_flag_replaces_nothing(flag, value, path):
    dmsgd.presample(DESIGN, STEPS, seed=0, path=path)
    before = contents(path)
    with pytest.raises(TypeError, match=flag):
        dmsgd.presample(DESIGN, STEPS, seed=1, path=path, **{flag: value})
    assert contents(path) == before


@pytest.mark.parametrize("ending", ["npy", "json", "inclusion.npy", "part"])
@pytest.mark.parametrize("overwrite", [False, True])
def test_files_of_others_are_never_replaced(ending, overwrite, path):
    theirs = path.parent / f"s.{ending}"
    theirs.write_bytes(b"mine" * 5000)
    before = contents(path)
    with pytest.raises(ValueError, match=rf"s\.{re.escape(ending)} is not part of a schedule"):
        dmsgd.presample(DESIGN, STEPS, path=path, overwrite=overwrite)
    assert contents(path) == before


def test_files_of_others_in_the_folder_of_unfinished_work_stay(path):
    notes = path.with_name("s.part") / "notes.txt"
    notes.parent.mkdir()
    notes.write_bytes(b"mine")
    dmsgd.presample(DESIGN, STEPS, path=path)
    assert notes.read_bytes() == b"mine"
    assert set(contents(path)) == {"s.npy", "s.inclusion.npy", "s.json", "s.part/notes.txt"}


def test_a_folder_with_the_name_of_the_batches_is_never_replaced(path):
    dmsgd.presample(DESIGN, 5, path=path)
    path.with_name("s.npy").unlink()
    path.with_name("s.npy").mkdir()
    with pytest.raises(ValueError, match=r"s\.npy is not part of a schedule"):
        dmsgd.presample(DESIGN, 5, path=path, overwrite=True)


@pytest.mark.parametrize("name", ["s.inclusion", "s.inclusion.npy"])
def test_parts_of_another_schedule_are_no_names(name, path):
    interrupt(path)
    before = contents(path)
    with pytest.raises(ValueError, match="path"):
        dmsgd.presample(DESIGN, STEPS, path=path.with_name(name), overwrite=True)
    assert contents(path) == before


@pytest.mark.parametrize("name", ["", ".npy", "folder/", ".", "folder/.."])
def test_a_path_names_a_file(name):
    with pytest.raises(ValueError, match="path"):
        dmsgd.presample(DESIGN, STEPS, path=name)


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_link_to_a_folder_is_no_place_for_unfinished_work(overwrite, path):
    target, folder = path.with_name("target"), path.with_name("folder")
    target.write_bytes(b"mine")
    folder.mkdir()
    link = path.with_name("s.part")
    for there in (target, folder, path.with_name("not there")):
        link.symlink_to(there)
        with pytest.raises(ValueError, match=r"s\.part is not part of a schedule"):
            dmsgd.presample(DESIGN, STEPS, path=path, overwrite=overwrite)
        link.unlink()
    assert contents(path) == {"target": b"mine"}
    assert not list(folder.iterdir())


@pytest.mark.parametrize("name", ["batches.npy", "inclusion.npy", "record.json", "record.json.new"])
def test_nothing_is_written_through_links(name, path):
    target, link = path.with_name("target"), path.with_name("s.part") / name
    target.write_bytes(b"mine")
    link.parent.mkdir()
    link.symlink_to(target)
    dmsgd.presample(DESIGN, STEPS, path=path)
    assert target.read_bytes() == b"mine"
    assert set(contents(path)) == {"s.npy", "s.inclusion.npy", "s.json", "target"}


@pytest.mark.parametrize("ending", ["npy", "inclusion.npy", "json"])
def test_the_target_of_a_link_at_a_final_name_stays(ending, path):
    """Renaming replaces the link; so it does a second name (a hard link)."""
    dmsgd.presample(DESIGN, STEPS, path=path)
    file = path.with_name(f"s.{ending}")
    file.rename(path.with_name("target"))
    before = path.with_name("target").read_bytes()
    file.symlink_to("target")
    os.link(path.with_name("target"), path.with_name("t"))
    dmsgd.presample(DESIGN, STEPS, seed=1, path=path, overwrite=True)
    assert before == path.with_name("target").read_bytes() == path.with_name("t").read_bytes()
    assert not file.is_symlink()
    assert dmsgd.Schedule.load(path).seed == 1


def test_draws_that_are_begun_anew_do_not_write_to_a_second_name(path):
    interrupt(path)
    part = path.with_name("s.part") / "batches.npy"
    before = part.read_bytes()
    os.link(part, path.with_name("t"))
    dmsgd.presample(DESIGN, STEPS, seed=1, path=path, overwrite=True)
    assert path.with_name("t").read_bytes() == before


def test_a_disk_that_is_too_small_is_told_before_any_draw(path, monkeypatch):
    monkeypatch.setattr(dmsgd.KDPP, "_draw", None)
    with pytest.raises(
        OSError, match=r"s\.npy: 1,000.* batches of 5 need 35.5 PB, and .* are free"
    ):
        dmsgd.presample(DESIGN, 10**15, path=path)
    assert contents(path) == {}


# --- what load refuses


def cut(path):
    with open(f"{path}.npy", "r+b") as file:
        file.truncate(1000)


def append(path, content):
    with open(f"{path}.npy", "ab") as file:
        file.write(content)


def alter(path, ending="npy", place=-1):
    file = path.parent / f"s.{ending}"
    content = bytearray(file.read_bytes())
    content[place] ^= 1
    file.write_bytes(content)


def drop(path, name):
    content = json.loads(path.with_name("s.json").read_text())
    del content[name]
    path.with_name("s.json").write_text(json.dumps(content))
    edit(path)


DAMAGE = {
    r"s\.npy was cut short": cut,
    r"s\.npy was .*altered": alter,
    r"s\.npy .* another schedule": lambda path: np.save(f"{path}.npy", np.zeros((3, 2))),
    r"s\.npy was cut short or": lambda path: append(path, b"12345678"),
    r"s\.inclusion\.npy is missing or was altered": lambda path: alter(path, "inclusion.npy"),
    "version 4, written by dmsgd 9.0; this one reads 3": lambda path: edit(
        path, version=4, dmsgd="9.0"
    ),
    "version 2, written by": lambda path: edit(path, version=2),
}
#: Changes of NAME.json.
ALTERED = {
    "a bit": lambda path: alter(path, "json", 0),
    "more than there are": lambda path: edit(path, steps=7, done=7, k=99),
    "no checksum": lambda path: drop(path, "checksum"),
    "checksum null": lambda path: edit(path, checksum=None),
    "an empty checksum": lambda path: edit(path, checksum=""),
    "another checksum": lambda path: edit(path, inclusion_checksum="0" * 63),
}


@pytest.mark.parametrize("name", [*DAMAGE, *ALTERED])
def test_damage_is_refused_and_can_be_repaired(name, path):
    reason = name if name in DAMAGE else r"s\.(json|npy|inclusion\.npy) .*(damaged|altered)"
    dmsgd.presample(DESIGN, STEPS, path=path)
    good = contents(path)
    (DAMAGE | ALTERED)[name](path)
    before = contents(path)
    with pytest.raises(ValueError, match=reason):
        dmsgd.Schedule.load(path)
    with pytest.raises(ValueError, match=reason):
        dmsgd.presample(DESIGN, STEPS, path=path)
    assert contents(path) == before
    dmsgd.presample(DESIGN, STEPS, path=path, overwrite=True)
    assert contents(path) == good


def test_an_altered_byte_is_noticed_wherever_it_is(path):
    dmsgd.presample(dmsgd.Uniform(60, 5), 10_000, path=path)
    alter(path, place=200_000)
    with pytest.raises(ValueError, match=r"s\.npy was .*altered"):
        dmsgd.Schedule.load(path)


def test_batches_of_another_schedule_are_noticed(path):
    other = path.with_name("other")
    for place, seed in ((path, 0), (other, 1)):
        dmsgd.presample(DESIGN, STEPS, seed, place)
    os.replace(f"{other}.npy", f"{path}.npy")
    with pytest.raises(ValueError, match="is of another schedule"):
        dmsgd.Schedule.load(path)


@pytest.mark.long
def test_no_bit_of_the_sidecar_can_change_what_it_says(path):
    good = dmsgd.presample(DESIGN, 5, path=path)
    sidecar = path.with_name("s.json")
    content, refused = sidecar.read_bytes(), 0
    for bit in range(0, 8 * len(content), 3):
        flipped = bytearray(content)
        flipped[bit // 8] ^= 1 << bit % 8
        sidecar.write_bytes(flipped)
        try:
            found = dmsgd.Schedule.load(path)
        except ValueError as error:
            assert "s.json" in str(error)  # noqa: PT017
            refused += 1
        else:  # a space became another one
            assert (found.record, found.checksum) == (good.record, good.checksum)
    assert refused > 8 * len(content) / 3 * 0.95


@pytest.mark.parametrize("content", [b"[" * 10**5, b"{" * 2**21, b"9" * 5000, b"\xff", b"null"])
def test_a_sidecar_that_is_none_is_one_clear_error(content, path):
    dmsgd.presample(DESIGN, 5, path=path)
    path.with_name("s.json").write_bytes(content)
    with pytest.raises(ValueError, match=r"s\.json is damaged"):
        dmsgd.Schedule.load(path)


def test_a_sidecar_that_is_a_pipe_is_refused(path):
    dmsgd.presample(DESIGN, 5, path=path)
    path.with_name("s.json").unlink()
    os.mkfifo(path.with_name("s.json"))
    with pytest.raises(ValueError, match=r"s\.json is damaged"):
        dmsgd.Schedule.load(path)


def test_what_is_no_schedule_is_refused(path):
    with pytest.raises(FileNotFoundError, match=r"there is no schedule .*s\.npy"):
        dmsgd.Schedule.load(path)
    np.save(f"{path}.npy", np.arange(6).reshape(2, 3))
    with pytest.raises(FileNotFoundError, match=r"there is no schedule .*s\.json"):
        dmsgd.Schedule.load(path)


# --- killed, and resumed


def interrupt(path, at=40, steps=STEPS):
    """Leave a schedule unfinished after `at` draws or a few less."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "SAVE_SECONDS", -1.0)
        patch.setattr(drawing, "CHUNK_SECONDS", 0.0)
        draw = dmsgd.KDPP._draw

        def interrupted(self, key, start, size, workers):
            if start + size > at:
                raise KeyboardInterrupt
            return draw(self, key, start, size, workers)

        patch.setattr(dmsgd.KDPP, "_draw", interrupted)
        with pytest.raises(KeyboardInterrupt):
            dmsgd.presample(DESIGN, steps, path=path)


def test_an_interrupted_schedule_goes_on_where_it_stopped(path, tmp_path, monkeypatch):
    interrupt(path)
    with pytest.raises(ValueError, match=r"unfinished: 32 of 70 draws were made; call presample"):
        dmsgd.Schedule.load(path)
    draw, starts = dmsgd.KDPP._draw, []

    def recorded(self, key, start, size, workers):
        starts.append(start)
        return draw(self, key, start, size, workers)

    monkeypatch.setattr(dmsgd.KDPP, "_draw", recorded)
    resumed = dmsgd.presample(DESIGN, STEPS, None, path)  # None: the seed that is there
    assert min(starts) == 32
    assert set(contents(path)) == {"s.npy", "s.inclusion.npy", "s.json"}
    np.testing.assert_array_equal(resumed.batches, DESIGN.sample(STEPS, 0))


def test_an_interrupt_leaves_nothing_but_the_draws_so_far(path, monkeypatch):
    sync, left = os.fsync, []

    def interrupted(file):
        if not left:
            raise KeyboardInterrupt
        left.pop()
        sync(file)

    monkeypatch.setattr(os, "fsync", interrupted)
    for waits in range(4):
        left[:] = [None] * waits
        with pytest.raises(KeyboardInterrupt):
            dmsgd.presample(DESIGN, 5, path=path)
        assert not list(path.parent.rglob("*.new"))
    monkeypatch.undo()
    schedule = dmsgd.presample(DESIGN, 5, path=path)
    np.testing.assert_array_equal(schedule.batches, DESIGN.sample(5, 0))
    assert set(contents(path)) == {"s.npy", "s.inclusion.npy", "s.json"}


@pytest.mark.parametrize(
    "damage", ["batches are gone", "batches are short", "no JSON", "a bit", "a digit"]
)
def test_an_unfinished_schedule_is_trusted_only_as_far_as_it_goes(damage, path, caplog):
    interrupt(path)
    work = path.with_name("s.part")
    batches, record = work / "batches.npy", work / "record.json"
    if damage == "batches are gone":
        batches.unlink()
    elif damage == "batches are short":
        os.truncate(batches, 900)
    elif damage == "a bit":
        alter(path, "part/batches.npy", 500)
    else:
        text = record.read_text()
        record.write_text("{" if "JSON" in damage else text.replace('"done": 32', '"done": 30'))
    schedule = dmsgd.presample(DESIGN, STEPS, path=path)
    recorded = damage not in ("no JSON", "a digit")
    assert [str(work) in each for each in caplog.messages] == [True] * recorded
    np.testing.assert_array_equal(schedule.batches, DESIGN.sample(STEPS, 0))
    assert set(contents(path)) == {"s.npy", "s.inclusion.npy", "s.json"}
    dmsgd.Schedule.load(path)


def test_a_longer_beginning_is_cut_to_size(path):
    interrupt(path, steps=500, at=300)
    schedule = dmsgd.presample(DESIGN, 20, path=path, overwrite=True)
    np.testing.assert_array_equal(schedule.batches, DESIGN.sample(20, 0))


@pytest.mark.parametrize("killed_at", ["batches", "record"])
def test_draws_are_not_made_again_after_a_kill_while_files_are_renamed(
    killed_at, path, monkeypatch
):
    """And nothing that is there then passes for a schedule but the old one, while it is whole."""
    dmsgd.presample(DESIGN, STEPS, 7, path)
    stop_renaming(monkeypatch, getattr(ScheduleFiles.at(path), killed_at))
    with pytest.raises(KeyboardInterrupt):
        dmsgd.presample(DESIGN, STEPS, path=path, overwrite=True)
    monkeypatch.undo()
    whole = killed_at == "batches"  # b is the same for both
    for load in (
        partial(dmsgd.Schedule.load, path),
        partial(dmsgd.presample, DESIGN, STEPS, 7, path),
    ):
        if whole:
            assert load().seed == 7
        else:
            with pytest.raises(ValueError, match=r"unfinished: 70 of 70 draws|another schedule"):
                load()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dmsgd.KDPP, "_draw", None)
        schedule = dmsgd.presample(DESIGN, STEPS, path=path, overwrite=whole)
    np.testing.assert_array_equal(schedule.batches, DESIGN.sample(STEPS, 0))
    assert set(contents(path)) == {"s.npy", "s.inclusion.npy", "s.json"}


@pytest.mark.parametrize("old", [None, 7])
def test_a_kill_while_files_are_renamed_makes_nobody_wait_or_read_twice(old, path, monkeypatch):
    die_while_renaming(path, old, monkeypatch)
    hashed, waited, sha256 = [], [], drawing.sha256_of_open
    monkeypatch.setattr(drawing, "sha256_of_open", lambda file: hashed.append(1) or sha256(file))
    monkeypatch.setattr(drawing.time, "sleep", waited.append)
    with pytest.raises(ValueError, match="unfinished: 70 of 70 draws"):
        dmsgd.Schedule.load(path)
    assert len(hashed) == (old is not None)
    assert not waited or sys.platform == "win32"  # where nobody can tell who holds a lock
    waited.clear()
    monkeypatch.setattr(files, "is_locked", lambda path: None)
    with pytest.raises(ValueError, match="unfinished: 70 of 70 draws"):
        dmsgd.Schedule.load(path)
    assert sum(waited) == pytest.approx(0.5)
    waited.clear()
    schedule = dmsgd.presample(DESIGN, STEPS, path=path, overwrite=old is not None)
    np.testing.assert_array_equal(schedule.batches, DESIGN.sample(STEPS, 0))
    assert not waited


def die_while_renaming(path, old, patch):
    """Draw a schedule, over another one if `old` is a seed, whose record is never renamed."""
    if old is not None:
        dmsgd.presample(DESIGN, STEPS, old, path)
    stop_renaming(patch, ScheduleFiles.at(path).record)
    with pytest.raises(KeyboardInterrupt):
        dmsgd.presample(DESIGN, STEPS, path=path, overwrite=True)
    patch.undo()


def stop_renaming(patch, stop):
    """Interrupt the process when a file is to be renamed to this one."""
    rename = os.replace

    def killed(source, target):
        if Path(target) == stop:
            raise KeyboardInterrupt
        rename(source, target)

    patch.setattr(os, "replace", killed)


@pytest.mark.parametrize("old", [None, 7])
def test_another_schedule_after_a_kill_while_files_are_renamed(old, path, monkeypatch):
    """Killed again on its way, it still knows that the batches there are no stranger's."""
    die_while_renaming(path, old, monkeypatch)
    monkeypatch.setattr(dmsgd.KDPP, "_draw", interrupted)
    with pytest.raises(KeyboardInterrupt):
        dmsgd.presample(DESIGN, STEPS, 2, path=path, overwrite=True)
    monkeypatch.undo()
    schedule = dmsgd.presample(DESIGN, STEPS, 2, path=path, overwrite=True)
    np.testing.assert_array_equal(schedule.batches, DESIGN.sample(STEPS, 2))
    assert set(contents(path)) == {"s.npy", "s.inclusion.npy", "s.json"}


def test_a_file_of_others_after_a_kill_while_files_are_renamed_is_refused(path, monkeypatch):
    stop_renaming(monkeypatch, ScheduleFiles.at(path).record)
    with pytest.raises(KeyboardInterrupt):
        dmsgd.presample(DESIGN, STEPS, path=path)
    monkeypatch.undo()
    path.with_name("s.npy").write_bytes(b"mine")
    for _ in range(2):
        with pytest.raises(ValueError, match=r"s\.npy was cut short or altered"):
            dmsgd.presample(DESIGN, STEPS, path=path)
    assert path.with_name("s.npy").read_bytes() == b"mine"


def interrupted(*arguments, **keywords):
    raise KeyboardInterrupt


def test_draws_of_another_version_are_not_mixed(path, monkeypatch):
    interrupt(path)
    monkeypatch.setattr(dmsgd, "__version__", "9.0")
    with pytest.raises(ValueError, match=r"dmsgd is 0\..*, not 9\.0"):
        dmsgd.presample(DESIGN, STEPS, path=path)


needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="kills processes the POSIX way")


@needs_fork
@pytest.mark.parametrize(
    ("mode", "least"),
    [
        ("overwrite", 20),
        ("torn", 8),
        pytest.param("lines", 20, marks=pytest.mark.long),
        pytest.param("full", None, marks=pytest.mark.long),
        pytest.param("lines sampled", 20, marks=pytest.mark.long),
        pytest.param("overwrite sampled", 20, marks=pytest.mark.long),
    ],
)
def test_killed_at_every_line(mode, least, tmp_path):
    """See schedule_crashes.py: killed in every state that any line of dmsgd.schedules leaves."""
    script = Path(__file__).with_name("schedule_crashes.py")
    done = subprocess.run(
        [sys.executable, script, tmp_path, *mode.split()],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    if least:
        assert int(done.stdout.split()[0]) >= least


SLOW = """
import sys, time
import numpy as np
import dmsgd
from dmsgd.samplers import PreparedSampler, rejection
from dmsgd.schedules import files

files.SAVE_SECONDS = -1.0
drawn, most = 0, int(sys.argv[3])

def slow(spectrum, k):
    draw = rejection(spectrum, k)
    def slowly(key, start, size, workers):
        global drawn
        drawn += size
        time.sleep(0.002 * size if drawn <= most else 1e6)
        return draw.sample(key, start, size, workers)
    return PreparedSampler("slow", slowly)

X = np.random.default_rng(11).normal(size=(60, 8))
design = dmsgd.KDPP(dmsgd.kernels.Linear(X), 5, sampler=slow)
dmsgd.presample(design, int(sys.argv[2]), path=sys.argv[1])
print(drawn)
"""


def start_slow(path, steps, most=10**9):
    """Start a process that makes a schedule, and stands still after the first `most` draws."""
    command = [sys.executable, "-c", SLOW, path, str(steps), str(most)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


@pytest.mark.long
@needs_fork
def test_killed_from_outside(path):
    steps, last = 900, 0
    for _ in range(3):
        process = start_slow(path, steps, most=200)
        while True:  # kill when it has got 100 draws further
            found = ScheduleFiles.at(path).unfinished()
            if found and found.done >= last + 100:
                break
            assert process.poll() is None
            time.sleep(0.01)
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
        last = ScheduleFiles.at(path).unfinished().done
    assert last < steps
    process = start_slow(path, steps)
    assert int(process.communicate()[0]) == steps - last
    np.testing.assert_array_equal(dmsgd.Schedule.load(path).batches, DESIGN.sample(steps, 0))
    assert set(contents(path)) == {"s.npy", "s.inclusion.npy", "s.json"}


@needs_fork
def test_of_two_processes_one_draws_and_the_other_waits(path):
    processes = [start_slow(path, 300) for _ in range(2)]
    drawn = sorted(int(process.communicate()[0]) for process in processes)
    assert drawn == [0, 300]
    np.testing.assert_array_equal(dmsgd.Schedule.load(path).batches, DESIGN.sample(300, 0))
    assert set(contents(path)) == {"s.npy", "s.inclusion.npy", "s.json"}


CROWD = """
import fcntl, sys, time
import numpy as np
import dmsgd
from dmsgd.schedules import files, presampling

files.SAVE_SECONDS = -1.0
presampling.CHUNK_SECONDS = 0.0
if sys.argv[2] == "without locks":
    def refuse(*arguments):
        raise OSError(37, "No locks available")
    fcntl.flock = refuse
design = dmsgd.Uniform(40, 4)
expected = [design.sample(48, seed) for seed in range(int(sys.argv[3]))]
for seed, draws in enumerate(expected):
    time.sleep(max(0.0, float(sys.argv[4]) + 0.02 * seed - time.time()))
    try:
        drawn = dmsgd.presample(design, 48, seed, f"{sys.argv[1]}{seed}")
    except OSError as error:
        assert sys.argv[2] == "without locks" and "no locks" in str(error), error
    else:
        assert np.array_equal(drawn.batches, draws), f"round {seed}"
"""


@pytest.mark.long
@needs_fork
@pytest.mark.parametrize("locks", ["with locks", "without locks"])
def test_three_processes_at_once_get_the_schedule_or_without_locks_an_error(locks, path):
    rounds = 60
    command = [sys.executable, "-c", CROWD, path, locks, str(rounds), str(time.time() + 4)]
    processes = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(3)]
    told = [process.communicate()[1] for process in processes]
    assert told == ["", "", ""]
    for seed in range(rounds):
        dmsgd.Schedule.load(f"{path}{seed}")
    if locks == "with locks":
        assert {file.suffix for file in path.parent.iterdir()} == {".npy", ".json"}


@needs_fork
def test_whoever_comes_while_another_publishes_waits_for_it(path, monkeypatch):
    at, sync, others = ScheduleFiles.at(path), files.sync_folder, []

    def come(folder):
        sync(folder)
        if at.batches.exists() and not at.record.exists() and not others:
            others.append(ThreadPoolExecutor(1).submit(dmsgd.presample, DESIGN, 5, path=path))
            wait(others, 0.3)

    monkeypatch.setattr(files, "sync_folder", come)
    schedule = dmsgd.presample(DESIGN, 5, path=path)
    (other,) = others
    np.testing.assert_array_equal(other.result(timeout=60).batches, schedule.batches)
    assert set(contents(path)) == {"s.npy", "s.inclusion.npy", "s.json"}
    assert not path.with_name("s.part").exists()


@needs_fork
def test_whoever_loads_while_another_publishes_waits_for_it(path, monkeypatch):
    old = dmsgd.presample(DESIGN, 5, 7, path).batches.tobytes()
    at, sync, others = ScheduleFiles.at(path), files.sync_folder, []

    def come(folder):
        sync(folder)
        if not others and at.batches.read_bytes()[files.HEADER :] != old:
            others.append(ThreadPoolExecutor(1).submit(dmsgd.Schedule.load, path))
            wait(others, 0.7)

    monkeypatch.setattr(files, "sync_folder", come)
    schedule = dmsgd.presample(DESIGN, 5, path=path, overwrite=True)
    (other,) = others
    np.testing.assert_array_equal(other.result(timeout=60).batches, schedule.batches)


def test_without_locks_the_second_is_refused(path, monkeypatch):
    monkeypatch.setattr(files, "lock", lambda file: False)
    fill = ScheduleFiles.fill

    def disturbed(self, *arguments):
        for seed in (0, 1):
            with pytest.raises(OSError, match=r"no locks.* remove"):
                dmsgd.presample(DESIGN, 5, seed=seed, path=path, overwrite=True)
        fill(self, *arguments)

    monkeypatch.setattr(ScheduleFiles, "fill", disturbed)
    dmsgd.presample(DESIGN, 5, path=path)
    assert dmsgd.Schedule.load(path).seed == 0
    assert {file.name for file in path.parent.iterdir()} == {"s.npy", "s.inclusion.npy", "s.json"}


def test_the_schedule_that_was_asked_for_is_returned_also_if_another_replaces_it(path, monkeypatch):
    replace = partial(dmsgd.presample, DESIGN, 5, seed=1, path=path, overwrite=True)
    others, locked = [], ScheduleFiles.locked

    @contextmanager
    def followed(self):
        with locked(self) as found:
            yield found
        if not others:
            others.append(None)
            others.append(replace())

    monkeypatch.setattr(ScheduleFiles, "locked", followed)
    schedule = dmsgd.presample(DESIGN, 5, path=path)
    np.testing.assert_array_equal(schedule.batches, DESIGN.sample(5, 0))
    assert others[1].seed == dmsgd.Schedule.load(path).seed == 1


def test_a_schedule_that_another_replaces_while_it_is_checked_is_not_returned(path, monkeypatch):
    dmsgd.presample(DESIGN, 5, path=path)
    replace = partial(dmsgd.presample, DESIGN, 5, seed=1, path=path, overwrite=True)
    hashed = []

    read = drawing.read_record

    def replaced_meanwhile(file):
        record = read(file)
        if not hashed:
            hashed.append(file)
            replace()
        return record

    monkeypatch.setattr(drawing, "read_record", replaced_meanwhile)
    with pytest.raises(ValueError, match="is another schedule: seed is 1, not 0"):
        dmsgd.presample(DESIGN, 5, path=path)


@pytest.mark.skipif(os.name == "nt", reason="Windows replaces no open file")
def test_batches_and_record_are_of_one_schedule_if_another_replaces_it(path, monkeypatch):
    dmsgd.presample(DESIGN, 5, path=path)
    replaced, memmap = [], np.memmap

    def replaced_before(*arguments, **more):
        if not replaced:
            replaced.append(True)
            dmsgd.presample(DESIGN, 5, seed=1, path=path, overwrite=True)
        return memmap(*arguments, **more)

    monkeypatch.setattr(np, "memmap", replaced_before)
    loaded = dmsgd.Schedule.load(path)
    assert loaded.seed == 0
    np.testing.assert_array_equal(loaded.batches, DESIGN.sample(5, 0))


def test_a_schedule_that_another_publishes_after_it_was_not_found_is_returned(path, monkeypatch):
    load, others = dmsgd.Schedule._found, []

    def published_after(*asked):
        try:
            return load(*asked)
        except FileNotFoundError:
            if not others:
                others.append(None)
                dmsgd.presample(DESIGN, 5, path=path)
            raise

    monkeypatch.setattr(dmsgd.Schedule, "_found", published_after)
    schedule = dmsgd.presample(DESIGN, 5, path=path)
    np.testing.assert_array_equal(schedule.batches, DESIGN.sample(5, 0))
    assert others


# --- where it cannot be written


def test_an_impossible_place_is_one_clear_error(tmp_path):
    (tmp_path / "file").write_text("")
    for place in ("missing/s", "file/s"):
        with pytest.raises(OSError, match=r"cannot write the schedule .*s\.npy: No"):
            dmsgd.presample(DESIGN, 5, path=tmp_path / place)
    assert [file.name for file in tmp_path.iterdir()] == ["file"]


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="/proc takes no files, even of root")
def test_a_folder_that_takes_no_files_is_one_clear_error():
    with pytest.raises(OSError, match=r"cannot write the schedule /proc/self/s\.npy"):
        dmsgd.presample(DESIGN, 5, path="/proc/self/s")


@pytest.mark.parametrize("method", ["_draw", "inclusion"])
def test_an_error_of_reading_features_is_not_one_of_writing(method, path, monkeypatch):
    def read(*arguments):
        raise FileNotFoundError(2, "No such file or directory", "x.npy")

    monkeypatch.setattr(dmsgd.KDPP, method, read)
    with pytest.raises(FileNotFoundError) as caught:
        dmsgd.presample(DESIGN, 5, path=path)
    assert caught.value.filename == "x.npy"


def test_a_finished_schedule_is_found_in_a_folder_that_cannot_be_written(path, monkeypatch):
    dmsgd.presample(DESIGN, STEPS, path=path)

    def refuse(*arguments, **keywords):
        raise PermissionError(13, "Permission denied")

    for name in ("touch", "unlink"):
        monkeypatch.setattr(Path, name, refuse)
    assert len(dmsgd.presample(DESIGN, STEPS, path=path)) == STEPS


def test_progress_is_shown_on_stderr_if_asked(path, capsys):
    dmsgd.presample(DESIGN, 5)
    assert capsys.readouterr() == ("", "")
    dmsgd.presample(DESIGN, 5, path=path, progress=True)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "5/5" in shown.err


@pytest.mark.parametrize("path", [3, None, ["a"], 2.5])
def test_a_path_that_is_none_is_refused(path):
    with pytest.raises(TypeError, match="path"):
        dmsgd.Schedule.load(path)
    if path is not None:
        with pytest.raises(TypeError, match="path"):
            dmsgd.presample(DESIGN, 3, path=path)


@pytest.mark.parametrize("length", [242, 250, 300])
def test_a_name_without_room_for_all_files_is_refused_before_the_first_draw(
    length, tmp_path, monkeypatch
):
    monkeypatch.setattr(type(DESIGN), "_draw", None)
    with pytest.raises(ValueError, match="path"):
        dmsgd.presample(DESIGN, 3, path=tmp_path / ("a" * length))
    assert not list(tmp_path.iterdir())
    with pytest.raises(ValueError, match="path"):
        dmsgd.Schedule.load("a" * 300)


def test_the_longest_name(tmp_path):
    schedule = dmsgd.presample(DESIGN, 3, path=tmp_path / ("a" * 241))
    assert len(dmsgd.Schedule.load(schedule.path)) == 3
