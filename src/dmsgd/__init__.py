"""dmsgd: every mini-batch a draw from a k-DPP, so that batches are diverse and rare data is seen.

    design = dmsgd.diversify(X, k=64, labels=y, w=0.7)
    batches = design.sample(1000, seed=0)            # (1000, 64) item numbers

Zhang, Kjellström, Mandt: Determinantal Point Processes for Mini-Batch Diversification, UAI 2017.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dmsgd import (
        datasets as datasets,
    )
    from dmsgd import (
        diagnostics as diagnostics,
    )
    from dmsgd import (
        imblearn as imblearn,
    )
    from dmsgd import (
        lda as lda,
    )
    from dmsgd import (
        report as report,
    )
    from dmsgd import (
        sgd as sgd,
    )
    from dmsgd import (
        sklearn as sklearn,
    )
    from dmsgd import (
        torch as torch,
    )
    from dmsgd.designs import (
        DPP as DPP,
    )
    from dmsgd.designs import (
        KDPP as KDPP,
    )
    from dmsgd.designs import (
        ClosedForm as ClosedForm,
    )
    from dmsgd.designs import (
        Design as Design,
    )
    from dmsgd.designs import (
        KernelName as KernelName,
    )
    from dmsgd.designs import (
        Partition as Partition,
    )
    from dmsgd.designs import (
        PoissonDisk as PoissonDisk,
    )
    from dmsgd.designs import (
        Stratified as Stratified,
    )
    from dmsgd.designs import (
        SwapChain as SwapChain,
    )
    from dmsgd.designs import (
        TargetName as TargetName,
    )
    from dmsgd.designs import (
        Trials as Trials,
    )
    from dmsgd.designs import (
        Uniform as Uniform,
    )
    from dmsgd.designs import (
        Weighted as Weighted,
    )
    from dmsgd.designs import (
        cells as cells,
    )
    from dmsgd.designs import (
        clustered as clustered,
    )
    from dmsgd.designs import (
        correlation as correlation,
    )
    from dmsgd.designs import (
        diversify as diversify,
    )
    from dmsgd.designs import (
        inclusion as inclusion,
    )
    from dmsgd.designs import (
        suggest_scale as suggest_scale,
    )
    from dmsgd.designs import (
        suggest_w as suggest_w,
    )
    from dmsgd.designs import (
        unbiased_weights as unbiased_weights,
    )
    from dmsgd.errors import (
        KernelWarning as KernelWarning,
    )
    from dmsgd.errors import (
        RankError as RankError,
    )
    from dmsgd.errors import (
        SamplingError as SamplingError,
    )
    from dmsgd.errors import (
        TargetError as TargetError,
    )
    from dmsgd.features import (
        anneal as anneal,
    )
    from dmsgd.features import (
        concat as concat,
    )
    from dmsgd.features import (
        normalize as normalize,
    )
    from dmsgd.features import (
        one_hot as one_hot,
    )
    from dmsgd.features import (
        standardize as standardize,
    )
    from dmsgd.kernels import (
        RBF as RBF,
    )
    from dmsgd.kernels import (
        Kernel as Kernel,
    )
    from dmsgd.kernels import (
        Linear as Linear,
    )
    from dmsgd.kernels import (
        Precomputed as Precomputed,
    )
    from dmsgd.kernels import (
        Product as Product,
    )
    from dmsgd.kernels import (
        identity as identity,
    )
    from dmsgd.kernels import (
        median_scale as median_scale,
    )
    from dmsgd.kernels import (
        strata as strata,
    )
    from dmsgd.prescription import (
        density_target as density_target,
    )
    from dmsgd.prescription import (
        prescribe as prescribe,
    )
    from dmsgd.schedules import (
        Schedule as Schedule,
    )
    from dmsgd.schedules import (
        presample as presample,
    )
    from dmsgd.spectra import (
        Spectrum as Spectrum,
    )
    from dmsgd.spectra import (
        coreset as coreset,
    )
    from dmsgd.spectra import (
        exact as exact,
    )
    from dmsgd.spectra import (
        nystrom as nystrom,
    )
    from dmsgd.spectra import (
        pivoted_cholesky as pivoted_cholesky,
    )

__version__ = "0.2.0.dev0"

#: The names users type, by the module they live in, which is loaded when one is first used.
_HOMES = {
    "designs": (
        "DPP", "KDPP", "ClosedForm", "Design", "KernelName", "Partition", "PoissonDisk",
        "Stratified", "SwapChain", "TargetName", "Trials", "Uniform", "Weighted", "cells",
        "clustered", "correlation", "diversify", "inclusion", "suggest_scale", "suggest_w",
        "unbiased_weights",
    ),
    "errors": ("KernelWarning", "RankError", "SamplingError", "TargetError"),
    "features": ("anneal", "concat", "normalize", "one_hot", "standardize"),
    "kernels": (
        "RBF", "Kernel", "Linear", "Precomputed", "Product", "identity", "median_scale", "strata",
    ),
    "prescription": ("density_target", "prescribe"),
    "schedules": ("Schedule", "presample"),
    "spectra": ("Spectrum", "coreset", "exact", "nystrom", "pivoted_cholesky"),
}  # fmt: skip

#: Modules that users type, loaded when first named, because they load a framework.
_MODULES = ("torch", "sgd", "lda", "sklearn", "imblearn", "datasets", "diagnostics", "report")

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
