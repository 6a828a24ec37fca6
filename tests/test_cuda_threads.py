"""Draws on a GPU from any thread: a new one, several at once, those of loaders; and training.

Each result is what the main thread draws. Without a GPU the tests are skipped.
"""

from __future__ import annotations

from copy import deepcopy
from functools import cache, partial
from threading import Barrier

import numpy as np
import pytest

import dmsgd
from dmsgd.inputs.arrays import on_host
from dmsgd.runtime.threads import in_background

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("no CUDA device", allow_module_level=True)

from torch.utils.data import DataLoader, TensorDataset  # noqa: E402

from dmsgd.samplers.cuda import program  # noqa: E402
from dmsgd.samplers.cuda.sampler import cuda_sampler  # noqa: E402
from dmsgd.torch import DiverseSampler, loader  # noqa: E402

N, STEPS = 700, 6
X = np.random.default_rng(1).normal(size=(N, 320)) / np.arange(1, 321) ** 0.5
#: Of small, middle and large batches, each drawn by kernels of their own.
SIZES = [8, 100, 300]


def on_gpu(k, device="cuda:0"):
    return dmsgd.diversify(torch.tensor(X, device=device), k=k, kernel="linear", normalize=False)


def drawn(design, size=20, start=0):
    return on_host(design.sample(size, seed=0, start=start))


def in_threads(*works):
    """Return what each of `works` returns, all of them begun at once in new threads."""
    together = Barrier(len(works))

    def begin(work):
        together.wait(60)
        return work()

    begun = [in_background(partial(begin, work)) for work in works]
    return [future.result(timeout=300) for future in begun]


@pytest.fixture
def nothing_compiled(monkeypatch):
    monkeypatch.setattr(program, "_programs", cache(program.Program))


@pytest.mark.parametrize("k", SIZES)
def test_a_new_thread_draws_the_same(k):
    design = on_gpu(k)
    known = drawn(design)  # leaves memory in torch's cache, so that the thread asks for none
    for _ in range(3):
        (found,) = in_threads(partial(drawn, design))
        assert (found == known).all()


@pytest.mark.parametrize("k", SIZES)
def test_a_new_thread_may_do_everything(k, nothing_compiled):
    """Set-up, compilation and tables included."""
    (found,) = in_threads(lambda: drawn(on_gpu(k)))
    assert (found == drawn(on_gpu(k))).all()


@pytest.mark.parametrize("k", SIZES)
def test_two_threads_at_once_draw_the_same(k, nothing_compiled):
    design, known = on_gpu(k), drawn(on_gpu(k), 80)

    def work(start):
        return [drawn(design, 40, start) for _ in range(10)]

    first, second = in_threads(partial(work, 0), partial(work, 40))
    assert (np.array(first) == known[:40]).all()
    assert (np.array(second) == known[40:]).all()


def test_designs_of_all_sizes_at_once(monkeypatch):
    """Also those in lockstep, whose rounds share kernels and differ in shared memory."""
    designs = [on_gpu(k) for k in (*SIZES, 150)]
    known = [drawn(design) for design in designs[:-1]]
    monkeypatch.setattr("dmsgd.samplers.cuda.sampler.is_medium", lambda *about: False)
    known.append(drawn(designs[-1]))

    def work(design):
        return [drawn(design) for _ in range(10)]

    found = in_threads(*(partial(work, design) for design in designs))
    for draws, expected in zip(found, known, strict=True):
        assert (np.array(draws) == expected).all()


def test_eigenvectors_may_come_from_another_stream():
    V = torch.linalg.qr(torch.tensor(X[:, :60], device="cuda:0"))[0].contiguous()
    late, side, values = torch.zeros_like(V), torch.cuda.Stream(), np.linspace(2, 1, 60)
    known = on_host(cuda_sampler(V, values, 20).sample(1, 0, 50, 1))
    with torch.cuda.stream(side):
        torch.cuda._sleep(2**30)  # half a second, in which they are zero
        late.copy_(V)
    (found,) = in_threads(lambda: on_host(cuda_sampler(late, values, 20).sample(1, 0, 50, 1)))
    assert (found == known).all()


def stateful(data, sampler, k):
    found = pytest.importorskip("torchdata.stateful_dataloader")
    return found.StatefulDataLoader(data, batch_size=k, sampler=sampler)


#: (data, sampler, k) -> batches, whose first field are the numbers of their items.
LOADERS = {
    "sampler": lambda data, sampler, k: ([torch.tensor([item])] for item in sampler),
    "DataLoader": lambda data, sampler, k: DataLoader(data, batch_size=k, sampler=sampler),
    "StatefulDataLoader": stateful,
    "loader": lambda data, sampler, k: loader(data, sampler),
    "accumulation": lambda data, sampler, k: loader(data, sampler, accumulation=4),
    "loss weights": lambda data, sampler, k: loader(data, sampler, loss_weights=True),
    "a worker, pinned": lambda data, sampler, k: loader(
        data, sampler, num_workers=1, pin_memory=True
    ),
}


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:'set_vital' is deprecated")  # called by torchdata
@pytest.mark.parametrize("k", SIZES)
@pytest.mark.parametrize("kind", LOADERS)
def test_loaders_hand_out_what_the_main_thread_draws(kind, k):
    design = on_gpu(k)
    known = drawn(design, 3 * STEPS)
    sampler = DiverseSampler(design, steps=STEPS)
    for epoch in range(3):
        batches = LOADERS[kind](TensorDataset(torch.arange(N)), sampler, k)
        items = torch.cat([batch[0] for batch in batches])
        assert items.tolist() == known[epoch * STEPS : (epoch + 1) * STEPS].ravel().tolist()


# torch's backward pass runs in a thread of its own, and may say so of cuBLAS there.
@pytest.mark.filterwarnings("ignore:Attempting to run cuBLAS")
def test_a_model_trains_on_the_batches_of_a_loader():
    inputs = torch.tensor(X, dtype=torch.float32)
    targets = inputs[:, :10].argmax(dim=1)
    design = dmsgd.diversify(inputs.cuda(), k=64, labels=targets, w=0.5)
    begin = torch.nn.Sequential(
        torch.nn.Linear(320, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10)
    ).cuda()

    def train(batches):
        model = deepcopy(begin)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for x, y in batches:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(x.cuda()), y.cuda()).backward()
            optimizer.step()
        return torch.cat([each.detach().flatten() for each in model.parameters()])

    found = train(loader(TensorDataset(inputs, targets), design, steps=STEPS))
    known = train((inputs[batch], targets[batch]) for batch in drawn(design, STEPS))
    torch.testing.assert_close(found, known)
    others = train((inputs[batch], targets[batch]) for batch in drawn(design, STEPS, start=STEPS))
    assert (found - known).norm() < 1e-3 * (found - others).norm()


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs a second GPU")
@pytest.mark.parametrize("k", SIZES)
def test_the_second_gpu_draws_the_same_and_the_first_stays_current(k):
    driver, _ = program.bindings()
    design, known = on_gpu(k, "cuda:1"), drawn(on_gpu(k))
    before = int(driver.cuCtxGetCurrent()[1])
    assert design.sample(1, seed=0).device == torch.device("cuda:1")
    assert (drawn(design) == known).all()
    assert list(DiverseSampler(design, steps=20)) == known.ravel().tolist()

    def work():
        return torch.cuda.current_device(), drawn(design), torch.cuda.current_device()

    for first, found, last in in_threads(work, work):
        assert (found == known).all()
        assert first == last == 0
    assert torch.cuda.current_device() == 0
    assert int(driver.cuCtxGetCurrent()[1]) == before
