"""`recommend`: the simplest design that does as well as the best, with the reason.

A k-DPP changes sampling frequency and adds repulsion. Each has a simpler design of its own, so a
k-DPP is recommended for its repulsion alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, final

from dmsgd.designs.build import make_design
from dmsgd.designs.design import Design
from dmsgd.designs.options import DesignOptions
from dmsgd.designs.partition import Partition
from dmsgd.designs.stratified import Uniform
from dmsgd.diagnostics.compare import EVEN, Comparison, DesignSummary
from dmsgd.diagnostics.frequency import evenness
from dmsgd.diagnostics.gradients import GradientVariance
from dmsgd.inputs.scalars import as_count

#: Evenness is shown with two digits; a difference below half of the last one does not matter.
SAME = 0.005
#: Repulsion that removes this share of the variance halves the batch size that is needed.
STRONG = 0.5


@final
@dataclass(frozen=True)
class Recommendation:
    """The design to use, and why; `batches="uniform"` means shuffled epochs."""

    options: DesignOptions
    reason: str

    @property
    def name(self) -> str:
        """The kind of batches: "shuffled epochs", "stratified", "weighted" or "k-DPP"."""
        return {"uniform": "shuffled epochs"}.get(self.options.batches, self.options.batches)

    def design(self, X: Any, k: int, labels: Any = None) -> Design:
        """Return the recommended design of this data; shuffled epochs are a `Partition`."""
        design = make_design(self.options, X, k, labels)
        return Partition(design) if isinstance(design, Uniform) else design

    def code(self, k: int) -> str:
        """Return the line of Python that makes the recommended batches."""
        if self.options.batches == "uniform":
            k = as_count(k, "k")
            return f"loader = torch.utils.data.DataLoader(data, batch_size={k}, shuffle=True)"
        return f"design = {self.options.code(k)}"


def recommend(comparison: Comparison, variance: GradientVariance | None = None) -> Recommendation:
    """Return the simplest design that is expected to do as well as the best.

    variance: `gradient_variance` of the k-DPP `comparison.candidate`, if there are gradients: the
              effect of repulsion on them then counts instead of its effect on the features.

    Uneven classes: `Stratified`. Otherwise the candidate decides: shuffled epochs if it changes
    little, `Weighted.like` it if it changes sampling frequency, the k-DPP if repulsion removes half
    of the variance. Where labels are known, neither is recommended if it makes classes less even
    than uniform batches are, or if the effective size of a batch with unbiased weights falls below
    95 % of k. A requested target is kept: the user has decided.

    >>> import numpy as np
    >>> from dmsgd.diagnostics import compare
    >>> X = np.random.default_rng(0).normal(size=(200, 20)) + 6 * np.eye(20)[0]
    >>> recommend(compare(X, 8)).code(8)
    "design = dmsgd.Weighted.like(dmsgd.diversify(X, k=8, kernel='linear'))"
    """
    found = comparison
    if not isinstance(found, Comparison):
        raise TypeError(f"comparison must be what compare returns, got {type(found).__name__}")
    if not isinstance(variance, GradientVariance | None):
        kind = type(variance).__name__
        raise TypeError(f"variance must be what gradient_variance returns, got {kind}")
    if found.options.target is not None:
        return Recommendation(
            found.options, f"target {found.options.target} fixes how often items are drawn"
        )
    uniform, candidate = found.summaries[0], found.candidate
    if found.data.classes and evenness(found.data.classes) < EVEN:
        return _stratified(found)
    shuffled = DesignOptions(batches="uniform")
    why = "the classes are even" if found.data.classes else "there are no labels"
    if candidate is None:
        return Recommendation(shuffled, f"{why}, and there is no k-DPP of {found.k} of these items")
    strong, effect = _repulsion(candidate, variance)
    if found.data.classes and candidate.evenness < uniform.evenness - SAME:
        return Recommendation(
            shuffled,
            f"{why}, and a k-DPP would make them less even ({candidate.evenness:.2f} instead of "
            f"{uniform.evenness:.2f}); {effect}",
        )
    if found.data.classes and candidate.effective_batch < EVEN * found.k:
        return Recommendation(
            shuffled,
            f"{why}, and a k-DPP draws items so unevenly that with unbiased weights a batch of "
            f"{found.k} would count as {candidate.effective_batch:.1f}; {effect}",
        )
    if strong:
        return Recommendation(candidate.options, f"{why}, and {effect}{_scaling(found)}")
    items = f"batches rest on {candidate.effective_items:.0%} of the items"
    if candidate.effective_items < EVEN:
        return Recommendation(
            replace(candidate.options, batches="weighted"),
            f"{why}, and unusual items can be drawn more often ({items}; with unbiased weights a "
            f"batch of {found.k} counts as {candidate.effective_batch:.1f}); {effect}, so the same "
            f"sampling frequencies without it do as well and cost less{_scaling(found)}; if "
            f"unusual items are noise to you, stay with shuffled epochs",
        )
    return Recommendation(
        shuffled,
        f"{why}, and no item stands out ({items}); {effect}: there is little to gain",
    )


def _stratified(found: Comparison) -> Recommendation:
    of_k = [each for each in found.summaries if each.k == found.k]
    best = [each for each in of_k if each.name.startswith("w = ")]
    reach = f", where k-DPPs reach {max(each.evenness for each in best):.2f}" if best else ""
    return Recommendation(
        DesignOptions(batches="stratified"),
        f"labels are known and classes uneven ({evenness(found.data.classes):.2f}, where 1 is "
        f"even); stratified batches are as even as possible ({of_k[-1].evenness:.2f}{reach}) and "
        f"cost nothing",
    )


def _repulsion(candidate: DesignSummary, variance: GradientVariance | None) -> tuple[bool, str]:
    """Return whether repulsion significantly pays for a k-DPP, and its effect in words."""
    if variance is not None:
        removed, error, margin = 1 - variance.repulsion_factor, 0.0, ""
        what = "these gradients"
    else:
        removed, error = candidate.repulsion.value, candidate.repulsion.error
        margin, what = f" (± {2 * error:.0%})", "a batch's features"
    share = f"{max(removed, 0.0):.0%}{margin}"
    return removed - 2 * error >= STRONG, f"repulsion removes {share} of the variance of {what}"


def _scaling(found: Comparison) -> str:
    """Return why columns and rows are scaled, "" where that was requested or is not recommended."""
    assert found.candidate is not None
    options, words = found.candidate.options, ""
    if options.standardize and not found.options.standardize:
        words += "; columns are standardized, or the largest would be the whole kernel"
    if options.unit_rows and found.options.kernel == "linear" and not found.options.unit_rows:
        words += "; rows are scaled to norm 1, because a linear kernel favours long ones"
    return words
