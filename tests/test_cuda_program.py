"""How kernels are launched, by a driver that runs none but refuses what the real one refuses.

tests/test_cuda_threads.py launches real ones, where there is a GPU.
"""

from __future__ import annotations

import threading
import time
from functools import cache
from types import SimpleNamespace

import pytest

import dmsgd
from dmsgd.runtime.threads import in_background

torch = pytest.importorskip("torch")

from dmsgd.samplers.cuda import program as module  # noqa: E402

OK, REFUSED, TOO_MUCH = (
    SimpleNamespace(value=value, name=name)
    for value, name in ((0, "CUDA_SUCCESS"), (201, "CUDA_ERROR_INVALID_CONTEXT"), (1, "TOO_MUCH"))
)


class Driver:
    """Contexts are the numbers of devices, and current in one thread each."""

    CUfunction_attribute = SimpleNamespace(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES=8)

    def __init__(self):
        self.threads, self.limits, self.launched = threading.local(), {}, []

    def stack(self):
        return self.threads.__dict__.setdefault("stack", [])

    def cuDeviceGet(self, number):
        return OK, number

    def cuDevicePrimaryCtxRetain(self, device):
        return OK, device

    def cuCtxPushCurrent(self, context):
        self.stack().append(context)
        return (OK,)

    def cuCtxPopCurrent(self):
        return OK, self.stack().pop()

    def cuModuleLoadData(self, code):
        return (OK, self.stack()[-1]) if self.stack() else (REFUSED,)

    def cuModuleGetFunction(self, loaded_on, name):
        return OK, (loaded_on, name)

    def cuFuncSetAttribute(self, kernel, which, value):
        self.limits[kernel] = value
        time.sleep(0.001)  # another thread may set it now
        return (OK,)

    def cuLaunchKernel(self, kernel, x, y, z, a, b, c, shared, stream, packed, extra):
        if not self.stack() or self.stack()[-1] != kernel[0]:
            return (REFUSED,)
        if shared > self.limits.get(kernel, 0):
            return (TOO_MUCH,)
        self.launched.append((kernel[0], stream, shared))
        return (OK,)


@pytest.fixture
def compiled():
    """The programs that were compiled, by their options."""
    return []


@pytest.fixture
def driver(monkeypatch, compiled):
    driver = Driver()

    def compile_slowly(nvrtc, source, options):
        compiled.append(tuple(options))
        time.sleep(0.01)

    monkeypatch.setattr(module, "bindings", lambda: (driver, None))
    monkeypatch.setattr(module, "_compiled", compile_slowly)
    monkeypatch.setattr(module, "_programs", cache(module.Program))
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (9, 0))
    streams = {device: SimpleNamespace(cuda_stream=100 + device) for device in (0, 1)}
    monkeypatch.setattr(torch.cuda, "current_stream", streams.get)
    return driver


def launch(device, shared=0):
    module.program(("setup.cu",), device)("choose", (1, 1), 32, 5, shared=shared)


@pytest.mark.parametrize("device", [0, 1])
@pytest.mark.parametrize("before", [[], [0], [1]])
def test_a_launch_is_on_its_own_device_and_leaves_the_context_of_the_thread(driver, device, before):
    def work():
        driver.stack().extend(before)
        launch(device)
        return driver.stack()

    launch(device)
    assert work() == in_background(work).result() == before
    assert driver.launched == [(device, 100 + device, 0)] * 3


def test_a_launch_that_fails_leaves_it_too(driver):
    driver.cuLaunchKernel = lambda *about: (TOO_MUCH,)
    with pytest.raises(dmsgd.errors.DeviceError, match="TOO_MUCH"):
        launch(0)
    assert driver.stack() == []


def test_threads_may_ask_for_different_shared_memory_at_once(driver):
    def work(shared):
        for _ in range(20):
            launch(0, shared)

    for future in [in_background(lambda size=size: work(size)) for size in (1000, 90_000, 8)]:
        future.result(timeout=60)
    assert len(driver.launched) == 60


def test_threads_that_begin_at_once_compile_a_program_once(driver, compiled):
    for future in [in_background(lambda n=n: launch(n % 2)) for n in range(6)]:
        future.result(timeout=60)
    assert len(compiled) == 2  # one for each GPU
