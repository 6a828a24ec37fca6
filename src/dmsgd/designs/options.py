"""`DesignOptions`: how batches are drawn, as one value for Python, scikit-learn and commands."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Literal, final, get_args

from dmsgd.inputs.scalars import as_choice, as_count, as_flag, as_fraction, as_positive

Batches = Literal["k-DPP", "weighted", "partition", "stratified", "uniform"]
KernelName = Literal["linear", "rbf"]
TargetName = Literal["uniform", "balanced", "density"]
SpectrumName = Literal["auto", "exact", "nystrom", "pivoted_cholesky"]

#: The fields that are one of a few words.
WORDS = {"batches": Batches, "kernel": KernelName, "spectrum": SpectrumName}


@final
@dataclass(frozen=True)
class DesignOptions:
    """How a design is made from features: the arguments of `diversify`, and the kind of batches.

    batches: "k-DPP"; "weighted", the k-DPP's inclusion probabilities without its repulsion
             (`Weighted.like`); "partition", every item once per epoch (`Partition`);
             "stratified", by labels; or "uniform". The last two use no other option.

    The other fields, and all defaults, are those of `diversify`. Equal options give the same
    design in `diversify`, `dmsgd.sklearn`, `dmsgd.diagnostics`, `dmsgd.report` and the commands.
    Labels, and a target given as numbers, are passed beside the options.

    >>> options = DesignOptions(w=0.7, normalize=True)
    >>> options.code(k=64)
    'dmsgd.diversify(X, k=64, labels=y, w=0.7, normalize=True)'
    >>> options.changed()
    {'w': 0.7, 'normalize': True}
    """

    batches: Batches = "k-DPP"
    w: float = 0.0
    rho: float | None = None
    kernel: KernelName = "linear"
    standardize: bool = False
    normalize: bool = False
    scale: float | None = None
    target: TargetName | None = None
    spectrum: SpectrumName = "auto"
    rank: int | None = None

    def __post_init__(self) -> None:
        for name, words in WORDS.items():
            as_choice(getattr(self, name), name, get_args(words))
        if self.target is not None:
            as_choice(self.target, "target", get_args(TargetName))
        checked: dict[str, float | None] = {"w": as_fraction(self.w, "w")}
        for name in ("standardize", "normalize"):
            checked[name] = as_flag(getattr(self, name), name)
        for name in ("scale", "rho"):
            if (given := getattr(self, name)) is not None:
                checked[name] = as_positive(given, name)
        if self.rank is not None:
            checked["rank"] = as_count(self.rank, "rank")
        for name, value in checked.items():  # plain numbers, which `code` can write
            object.__setattr__(self, name, value)
        if self.rank is not None and self.spectrum in ("auto", "exact"):
            raise ValueError("rank belongs to spectrum='nystrom' or spectrum='pivoted_cholesky'")

    @property
    def uses_labels(self) -> bool:
        """Whether the distribution of batches depends on the labels."""
        if self.batches in ("stratified", "uniform"):
            return self.batches == "stratified"
        return self.w > 0 or self.target == "balanced"

    def changed(self) -> dict[str, Any]:
        """Return the fields that differ from their defaults, by name."""
        named = {each.name: getattr(self, each.name) for each in fields(self)}
        return {
            each.name: named[each.name] for each in fields(self) if named[each.name] != each.default
        }

    def code(self, k: int) -> str:
        """Return the Python call that makes this design from features X and labels y.

        >>> DesignOptions(batches="weighted").code(k=64)
        'dmsgd.Weighted.like(dmsgd.diversify(X, k=64))'
        """
        k = as_count(k, "k")
        if self.batches == "stratified":
            return f"dmsgd.Stratified(y, k={k})"
        if self.batches == "uniform":
            return f"dmsgd.Uniform(len(X), k={k})"
        words = ["X", f"k={k}", *(["labels=y"] if self.uses_labels else [])]
        words += [
            f"{name}={value!r}" for name, value in self.changed().items() if name != "batches"
        ]
        call = f"dmsgd.diversify({', '.join(words)})"
        around = {"weighted": "dmsgd.Weighted.like", "partition": "dmsgd.Partition"}
        return f"{around[self.batches]}({call})" if self.batches in around else call

    def describe(self) -> str:
        """Return kernel, features and target in words; w and `batches` are left to the caller."""
        parts = [f"{self.kernel} kernel"]
        if self.kernel == "rbf":
            scale = "the median distance" if self.scale is None else f"{self.scale:.4g}"
            parts.append(f"scale {scale}")
        if self.spectrum != "auto":
            parts.append(f"spectrum {self.spectrum}")
        if self.rho is not None:
            parts.append(f"features to the power {self.rho:g}")
        if self.standardize:
            parts.append("columns of standard deviation 1")
        parts.append("rows of length 1" if self.normalize else "rows as they are")
        if self.target is not None:
            parts.append(f"target {self.target}")
        return ", ".join(parts)


def as_design_options(value: Any) -> DesignOptions:
    """Return `value`, which is DesignOptions, or None for the defaults."""
    if value is not None and not isinstance(value, DesignOptions):
        raise TypeError(f"options must be dmsgd.designs.DesignOptions, got {type(value).__name__}")
    return value or DesignOptions()
