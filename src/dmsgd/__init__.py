"""dmsgd: every mini-batch a draw from a k-DPP, so that batches are diverse and rare data is seen.

    design = dmsgd.diversify(X, k=64, labels=y, w=0.7)
    batches = design.sample(1000, seed=0)            # (1000, 64) item numbers

Zhang, Kjellström, Mandt: Determinantal Point Processes for Mini-Batch Diversification, UAI 2017.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # the same names, for type checkers
    from dmsgd import (  # noqa: I001 - not a statement for each name
        designs as designs, diagnostics as diagnostics, imblearn as imblearn, lda as lda,
        report as report, sgd as sgd, sklearn as sklearn, torch as torch,
    )  # fmt: skip
    from dmsgd.designs import (
        DPP as DPP, KDPP as KDPP, ClosedForm as ClosedForm, Design as Design,
        KernelName as KernelName, Partition as Partition, PoissonDisk as PoissonDisk,
        Stratified as Stratified, SwapChain as SwapChain, TargetName as TargetName,
        AcceptReject as AcceptReject, Uniform as Uniform, Weighted as Weighted, cells as cells,
        clustered as clustered, diversify as diversify,
        inclusion as inclusion, suggest_scale as suggest_scale,
        unbiased_weights as unbiased_weights,
    )  # fmt: skip
    from dmsgd.diagnostics import (
        correlation as correlation, suggest_w as suggest_w,
    )  # fmt: skip
    from dmsgd.errors import (
        KernelWarning as KernelWarning, RankError as RankError, SamplingError as SamplingError,
        TargetError as TargetError,
    )  # fmt: skip
    from dmsgd.features import (
        anneal as anneal, concat as concat, normalize as normalize, one_hot as one_hot,
        standardize as standardize,
    )  # fmt: skip
    from dmsgd.kernels import (
        RBF as RBF, Kernel as Kernel, Linear as Linear, Precomputed as Precomputed,
        Product as Product, coreset as coreset, exact as exact, identity as identity,
        median_scale as median_scale, nystrom as nystrom, pivoted_cholesky as pivoted_cholesky,
        strata as strata,
    )  # fmt: skip
    from dmsgd.targets import (
        density_target as density_target, prescribe as prescribe,
    )  # fmt: skip
    from dmsgd.schedules import (
        Schedule as Schedule, presample as presample,
    )  # fmt: skip
    from dmsgd.spectra import (
        Spectrum as Spectrum,
    )  # fmt: skip

__version__ = "0.2.0.dev0"

#: The names users type, by the module they live in, which is loaded when one is first used.
_HOMES = {
    "designs": (
        "DPP", "KDPP", "ClosedForm", "Design", "KernelName", "Partition", "PoissonDisk",
        "Stratified", "SwapChain", "TargetName", "AcceptReject", "Uniform", "Weighted", "cells",
        "clustered", "diversify", "inclusion", "suggest_scale",
        "unbiased_weights",
    ),
    "diagnostics": ("correlation", "suggest_w"),
    "errors": ("KernelWarning", "RankError", "SamplingError", "TargetError"),
    "features": ("anneal", "concat", "normalize", "one_hot", "standardize"),
    "kernels": (
        "RBF", "Kernel", "Linear", "Precomputed", "Product", "coreset", "exact", "identity",
        "median_scale", "nystrom", "pivoted_cholesky", "strata",
    ),
    "targets": ("density_target", "prescribe"),
    "schedules": ("Schedule", "presample"),
    "spectra": ("Spectrum",),
}  # fmt: skip

#: Modules that users type, loaded when first named, because they load a framework.
_MODULES = ("designs", "torch", "sgd", "lda", "sklearn", "imblearn", "diagnostics", "report")

_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = list(_HOME_OF)


if not TYPE_CHECKING:  # type checkers know the names from above, and refuse all others

    def __getattr__(name: str) -> Any:
        """Load the package on first use, so that `import dmsgd` itself costs nothing."""
        if name in _MODULES:
            return import_module(f"dmsgd.{name}")
        if name in _HOME_OF:
            return getattr(import_module(f"dmsgd.{_HOME_OF[name]}"), name)
        raise AttributeError(f"module 'dmsgd' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, *_MODULES, "__version__"]
