"""Runs the numerical tests as on other processors: `make test-processors`.

What a product rounds to depends on the processor, for which OpenBLAS picks its kernels, and on the
number of threads. A test that holds on one machine only by the luck of its rounding fails here.

    python tests/processors.py            all configurations (ten to fifteen minutes on two cores)
    python tests/processors.py --short    two, unlike this machine, on the core of the tests
    python tests/processors.py --here     one, this machine as it is: for other versions of Python
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

TESTS = Path(__file__).parent

#: The files of the short form: everything else is built on what these test.
CORE = ["spectra", "symmetric", "guarantees", "kdpp", "compiled", "prescription", "fingerprints"]

#: All that compute, rather than store, show or fetch.
NUMERICAL = [
    *CORE,
    "approximations",
    "growing",
    "rounding",
    "blocks",
    "conditioned",
    "cover",
    "designs",
    "diagnostics",
    "dpp",
    "duplicates",
    "features",
    "greedy",
    "inclusion",
    "kernels",
    "large_arrays",
    "lda",
    "maps",
    "partition",
    "plain",
    "selecting",
    "sparse_blocks",
    "stored_draws",
    "swap_chain",
    "weighted",
    "words",
]

#: Kernels that differ in how wide their registers are and whether they fuse additions; the names
#: are those of OPENBLAS_CORETYPE.
KERNELS = {
    "x86_64": ["Haswell", "Prescott", "SkylakeX"],
    "aarch64": ["ARMV8", "CORTEXA57", "NEOVERSEN1"],
}
KERNELS |= {"amd64": KERNELS["x86_64"], "arm64": KERNELS["aarch64"]}

#: OpenBLAS may call a kernel by the name of another one that has the same code.
SAME = {"katmai": "prescott"}

#: Prints what BLAS and numba really use, after using both.
PROBE = """
import json, numba, numpy, scipy.linalg, threadpoolctl
from numba.core.registry import cpu_target
A = numpy.random.default_rng(0).normal(size=(200, 200))
numpy.linalg.eigh(A @ A.T), scipy.linalg.eigh(A @ A.T), numba.njit(lambda x: x + 1)(0)
blas = [b for b in threadpoolctl.threadpool_info() if b["internal_api"] == "openblas"]
print(json.dumps({
    "kernels": sorted({b["architecture"] for b in blas}),
    "threads": sorted({b["num_threads"] for b in blas}),
    "numba": cpu_target.target_context.codegen().magic_tuple()[1],
}))
"""


@dataclass(frozen=True)
class Configuration:
    """Settings, and which of the facts that `PROBE` prints they must bring about."""

    name: str
    settings: dict[str, str]
    expected: dict[str, object]


def blas(kernel: str, threads: int) -> Configuration:
    """Return the configuration with this OpenBLAS kernel and number of threads."""
    name = f"{kernel}, {threads} BLAS thread{'s' if threads > 1 else ''}"
    settings = {
        "OPENBLAS_CORETYPE": kernel,
        "OPENBLAS_NUM_THREADS": str(threads),
        "OPENBLAS_THREAD_TIMEOUT": "4",  # sleep at once: idle threads would take turns with tests
    }
    return Configuration(name, settings, {"kernels": [kernel.lower()], "threads": [threads]})


def plain_numba(cache: str) -> Configuration:
    """Return the configuration whose compiled loops use what every processor of the kind has."""
    settings = {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": "", "NUMBA_CACHE_DIR": cache}
    return Configuration("numba for any processor", settings, {"numba": "generic"})


def probe(settings: dict[str, str]) -> dict[str, object] | None:
    """Return what is in use under `settings`; None if the processor cannot run it."""
    command = [sys.executable, "-c", PROBE]
    outcome = subprocess.run(
        command, env=os.environ | settings, stdout=subprocess.PIPE, text=True, check=False
    )
    if outcome.returncode < 0:  # ended by a signal: an instruction that this processor lacks
        return None
    outcome.check_returncode()
    facts = json.loads(outcome.stdout)
    facts["kernels"] = [SAME.get(name.lower(), name.lower()) for name in facts["kernels"]]
    return dict(facts)


def chosen(short: bool, cache: str) -> list[Configuration]:
    """Return the configurations to run on this machine."""
    kernels = KERNELS.get(platform.machine().lower(), [])
    if not short:
        return [blas(kernel, t) for kernel in kernels for t in (1, 2)] + [plain_numba(cache)]
    own = probe({})
    others = [kernel for kernel in kernels if own and [kernel.lower()] != own["kernels"]]
    return [blas(kernel, t) for kernel, t in zip(others, (1, 2), strict=False)]


def obstacle(configuration: Configuration, facts: dict[str, object] | None) -> str | None:
    """Return why this machine cannot run the configuration, None if it can."""
    if facts is None:
        return "this processor cannot run it"
    if "kernels" in configuration.expected and not facts["kernels"]:
        return "NumPy and SciPy do not use OpenBLAS here"
    if int(configuration.settings.get("OPENBLAS_NUM_THREADS", 1)) > (os.cpu_count() or 1):
        return "there are fewer cores than threads"
    return None


def run(configuration: Configuration, files: list[str]) -> bool | None:
    """Return whether the test files pass, None if they cannot run here; print a line on it."""
    facts = probe(configuration.settings)
    if reason := obstacle(configuration, facts):
        print(f"{configuration.name}: skipped, {reason}", flush=True)
        return None
    used = {fact: facts[fact] for fact in configuration.expected}
    if used != configuration.expected:
        print(f"{configuration.name}: FAILED, the settings were not taken up; in use: {facts}")
        return False
    command = [sys.executable, "-m", "pytest", "-n", "2", "--tb=short"]
    start = time.perf_counter()
    outcome = subprocess.run(
        [*command, *(str(TESTS / f"test_{name}.py") for name in files)],
        env=os.environ | configuration.settings,
        cwd=TESTS.parent,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    seconds = time.perf_counter() - start
    counts = outcome.stdout.strip().rpartition("\n")[2].partition(" in ")[0]
    in_use = ", ".join(f"{fact} {value}" for fact, value in used.items())
    print(f"{configuration.name}: {counts}, {seconds:.0f} s (in use: {in_use})", flush=True)
    if outcome.returncode:
        print(outcome.stdout, flush=True)
    return outcome.returncode == 0


def main() -> int:
    """Run the configurations; return 1 if one failed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--short", action="store_true", help="two configurations, fewer files")
    parser.add_argument("--here", action="store_true", help="this machine as it is")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as cache:
        files = CORE if asked.short else NUMERICAL
        as_it_is = [Configuration(f"Python {platform.python_version()}", {}, {})]
        configurations = as_it_is if asked.here else chosen(asked.short, cache)
        results = [run(configuration, files) for configuration in configurations]
    counts = f"{results.count(True)} passed, {results.count(False)} failed"
    print(f"configurations of processors: {counts}, {results.count(None)} skipped")
    return 1 if False in results else 0


if __name__ == "__main__":
    sys.exit(main())
