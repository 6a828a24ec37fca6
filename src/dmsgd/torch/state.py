"""What a sampler saves: a plain dict of its place and of what it draws from."""

from __future__ import annotations

from typing import Any

from dmsgd.designs.source import Source
from dmsgd.inputs.scalars import as_count


def fingerprint_of(source: Source) -> str:
    """Return the hash of what is drawn from, "" if a source of the user's own has none."""
    record = getattr(source, "record", None)  # of a Schedule
    find = getattr(source, "fingerprint", str)
    return str(record.fingerprint if record else find())


def place_of(state: dict[str, Any], mine: dict[str, Any]) -> tuple[int, int]:
    """Return (epoch, items consumed over all ranks) of a state; refuse one of another sampler.

    mine: a state of the sampler that is to go on.
    """
    for name in ("n", "k", "steps", "seed"):
        if state.get(name) != mine[name]:
            raise ValueError(
                f"the state is of another sampler: {name} {state.get(name)}, not {mine[name]}"
            )
    theirs, own = str(state.get("design")), mine["design"]
    if theirs != own:
        raise ValueError(
            f"the state is of another design, with fingerprint {theirs[:8]}, not {own[:8]}; "
            f"build the design from the same data, and after an update() of the features, "
            f"update() with those of that time before loading"
        )
    epoch = as_count(state.get("epoch"), "epoch", least=0)
    return epoch, as_count(state.get("consumed"), "consumed", least=0)
