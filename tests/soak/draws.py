"""Ten million draws in one process: memory, frequencies and speed from the first to the last.

python tests/soak/draws.py [--draws 10000000] [--n 5000] [--k 10] [--lot 20000] [--seconds 0]

The cost is CPU time over that of sorting a fixed array at the same moment, because machines are
noisy; it is shown, not judged. With --seconds it ends early, and says after how many draws.
"""

from __future__ import annotations

import time

import numpy as np
from watch import Memory, Progress, announce, finish, options

import dmsgd

#: Standard errors that no item's frequency may be away from b.
SIGMAS = 5


def main(arguments=None):
    given = options(arguments, draws=10_000_000, n=5000, k=10, lot=20_000, seconds=0.0)
    announce(f"{given.draws:,} draws of {given.k} out of {given.n:,}", "2 to 8 minutes by default")
    design = dmsgd.diversify(
        np.random.default_rng(0).normal(size=(given.n, 200)),
        given.k,
        kernel="linear",
        normalize=False,
    )
    b = design.inclusion()
    counts, lots = np.zeros(given.n, dtype=np.int64), given.draws // given.lot
    noise = np.random.default_rng(1).normal(size=10**6)
    costs, watched, progress = [], Memory(), Progress(given.draws, "draws")
    for lot in range(lots):
        began = time.process_time()
        batches = design.sample(given.lot, seed=0, start=lot * given.lot)
        drawn = time.process_time()
        np.sort(noise)
        costs.append((drawn - began) / (time.process_time() - drawn))
        counts += np.bincount(batches.ravel(), minlength=given.n)
        del batches
        if lot >= min(20, lots // 20):  # after warm-up
            watched.look()
        progress.show((lot + 1) * given.lot)
        if given.seconds and time.monotonic() - progress.began > given.seconds:
            break
    draws = len(costs) * given.lot
    away = np.abs(counts / draws - b) / np.sqrt(b * (1 - b) / draws)
    tenth = max(1, len(costs) // 10)
    slower = np.median(costs[-tenth:]) / np.median(costs[:tenth])
    failures = []
    if not watched.flat:
        failures.append("memory grows")
    if away.max() > SIGMAS:
        failures.append(f"item {away.argmax()} is {away.max():.1f} standard errors from its b")
    finish(
        "draws",
        failures,
        f"{draws:,} draws, n={given.n}, k={given.k}; {watched}; farthest item {away.max():.2f} of "
        f"{SIGMAS} standard errors sqrt(b (1 - b) / draws), mean square {np.mean(away**2):.3f}; "
        f"cost of a draw in the last tenth {slower:.3f} of the first",
    )


if __name__ == "__main__":
    main()
