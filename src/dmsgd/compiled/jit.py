"""Three ways to compile a loop with numba, `helper`, `callback` and `entry`, and their records.

Compiled code is kept on disk by numba's cache. numba checks only the modification time of the file
that defines the function, so set NUMBA_CACHE_DIR to a new folder after a change to a helper in
another file.
"""

from __future__ import annotations

import ctypes
import gc
import logging
import sys
from collections.abc import Callable
from contextvars import ContextVar
from functools import cached_property, partial
from threading import Lock
from typing import Any, final

import numpy as np
from numba import cfunc, from_dtype, njit
from numba.core.event import Listener, register
from numba.extending import register_jitable
from numba.types import CPointer, Record, float32, float64, int8, int64, uint32, uint64

log = logging.getLogger("dmsgd")

float64_ptr, float32_ptr, int64_ptr = CPointer(float64), CPointer(float32), CPointer(int64)
uint32_ptr, int8_ptr = CPointer(uint32), CPointer(int8)

_ELEMENTS: dict[Any, Any] = {
    float64_ptr: np.float64, float32_ptr: np.float32, int64_ptr: np.int64,
    uint32_ptr: np.uint32, int8_ptr: np.int8,
}  # fmt: skip
_SCALARS: dict[Any, Any] = {uint64: ctypes.c_uint64, float64: ctypes.c_double}


#: Fields of a `Table` that hold the address of a `Callback`, or of a record of any table.
CODE, RECORD = "code", "record"


@final
class Table:
    """Declares a record of numbers and addresses that compiled loops read and write by name.

    A field is int64, a number; a pointer, to the array that it is filled with; CODE or RECORD.
    Signatures have `table.record`. Loops are passed the address of a record.
    """

    def __init__(self, **fields: Any) -> None:
        self.fields = fields
        self.dtype = np.dtype([(name, np.int64) for name in fields])
        self.record = from_dtype(self.dtype)

    def new(self, **values: Any) -> Any:
        """Return a record with these values; the other fields are 0."""
        return self.fill(np.zeros((), self.dtype), **values)

    def fill(self, record: Any, **values: Any) -> Any:
        """Set fields to numbers and to the addresses of arrays and callbacks, 0 for None.

        The record keeps no array alive.
        """
        for name, value in values.items():
            kind = self.fields[name]
            if value is None:
                record[name] = 0
            elif kind is int64:
                record[name] = value
            elif kind is CODE:
                record[name] = value.address
            else:
                record[name] = address(value, value.dtype if kind is RECORD else _ELEMENTS[kind])
        return record


#: For functions that compiled code calls by name: each caller contains them.
helper = register_jitable(error_model="numpy")
#: The same for short ones, which numba copies into the caller before it compiles that.
inlined = njit(inline="always", error_model="numpy")


def entry(fastmath: Any = False) -> Callable[[Any], Any]:
    """Return the decorator of functions of arrays that Python calls, compiled at the first call."""
    options = {"nogil": True, "error_model": "numpy", "fastmath": fastmath}
    return partial(_cached, partial(njit, **options))


@final
class Callback:
    """A function of numbers and pointers that Python calls, or compiled code by its `address`.

    It is compiled, or loaded from disk, when it is first needed. Calls from Python pass arrays for
    pointers, 0 for none, and release the GIL.
    """

    def __init__(self, signature: Any, function: Any) -> None:
        self.signature, self.function = signature, function
        self.__doc__ = function.__doc__
        self._elements = [
            kind.dtype if isinstance(kind, Record) else _ELEMENTS.get(kind, np.void)
            for kind in signature.args
        ]
        self._lock, self._address = Lock(), 0
        self._compiled: Any = None

    def load(self) -> None:
        """Compile it, or load it from disk, if that was not done yet."""
        _ = self.address

    @property
    def address(self) -> int:
        """The address of the machine code."""
        if self._address == 0:
            with self._lock:  # two threads may need it at once
                make = partial(cfunc, self.signature, error_model="numpy")
                self._compiled = self._compiled or _cached(make, self.function)
                self._address = int(self._compiled.address)
        return self._address

    @cached_property
    def of_addresses(self) -> Any:
        """The machine code as a function of numbers, addresses among them, for fast calls."""
        result = _SCALARS.get(self.signature.return_type, ctypes.c_int64)
        kinds = [_SCALARS.get(kind, ctypes.c_int64) for kind in self.signature.args]
        return ctypes.CFUNCTYPE(result, *kinds)(self.address)

    def __call__(self, *arguments: Any) -> Any:
        """Call the machine code."""
        return self.of_addresses(
            *[
                address(each, kind) if isinstance(each, np.ndarray) else each
                for each, kind in zip(arguments, self._elements, strict=True)
            ]
        )


def callback(signature: Any) -> Callable[[Any], Callback]:
    """Return the decorator that makes a `Callback`; it must return a number."""
    return partial(Callback, signature)


def address(array: Any, kind: Any) -> int:
    """Return the address of a contiguous array of this type."""
    if array.dtype != kind or not array.flags.c_contiguous:
        raise TypeError(f"compiled loops need a contiguous array of {kind}, got {array.dtype}")
    if array.size and array.flags.writeable:  # four times as fast
        return ctypes.addressof(ctypes.c_char.from_buffer(array))
    return int(array.__array_interface__["data"][0])


def _cached(decorator: Callable[..., Any], function: Any) -> Any:
    """Compile with numba's cache on disk, or without if there is no folder that can be written."""
    collecting = gc.isenabled()
    gc.disable()  # numba makes many objects, and looking through them takes a tenth of the time
    try:
        return decorator(cache=True)(function)
    except (RuntimeError, OSError):
        only_cached.set(False)  # another process could not keep it either
        log.info("compiled code is not kept: set NUMBA_CACHE_DIR to a folder that can be written")
        return decorator(cache=False)(function)
    finally:
        if collecting:
            gc.enable()


class NotCached(Exception):
    """A function is not in numba's cache."""


#: Whether functions that are not in numba's cache raise `NotCached` in this thread.
only_cached = ContextVar("only_cached", default=False)


class _Announcement(Listener):
    """Prints one line when numba first compiles a function of this package."""

    printed = False

    def on_start(self, event: Any) -> None:
        """Print before the first pass of the compiler, or raise `NotCached`."""
        if not event.data["module"].startswith(__package__):
            return
        if only_cached.get():
            raise NotCached
        if not self.printed:
            self.printed = True
            print("dmsgd: compiling for this processor (some seconds, once) ...", file=sys.stderr)

    def on_end(self, event: Any) -> None:
        """Do nothing."""


register("numba:run_pass", _Announcement())
