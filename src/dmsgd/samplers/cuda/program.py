"""Compiles CUDA sources for the GPU at hand and launches their kernels on torch's stream.

NVRTC and the driver are reached through NVIDIA's cuda-bindings, which comes with torch for CUDA.
"""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path
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
        self._module = _checked(driver.cuModuleLoadData(_compiled(nvrtc, source, options)))
        self._functions: dict[str, Any] = {}

    def __call__(
        self, name: str, grid: tuple[int, int], threads: int, *arguments: Any, shared: int = 0
    ) -> None:
        """Launch a kernel on torch's stream; tensors are passed as addresses.

        Python's ints are passed as C's int; other types are given by ctypes.
        """
        import torch

        driver, _ = bindings()
        if name not in self._functions:
            found = driver.cuModuleGetFunction(self._module, name.encode())
            self._functions[name] = _checked(found)
        kernel = self._functions[name]
        if shared > 0:
            which = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            _checked(driver.cuFuncSetAttribute(kernel, which, shared))
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
        _checked(driver.cuLaunchKernel(kernel, *size, stream, packed, 0))


#: Program(...), compiled once per process.
program = cache(Program)


@cache
def bindings() -> tuple[Any, Any]:
    """Return cuda-bindings' modules of the driver and of NVRTC."""
    require("cuda", "a draw on a GPU")
    from cuda.bindings import driver, nvrtc

    return driver, nvrtc


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
