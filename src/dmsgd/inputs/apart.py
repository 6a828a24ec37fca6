"""LAPACK on a large matrix in a process of its own, which Ctrl-C ends at once.

LAPACK hears nothing until it is done, and SciPy lets no other thread run meanwhile. The matrix lies
in memory that both processes see, so that nothing is sent.
"""

from __future__ import annotations

import ctypes
import json
import mmap
import os
import subprocess
import sys
import time
from contextlib import suppress
from typing import Any

import numpy as np

from dmsgd.inputs.arrays import FloatArray
from dmsgd.inputs.progress import Progress

#: Numbers that are moved to the shared memory at a time.
_PIECE = 2**24

#: What the other process does. It is killed when the one that waits for it ends, however that ends:
#: 1 is PR_SET_PDEATHSIG.
_WORK = """
import ctypes, json, mmap, os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_IGN)
ctypes.CDLL(None).prctl(1, signal.SIGKILL)
number, size, name, options, sys.path[:] = json.loads(sys.argv[1])
import numpy
from scipy import linalg
print("ready", flush=True)
if not sys.stdin.readline():
    os._exit(1)
numbers = numpy.frombuffer(mmap.mmap(number, 8 * size * (size + 1)), float)
matrix = numbers[: size * size].reshape(size, size).T
found = getattr(linalg, name)(matrix, overwrite_a=True, check_finite=False, **options)
for each in found if isinstance(found, tuple) else (found,):
    if each.ndim == 1:
        numbers[size * size :] = each
    elif not numpy.shares_memory(each, matrix):
        matrix[:] = each
os._exit(0)
"""


def apart(
    name: str, matrix: FloatArray, seconds: float, what: str, **options: Any
) -> tuple[FloatArray, FloatArray] | None:
    """Return the numbers, shape (n,), and the matrix that scipy.linalg's `name` finds, or None.

    matrix: (n, n), laid out by columns; lost, unless the result is None, which means that no other
            process can be had here (memory is shared on Linux alone).
    what:   what is said to take so many `seconds`, and how far it is.
    """
    if not hasattr(os, "memfd_create") or not sys.executable or hasattr(sys, "frozen"):
        return None
    n, number = len(matrix), os.memfd_create("dmsgd")
    try:
        given = json.dumps([number, n, name, options, sys.path])
        with subprocess.Popen(
            [sys.executable, "-c", _WORK, given], pass_fds=(number,), text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        ) as process:  # fmt: skip
            pipes: Any = process  # all three are there
            try:
                if not pipes.stdout.readline():
                    return None
                os.ftruncate(number, 8 * n * (n + 1))
                numbers = np.frombuffer(mmap.mmap(number, 8 * n * (n + 1)), float)
                shared = numbers[: n * n].reshape(n, n)
                _move(matrix.T, shared)
                pipes.stdin.write("go\n")
                pipes.stdin.flush()
                _wait(process, seconds, what)
            finally:
                process.kill()
                process.wait()
            if process.returncode:
                raise _failure(process.returncode, pipes.stderr.read(), what)
    finally:
        os.close(number)
    return numbers[n * n :], shared.T


def _move(matrix: FloatArray, to: FloatArray) -> None:
    """Copy the matrix, giving its pages back to the system: nobody reads it again."""
    step = max(1, _PIECE // len(matrix))
    for first in range(0, len(matrix), step):
        rows = matrix[first : first + step]
        to[first : first + step] = rows
        start = -(-rows.ctypes.data // mmap.PAGESIZE) * mmap.PAGESIZE
        length = (rows.ctypes.data + rows.nbytes - start) // mmap.PAGESIZE * mmap.PAGESIZE
        if length > 0:
            pages = ctypes.c_void_p(start), ctypes.c_size_t(length)
            ctypes.CDLL(None).madvise(*pages, mmap.MADV_DONTNEED)


def _wait(process: subprocess.Popen[str], seconds: float, what: str) -> None:
    """Return when the process has ended; between short waits Ctrl-C is heard."""
    tell = Progress(what)
    while True:
        with suppress(subprocess.TimeoutExpired):
            process.wait(0.2)
        tell((time.monotonic() - tell.began) / seconds)
        if process.poll() is not None:
            return


def _failure(code: int, errors: str, what: str) -> Exception:
    """Return what is to be raised."""
    if code < 0:
        return MemoryError(
            f"{what} was ended by the system (signal {-code}), most likely because memory ran out"
        )
    return np.linalg.LinAlgError((errors.strip().splitlines() or [f"{what} failed"])[-1])
