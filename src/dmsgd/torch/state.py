"""The state that resumes a pass: a plain dict of its place and of what it draws from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from numbers import Integral
from typing import Any

from dmsgd.inputs.scalars import MOST, as_count


def as_state(value: Any, names: Iterable[str]) -> Mapping[str, Any]:
    """Return `value`, a dict in which these names are."""
    if not isinstance(value, Mapping):
        raise TypeError(
            f"the state must be a dict that state_dict() has returned, got a {type(value).__name__}"
        )
    missing = [name for name in names if name not in value]
    if missing:
        raise ValueError(
            f"the state has no {', '.join(missing)}; pass what state_dict() has returned"
        )
    return value


def place_in(value: Any, mine: dict[str, Any]) -> tuple[int, int]:
    """Return (epoch, items consumed over all ranks) of a state; raise for one of another sampler.

    mine: a state of the sampler that is to go on.
    """
    state = as_state(value, mine)
    for name, own in mine.items():
        theirs, kind = state[name], str if name == "design" else Integral
        if isinstance(theirs, bool) or not isinstance(theirs, kind):
            raise TypeError(f"{name} of the state must be like {own!r}, got {theirs!r}")
        if name not in ("epoch", "consumed") and theirs != own:
            raise ValueError(
                f"the state is of another sampler or design: {name} is {theirs}, not {own}; build "
                f"the design from the same data, and after an update() of the features, update() "
                f"with those of that time before loading"
            )
    epoch = as_count(state["epoch"], "epoch of the state", least=0)
    consumed = as_count(state["consumed"], "consumed of the state", least=0)
    whole = mine["steps"] * mine["k"]
    if consumed > whole or (epoch + 1) * mine["steps"] > MOST:
        raise ValueError(
            f"the state says epoch {epoch}, consumed {consumed}, but an epoch has {whole} items, "
            f"and draws are numbered below 2^63"
        )
    return epoch, consumed
