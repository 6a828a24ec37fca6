"""One BLAS thread per process: the matrices are small, and tests run side by side.

A file of tests that imports what is not installed is not run, and the first line says so.
"""

import ast
import gc
import hashlib
import os
import signal
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest

from left_behind import differences, put_back, shared

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

# Shells start background jobs with SIGINT ignored, and what tests start would be so, too.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# numba compares the time of change of one file with what it keeps of a function, and these contain
# functions of other files: a change to any of them begins a new folder.
_COMPILED = sorted((Path(__file__).parent.parent / "src" / "dmsgd" / "compiled").glob("*.py"))
_HASH = hashlib.sha256(b"".join(path.read_bytes() for path in _COMPILED)).hexdigest()[:16]
_FOLDER = Path(__file__).parent.parent / "build" / "numba" / _HASH
os.environ.setdefault("NUMBA_CACHE_DIR", str(_FOLDER))


#: Only these may be missing: without any other a test must fail.
OPTIONAL = {
    "accelerate", "atheris", "dask", "datasets", "distributed", "hypothesis", "lightning",
    "polars", "pyarrow", "skactiveml", "torch", "torchdata", "transformers", "zarr",
}  # fmt: skip


def missing(path):
    """Return the optional packages that a file imports at its top and that are not installed."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    names = {
        name.partition(".")[0]
        for node in tree.body
        for name in (
            [each.name for each in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    return sorted(name for name in names & OPTIONAL if find_spec(name) is None)


LEFT_OUT = {
    path.name: names
    for path in sorted(Path(__file__).parent.glob("test_*.py"))
    if (names := missing(path))
}
collect_ignore = list(LEFT_OUT)


#: Files with fixtures that are costly to make.
SHARING = {
    path.name
    for path in Path(__file__).parent.glob("test_*.py")
    if 'scope="module"' in path.read_text(encoding="utf-8")
}


def pytest_report_header():
    """Return which files are not run, for want of what."""
    return [f"not run: {name} needs {', '.join(LEFT_OUT[name])}" for name in LEFT_OUT]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Let one process run all tests of a file that has a shared fixture, which is made once."""
    from xdist.scheduler import LoadScopeScheduling

    class Together(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            file = nodeid.partition("::")[0]
            return file if Path(file).name in SHARING else nodeid

    return Together(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Do not search for garbage while modules are imported, nor later among what they made.

    hypothesis asks who refers to an object while it is imported, which a frozen one hides.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        if "hypothesis" in sys.modules:
            gc.freeze()
        gc.enable()


@cache
def has_cuda():
    return sys.modules["torch"].cuda.is_available()


def seed_torch(torch):
    """Do as `manual_seed`, which takes a millisecond to note who asked for seeds of no GPU."""
    (torch if has_cuda() else torch.default_generator).manual_seed(0)


#: The generators of modules as they were before any test.
NUMBERS = {}


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    """Let all random numbers begin anew: no test's data depends on which tests ran before."""
    import numpy as np

    np.random.seed(0)  # noqa: NPY002 (what libraries use where they are given nothing)
    if "torch" in sys.modules:
        seed_torch(sys.modules["torch"])
    if hasattr(item.module, "RNG"):
        generator = item.module.RNG.bit_generator
        generator.state = NUMBERS.setdefault(item.module, generator.state)


def pytest_sessionfinish():
    """Save what coverage saw: xdist kills a process that takes long to end, with all of it."""
    if "coverage" in sys.modules and (seen := sys.modules["coverage"].Coverage.current()):
        seen.save()


@pytest.fixture(autouse=True)
def nothing_left_behind():
    """Let no test find what another did: what frameworks leave is undone, and nothing else left."""
    environment, before = dict(os.environ), shared()
    yield
    put_back(environment)
    state = sys.modules.get("accelerate.state")
    if state is not None:  # samplers ask it who cuts their draws
        state.AcceleratorState._reset_state(reset_partial_state=True)
        state.GradientState._reset_state()
    assert not differences(before, shared())
