"""What is read and which design is made of it: the options of all commands that make one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from inspect import Parameter, Signature, signature
from typing import TYPE_CHECKING, Any, final, get_type_hints

from dmsgd.commands.arguments import (
    BatchSize,
    Columns,
    Drop,
    Features,
    Kernel,
    KernelOption,
    Labels,
    Normalize,
    Rho,
    Scale,
    Standardize,
    Target,
    TargetOption,
    Weight,
)
from dmsgd.inputs.messages import few

if TYPE_CHECKING:
    from dmsgd.designs import DesignOptions


@final
@dataclass(frozen=True)
class Asked:
    """The options, by name; a command that is `asking` takes them as its first argument."""

    features: Features
    k: BatchSize
    labels: Labels = None
    columns: Columns = None
    drop: Drop = None
    w: Weight = 0.0
    kernel: Kernel = KernelOption.linear
    scale: Scale = None
    rho: Rho = None
    standardize: Standardize = False
    normalize: Normalize = False
    target: Target = None

    def settings(self) -> DesignOptions:
        """Return what the options say of a design: the same in every command."""
        from dmsgd.designs import DesignOptions

        if self.w > 0 and self.labels is None:
            raise ValueError(
                f"-w {self.w:g} mixes in labels; give them with --labels, or leave -w out"
            )
        if self.target is TargetOption.balanced and self.labels is None:
            raise ValueError(
                "--target balanced gives classes equal shares; give them with --labels"
            )
        return DesignOptions(
            w=self.w,
            kernel=self.kernel.value,
            standardize=self.standardize,
            normalize=self.normalize,
            scale=self.scale,
            rho=self.rho,
            target=None if self.target is None else self.target.value,
        )

    def load(self) -> tuple[Any, Any]:
        """Return X and y; labels that name a column of the features are taken out of them."""
        from dmsgd.commands.loading import LABEL_FILES, load_features, load_labels
        from dmsgd.files.tables import column_names
        from dmsgd.inputs.labels import as_labels

        features, labels = self.features, self.labels
        names = column_names(features)
        out = self.dropped(names)
        if labels is None:
            return load_features(features, out), None
        if labels in names:
            return load_features(features, out), load_labels(f"{features}:{labels}")
        if names and not any(suffix in labels.lower() for suffix in LABEL_FILES):
            raise ValueError(
                f"{features} has no column {labels!r} for --labels; it has {few(names)}"
            )
        X = load_features(features, out)
        return X, as_labels(load_labels(labels, n=X.shape[0]), X.shape[0])

    def dropped(self, names: list[str]) -> tuple[str, ...]:
        """Return which of the columns with these names are no features, by these options."""
        from dmsgd.files.tables import TABLES

        for option, text in (("--columns", self.columns), ("--drop", self.drop)):
            if text is not None and not text.strip(" ,"):
                raise ValueError(f"{option} names no column; write names between commas, as a,b")
        asked = {"--columns": _named(self.columns, names), "--drop": _named(self.drop, names)}
        known = set(names)
        for option, given in asked.items():
            if given and not names:
                raise ValueError(
                    f"{option} is for tables ({', '.join(TABLES)}); {self.features} has no named "
                    f"columns"
                )
            unknown = [each for each in given if each not in known]
            if unknown:
                raise ValueError(
                    f"{self.features} has no column {unknown[0]!r} for {option}; it has "
                    f"{few(names)}"
                )
        if asked["--columns"] and asked["--drop"]:
            raise ValueError(
                "--columns says what is a feature, --drop what is none; give one of them"
            )
        kept = set(asked["--columns"] or names).difference(asked["--drop"], [self.labels])
        return tuple(name for name in names if name not in kept)


def asking(command: Callable[..., None]) -> Callable[..., None]:
    """Return `command` with the options of `Asked` instead of its first argument.

    Those without a default come first, as Typer and its help want them.
    """
    hints = get_type_hints(command, include_extras=True)
    shared = {each.name for each in fields(Asked)}

    def called(**given: Any) -> None:
        asked = Asked(**{name: given.pop(name) for name in shared})
        command(asked, **given)

    own = list(signature(command).parameters.values())[1:]
    both = [*signature(Asked).parameters.values(), *own]
    both.sort(key=lambda each: each.default is not Parameter.empty)  # stable
    types = {**get_type_hints(Asked, include_extras=True), **hints}
    named = [
        each.replace(annotation=types[each.name], kind=Parameter.KEYWORD_ONLY) for each in both
    ]
    called.__name__, called.__doc__ = command.__name__, command.__doc__
    called.__annotations__ = {each.name: each.annotation for each in named}
    called.__signature__ = Signature(named)  # type: ignore[attr-defined]
    return called


def _named(text: str | None, names: list[str]) -> list[str]:
    """Return the names in `text`, between commas; one that has commas itself stands alone."""
    if text is None or text in names:
        return [] if text is None else [text]
    return [each.strip() for each in text.split(",") if each.strip()]
