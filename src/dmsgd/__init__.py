"""dmsgd: every mini-batch a draw from a k-DPP, so that batches are diverse and rare data is seen.

    design = dmsgd.diversify(X, k=64, labels=y, w=0.7)
    batches = design.sample(1000, seed=0)            # (1000, 64) item numbers

Zhang, Kjellström, Mandt: Determinantal Point Processes for Mini-Batch Diversification, UAI 2017.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from dmsgd.public import *  # noqa: F403


#: Modules that are loaded when first named, because they load a framework.
_MODULES = ("torch", "sgd", "lda", "imblearn", "datasets", "diagnostics", "report")


def __getattr__(name: str) -> Any:
    """Load the package on first use, so that `import dmsgd` itself costs nothing."""
    if name in _MODULES:
        return import_module(f"dmsgd.{name}")
    public = import_module("dmsgd.public")
    if name in public.__all__:
        return getattr(public, name)
    raise AttributeError(f"module 'dmsgd' has no attribute {name!r}")


def __dir__() -> list[str]:
    public = import_module("dmsgd.public")
    return [*public.__all__, *_MODULES, "__version__"]
