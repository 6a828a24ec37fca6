import copy
import pickle
from collections import OrderedDict, namedtuple
from itertools import islice

import numpy as np
import pytest
import torch
import transformers
from torch.utils.data import (
    DataLoader,
    Dataset,
    DistributedSampler,
    IterableDataset,
    TensorDataset,
)
from torchdata.stateful_dataloader import StatefulDataLoader

import dmsgd
from dmsgd.torch import DiverseSampler, Loader, WithLossWeights, embed, loader

pytestmark = [
    pytest.mark.filterwarnings("ignore:This DataLoader will create 4 worker processes"),
    pytest.mark.filterwarnings("ignore:'set_vital' is deprecated"),  # called by torchdata
]

N, K, STEPS = 60, 6, 9
X = np.random.default_rng(0).normal(size=(N, 10))
DESIGN = dmsgd.diversify(X, k=K)
ITEMS = TensorDataset(torch.arange(N))


def draws(epoch=0, design=DESIGN, seed=0):
    return design.sample(STEPS, seed, start=epoch * STEPS).tolist()


def state_of(sampler):
    """The state of the next pass."""
    return iter(sampler).state_dict()


def flat(rows):
    return [item for row in rows for item in row]


def seen(batches):
    return [batch[0].tolist() for batch in batches]


def test_list_of_sampler_is_the_draws_one_after_another():
    sampler = DiverseSampler(DESIGN, steps=STEPS)
    indices = list(sampler)
    assert indices == flat(draws())
    assert len(sampler) == len(indices) == STEPS * K
    assert all(type(index) is int for index in indices)


def test_default_epoch_is_as_many_draws_as_fit_in_the_data():
    assert len(DiverseSampler(DESIGN)) == N // K * K
    assert len(DiverseSampler(dmsgd.Uniform(5, 4))) == 4


def test_every_pass_is_the_next_epoch_and_set_epoch_names_it():
    sampler = DiverseSampler(DESIGN, steps=STEPS)
    assert [list(sampler), list(sampler)] == [flat(draws(0)), flat(draws(1))]
    sampler.set_epoch(5)
    assert [list(sampler), list(sampler)] == [flat(draws(5)), flat(draws(6))]
    sampler.set_epoch(0)
    next(iter(sampler))  # a pass that is left early counts too, and that is said aloud
    with pytest.warns(UserWarning, match="epoch 0 was left after 1 of 54.*is epoch 1.*set_epoch"):
        assert list(sampler) == flat(draws(1))
    next(iter(sampler))
    sampler.set_epoch(2)  # meant
    assert list(sampler) == flat(draws(2))


def test_epochs_whose_draws_have_no_numbers_are_refused_at_once():
    sampler = DiverseSampler(DESIGN, steps=STEPS)
    for epoch in (2**62, 2**63 // STEPS):
        with pytest.raises(ValueError, match="epoch"):
            sampler.set_epoch(epoch)
        with pytest.raises(ValueError, match="epoch"):
            sampler.resume({**state_of(sampler), "epoch": epoch})
    sampler.set_epoch(2**63 // STEPS - 1)
    assert len(list(sampler)) == STEPS * K
    with pytest.raises(ValueError, match="steps"):
        DiverseSampler(DESIGN, steps=2**62)


def test_an_iterator_that_is_not_used_claims_no_epoch():
    sampler = DiverseSampler(DESIGN, steps=STEPS)
    late, unused = iter(sampler), iter(sampler)
    assert list(sampler) == flat(draws(0))
    assert list(late) == flat(draws(1))
    del unused
    assert state_of(sampler)["epoch"] == 2


def test_seed_decides_the_draws():
    for seed in (3, np.int64(3), np.random.SeedSequence(3)):
        assert list(DiverseSampler(DESIGN, STEPS, seed=seed)) == flat(draws(seed=3))
    by_generator = DiverseSampler(DESIGN, STEPS, seed=np.random.default_rng(1))
    first = list(by_generator)
    by_generator.set_epoch(0)
    assert list(by_generator) == first  # resolved once


@pytest.mark.parametrize("workers", [0, 2])
def test_plain_dataloader_gives_one_draw_per_batch(workers):
    sampler = DiverseSampler(DESIGN, steps=STEPS)
    batches = DataLoader(ITEMS, batch_size=K, sampler=sampler, drop_last=True, num_workers=workers)
    assert seen(batches) == draws()


def test_accumulation_splits_a_draw_over_consecutive_batches():
    batches = seen(loader(ITEMS, DESIGN, accumulation=3, steps=STEPS))
    assert [flat(batches[i : i + 3]) for i in range(0, len(batches), 3)] == draws()


def test_a_state_in_the_middle_of_a_draw_needs_the_same_accumulation():
    thirds = loader(ITEMS, DESIGN, accumulation=3, steps=STEPS)
    states = [thirds.state_dict() for _ in islice(thirds, 4)]
    whole = loader(ITEMS, DESIGN, steps=STEPS)
    with pytest.raises(ValueError, match=r"2 items into an epoch.*batches of 6.*accumulation"):
        whole.load_state_dict(states[0])
    assert seen(whole) == draws()
    whole.load_state_dict(states[2])
    assert seen(whole) == draws()[1:]
    pair = DiverseSampler(DESIGN, STEPS, rank=0, num_replicas=2)
    with pytest.raises(ValueError, match="3 items into an epoch, which 2 ranks do not divide"):
        pair.resume({**states[0], "consumed": 3})


def test_loader_takes_a_sampler_as_it_is():
    sampler = DiverseSampler(DESIGN, steps=STEPS, seed=3)
    batches = loader(ITEMS, sampler, accumulation=2, loss_weights=True)
    assert batches.sampler is sampler
    halves = [batch[0].tolist() for batch in batches]
    assert [flat(halves[i : i + 2]) for i in range(0, len(halves), 2)] == draws(seed=3)
    for own in ({"seed": 4}, {"steps": STEPS}, {"shard": False}):
        with pytest.raises(ValueError, match=r"own steps, seed and shard; leave them out, or pass"):
            loader(ITEMS, sampler, **own)
    with pytest.raises(ValueError, match="9 items, the design 60"):
        loader(TensorDataset(torch.zeros(9)), sampler)


def test_a_second_loader_leaves_the_first_as_it_was():
    sampler = DiverseSampler(DESIGN, steps=STEPS)
    whole = loader(ITEMS, sampler)
    with pytest.raises(ValueError, match="accumulation=1"):
        loader(ITEMS, sampler, accumulation=2)
    assert loader(ITEMS, sampler).batch_size == K
    assert seen(whole) == draws()


def test_loader_of_a_sampler_that_takes_a_part_has_batches_of_that_part():
    halves = [DiverseSampler(DESIGN, STEPS, num_replicas=2, rank=rank) for rank in (0, 1)]
    parts = [seen(loader(ITEMS, half)) for half in halves]
    assert [left + right for left, right in zip(*parts, strict=True)] == draws()


@pytest.mark.parametrize("world", [2, 3])
def test_ranks_share_each_draw(world):
    parts = [
        np.array(list(DiverseSampler(DESIGN, STEPS, num_replicas=world, rank=rank)))
        for rank in range(world)
    ]
    assert [part.size for part in parts] == [STEPS * K // world] * world
    together = np.concatenate([part.reshape(STEPS, -1) for part in parts], axis=1)
    assert together.tolist() == draws()


def test_attributes_are_those_of_torch():
    """A sampler of torch's own over as many items, read by the same names."""
    names = ("num_replicas", "rank", "epoch", "shuffle", "seed", "drop_last", "num_samples",
             "total_size")  # fmt: skip
    items = TensorDataset(torch.arange(STEPS * K))
    for rank in (0, 1):
        theirs = DistributedSampler(items, num_replicas=2, rank=rank, seed=3, drop_last=True)
        ours = DiverseSampler(DESIGN, STEPS, seed=3, num_replicas=2, rank=rank)
        assert {name: getattr(ours, name) for name in names} == {
            name: getattr(theirs, name) for name in names
        }
        assert len(ours) == len(theirs) == len(list(ours))
        assert len(ours.dataset) == N
        for sampler in (theirs, ours):
            sampler.set_epoch(4)
            stream = iter(sampler)
            next(stream)
            assert sampler.epoch == 4  # of the pass under way
        assert set(vars(theirs)) <= set(dir(ours))


def test_epoch_is_that_of_the_pass_or_of_the_one_named_next():
    sampler = DiverseSampler(DESIGN, steps=STEPS)
    assert [sampler.epoch, *(sampler.epoch for _ in range(2) for _ in sampler)] == [
        0, *[0] * (STEPS * K), *[1] * (STEPS * K)
    ]  # fmt: skip
    sampler.epoch = 6  # some loops write the attribute
    assert sampler.epoch == 6
    assert list(sampler) == flat(draws(6))
    again = DiverseSampler(DESIGN, steps=STEPS)
    again.resume({**state_of(again), "epoch": 2, "consumed": K})
    assert again.epoch == 2
    assert pickle.loads(pickle.dumps(again)).epoch == 2


def test_one_process_takes_whole_draws():
    whole = DiverseSampler(DESIGN, STEPS)
    left = DiverseSampler(DESIGN, STEPS, shard=False, num_replicas=2, rank=1)
    for sampler in (whole, left):  # cut by nobody, or by the framework
        assert (sampler.num_replicas, sampler.rank) == (1, 0)
        assert sampler.num_samples == sampler.total_size == STEPS * K


@pytest.mark.parametrize("position", [0, 1, 5, 6, 7, 31, STEPS * K - 1])
@pytest.mark.parametrize("epoch", [0, 3])
def test_sampler_resumes_at_any_place(epoch, position):
    sampler = DiverseSampler(DESIGN, steps=STEPS)
    sampler.set_epoch(epoch)
    stream = iter(sampler)
    consumed = list(islice(stream, position))
    state = stream.state_dict()
    assert state.pop("design") == DESIGN.fingerprint()
    assert all(type(value) is int for value in state.values())
    state = stream.state_dict()
    again = DiverseSampler(DESIGN, steps=STEPS)
    again.resume(state)
    assert consumed + list(again) == flat(draws(epoch))
    assert list(again) == flat(draws(epoch + 1))
    copy = pickle.loads(pickle.dumps(sampler))  # a copy begins the next pass
    assert list(copy) == flat(draws(epoch + (position > 0)))


def test_the_state_is_that_of_a_pass():
    """A sampler does not know how much of what was read training has used."""
    assert not hasattr(DiverseSampler(DESIGN), "state_dict")


def test_a_finished_pass_resumes_with_the_next_epoch():
    stream = iter(DiverseSampler(DESIGN, steps=STEPS))
    list(stream)
    again = DiverseSampler(DESIGN, steps=STEPS)
    again.resume(stream.state_dict())
    assert list(again) == flat(draws(1))


def test_a_copy_of_a_finished_pass_is_at_the_next_epoch():
    sampler = DiverseSampler(DESIGN, steps=STEPS)
    list(sampler)
    assert list(pickle.loads(pickle.dumps(sampler))) == flat(draws(1))


@pytest.mark.parametrize("position", [0, 7, STEPS * K])
def test_a_named_epoch_outlives_state_and_pickle(position):
    """Named before the first pass, in the middle of one, or after it."""
    sampler = DiverseSampler(DESIGN, steps=STEPS)
    list(islice(sampler, position))
    sampler.set_epoch(5)
    again = DiverseSampler(DESIGN, steps=STEPS)
    again.resume(state_of(sampler))
    for heir in (again, pickle.loads(pickle.dumps(sampler))):
        assert list(heir) == flat(draws(5))

    batches = loader(ITEMS, DESIGN, steps=STEPS)
    list(islice(batches, position // K))
    batches.sampler.set_epoch(5)
    again = loader(ITEMS, DESIGN, steps=STEPS)
    again.load_state_dict(batches.state_dict())
    assert seen(again) == draws(5)


def test_frameworks_may_name_the_epoch_again_after_a_resume():
    again = DiverseSampler(DESIGN, steps=STEPS)
    again.resume({**state_of(again), "epoch": 2, "consumed": 4 * K})
    with pytest.raises(ValueError, match=r"stands in epoch 2.*epoch 0 is named.*set_epoch\(2\)"):
        again.set_epoch(0)  # a loop that begins anew would undo the load
    again.set_epoch(2)
    assert list(again) == flat(draws(2)[4:])
    again.set_epoch(0)
    assert list(again) == flat(draws(0))


def test_state_of_another_design_is_refused():
    other = dmsgd.diversify(X[:, :9], k=K)
    state = state_of(DiverseSampler(other, steps=STEPS))
    sampler = DiverseSampler(DESIGN, steps=STEPS)
    loads = loader(ITEMS, DESIGN, steps=STEPS).load_state_dict, iter(sampler).load_state_dict
    for load in (sampler.resume, *loads):
        with pytest.raises(ValueError, match="another sampler or design: design"):
            load(state)
    DiverseSampler(other, steps=STEPS).resume(state)
    schedule = dmsgd.presample(DESIGN, steps=STEPS)  # draws of the design, so a state of it too
    DiverseSampler(schedule, steps=STEPS).resume(state_of(DiverseSampler(DESIGN, steps=STEPS)))


@pytest.mark.parametrize(
    "load",
    [
        lambda state: DiverseSampler(DESIGN).resume(state),
        lambda state: iter(DiverseSampler(DESIGN)).load_state_dict(state),
        lambda state: loader(ITEMS, DESIGN).load_state_dict(state),
    ],
)
@pytest.mark.parametrize("state", ["x", 3, None, [], b"", ("epoch", 0), {1}, np.ones(2), object()])
def test_what_is_no_state_is_refused(load, state):
    with pytest.raises(TypeError, match="state_dict"):
        load(state)


NOT_WHOLE = ("0", None, 1.0, True, [0], {}, np.zeros(2, int))


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("epoch", (*NOT_WHOLE, -1, 2**61, 10**30)),
        ("consumed", (*NOT_WHOLE, -K, 10**9, STEPS * K + K, 10**30)),
        ("steps", (*NOT_WHOLE, STEPS + 1, 0)),
        ("k", (*NOT_WHOLE, K + 1)),
        ("n", (*NOT_WHOLE, N + 1)),
        ("seed", (*NOT_WHOLE, 0, -1, 2**64)),
        ("design", (None, 3, b"", ["a"], "", "0" * 64)),
    ],
)
def test_every_field_of_a_state_is_checked(name, values):
    sampler = DiverseSampler(DESIGN, steps=STEPS)
    sampler.resume({**state_of(sampler), "epoch": 1, "consumed": K})
    good = state_of(sampler)
    for value in values:
        with pytest.raises((TypeError, ValueError), match=name):
            sampler.resume({**good, name: value})
    with pytest.raises(ValueError, match=name):
        sampler.resume({key: each for key, each in good.items() if key != name})
    assert state_of(sampler) == good  # nothing was taken from what was refused
    sampler.resume({**good, "consumed": STEPS * K})  # a whole epoch
    assert sampler.epoch == 2


def test_a_schedule_has_its_own_seed_and_length():
    schedule = dmsgd.presample(DESIGN, steps=STEPS + 3, seed=4)
    with pytest.raises(ValueError, match="already drawn, with seed 4"):
        DiverseSampler(schedule, steps=STEPS, seed=3)
    with pytest.raises(ValueError, match=r"0\.\.13|were asked for, but the schedule has 12"):
        DiverseSampler(schedule, steps=STEPS + 4)
    sampler = DiverseSampler(schedule, steps=STEPS, seed=4)
    assert list(sampler) == flat(draws(seed=4))
    with pytest.raises(ValueError, match="but the schedule has 12"):
        next(iter(sampler))  # and not in the middle of the epoch


def test_places_beyond_the_end_of_a_schedule_are_refused_at_once():
    schedule = dmsgd.presample(DESIGN, steps=2 * STEPS + 3)
    batches = loader(ITEMS, schedule, steps=STEPS)
    for _ in range(2):
        seen(batches)
    at_the_end = batches.state_dict()
    again = loader(ITEMS, schedule, steps=STEPS)
    again.load_state_dict(at_the_end)  # to evaluate, say; nothing is drawn
    for changed in ({"epoch": 3}, {"epoch": 2, "consumed": K}, {"epoch": 10**9}):
        with pytest.raises(ValueError, match="schedule"):
            again.load_state_dict({**at_the_end, **changed})
    assert again.state_dict() == at_the_end
    fresh = DiverseSampler(schedule, steps=STEPS)
    for epoch in (2, 10**9):
        with pytest.raises(ValueError, match="schedule"):
            fresh.set_epoch(epoch)
    assert list(fresh) == flat(draws())


def test_a_batch_size_that_cuts_draws_is_refused():
    for batch_size in (4, 5, 2 * K):
        sampler = DiverseSampler(DESIGN, steps=STEPS)
        with pytest.raises(ValueError, match=f"batch_size {batch_size} x 1 ranks.*draws of k=6"):
            next(iter(Loader(ITEMS, batch_size=batch_size, sampler=sampler)))
    half = DiverseSampler(DESIGN, STEPS, num_replicas=2, rank=1)
    with pytest.raises(ValueError, match=r"6 x 2 ranks.*choose batch_size = 6 / \(2 ranks x"):
        next(iter(Loader(ITEMS, batch_size=K, sampler=half)))


def test_processes_that_did_not_find_each_other_are_refused(monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(RuntimeError, match=r"WORLD_SIZE says 2.*init_process_group.*shard=False"):
        next(iter(DiverseSampler(DESIGN, STEPS)))
    assert list(DiverseSampler(DESIGN, STEPS, shard=False)) == flat(draws())
    assert len(list(DiverseSampler(DESIGN, STEPS, rank=0, num_replicas=2))) == STEPS * K // 2


def test_state_survives_another_number_of_ranks():
    halves = [DiverseSampler(DESIGN, STEPS, num_replicas=2, rank=rank) for rank in (0, 1)]
    streams = [iter(half) for half in halves]
    for stream in streams:
        list(islice(stream, 4 * K // 2))
    assert streams[0].state_dict() == streams[1].state_dict()
    alone = DiverseSampler(DESIGN, STEPS)
    alone.resume(streams[0].state_dict())
    assert list(alone) == flat(draws()[4:])


def check_resume(make, stop):
    """A loader stopped after `stop` batches and made anew goes on as if nothing had happened."""
    undisturbed = make()
    whole = seen(undisturbed), seen(undisturbed)
    first = make()
    head = seen(islice(first, stop))
    state = first.state_dict()
    second = make()
    second.load_state_dict(state)
    middle = seen(islice(second, 2))
    state = second.state_dict()
    third = make()  # resumed a second time
    third.load_state_dict(state)
    if stop == STEPS:  # the first epoch was over
        assert (head, middle + seen(third)) == whole
    else:
        assert head + middle + seen(third) == whole[0]
        assert seen(third) == whole[1]


#: Four processes are started at one stop; at the others only in the longer tests.
WORKERS_AND_STOPS = [
    pytest.param(workers, stop, marks=[pytest.mark.long] * (workers > 0 and stop != 5))
    for workers in (0, 4)
    for stop in (0, 1, 5, STEPS)
]


@pytest.mark.parametrize(("workers", "stop"), WORKERS_AND_STOPS)
def test_loader_resumes_from_what_was_consumed(workers, stop):
    """Workers fetch ahead; the state counts what training got."""
    check_resume(lambda: loader(ITEMS, DESIGN, steps=STEPS, num_workers=workers), stop)


def stateful(workers, persistent=False):
    return StatefulDataLoader(
        ITEMS,
        batch_size=K,
        sampler=DiverseSampler(DESIGN, steps=STEPS),
        drop_last=True,
        num_workers=workers,
        persistent_workers=persistent,
    )


@pytest.mark.outside
@pytest.mark.parametrize(("workers", "stop"), WORKERS_AND_STOPS)
def test_stateful_dataloader_resumes(workers, stop):
    check_resume(lambda: stateful(workers), stop)


@pytest.mark.parametrize(("workers", "persistent"), [(0, False), (1, False), (1, True), (4, True)])
def test_stateful_dataloader_goes_through_the_epochs(workers, persistent):
    """It makes iterators that it does not use, and the more so with workers."""
    batches = stateful(workers, persistent)
    for epoch in range(3):
        assert seen(batches) == draws(epoch)
    for epoch in (3, 4, 1):
        batches.sampler.set_epoch(epoch)
        assert seen(batches) == draws(epoch)
    state = batches.state_dict()  # between epochs
    again = stateful(workers, persistent)
    again.load_state_dict(state)
    assert seen(again) == draws(2)
    assert seen(again) == draws(3)


@pytest.mark.outside
@pytest.mark.parametrize(("workers", "persistent"), [(0, False), (2, False), (2, True)])
def test_a_state_saved_before_the_first_pass(workers, persistent):
    """As in torchdata's test_initial_state, but for its last line: ours differ on purpose.

    There a second pass repeats the first, here it is the next epoch. It also reads keys that
    torchdata's states have, and those of a `Loader` do not.
    """
    batches = stateful(workers, persistent)
    state = batches.state_dict()
    assert seen(batches) == draws()
    next(iter(batches))
    batches.load_state_dict(state)
    assert seen(batches) == draws()
    assert seen(batches) == draws(1)


@pytest.mark.outside
def test_loaders_of_their_own_samplers_agree():
    """As in torchdata's test_two_dataloaders, with draws in both loaders.

    There one of them is without a sampler, in the order of the data. Two loaders of one sampler go
    through its epochs.
    """
    first, second = stateful(0), loader(ITEMS, DESIGN, steps=STEPS)
    assert seen(first) == seen(second) == draws()
    other = DataLoader(ITEMS, batch_size=K, sampler=second.sampler)
    assert seen(other) == draws(1)
    second.sampler.set_epoch(1)
    assert seen(second) == draws(1)


@pytest.mark.parametrize("workers", [0, 1])
def test_a_look_at_a_batch_and_a_second_loader_are_said_aloud(workers):
    batches = loader(ITEMS, DESIGN, steps=STEPS, num_workers=workers)
    assert next(iter(batches))[0].tolist() == draws()[0]  # a look
    with pytest.warns(UserWarning, match=r"epoch 0 was left.*this pass is epoch 1.*set_epoch"):
        assert seen(batches) == draws(1)
    other = DataLoader(ITEMS, batch_size=K, sampler=batches.sampler)
    next(stream := iter(batches))
    with pytest.warns(UserWarning, match=r"epoch 2 was left.*a second loader use up epochs"):
        assert seen(other) == draws(3)  # in the middle of the first one's pass
    next(stream)
    again = loader(ITEMS, DESIGN, steps=STEPS)
    again.load_state_dict(batches.state_dict())  # of this pass, not of the one begun last
    assert seen(again) == seen(stream) == draws(2)[2:]


def test_a_loader_whose_sampler_another_one_reads_has_no_state():
    """As the one that `accelerator.prepare` was given: it would save the epoch after this one."""
    given = loader(ITEMS, DESIGN, steps=STEPS)
    prepared = DataLoader(ITEMS, batch_size=K, sampler=given.sampler)
    stream = iter(prepared)
    next(stream)
    with pytest.raises(ValueError, match=r"epoch 0(?s:.*)skip_first_batches"):
        given.state_dict()
    assert len(list(stream)) == STEPS - 1
    assert given.state_dict()["epoch"] == 1


@pytest.mark.parametrize("workers", [0, pytest.param(1, marks=pytest.mark.long)])
def test_an_epoch_whose_first_batch_fails_is_not_done(workers):
    class Failing(Dataset):
        def __len__(self):
            return N

        def __getitem__(self, index):
            raise OSError("the disk is gone")

    batches = loader(Failing(), DESIGN, steps=STEPS, num_workers=workers)
    batches.sampler.set_epoch(4)
    with pytest.raises(OSError, match="the disk is gone"):
        next(iter(batches))
    again = loader(ITEMS, DESIGN, steps=STEPS)
    again.load_state_dict(batches.state_dict())
    assert seen(again) == draws(4)


@pytest.mark.outside
@pytest.mark.parametrize("workers", [0, 2])
def test_a_pass_goes_on_after_a_batch_that_raised(workers):
    """As in torch's test_error; a state counts the batch that is missing.

    Its test_error_workers counts a smaller last batch of 41 items, too, where draws have k.
    """
    bad = draws()[3]

    class Failing(Dataset):
        def __len__(self):
            return N

        def __getitem__(self, index):
            if index in bad:
                raise KeyError(index)
            return index

    expected = [row for row in draws() if not set(row) & set(bad)]
    batches = loader(Failing(), DESIGN, steps=STEPS, num_workers=workers)
    found, raised, states = [], 0, []
    stream = iter(batches)
    while True:
        try:
            found.append(next(stream).tolist())
            states.append(batches.state_dict()["consumed"])
        except KeyError:
            raised += 1
        except StopIteration:
            break
    assert found == expected
    assert raised == STEPS - len(expected) > 0
    assert states == [(t + 1) * K for t, row in enumerate(draws()) if row in expected]
    assert batches.state_dict()["epoch"] == 1
    assert next(stream, None) is None


@pytest.mark.parametrize(
    "make", [copy.deepcopy, lambda batches: pickle.loads(pickle.dumps(batches))]
)
@pytest.mark.parametrize("workers", [0, 1])
def test_a_copy_of_a_loader_begins_the_next_epoch(workers, make):
    """A state says where training stands, a copy does not."""
    batches = loader(ITEMS, DESIGN, steps=STEPS, num_workers=workers)
    for taken, _ in enumerate(batches, start=1):
        if taken in (3, STEPS):
            copied = make(batches)
            assert copied.state_dict() == {**batches.state_dict(), "epoch": 1, "consumed": 0}
            assert seen(copied) == draws(1)


def test_persistent_workers_go_through_the_epochs():
    batches = loader(ITEMS, DESIGN, steps=STEPS, num_workers=1, persistent_workers=True)
    assert [seen(batches) for _ in range(3)] == [draws(epoch) for epoch in range(3)]
    assert len(batches) == STEPS
    again = loader(ITEMS, DESIGN, steps=STEPS)
    again.load_state_dict({**batches.state_dict(), "consumed": 4 * K})
    assert len(again) == STEPS  # of an epoch, though less is left of this one
    assert seen(again) == draws(3)[4:]


def test_new_features_and_weights_come_with_a_new_loader():
    """One for each epoch, also after one that was left in the middle and resumed."""

    def run(state=None, features=X):
        seen, saved = [], None
        for epoch in range(2 if state else 0, 3):
            design = dmsgd.diversify(features, K)
            batches = loader(ITEMS, design, steps=STEPS, seed=epoch)
            if state:
                batches.load_state_dict(state)
                state = None
            for (items,) in batches:
                seen.append(items.tolist())
                if (epoch, len(seen)) == (2, 2 * STEPS + 4):
                    saved = batches.state_dict(), features
            features = np.roll(features, seen[-1][0], axis=0)  # what training makes of them
        return seen, saved

    seen, saved = run()
    rest, _ = run(*saved)
    assert rest == seen[2 * STEPS + 4 :]
    assert seen[2 * STEPS :] == draws(design=dmsgd.diversify(saved[1], K), seed=2)
    with pytest.raises(ValueError, match="another sampler or design: design"):
        loader(ITEMS, DESIGN, steps=STEPS, seed=2).load_state_dict(saved[0])


def test_resume_does_not_replay():
    """Resuming late asks the design for the rest, and perhaps for the next epoch's beginning."""
    calls = []

    class Recording(dmsgd.Uniform):
        def sample(self, size, seed=None, *, start=0, workers=1):
            calls.append((start, size))
            return super().sample(size, seed, start=start)

    sampler = DiverseSampler(Recording(N, K), steps=10**9)
    sampler.resume({**state_of(sampler), "consumed": (10**9 - 3) * K})
    assert sum(1 for _ in sampler) == 3 * K
    assert calls in ([(10**9 - 3, 3)], [(10**9 - 3, 3), (10**9, 3)])


def test_more_than_2_to_24_items():
    n = 2**24 + 10
    sampler = DiverseSampler(dmsgd.Uniform(n, 64), steps=200)
    indices = np.array(list(sampler))
    assert indices.max() > 2**23
    assert (np.diff(np.sort(indices.reshape(200, 64), axis=1), axis=1) > 0).all()


class Kept(Dataset):
    """Keeps labels apart from its items, which cannot be read; or, without a name, does not."""

    def __init__(self, name=None, kept=(2, 0, 1), change=None):
        self.target_transform, self.item = change, None
        if name:
            setattr(self, name, kept)

    def __len__(self):
        return 3

    def __getitem__(self, number):
        return {"x": number, "label": torch.tensor(5 - number), "kind": "abc"[number]}


TWO = TensorDataset(torch.zeros(3, 2), torch.tensor([2, 0, 1]), torch.tensor([7, 8, 9]))


@pytest.mark.parametrize(
    ("dataset", "expected"),
    [
        (Kept("targets"), [2, 0, 1]),
        (Kept("targets", torch.tensor([2, 0, 1])), [2, 0, 1]),
        (Kept("labels", ["b", "a", "b"]), ["b", "a", "b"]),
        (Kept("y", np.array([2, 0, 1])), [2, 0, 1]),
        (Kept("targets", torch.tensor([2, 0, 1]), {0: 5, 1: 6, 2: 7}.get), [7, 5, 6]),
        (Kept("targets", (1, 2)), [5, 4, 3]),  # of other items
        (Kept("labels", lambda: 3), [5, 4, 3]),
        (Kept(), [5, 4, 3]),
        (TWO, [2, 0, 1]),
        (torch.utils.data.Subset(TWO, [2, 2, 0]), [1, 1, 2]),
        (torch.utils.data.Subset(torch.utils.data.Subset(Kept("y"), [0, 1]), [1]), [0]),
        (torch.utils.data.ConcatDataset([TWO, Kept("y")]), [2, 0, 1, 2, 0, 1]),
        ([(0, "u"), (0, "v"), (0, "u")], ["u", "v", "u"]),
    ],
)
def test_labels_of_a_dataset(dataset, expected):
    assert dmsgd.torch.labels(dataset).tolist() == expected


NUMBERS, TEXTS = TensorDataset(torch.zeros(3), torch.arange(3)), Kept("targets", ["1", "b", "1"])


@pytest.mark.parametrize(
    "dataset",
    [
        torch.utils.data.ConcatDataset([NUMBERS, TEXTS]),
        torch.utils.data.Subset(torch.utils.data.ConcatDataset([TEXTS, NUMBERS]), [0, 1, 4]),
        torch.utils.data.ConcatDataset([NUMBERS, Kept("y", [True, False, True])]),
        Kept("targets", [1, "1", 2]),
        Kept("targets", [0, 1, 2], {0: 1, 1: "1", 2: 2}.get),
    ],
)
def test_labels_of_several_kinds_are_refused(dataset):
    with pytest.raises(TypeError, match="mixes"):
        dmsgd.torch.labels(dataset)


def test_labels_of_a_named_field():
    assert dmsgd.torch.labels(Kept("targets"), "kind").tolist() == ["a", "b", "c"]
    assert dmsgd.torch.labels(TWO, 2).tolist() == [7, 8, 9]
    with pytest.raises(ValueError, match="field= one of x, label, kind"):
        dmsgd.torch.labels(Kept(), "class")
    with pytest.raises(ValueError, match="field= one of 0, 1, 2"):
        dmsgd.torch.labels(TWO, 3)
    with pytest.raises(TypeError, match="no label"):
        dmsgd.torch.labels(["a", "b"])


class Augmented(Dataset):
    def __init__(self, random):
        self.random = random

    def __len__(self):
        return 8

    def __getitem__(self, number):
        return torch.full((10,), number + 0.5) + (torch.rand(1) if self.random else torch.nan)


def test_embed_warns_of_items_that_differ_each_time():
    model = torch.nn.Linear(10, 2)
    with pytest.warns(UserWarning, match="augmentation"):
        embed(model, Augmented(True))
    embed(model, Augmented(False))


def test_embed_gives_features_in_dataset_order():
    model = torch.nn.Sequential(torch.nn.Linear(10, 4), torch.nn.Dropout(0.5)).train()
    data = TensorDataset(torch.tensor(X, dtype=torch.float32), torch.zeros(N))
    features = embed(model, data, batch_size=7)
    assert features.shape == (N, 4)
    assert features.dtype == np.float32
    expected = model[0](data.tensors[0]).detach().numpy()
    np.testing.assert_allclose(features, expected, rtol=1e-5)  # no dropout in evaluation
    assert model.training
    np.testing.assert_array_equal(embed(model, data, batch_size=9, num_workers=1), features)
    lists = [row.tolist() for row in data.tensors[0]]
    np.testing.assert_array_equal(embed(model, lists, collate_fn=torch.tensor), features)
    for other in (Endless(), DataLoader(data, batch_size=9)):
        with pytest.raises(TypeError, match="map-style"):
            embed(model, other)


def test_embed_refuses_a_dataset_without_items():
    with pytest.raises(ValueError, match="data is empty"):
        embed(torch.nn.Linear(10, 4), TensorDataset(torch.zeros(0, 10)))


def test_embed_makes_a_row_of_whatever_a_model_returns_per_item():
    data = torch.tensor(X, dtype=torch.float32)
    summed = torch.nn.Sequential(torch.nn.Linear(10, 1), torch.nn.Flatten(0))
    assert embed(summed, TensorDataset(data)).shape == (N, 1)
    with pytest.raises(ValueError, match=r"one row per item, got shape \(240,\).*\(60, 10\)"):
        embed(torch.nn.Sequential(torch.nn.Linear(10, 4), torch.nn.Flatten(0)), TensorDataset(data))
    with pytest.raises(TypeError, match="first field of the data is a str"):
        embed(summed, ["words", "words"])


def test_embed_leaves_every_part_in_its_mode():
    model = torch.nn.Sequential(torch.nn.Linear(10, 4), torch.nn.BatchNorm1d(4)).train()
    model[1].eval()  # frozen statistics
    embed(model, TensorDataset(torch.tensor(X, dtype=torch.float32)))
    assert [module.training for module in model.modules()] == [True, True, False]


def test_embed_feeds_a_model_its_own_type():
    data = TensorDataset(torch.tensor(X, dtype=torch.float32))
    model = torch.nn.Linear(10, 4)
    exact = embed(model, data)
    features = embed(model.to(torch.bfloat16), data)
    assert features.dtype == np.float32
    np.testing.assert_allclose(features, exact, atol=0.1)
    words = torch.nn.Embedding(N, 3).to(torch.bfloat16)
    assert embed(words, ITEMS).shape == (N, 3)  # item numbers stay integers


def test_embed_takes_one_tensor():
    class Fields(torch.nn.Module):
        def forward(self, x):
            return {"logits": x[:, :2], "pooled": x[:, 2:]}

    with pytest.raises(TypeError, match="return a tensor, got a dict; wrap it"):
        embed(Fields(), TensorDataset(torch.tensor(X)))


class Endless(IterableDataset):
    def __iter__(self):
        return iter(range(3))


class Records(Dataset):
    def __len__(self):
        return N

    def __getitem__(self, index):
        return {"x": index}


def test_weights_reach_the_loss():
    weights = K * dmsgd.unbiased_weights(DESIGN)
    for batch, draw in zip(
        loader(ITEMS, DESIGN, loss_weights=True, steps=2), draws(), strict=False
    ):
        assert batch[0].tolist() == draw
        np.testing.assert_allclose(batch[1].numpy(), weights[draw], rtol=1e-6)
        assert (batch[1] * torch.ones(K)).dtype == torch.float32  # a loss stays what it was
    item = WithLossWeights(Records(), DESIGN)[3]
    assert item == {"x": 3, "loss_weight": torch.tensor(weights[3]).float()}
    torch.set_default_dtype(torch.float64)
    try:
        assert WithLossWeights(list(range(N)), DESIGN)[4] == (4, weights[4])
    finally:
        torch.set_default_dtype(torch.float32)


Point = namedtuple("Point", "x y")


@pytest.mark.parametrize(
    "item",
    [
        {"x": 1},
        OrderedDict(x=1),
        transformers.BatchEncoding({"x": 1}),
        [1, 2],
        (1, 2),
        Point(1, 2),
        torch.tensor(3),
    ],
)
@pytest.mark.parametrize("workers", [0, 1])
def test_what_weights_are_added_to_keeps_its_type(item, workers):
    before = copy.copy(item)
    data = WithLossWeights([item] * N, DESIGN)
    whole, batch = data[0], next(iter(loader(data.dataset, DESIGN, loss_weights=True,
                                             num_workers=workers)))  # fmt: skip
    assert item == before  # the dataset's own is not touched
    if hasattr(item, "keys"):
        assert type(whole) is type(batch) is type(item)
        assert (whole["x"], batch["x"].tolist()) == (1, [1] * K)
        weight, weights = whole["loss_weight"], batch["loss_weight"]
    elif type(item) in (list, tuple):
        assert type(whole) is type(item)
        assert (whole[:2], [x.tolist() for x in batch[:2]]) == (item, [[1] * K, [2] * K])
        weight, weights = whole[2], batch[2]
    else:
        assert type(whole[0]) is type(batch[0]) is type(item)
        weight, weights = whole[1], batch[1]
    assert weight.dtype == weights.dtype == torch.float32
    assert weights.shape == (K,)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: loader(TensorDataset(torch.zeros(9)), DESIGN), ValueError, "9 items.*design 60"),
        (lambda: loader(Endless(), DESIGN), TypeError, "map-style"),
        (lambda: loader(ITEMS, DESIGN, batch_size=6), TypeError, "batch_size is decided"),
        (lambda: loader(ITEMS, DESIGN, accumulation=4), ValueError, "^4 accumulation.* divide k=6"),
        (lambda: loader(ITEMS, DESIGN, shuffle=True), TypeError, "shuffle is decided"),
        (lambda: loader(ITEMS, DESIGN, in_order=False), ValueError, "would mix draws.*leave it"),
        (lambda: DiverseSampler(DESIGN, num_replicas=4, rank=0), ValueError, "multiple of 4"),
        (lambda: DiverseSampler(DESIGN, rank=0), ValueError, "both or neither"),
        (lambda: DiverseSampler(DESIGN, num_replicas=2, rank=2), ValueError, r"0\.\.1, got 2"),
        (lambda: DiverseSampler(DESIGN, num_replicas=0, rank=0), ValueError, "at least 1, got 0"),
        (lambda: DiverseSampler(DESIGN, num_replicas=2, rank=-1), ValueError, "at least 0, got -1"),
        (lambda: DiverseSampler(DESIGN, num_replicas=2.0, rank=1), TypeError, "an integer"),
        (lambda: DiverseSampler(DESIGN, shard="no"), TypeError, "'auto'"),
        (lambda: DiverseSampler(DESIGN, shard=1), TypeError, "'auto'"),
        (lambda: DiverseSampler(DESIGN, shard=np.ones(2)), TypeError, "'auto'"),
        (lambda: loader(ITEMS, DiverseSampler(DESIGN), shard=1), TypeError, "'auto'"),
        (lambda: loader(ITEMS, DiverseSampler(DESIGN), steps=10.0), ValueError, "steps"),
        (lambda: loader(ITEMS, DESIGN, in_order="no"), TypeError, "in_order"),
        (lambda: DiverseSampler(DESIGN, steps=0), ValueError, "steps must be at least 1"),
        (lambda: DiverseSampler(X), TypeError, "must be a design.*ndarray"),
        (lambda: DiverseSampler(dmsgd.DPP(DESIGN.spectrum)), TypeError, "fixed k.*DPP"),
        (
            lambda: DiverseSampler(DESIGN).resume(state_of(DiverseSampler(DESIGN, seed=1))),
            ValueError,
            "another sampler or design: seed.*pass the seed",
        ),
        (
            lambda: DiverseSampler(DESIGN).resume(state_of(DiverseSampler(dmsgd.Uniform(N, 3)))),
            ValueError,
            f"saved with k=3, this one has k={K};",
        ),
    ],
)
def test_misuse_is_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()
