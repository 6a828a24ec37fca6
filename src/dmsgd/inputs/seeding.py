"""From whatever a user calls a seed to the 64-bit key that all draws are a function of."""

from __future__ import annotations

import numbers

import numpy as np

#: What `seed` may be, everywhere in the package.
Seed = (
    int
    | np.random.SeedSequence
    | np.random.Generator
    | np.random.BitGenerator
    | np.random.RandomState
    | None
)


def key_of(seed: Seed) -> int:
    """Return the 64-bit key of `seed`.

    An int or a SeedSequence gives the same key every time. A Generator or RandomState is advanced,
    so that two calls with it give different draws, and None takes fresh entropy from the system.
    """
    if isinstance(seed, np.random.Generator):
        return int(seed.integers(0, 2**64, dtype=np.uint64))
    if isinstance(seed, np.random.BitGenerator):
        return int(seed.random_raw())
    if isinstance(seed, np.random.RandomState):
        high, low = seed.randint(0, 2**32, size=2, dtype=np.uint32)
        return int(high) << 32 | int(low)
    if isinstance(seed, np.random.SeedSequence):
        return int(seed.generate_state(1, np.uint64)[0])
    if seed is None:
        return key_of(np.random.SeedSequence())
    if isinstance(seed, numbers.Integral) and not isinstance(seed, bool | np.bool_):
        if seed < 0:
            raise ValueError(f"seed must not be negative, got {seed}")
        return key_of(np.random.SeedSequence(int(seed)))
    raise TypeError(
        f"seed must be None, an int, or a numpy SeedSequence, Generator or RandomState, "
        f"got {type(seed).__name__}"
    )
