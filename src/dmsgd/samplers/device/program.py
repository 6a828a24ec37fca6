"""Compiles CUDA sources for the card at hand and launches their kernels between torch's.

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
    """The kernels of some .cu and .cuh files of this folder, for one card.

    constants: names that the sources know as numbers.
    """

    def __init__(self, files: tuple[str, ...], card: int, **constants: int) -> None:
        import torch

        driver, nvrtc = bindings()
        self.card = card
        major, minor = torch.cuda.get_device_capability(card)
        source = "\n".join((Path(__file__).parent / file).read_text() for file in files)
        options = [f"--gpu-architecture=sm_{major}{minor}", "--std=c++17"]
        options += [f"-D{name}={value}" for name, value in constants.items()]
        self._module = _asked(driver.cuModuleLoadData(_compiled(nvrtc, source, options)))
        self._functions: dict[str, tuple[Any, int]] = {}

    def kernel(self, name: str, shared: int = 0) -> Any:
        """Return a kernel, allowed so many bytes of shared memory."""
        driver, _ = bindings()
        found, allowed = self._functions.get(name, (None, 0))
        if found is None:
            found = _asked(driver.cuModuleGetFunction(self._module, name.encode()))
        if shared > allowed:
            which = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            _asked(driver.cuFuncSetAttribute(found, which, shared))
        self._functions[name] = found, max(shared, allowed)
        return found

    def __call__(
        self, name: str, grid: tuple[int, int], threads: int, *arguments: Any, shared: int = 0
    ) -> None:
        """Launch a kernel on torch's stream; tensors are passed as addresses.

        Python's ints are C's, unless they are given as something of ctypes.
        """
        import torch

        driver, _ = bindings()
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
        stream = torch.cuda.current_stream(self.card).cuda_stream
        launched = driver.cuLaunchKernel(
            self.kernel(name, shared), *grid, 1, threads, 1, 1, shared, stream,
            (tuple(values), tuple(kinds)), 0,
        )  # fmt: skip
        _asked(launched)


@cache
def program(files: tuple[str, ...], card: int, **constants: int) -> Program:
    """Return a program that was compiled once in this process."""
    return Program(files, card, **constants)


@cache
def bindings() -> tuple[Any, Any]:
    """Return cuda-bindings' modules of the driver and of NVRTC."""
    require("cuda", "a draw on a graphics card")
    from cuda.bindings import driver, nvrtc

    return driver, nvrtc


def _compiled(nvrtc: Any, source: str, options: list[str]) -> Any:
    """Return the machine code of a source."""
    program = _asked(nvrtc.nvrtcCreateProgram(source.encode(), b"dmsgd.cu", 0, [], []))
    (status,) = nvrtc.nvrtcCompileProgram(
        program, len(options), [option.encode() for option in options]
    )
    if status.value:
        log = b" " * _asked(nvrtc.nvrtcGetProgramLogSize(program))
        nvrtc.nvrtcGetProgramLog(program, log)
        raise DeviceError(f"NVRTC could not compile dmsgd's kernels: {log.decode()}")
    code = b" " * int(_asked(nvrtc.nvrtcGetCUBINSize(program)))
    _asked(nvrtc.nvrtcGetCUBIN(program, code))
    return code


def _asked(answer: tuple[Any, ...]) -> Any:
    """Return what a call of cuda-bindings returned behind its status, which is looked at."""
    status, *values = answer
    if status.value:
        raise DeviceError(f"the CUDA driver refused with {status.name}")
    return values[0] if values else None
