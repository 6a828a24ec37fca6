"""The settings of a k-DPP, written once: as a design, as Python, as options of the commands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

from dmsgd.designs import KDPP, KernelName, TargetName, Weighted, diversify, inclusion
from dmsgd.features import anneal
from dmsgd.features.convert import split_label_column
from dmsgd.inputs.scalars import as_choice, as_count, as_flag, as_fraction, as_positive


@final
@dataclass(frozen=True)
class Settings:
    """How a k-DPP is made of features: the arguments of `diversify`, and rho for `anneal`.

    The defaults are those of `diversify`. Equal settings are the same design in `examine`,
    `dmsgd.report.build` and the commands `sample`, `inspect` and `report`.

    >>> Settings(w=0.7, normalize=True).code(k=64)
    'dmsgd.diversify(X, k=64, labels=y, w=0.7, normalize=True)'
    >>> Settings(w=0.7, normalize=True).options()
    '-w 0.7 --normalize'
    """

    w: float = 0.0
    kernel: KernelName = "linear"
    normalize: bool = False
    scale: float | None = None
    rho: float | None = None
    target: TargetName | None = None
    standardize: bool = False

    def __post_init__(self) -> None:
        as_choice(self.kernel, "kernel", ("linear", "rbf"))
        checked: dict[str, float] = {"w": as_fraction(self.w, "w")}
        for name in ("normalize", "standardize"):
            checked[name] = as_flag(getattr(self, name), name)
        for name in ("scale", "rho"):
            if (given := getattr(self, name)) is not None:
                checked[name] = as_positive(given, name)
        for name, value in checked.items():  # plain numbers, which can be written
            object.__setattr__(self, name, value)
        if self.target is not None:
            as_choice(self.target, "target", ("uniform", "balanced", "density"))

    @property
    def uses_labels(self) -> bool:
        """Whether the law depends on the labels; without, they can only be counted."""
        return self.w > 0 or self.target == "balanced"

    def design(self, X: Any, k: int, labels: Any = None) -> KDPP:
        """Return the k-DPP with these settings; labels that it does not use may be given."""
        X, labels = split_label_column(X, labels)
        return diversify(
            X if self.rho is None else anneal(X, self.rho),
            k,
            labels if self.uses_labels else None,
            self.w,
            self.kernel,
            standardize=self.standardize,
            normalize=self.normalize,
            scale=self.scale,
            target=self.target,
        )

    def without_repulsion(self, X: Any, k: int, labels: Any = None) -> Weighted:
        """Return batches with the b of this k-DPP and no repulsion."""
        X, labels = split_label_column(X, labels)
        if not self._linear:
            return self.design(X, k, labels).without_repulsion()
        F = X if self.rho is None else anneal(X, self.rho)
        used = labels if self.uses_labels else None
        maps = {"standardize": self.standardize, "normalize": self.normalize}
        return Weighted(inclusion(F, k, used, self.w, **maps), k)

    @property
    def _linear(self) -> bool:
        """Whether b is known without the eigenvectors of the items."""
        return self.kernel == "linear" and self.target is None

    def code(self, k: int) -> str:
        """Return the Python that makes this very design from features X and labels y."""
        return f"dmsgd.diversify({self._arguments(k)})"

    def code_without_repulsion(self, k: int) -> str:
        """Return the Python that makes batches with the b of this k-DPP and no repulsion.

        >>> Settings(normalize=True).code_without_repulsion(k=64)
        'dmsgd.Weighted(dmsgd.inclusion(X, k=64, normalize=True), k=64)'
        """
        if self._linear:
            return f"dmsgd.Weighted(dmsgd.inclusion({self._arguments(k)}), k={k})"
        return f"{self.code(k)}.without_repulsion()"

    def _arguments(self, k: int) -> str:
        features = "X" if self.rho is None else f"dmsgd.anneal(X, {exactly(self.rho)})"
        words = [features, f"k={as_count(k, 'k')}"]
        if self.uses_labels:
            words.append("labels=y")
        if self.w > 0:
            words.append(f"w={exactly(self.w)}")
        if self.kernel != "linear":
            words.append(f"kernel={self.kernel!r}")
        if self.standardize:
            words.append("standardize=True")
        if self.normalize:
            words.append("normalize=True")
        if self.scale is not None:
            words.append(f"scale={exactly(self.scale)}")
        if self.target is not None:
            words.append(f"target={self.target!r}")
        return ", ".join(words)

    def options(self) -> str:
        """Return the options of `dmsgd sample`, `inspect` and `report` for this very design.

        Features, k and labels are left to the caller, who knows their files.
        """
        words = []
        if self.w > 0:
            words.append(f"-w {exactly(self.w)}")
        if self.rho is not None:
            words.append(f"--rho {exactly(self.rho)}")
        if self.kernel != "linear":
            words.append(f"--kernel {self.kernel}")
        if self.scale is not None:
            words.append(f"--scale {exactly(self.scale)}")
        if self.standardize:
            words.append("--standardize")
        if self.normalize:
            words.append("--normalize")
        if self.target is not None:
            words.append(f"--target {self.target}")
        return " ".join(words)

    def in_words(self) -> str:
        """Return the settings but w in words, for people."""
        parts = [f"{self.kernel} kernel"]
        if self.kernel == "rbf":
            scale = "the median distance" if self.scale is None else f"{self.scale:.4g}"
            parts.append(f"scale {scale}")
        if self.rho is not None:
            parts.append(f"features to the power {self.rho:g}")
        if self.standardize:
            parts.append("columns of standard deviation 1")
        parts.append("rows of length 1" if self.normalize else "rows as they are")
        if self.target is not None:
            parts.append(f"target {self.target}")
        return ", ".join(parts)


def as_settings(value: Any) -> Settings:
    """Return `value`, which is settings or None for those of `diversify`."""
    if value is not None and not isinstance(value, Settings):
        raise TypeError(f"settings must be dmsgd.diagnostics.Settings, got {type(value).__name__}")
    return value or Settings()


def exactly(number: float) -> str:
    """Return the shortest text that reads as this very number.

    >>> exactly(0.70), exactly(5.0), exactly(1 / 3)
    ('0.7', '5', '0.3333333333333333')
    """
    short = f"{number:g}"
    return short if float(short) == number else repr(float(number))
