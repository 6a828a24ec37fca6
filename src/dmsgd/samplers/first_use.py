"""Which draws run, NumPy's or compiled ones: the same items, and nobody waits for a compiler.

The first batches of a process are drawn in NumPy (`samplers/plain.py`). After LIMIT seconds of them
a thread loads the compiled loops from numba's cache, while draws go on. If they are not there,
another process compiles them into the cache, and then they are loaded. One call that asks for more
than LIMIT seconds of draws waits for the compiler instead.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from threading import Lock, RLock, main_thread
from typing import Any, final

import numpy as np

from dmsgd.inputs.arrays import FloatArray, IntArray
from dmsgd.runtime.threads import in_background
from dmsgd.samplers import plain
from dmsgd.samplers.contract import PreparedSampler

log = logging.getLogger("dmsgd")

#: Seconds of draws in NumPy, in one call or in all, after which compiled loops are wanted.
LIMIT = 0.3
#: Seconds that a call waits for the thread before it compiles by itself, that a fork waits for it,
#: and that the end of Python does while another process compiles.
PATIENCE, FORK_PATIENCE, END_PATIENCE = 120.0, 5.0, 0.05


def with_plain_draws(
    V: FloatArray, values: FloatArray, k: int, make: Callable[[], PreparedSampler]
) -> PreparedSampler:
    """Return a sampler of the k-DPP of V that draws in NumPy until compiled loops are ready.

    From then on it draws by `make()`, which is called once.
    """
    compiled, tables = cache(make), cache(partial(plain.Tables.of, V, values, k))
    lock = Lock()  # a cache computes for each thread that asks meanwhile

    def sample(key: int, start: int, size: int, workers: int) -> IntArray:
        if loops.use(size * plain.seconds(k)):
            with lock:
                sampler = compiled()
            return sampler.sample(key, start, size, workers)
        with lock:
            prepared = tables()
        out = np.empty((size, k), dtype=np.int64)
        for t in range(size):
            out[t] = plain.draw(prepared, key, start + t)
        return out

    return PreparedSampler("rejection", sample)


@final
class CompiledLoops:
    """The compiled loops of draws from V in memory, and how far this process is with them.

    ready: whether they are loaded.
    """

    def __init__(self) -> None:
        self.ready = False
        self._spent, self._lock, self._busy = 0.0, Lock(), RLock()
        self._loading: Future[None] | None = None
        self._compiler: subprocess.Popen[bytes] | None = None

    def use(self, seconds: float) -> bool:
        """Return whether compiled loops make the next draws, which take this long in NumPy."""
        if not self.ready and seconds > LIMIT:
            self.load_now()
        if not self.ready:
            with self._lock:
                self._spent += seconds
                if self._spent > LIMIT and self._loading is None:
                    with suppress(RuntimeError):  # Python starts no thread while it ends
                        self._loading = in_background(self._load_in_background, daemon=False)
        return self.ready

    def load_now(self) -> None:
        """Load the loops, or compile them, while the caller waits."""
        if self._loading is not None:
            wait([self._loading], PATIENCE)
        self._load()

    def _load_in_background(self) -> None:
        """Load the loops from the cache, which another process fills if they are not there."""
        try:
            with self._busy:
                from dmsgd.compiled.jit import NotCached, only_cached
            try:
                only_cached.set(True)  # in this thread
                self._load(background=True)
            except NotCached:
                only_cached.set(False)
                self._compiler = start_compiler()
                while self._compiler and self._compiler.poll() is None and main_thread().is_alive():
                    time.sleep(END_PATIENCE)
                self._leave_compiler()
                self._load(background=True)
        except Exception:
            log.info("compiled loops were not loaded in the background", exc_info=True)
            self.ready = True  # the next draw compiles in place, and shows what is wrong

    def _load(self, background: bool = False) -> None:
        """Load the loops one by one; a fork, or the end of Python, waits for one at most."""
        with self._busy:
            needed = callbacks()
        for each in needed:
            if background and not main_thread().is_alive():
                return
            with self._busy:
                each.load()
        self.ready = True

    def _leave_compiler(self) -> None:
        """Let the other process end by itself: nobody waits for it, and Python warns of none."""
        if self._compiler is not None and self._compiler.returncode is None:
            self._compiler.returncode = 0

    def before_fork(self) -> None:
        """Wait until the thread is between two loops: a child has no thread to end its work."""
        self._busy.acquire(timeout=FORK_PATIENCE)

    def after_fork(self) -> None:
        """Let the thread go on."""
        with suppress(RuntimeError):  # it was busy for too long
            self._busy.release()

    def after_fork_in_child(self) -> None:
        """Begin again, unless the loops are loaded; the process that compiles is the parent's."""
        self._leave_compiler()
        ready = self.ready
        self.__init__()
        self.ready = ready


loops = CompiledLoops()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=loops.before_fork,
        after_in_parent=loops.after_fork,
        after_in_child=loops.after_fork_in_child,
    )


def callbacks() -> list[Any]:
    """Return all compiled functions that draws from V in memory use."""
    from dmsgd.compiled import kdpp, linear_algebra, philox, projection, tables

    setup = tables.fill_sums, tables.fill_int8
    rows = tables.locate, tables.gather, tables.prefilter
    return [*setup, philox.uniforms, linear_algebra.product, *rows, projection.accept, kdpp.draw]


def start_compiler() -> subprocess.Popen[bytes] | None:
    """Start another Python that compiles the loops; None if there is none to be started."""
    program = sys.executable or ""
    if getattr(sys, "frozen", False) or "python" not in Path(program).name.lower():
        return None  # an application with Python inside: it would start once more
    paths = [path for path in sys.path if isinstance(path, str)]
    code = f"import sys; sys.path[:] = {paths!r}; from {__name__} import compile_loops as c; c()"
    nothing = subprocess.DEVNULL
    log.info("compiling in another process; batches are drawn in NumPy until it is done")
    try:
        return subprocess.Popen(
            [program, "-c", code], stdin=nothing, stdout=nothing, stderr=nothing,
            start_new_session=True,  # Ctrl-C is for the program that draws
        )  # fmt: skip
    except OSError:
        return None


def compile_loops() -> None:
    """Compile all loops into numba's cache; of several processes, one after the other."""
    with open(__file__) as file:
        with suppress(ImportError, OSError):  # without a lock each compiles
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX)
        for each in callbacks():
            each.load()
