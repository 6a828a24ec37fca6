"""Checks of single values that users pass: counts, fractions, flags, choices, seeds."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

#: Counts are numbers of 64 bits.
MOST = 2**63 - 1


def as_flag(value: Any, name: str, more: str = "") -> bool:
    """Return `value`, True or False; `more` names what else the argument may be."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False{more}, got {value!r}")
    return bool(value)


def as_choice(value: Any, name: str, choices: Sequence[str]) -> str:
    """Return `value`, one of these words."""
    if not isinstance(value, str) or value not in choices:
        words = " or ".join(", ".join(map(repr, choices)).rsplit(", ", 1))
        kind = ValueError if isinstance(value, str) else TypeError
        raise kind(f"unknown {name} {value!r}; use {words}")
    return value


def as_count(value: Any, name: str, least: int = 1) -> int:
    """Return `value` as an int that is at least `least` and has 64 bits."""
    if type(value) is not int and (  # isinstance takes ten times as long
        isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Integral)
    ):
        raise TypeError(f"{name} must be an integer, got {value!r}")
    if not least <= (count := int(value)) <= MOST:
        limits = f"at least {least}" if count < least else "below 2^63"
        raise ValueError(f"{name} must be {limits}, got {count}")
    return count


def as_part(value: Any, name: str, n: int) -> int:
    """Return `value` as a number of items, of n at most."""
    count = as_count(value, name)
    if count > n:
        limit = f"{n}; lower {name} to at most {n}"
        raise ValueError(f"{name}={count} exceeds the number of items, {limit}")
    return count


def as_fraction(value: Any, name: str) -> float:
    """Return `value` as a float in [0, 1]."""
    if not 0.0 <= (number := _as_real(value, name)) <= 1.0:
        raise ValueError(f"{name} must lie in [0, 1], got {value}")
    return number


def as_share(value: Any, name: str) -> float:
    """Return `value` as a float in [0, 1): the share of something that is not all of it."""
    if (share := as_fraction(value, name)) == 1:
        raise ValueError(f"{name} must be below 1, which would leave nothing, got {value}")
    return share


def as_positive(value: Any, name: str) -> float:
    """Return `value` as a finite float above zero."""
    if not 0.0 < (number := _as_real(value, name)) < np.inf:
        raise ValueError(f"{name} must be positive and finite, got {value}")
    return number


def _as_real(value: Any, name: str) -> float:
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be a number, got {value!r}")
    try:
        return float(value) + 0.0  # 0.0 for -0.0, so that equal numbers have equal fingerprints
    except OverflowError:
        return np.inf if value > 0 else -np.inf  # type: ignore[operator]


#: What `seed` may be, everywhere in the package.
Seed = int | np.random.SeedSequence | np.random.Generator | np.random.RandomState | None


def seed_key(seed: Seed) -> int:
    """Return the 64-bit key of `seed`.

    An int or a SeedSequence gives the same key every time. A Generator or RandomState is advanced,
    so that two calls with it give different draws, and None takes fresh entropy from the system.
    """
    if type(seed) is int and seed >= 0:
        return _int_key(seed)
    if isinstance(seed, np.random.Generator):
        return int(seed.integers(0, 2**64, dtype=np.uint64))
    if isinstance(seed, np.random.RandomState):
        high, low = seed.randint(0, 2**32, size=2, dtype=np.uint32)
        return int(high) << 32 | int(low)
    if isinstance(seed, np.random.SeedSequence):
        low, high = seed.generate_state(2).tolist()
        return low | high << 32  # type: ignore[no-any-return]
    if seed is None:
        return seed_key(np.random.SeedSequence())
    if isinstance(seed, numbers.Integral) and not isinstance(seed, bool | np.bool_):
        if seed < 0:
            raise ValueError(f"seed must not be negative, got {seed}")
        return _int_key(int(seed))
    kind = type(seed).__name__
    raise TypeError(
        f"seed must be None, an int, SeedSequence, Generator or RandomState, got {kind}"
    )


@lru_cache(maxsize=64)
def _int_key(seed: int) -> int:
    """Return the key of an int, kept for loops that draw with one seed again and again."""
    return seed_key(np.random.SeedSequence(seed))
