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
    for name in ("n", "k", "steps", "seed"):
        if isinstance(state[name], bool) or not isinstance(state[name], Integral):
            raise TypeError(f"{name} of the state must be an integer, got {state[name]!r}")
        if state[name] != mine[name]:
            raise ValueError(
                f"the state is of another sampler: {name} {state[name]}, not {mine[name]}"
            )
    theirs, own = state["design"], mine["design"]
    if not isinstance(theirs, str):
        raise TypeError(f"design of the state must be text, a fingerprint, got {theirs!r}")
    if theirs != own:
        raise ValueError(
            f"the state is of another design, with fingerprint {theirs[:8]}, not {own[:8]}; "
            f"build the design from the same data, and after an update() of the features, "
            f"update() with those of that time before loading"
        )
    steps, whole = mine["steps"], mine["steps"] * mine["k"]
    epoch = as_count(state["epoch"], "epoch of the state", least=0)
    if (epoch + 1) * steps > MOST:
        raise ValueError(f"epoch of the state is {epoch}: its draws are beyond number 2^63")
    consumed = as_count(state["consumed"], "consumed of the state", least=0)
    if consumed > whole:
        raise ValueError(
            f"consumed of the state is {consumed}, but an epoch of {steps} draws of {mine['k']} "
            f"has {whole} items"
        )
    return epoch, consumed
