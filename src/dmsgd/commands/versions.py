"""`dmsgd --versions`: what to send along with a question or a report of a bug."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version

from dmsgd import __version__

#: Packages whose versions decide what dmsgd computes or can read.
PACKAGES = (
    "numpy", "scipy", "numba", "llvmlite", "threadpoolctl", "click", "scikit-learn", "pandas",
    "pyarrow", "zarr", "dask", "torch", "lightning", "transformers", "gensim", "imbalanced-learn",
)  # fmt: skip


def versions() -> str:
    """Return a line each for dmsgd, Python, the machine, BLAS, GPUs and every package installed."""
    lines = [
        ("dmsgd", __version__),
        ("python", f"{platform.python_version()} ({platform.python_implementation()})"),
        ("system", platform.platform()),
        ("processor", f"{_processor()}, {os.cpu_count()} cores"),
        *_blas(),
        *((name, found) for name in PACKAGES if (found := _version(name))),
        *_gpus(),
    ]
    width = max(len(name) for name, _ in lines)
    return "\n".join(f"{name:{width}}  {what}" for name, what in lines)


def _processor() -> str:
    """Return the processor's name; on Linux from lscpu, which also names those of ARM."""
    try:
        done = subprocess.run(
            ["lscpu"], capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"}
        )
    except OSError:  # there is no such command
        lines = []
    else:
        lines = done.stdout.splitlines()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("Model name:")]
    return names[0] if names else platform.processor() or platform.machine()


def _version(package: str) -> str:
    """Return the version of a package, "" if it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _blas() -> Iterator[tuple[str, str]]:
    """Yield the libraries that compute products and decompositions."""
    import scipy.linalg  # noqa: F401 - so that its library is loaded
    from threadpoolctl import threadpool_info

    for each in threadpool_info():
        if each["user_api"] == "blas":
            kind = each.get("architecture") or "any processor"
            yield (
                "blas",
                f"{each['internal_api']} {each['version']}, {kind}, {each['num_threads']} threads",
            )


def _gpus() -> Iterator[tuple[str, str]]:
    """Yield the GPUs that torch sees."""
    if not _version("torch"):
        return
    try:
        from torch import cuda
    except (ImportError, OSError) as error:  # a damaged one is what is asked about
        yield "cuda", f"torch cannot be imported ({type(error).__name__})"
        return
    if not cuda.is_available():
        yield "cuda", "none that torch sees"
    for number in range(cuda.device_count()):
        yield "cuda", cuda.get_device_name(number)
