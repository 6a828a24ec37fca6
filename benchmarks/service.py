"""What a request costs in a service: the table of docs/services.md.

    python benchmarks/service.py    # a few minutes

CPU time, one thread, the least of many. "First, nothing compiled" and "first, compiled before" are
a new process from `import dmsgd` to its first result, with an empty and a filled NUMBA_CACHE_DIR.
"""

from __future__ import annotations

from timing import cpu_seconds, human, processor, run_python  # isort: skip  (one thread first)

import tempfile

HEAD = "import time; began = time.process_time(); import dmsgd, numpy as np"
POOL = """
rng = np.random.default_rng(0)
X = rng.normal(size=(50, {d}))[rng.integers(50, size={n})] + 0.7 * rng.normal(size=({n}, {d}))
X /= np.linalg.norm(X, axis=1)[:, None]
q = rng.uniform(0.05, 1.0, size={n})
"""
#: Items, columns, what is made before requests, and a request.
REQUESTS = (
    (100, 256, "", 'dmsgd.select(X, 10, quality=q, how="greedy")'),
    (100, 256, "", "dmsgd.select(X, 10, quality=q)"),
    (1_000, 384, "", 'dmsgd.select(X, 20, quality=q, how="greedy")'),
    (1_000, 384, "", "dmsgd.select(X, 20, quality=q)"),
    (10_000, 100, "", 'dmsgd.select(X, 50, quality=q, how="greedy")'),
    (10_000, 100, "", "dmsgd.select(X, 50, quality=q)"),
    (1_000, 384, "", "dmsgd.diversify(X, 20, quality=q).sample(1, seed=0)"),
    (10_000, 100, "design = dmsgd.diversify(X, 20)", "design.sample(1, seed=0)"),
    (10_000, 100, "design = dmsgd.diversify(X, 20)", "design.sample(1000, seed=0)"),
)


def first(code, folder):
    """Return the CPU seconds of a new process up to the end of `code`."""
    return run_python(f"{code}\nprint(time.process_time() - began)", NUMBA_CACHE_DIR=folder)


def main():
    print(processor(), "\n")
    print("| items | request | later | first, compiled before | first, nothing compiled |")
    print("|---|---|---|---|---|")
    for n, d, before, request in REQUESTS:
        pool = POOL.format(n=n, d=d)
        code = "\n".join((HEAD, pool, before, request))
        with tempfile.TemporaryDirectory() as folder:
            empty = first(code, folder)
            filled = min(first(code, folder) for _ in range(3))
        found: dict[str, object] = {}
        exec("\n".join((HEAD, pool, before)), found)
        compiled = compile(request, "request", "exec")
        later = cpu_seconds(lambda c=compiled, f=found: exec(c, f), rounds=9)
        cells = " | ".join(map(human, (later, filled, empty)))
        print(f"| {n:,} x {d} | `{request}` | {cells} |", flush=True)


if __name__ == "__main__":
    main()
