"""`DesignOptions`: how batches are drawn, as one value for Python and commands."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Any, Literal, final, get_args

from dmsgd.errors import InputError, as_python
from dmsgd.inputs.scalars import as_choice, as_count, as_flag, as_fraction, as_positive

Batches = Literal["k-DPP", "weighted", "stratified", "uniform"]
KernelName = Literal["auto", "linear", "rbf"]
TargetName = Literal["uniform"]
QualityName = Literal["length"]
SpectrumName = Literal["auto", "exact", "nystrom", "pivoted_cholesky"]


def _one_of(names: Any) -> Callable[[Any, str], Any]:
    return partial(as_choice, choices=get_args(names))


@final
@dataclass(frozen=True)
class DesignOptions:
    """How a design is made from features: the arguments of `diversify`, and the kind of batches.

    batches: "k-DPP"; "weighted", the k-DPP's inclusion probabilities without its repulsion
             (`Weighted.like`); "stratified", by labels; or "uniform". The last two use no other
             option.

    Labels, and a quality or target given as numbers, are passed beside the options. Raises
    ValueError for options that exclude each other. See also `diversify`.

    >>> DesignOptions(w=0.7, standardize=True).code(k=64)
    'dmsgd.diversify(X, k=64, labels=y, w=0.7, standardize=True)'
    """

    batches: Batches = field(default="k-DPP", metadata={"check": _one_of(Batches)})
    w: float = field(default=0.0, metadata={"check": as_fraction})
    rho: float | None = field(default=None, metadata={"check": as_positive})
    kernel: KernelName = field(default="auto", metadata={"check": _one_of(KernelName)})
    standardize: bool = field(default=False, metadata={"check": as_flag})
    normalize: bool | None = field(default=None, metadata={"check": as_flag})
    scale: float | None = field(default=None, metadata={"check": as_positive})
    quality: QualityName | None = field(default=None, metadata={"check": _one_of(QualityName)})
    diversity: float = field(default=0.5, metadata={"check": as_fraction})
    target: TargetName | None = field(default=None, metadata={"check": _one_of(TargetName)})
    spectrum: SpectrumName = field(default="auto", metadata={"check": _one_of(SpectrumName)})
    rank: int | None = field(default=None, metadata={"check": as_count})

    def __post_init__(self) -> None:
        for each in fields(self):
            given = getattr(self, each.name)
            # None is the default where it is let through; NumPy's scalars become plain numbers.
            if given is not None or each.default is not None:
                object.__setattr__(self, each.name, each.metadata["check"](given, each.name))
        if self.rank is not None and self.spectrum in ("auto", "exact"):
            raise ValueError("rank belongs to spectrum='nystrom' or spectrum='pivoted_cholesky'")
        if self.scale is not None and self.kernel != "rbf":
            raise InputError("scale is the length scale of an RBF kernel", kernel="rbf")
        if self.quality == "length" and self.normalize is False:
            raise ValueError("quality='length' needs rows of length 1; leave normalize=False out")

    @property
    def unit_rows(self) -> bool:
        """Whether rows are scaled to length 1; by default they are in a linear kernel."""
        return self.kernel == "linear" if self.normalize is None else self.normalize

    @property
    def uses_labels(self) -> bool:
        """Whether the distribution of batches depends on the labels."""
        return self.batches == "stratified" or (self.batches != "uniform" and self.w > 0)

    def changed(self) -> dict[str, Any]:
        """Return the fields that differ from their defaults, by name."""
        values = ((each, getattr(self, each.name)) for each in fields(self))
        return {each.name: value for each, value in values if value != each.default}

    def code(self, k: int) -> str:
        """Return the Python call that makes this design from features X and labels y."""
        k = as_count(k, "k")
        if self.batches == "stratified":
            return f"dmsgd.Stratified(y, k={k})"
        if self.batches == "uniform":
            return f"dmsgd.Uniform(len(X), k={k})"
        changed = {name: value for name, value in self.changed().items() if name != "batches"}
        words = ["X", f"k={k}", "labels=y" if self.uses_labels else "", as_python(changed)]
        call = f"dmsgd.diversify({', '.join(filter(None, words))})"
        return f"dmsgd.Weighted.like({call})" if self.batches == "weighted" else call
