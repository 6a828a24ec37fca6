"""Designs, distributions over batches, besides those of `dmsgd` itself."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # the same names, for type checkers
    from dmsgd.designs.contract import ClosedForm
    from dmsgd.designs.options import DesignOptions
    from dmsgd.designs.partition import OnePerGroup
    from dmsgd.designs.scale import suggest_scale
    from dmsgd.designs.stratified import clustered
    from dmsgd.designs.swap_chain import SwapChain

__all__ = [
    "ClosedForm",
    "DesignOptions",
    "OnePerGroup",
    "SwapChain",
    "clustered",
    "suggest_scale",
]

#: The modules that define these names, loaded when one is first used: `select` needs few of them.
_HOMES = "contract", "options", "partition", "swap_chain", "stratified", "scale"
_HOME_OF = dict(zip(__all__, _HOMES, strict=True))


if not TYPE_CHECKING:  # type checkers know the names from above, and reject all others

    def __getattr__(name: str) -> Any:
        """Load a public name on first use."""
        if name in _HOME_OF:
            return getattr(import_module(f"dmsgd.designs.{_HOME_OF[name]}"), name)
        raise AttributeError(f"module 'dmsgd.designs' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__]
