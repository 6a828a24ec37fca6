"""How the loops are compiled: once for a processor, and kept.

`compiled(signature)` is numba's `njit` with three differences. A function with a signature is
compiled for these types alone, so that a number in the code is no type of its own; by a compiler
without what such functions do not need (`pipeline`); and it is kept on disk by rules of our own
(`kept`), if it is called from Python or by address.

Functions that call each other pass pointers (DOUBLES and so on) and not arrays, and those that
Python calls get `address(array)`: a function of pointers compiles in a tenth of a second, one of
arrays takes several times as long.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from numba import njit, types
from numba.core.compiler_lock import global_compiler_lock

from dmsgd.compiled.kept import Cache
from dmsgd.compiled.pipeline import Called, Contained

INT, WORD, REAL, YES_NO = types.int64, types.uint64, types.float64, types.boolean
DOUBLES, INTS = types.CPointer(REAL), types.CPointer(INT)
HALF = types.uint32
WORDS, HALVES = types.CPointer(WORD), types.CPointer(HALF)
SINGLES, BYTES = types.CPointer(types.float32), types.CPointer(types.int8)
NOTHING = types.void


def to_read(kind: Any, dimensions: int = 2) -> Any:
    """Return the type of arrays that are only read."""
    return types.Array(kind, dimensions, "C", readonly=True)


def to_fill(kind: Any, dimensions: int = 2) -> Any:
    """Return the type of arrays that are written."""
    return types.Array(kind, dimensions, "C")


def address(array: Any, kind: Any) -> int:
    """Return where an array of this kind begins, which must be contiguous."""
    if array.dtype != kind or not array.flags.c_contiguous:
        raise TypeError(f"compiled loops need a contiguous array of {kind}, got {array.dtype}")
    return int(array.__array_interface__["data"][0])


def compiled(
    signature: Any = None,
    called_from_python: bool = False,
    called_by_address: bool = False,
    fastmath: Any = False,
) -> Callable[[Any], Any]:
    """Return the decorator of compiled functions; each is compiled when it is first needed.

    signature: the types of its arguments and result; without it they are those it is called with.
    called_from_python, called_by_address: whether a function with a signature is. Others are called
               by name, and then the caller contains them.
    fastmath:  what numba calls so.
    """
    options: dict[str, Any] = {"nogil": True, "fastmath": fastmath}
    called = signature is None or called_from_python or called_by_address
    if signature is not None:
        options |= {
            "error_model": "numpy",
            "pipeline_class": Called if called else Contained,
            "no_cpython_wrapper": not called_from_python,
            "no_cfunc_wrapper": not called_by_address,
        }

    def decorate(function: Any) -> Any:
        dispatcher = njit(**options)(function)
        if called:
            with suppress(RuntimeError):  # no folder can be written: compile every time
                dispatcher._cache = Cache(function)
        if signature is not None:
            _fix(dispatcher, signature)
        return dispatcher

    return decorate


def address_of(function: Any) -> int:
    """Return the address of a function, for `pointers.call`.

    A function that is called so is compiled once, and not again within each that calls it.
    """
    function._compile_for_args()
    (found,) = function.overloads.values()
    return int(found.library.get_pointer_to_function(found.fndesc.llvm_cfunc_wrapper_name))


def _fix(dispatcher: Any, signature: Any) -> None:
    """Let a function be compiled for this signature alone, at its first use by anyone.

    Two threads may need it at once. The lock is numba's own: with one of ours beside it, a thread
    that compiles a function without a signature would hold one and wait for the other.
    """
    resolve = dispatcher.get_call_template

    def compile_it(*_: Any, **__: Any) -> Any:
        with global_compiler_lock:
            if not dispatcher.overloads:
                dispatcher.compile(signature)
                dispatcher.disable_compile()
        (found,) = dispatcher.overloads.values()
        return found.entry_point

    def called_by_compiled(args: Any, kws: Any) -> Any:
        compile_it()
        return resolve(args, kws)

    dispatcher.get_call_template = called_by_compiled
    dispatcher._compile_for_args = compile_it
