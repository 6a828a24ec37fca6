"""`dmsgd --versions`: what to send along with a question or a report of a bug."""

from __future__ import annotations

import os
import platform
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version

from dmsgd import __version__

#: Packages whose versions decide what dmsgd computes or can read.
PACKAGES = (
    "numpy", "scipy", "numba", "llvmlite", "threadpoolctl", "click", "scikit-learn", "pandas",
    "pyarrow", "zarr", "dask", "torch", "lightning", "transformers", "gensim", "imbalanced-learn",
)  # fmt: skip


def versions() -> str:
    """Return a line each for dmsgd, Python, the machine, BLAS, every package installed and GPUs."""
    import scipy.linalg  # noqa: F401 - so that its library is loaded
    from llvmlite.binding import get_host_cpu_name
    from threadpoolctl import threadpool_info

    lines = [
        ("dmsgd", __version__),
        ("python", f"{platform.python_version()} ({platform.python_implementation()})"),
        ("system", platform.platform()),
        ("processor", f"{get_host_cpu_name()}, {os.cpu_count()} cores"),
    ]
    for each in threadpool_info():
        if each["user_api"] == "blas":
            kind = each.get("architecture") or "any processor"
            library = f"{each['internal_api']} {each['version']}"
            lines.append(("blas", f"{library}, {kind}, {each['num_threads']} threads"))
    for name in PACKAGES:
        with suppress(PackageNotFoundError):
            lines.append((name, version(name)))
    if "torch" in dict(lines):
        lines += [("cuda", gpu) for gpu in _gpus()]
    return "\n".join(f"{name:16}  {what}" for name, what in lines)


def _gpus() -> list[str]:
    """Return the GPUs that torch sees."""
    try:
        from torch import cuda
    except (ImportError, OSError) as error:  # a damaged one is what is asked about
        return [f"torch cannot be imported ({type(error).__name__})"]
    found = [cuda.get_device_name(number) for number in range(cuda.device_count())]
    return found or ["none that torch sees"]
