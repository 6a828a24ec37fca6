"""Compiles CUDA sources for the GPU at hand and launches their kernels on torch's stream.

NVRTC and the driver are reached through NVIDIA's cuda-bindings, which comes with torch for CUDA.
Any thread may launch kernels, and several at once may.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any, final

from dmsgd.errors import DeviceError
from dmsgd.inputs.messages import require


@final
class Program:
    """The kernels of some .cu and .cuh files of this folder, for one GPU.

    constants: macros of the sources.
    """

    def __init__(self, files: tuple[str, ...], device: int, **constants: int) -> None:
        import torch

        driver, nvrtc = bindings()
        self.device = device
        major, minor = torch.cuda.get_device_capability(device)
        source = "\n".join((Path(__file__).parent / file).read_text() for file in files)
        options = [f"--gpu-architecture=sm_{major}{minor}", "--std=c++17"]
        options += [f"-D{name}={value}" for name, value in constants.items()]
        code = _compiled(nvrtc, source, options)
        # The one that torch uses; it is kept until the process ends, as torch keeps it.
        self._context = _checked(
            driver.cuDevicePrimaryCtxRetain(_checked(driver.cuDeviceGet(device)))
        )
        with self._current():
            self._module = _checked(driver.cuModuleLoadData(code))
        self._functions: dict[str, Any] = {}
        self._lock = Lock()

    def __call__(
        self, name: str, grid: tuple[int, int], threads: int, *arguments: Any, shared: int = 0
    ) -> None:
        """Launch a kernel on torch's stream; tensors are passed as addresses.

        Python's ints are passed as C's int; other types are given by ctypes.
        """
        import torch

        values: list[int] = []
        kinds: list[Any] = []
        for each in arguments:
            if isinstance(each, torch.Tensor):
                values.append(each.data_ptr())
                kinds.append(ctypes.c_void_p)
            elif isinstance(each, int):
                values.append(each)
                kinds.append(ctypes.c_int)
            else:
                values.append(each.value)
                kinds.append(type(each))
        stream = torch.cuda.current_stream(self.device).cuda_stream
        packed = tuple(values), tuple(kinds)
        size = (*grid, 1, threads, 1, 1, shared)
        driver, _ = bindings()
        # A kernel has one limit of shared memory for all threads, and calls ask for different ones.
        with self._lock, self._current():
            if name not in self._functions:
                found = driver.cuModuleGetFunction(self._module, name.encode())
                self._functions[name] = _checked(found)
            kernel = self._functions[name]
            if shared > 0:
                which = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
                _checked(driver.cuFuncSetAttribute(kernel, which, shared))
            _checked(driver.cuLaunchKernel(kernel, *size, stream, packed, 0))

    @contextmanager
    def _current(self) -> Iterator[None]:
        """Let the GPU's context be current in this thread, and afterwards what was so before.

        A new thread has none until torch calls the CUDA runtime, which neither
        `torch.cuda.device(0)` nor memory from torch's cache do.
        """
        driver, _ = bindings()
        _checked(driver.cuCtxPushCurrent(self._context))
        try:
            yield
        finally:
            _checked(driver.cuCtxPopCurrent())


_programs, _compiling = cache(Program), Lock()


def program(files: tuple[str, ...], device: int, **constants: int) -> Program:
    """Return Program(...), which the first thread that asks for it compiles, once per process."""
    with _compiling:
        return _programs(files, device, **constants)


@cache
def bindings() -> tuple[Any, Any]:
    """Return cuda-bindings' modules of the driver and of NVRTC."""
    require("cuda", "a draw on a GPU")
    from cuda.bindings import driver, nvrtc

    return driver, nvrtc


def most_bytes(about: Any) -> int:
    """Return the shared memory that a thread block may have on a GPU of these properties."""
    return int(getattr(about, "shared_memory_per_block_optin", 48 * 1024))


def _compiled(nvrtc: Any, source: str, options: list[str]) -> Any:
    """Return the machine code of a source."""
    program = _checked(nvrtc.nvrtcCreateProgram(source.encode(), b"dmsgd.cu", 0, [], []))
    (status,) = nvrtc.nvrtcCompileProgram(
        program, len(options), [option.encode() for option in options]
    )
    if status.value:
        log = b" " * _checked(nvrtc.nvrtcGetProgramLogSize(program))
        nvrtc.nvrtcGetProgramLog(program, log)
        raise DeviceError(f"NVRTC could not compile dmsgd's kernels: {log.decode()}")
    code = b" " * int(_checked(nvrtc.nvrtcGetCUBINSize(program)))
    _checked(nvrtc.nvrtcGetCUBIN(program, code))
    return code


def _checked(answer: tuple[Any, ...]) -> Any:
    """Return the result of a call of cuda-bindings, or raise DeviceError by its status."""
    status, *values = answer
    if status.value:
        raise DeviceError(f"the CUDA driver failed with {status.name}")
    return values[0] if values else None
