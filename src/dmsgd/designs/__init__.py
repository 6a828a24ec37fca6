"""Designs, distributions over batches, besides those of `dmsgd` itself."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # the same names, for type checkers
    from dmsgd.designs.contract import ClosedForm as ClosedForm
    from dmsgd.designs.options import DesignOptions as DesignOptions
    from dmsgd.designs.partition import OnePerGroup as OnePerGroup
    from dmsgd.designs.scale import suggest_scale as suggest_scale
    from dmsgd.designs.stratified import clustered as clustered
    from dmsgd.designs.swap_chain import SwapChain as SwapChain

#: The modules that define these names, loaded when one is first used: `select` needs few of them.
_HOME_OF = {
    "ClosedForm": "contract",
    "DesignOptions": "options",
    "OnePerGroup": "partition",
    "SwapChain": "swap_chain",
    "clustered": "stratified",
    "suggest_scale": "scale",
}
__all__ = list(_HOME_OF)


if not TYPE_CHECKING:  # type checkers know the names from above, and reject all others

    def __getattr__(name: str) -> Any:
        """Load a public name on first use."""
        if name in _HOME_OF:
            return getattr(import_module(f"dmsgd.designs.{_HOME_OF[name]}"), name)
        raise AttributeError(f"module 'dmsgd.designs' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__]
