"""`dmsgd bench`: what a draw costs on this machine, against what it cannot be cheaper than."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dmsgd.commands.arguments import Seed
from dmsgd.commands.terminal import bar, show

if TYPE_CHECKING:
    from rich.table import Table

    from dmsgd.designs import Design

#: Numbers of items and batch sizes that are timed, with this many features.
ITEMS, SIZES, FEATURES = (1000, 10_000, 100_000), (16, 64, 128), 256
QUICK = (1000,)
#: Rounds of at least so many CPU seconds; the best one counts.
ROUNDS, LEAST = 3, 0.05


def bench(
    quick: Annotated[bool, typer.Option("--quick", help="1,000 items only.")] = False,
    seed: Seed = 0,
) -> None:
    """Time draws on this machine: the CPU time of one batch.

    \b
    Examples:
      dmsgd bench
      dmsgd bench --quick

    The floor is one QR decomposition of a k x k matrix by LAPACK: any exact draw orthogonalises k
    vectors. torch.multinomial, if torch is installed, draws by weight without replacement, with no
    regard to diversity. Features are generated; nothing is written.
    """
    from threadpoolctl import threadpool_limits

    from dmsgd.inputs.scalars import seed_key

    seed_key(seed)
    counts = QUICK if quick else ITEMS
    import numpy as np
    import scipy.linalg  # noqa: F401 - the limit binds only libraries that are loaded

    rng = np.random.default_rng(seed)
    rows = []
    with bar("Draws (the first run of all compiles)") as progress, threadpool_limits(1):
        for number, n in enumerate(counts):
            rows += _timed(n, rng)
            progress((number + 1) / len(counts))
    show(_table(rows))


def _timed(n: int, rng: Any) -> list[tuple[str, ...]]:
    """Return the rows of the table for n items."""
    import dmsgd

    began = time.perf_counter()
    spectrum = dmsgd.exact(dmsgd.Linear(rng.standard_normal((n, FEATURES))))
    setup = time.perf_counter() - began
    rows: list[tuple[str, ...]] = []
    for k in SIZES:
        ours = _draw_seconds(dmsgd.KDPP(spectrum, k))
        floor = cpu_seconds(_qr(k, rng))
        plain = _multinomial(n, k)
        rows.append(
            (
                f"{n:,}",
                str(k),
                _milliseconds(ours),
                _milliseconds(floor),
                f"{ours / floor:.1f}",
                "-" if plain is None else _milliseconds(cpu_seconds(plain)),
                f"{setup:.2f} s",
            )
        )
    return rows


def _draw_seconds(design: Design) -> float:
    draws = max(2000 // design.k, 10)
    design.sample(2, seed=0)  # compiling is no part of a draw
    return cpu_seconds(lambda: design.sample(draws, seed=1)) / draws


def cpu_seconds(work: Callable[[], Any], rounds: int = ROUNDS, least: float = LEAST) -> float:
    """Return the CPU time of one call: the best of `rounds` rounds of at least `least` seconds."""
    best, repeats = float("inf"), 1
    while rounds:
        began = time.process_time()
        for _ in range(repeats):
            work()
        spent = time.process_time() - began
        if spent < least:
            repeats *= 2
            continue
        best, rounds = min(best, spent / repeats), rounds - 1
    return best


def _qr(k: int, rng: Any) -> Callable[[], Any]:
    import numpy as np
    from scipy.linalg import lapack

    A = np.asfortranarray(rng.standard_normal((k, k)))
    lwork = int(lapack.dgeqrf_lwork(k, k)[0])
    return lambda: lapack.dgeqrf(A, lwork=lwork)


def _multinomial(n: int, k: int) -> Callable[[], Any] | None:
    """Return torch's weighted draw without replacement, None without torch."""
    from importlib.util import find_spec

    if find_spec("torch") is None:
        return None
    import torch

    torch.set_num_threads(1)
    weights = torch.rand(n, dtype=torch.float64)
    return lambda: torch.multinomial(weights, k)


def _milliseconds(seconds: float) -> str:
    return f"{1e3 * seconds:.3g} ms"


def _table(rows: list[tuple[str, ...]]) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(
        title=f"One batch: CPU time on one thread, {FEATURES} features",
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
    )
    headings = ("items", "k", "dmsgd", "QR floor", "x floor", "torch.multinomial", "set-up")
    for heading in headings:
        table.add_column(heading, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    return table
