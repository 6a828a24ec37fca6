"""From what `examine` found to the simplest design that does as well as the best, with the reason.

A k-DPP does two things: it sees some items more often than others, and it keeps similar items
apart. Either has a simpler design of its own, so a k-DPP is advised for its repulsion alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, cast, final

from dmsgd.designs import Design
from dmsgd.designs.build import make_design
from dmsgd.designs.options import Batches, DesignOptions
from dmsgd.diagnostics.examination import EVEN, Examination, as_examination
from dmsgd.diagnostics.prospects import Prospect
from dmsgd.diagnostics.variance import GradientVariance
from dmsgd.errors import as_options

#: Evenness is shown with two digits; below half of the last one nothing is lost.
SAME = 0.005
#: Repulsion that removes this share of the variance makes a batch worth two.
STRONG = 0.5


@final
@dataclass(frozen=True)
class Advice:
    """A design to use and why: "uniform", "stratified", "weighted" or "k-DPP".

    settings: of the k-DPP, or of the one whose b the weighted batches have; None for the others.
    """

    kind: str
    settings: DesignOptions | None
    reason: str

    def design(self, X: Any, k: int, labels: Any = None) -> Design:
        """Return the recommended design of this data."""
        return make_design(self._options(), X, k, labels)

    def code(self, k: int) -> str:
        """Return the line of Python that makes the recommended design."""
        return f"design = {self._options().code(k)}"

    def options(self) -> str:
        """Return the options of `dmsgd sample` for it, "" where there are none.

        The labels are left to the caller, who knows their file.
        """
        if self.settings is None:
            return ""
        without = " --without-repulsion" if self.kind == "weighted" else ""
        return (as_options(self.settings.changed()) + without).strip()

    def _options(self) -> DesignOptions:
        return replace(self.settings or DesignOptions(), batches=cast(Batches, self.kind))


def advise(found: Examination, variance: GradientVariance | None = None) -> Advice:
    """Return the simplest design that is expected to do as well as the best.

    variance: of the gradients in batches of `found.candidate`, if there are gradients: what
              repulsion does to them then counts instead of what it does to the features.

    Uneven classes: strata. Otherwise it is about the candidate's two halves: uniform batches if it
    has neither, `dmsgd.Weighted` with its b if it is about who is seen, the k-DPP if repulsion
    removes half of the variance. Where labels are known, neither is advised if it makes classes
    less even than uniform batches are, or a batch with unbiased weights worth less than 95 % of
    its size. A target is kept: it says already what all this is about.

    >>> import numpy as np
    >>> from dmsgd.diagnostics import examine
    >>> X = np.random.default_rng(0).normal(size=(200, 20)) + 6 * np.eye(20)[0]
    >>> advise(examine(X, 8)).code(8)
    'design = dmsgd.Weighted.like(dmsgd.diversify(X, k=8, normalize=True))'
    """
    as_examination(found)
    if variance is not None and not isinstance(variance, GradientVariance):
        raise TypeError(
            f"variance must be what gradient_variance returns, got {type(variance).__name__}"
        )
    if found.settings.target is not None:
        return Advice(
            "k-DPP", found.settings, f"target {found.settings.target} says how often items are seen"
        )
    uniform, candidate = found.prospects[0], found.candidate
    if found.classes and uniform.evenness < EVEN:
        return _strata(found, uniform)
    why = "the classes are even" if found.classes else "there are no labels"
    if candidate is None:
        return Advice("uniform", None, f"{why}, and there is no k-DPP of {found.k} of these items")
    strong, meets = _repulsion(candidate, variance)
    loss = _loss(found, uniform, candidate)
    if loss:
        return Advice("uniform", None, f"{why}, and {loss}; {meets}")
    items = f"batches rest on {candidate.effective_items:.0%} of the items"
    if strong:
        return Advice("k-DPP", candidate.settings, f"{why}, and {meets}{_scaled(found)}")
    if candidate.effective_items < EVEN:
        return Advice(
            "weighted",
            candidate.settings,
            f"{why}, and unusual items can be seen more often ({items}; with unbiased weights a "
            f"batch of {found.k} is worth {candidate.effective_batch:.1f}); {meets}, so the same b "
            f"without it does as well and costs less{_scaled(found)}; if what is unusual is "
            f"noise to you, stay with uniform batches",
        )
    return Advice(
        "uniform",
        None,
        f"{why}, and no item stands out ({items}); {meets}: there is little to gain",
    )


def _loss(found: Examination, uniform: Prospect, candidate: Prospect) -> str:
    """Return what known classes or the batch would lose by the candidate's b, "" for nothing."""
    if not found.classes:
        return ""
    if candidate.evenness < uniform.evenness - SAME:
        return (
            f"a k-DPP would make them less even ({candidate.evenness:.2f} instead of "
            f"{uniform.evenness:.2f})"
        )
    if candidate.effective_batch < EVEN * found.k:
        return (
            f"a k-DPP sees items so unevenly that with unbiased weights a batch of {found.k} would "
            f"be worth {candidate.effective_batch:.1f}"
        )
    return ""


def _strata(found: Examination, uniform: Prospect) -> Advice:
    kernels = [each.evenness for each in found.prospects if each.settings is not None]
    beside = f", where k-DPPs reach {max(kernels):.2f}" if kernels else ""
    return Advice(
        "stratified",
        None,
        f"labels are known and classes uneven ({uniform.evenness:.2f}, where 1 is even); strata "
        f"are as even as can be ({found.prospects[-1].evenness:.2f}{beside}) and cost nothing",
    )


def _repulsion(candidate: Prospect, variance: GradientVariance | None) -> tuple[bool, str]:
    """Return whether repulsion is worth a k-DPP beyond doubt, and what it does in words."""
    if variance is not None:
        removed = 1 - variance.by_repulsion
        what = f"{removed:.0%} of the variance of these gradients"
        return removed >= STRONG, f"repulsion removes {what}"
    assert candidate.repulsion is not None
    removed, error = candidate.repulsion.value, candidate.repulsion.error
    sure = removed - 2 * error >= STRONG
    what = f"{max(removed, 0.0):.0%} (± {2 * error:.0%}) of the variance of a batch's features"
    return sure, f"repulsion removes {what}"


def _scaled(found: Examination) -> str:
    """Return why columns and rows are scaled, "" where that was asked for or is not advised."""
    settings = None if found.candidate is None else found.candidate.settings
    if settings is None:
        return ""
    words = ""
    if settings.standardize and not found.settings.standardize:
        words += "; columns are standardized, as the kernel would see the largest alone"
    if settings.normalize and not found.settings.normalize:
        words += "; rows are scaled to length 1, as a linear kernel favours long ones"
    return words
