"""dmsgd: mini-batches, selections and rankings from k-DPPs, so that batches are diverse.

    design = dmsgd.diversify(X, k=64, labels=y, w=0.7)
    batches = design.sample(1000, seed=0)            # (1000, 64) item numbers

Zhang, Kjellström, Mandt: Determinantal Point Processes for Mini-Batch Diversification, UAI 2017.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # the same names, for type checkers
    from dmsgd import (  # noqa: I001 - not a statement for each name
        designs as designs, diagnostics as diagnostics, errors as errors, features as features,
        kernels as kernels, lda as lda, sgd as sgd, sklearn as sklearn, spectra as spectra,
        targets as targets, torch as torch,
    )  # fmt: skip
    from dmsgd.designs.build import diversify as diversify
    from dmsgd.designs.contract import Design as Design, unbiased_weights as unbiased_weights
    from dmsgd.designs.dpp import DPP as DPP
    from dmsgd.designs.kdpp import KDPP as KDPP
    from dmsgd.designs.partition import Partition as Partition
    from dmsgd.selection.duplicates import near_duplicates as near_duplicates
    from dmsgd.selection.select import select as select, uncertainty as uncertainty
    from dmsgd.selection.result import Selection as Selection
    from dmsgd.designs.stratified import (
        Stratified as Stratified, Uniform as Uniform, cells as cells,
    )  # fmt: skip
    from dmsgd.designs.weighted import Weighted as Weighted
    from dmsgd.errors import (
        ClusterError as ClusterError, DeviceError as DeviceError, KernelWarning as KernelWarning,
        RankError as RankError, SamplingError as SamplingError, TargetError as TargetError,
    )  # fmt: skip
    from dmsgd.schedules import Schedule as Schedule, presample as presample

__version__ = "0.2.0.dev0"

#: The public names by the module that defines them, which is loaded when one is first used.
_HOMES = {
    "designs.build": ("diversify",),
    "designs.contract": ("Design", "unbiased_weights"),
    "designs.dpp": ("DPP",),
    "designs.kdpp": ("KDPP",),
    "designs.partition": ("Partition",),
    "designs.stratified": ("Stratified", "Uniform", "cells"),
    "designs.weighted": ("Weighted",),
    "errors": (
        "ClusterError", "DeviceError", "KernelWarning", "RankError", "SamplingError", "TargetError",
    ),
    "schedules": ("Schedule", "presample"),
    "selection.duplicates": ("near_duplicates",),
    "selection.select": ("select", "uncertainty"),
    "selection.result": ("Selection",),
}  # fmt: skip

#: Public modules, loaded when first named; some of them load a framework.
_MODULES = (
    "designs", "diagnostics", "errors", "features", "kernels", "lda", "sgd",
    "sklearn", "spectra", "targets", "torch",
)  # fmt: skip

_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = list(_HOME_OF)


if not TYPE_CHECKING:  # type checkers know the names from above, and reject all others

    def __getattr__(name: str) -> Any:
        """Load a public name or module on first use, so that `import dmsgd` loads nothing."""
        if name in _MODULES:
            return import_module(f"dmsgd.{name}")
        if name in _HOME_OF:
            return getattr(import_module(f"dmsgd.{_HOME_OF[name]}"), name)
        raise AttributeError(f"module 'dmsgd' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, *_MODULES, "__version__"]
