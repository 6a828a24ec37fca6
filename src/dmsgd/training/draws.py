"""Draws one after the other, as training loops take them, and the rows of the data they pick."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse

from dmsgd.designs.source import Source, as_source
from dmsgd.inputs.arrays import IntArray, on_host, to_numpy
from dmsgd.inputs.scalars import Seed, as_count, seed_key

#: Draws made ahead at a time: enough that the cost of a call (50 µs) is lost among them.
CHUNK = 64


def refuse_unfit(design: Any, n: int, what: str) -> None:
    """Raise unless `design` draws batches of fixed size from exactly these n items."""
    if as_source(design).n != n:
        raise ValueError(
            f"{what} has {n} items, the design {design.n}; "
            f"build the design from the features of this very data"
        )


def fixed_seed(design: Source, seed: Seed) -> int | np.random.SeedSequence:
    """Return a seed that gives the same draws however often it is used.

    A Schedule's own seed comes first. An int or a SeedSequence is returned as it is, so that the
    draws are those of design.sample(steps, seed); a generator is advanced, and None is fresh.
    """
    key = seed_key(seed)  # refuses what is no seed
    own: int | None = getattr(design, "seed", None)  # a source of the user's own may do with less
    if own is not None:
        return own
    return seed if isinstance(seed, int | np.integer | np.random.SeedSequence) else key


def draws(design: Source, steps: int, seed: Seed, start: int) -> Iterator[tuple[int, IntArray]]:
    """Return (t, batch) for the draws t = start..start+steps, made ahead a chunk at a time.

    The arguments are checked here, before the first draw is asked for.

    >>> from dmsgd import Uniform
    >>> [(t, batch.shape) for t, batch in draws(Uniform(9, 4), steps=2, seed=0, start=5)]
    [(5, (4,)), (6, (4,))]
    """
    steps, start = as_count(steps, "steps", least=0), as_count(start, "start", least=0)
    seed = fixed_seed(design, seed)
    design.sample(0, seed, start=start + steps)  # a schedule that is too short says so now
    return _chunked(design, seed, start, start + steps)


def _chunked(design: Source, seed: Seed, first: int, last: int) -> Iterator[tuple[int, IntArray]]:
    chunk = getattr(design, "at_once", None) or CHUNK
    for t in range(first, last, chunk):
        rows = on_host(design.sample(min(chunk, last - t), seed, start=t))
        yield from enumerate(rows, start=t)


def as_indexable(data: Any, name: str) -> Any:
    """Return `data` in a form that `take` can pick rows from: frames and arrays as they are."""
    if data is None:
        raise TypeError(f"{name} is None; pass one row per item")
    rows = data if hasattr(data, "shape") else to_numpy(data, name)
    if len(rows.shape) == 0:
        raise ValueError(f"{name} must have one row per item, got a single value")
    if rows.shape[0] == 0:
        raise ValueError(f"{name} is empty: shape {tuple(rows.shape)}")
    return data.tocsr() if sparse.issparse(data) else rows


def is_numbered(data: Any) -> bool:
    """Return whether items of `data` can be read by number, as those of a list can."""
    mapped = isinstance(data, str | bytes | dict | type)
    return not mapped and hasattr(data, "__getitem__") and hasattr(data, "__len__")


def take(data: Any, batch: IntArray) -> Any:
    """Return the rows of `data` at these positions, in the same kind of container."""
    return data.iloc[batch] if hasattr(data, "iloc") else data[batch]
