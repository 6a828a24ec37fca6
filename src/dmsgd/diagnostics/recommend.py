"""`recommend`: the simplest design that does as well as the best, with the reason.

What counts is what a design gained over shuffled epochs, which every loader has, when models were
trained on real data (experiments/advice.py, docs/good-for.md). A k-DPP of the features did not: it
is recommended only where a target was requested.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

from dmsgd.designs.build import make_design
from dmsgd.designs.design import Design
from dmsgd.designs.options import DesignOptions
from dmsgd.designs.partition import Partition
from dmsgd.designs.stratified import Uniform
from dmsgd.diagnostics.compare import EVEN
from dmsgd.diagnostics.comparison import Comparison, DesignSummary
from dmsgd.diagnostics.frequency import evenness
from dmsgd.diagnostics.gradients import GradientVariance
from dmsgd.inputs.scalars import as_count

#: Repulsion that removes this share of the variance halves the batch size that is needed.
STRONG = 0.5


@final
@dataclass(frozen=True)
class Recommendation:
    """The design to use (`options`) and why (`reason`); batches="uniform" means shuffled epochs."""

    options: DesignOptions
    reason: str

    @property
    def name(self) -> str:
        """The kind of batches: "shuffled epochs", "stratified" or "k-DPP"."""
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

    It is `Stratified` for uneven classes, otherwise shuffled epochs; a requested target is kept.
    See also `compare`, `gradient_variance`.

    >>> import numpy as np
    >>> from dmsgd.diagnostics import compare
    >>> X = np.random.default_rng(0).normal(size=(200, 20))
    >>> recommend(compare(X, 8, np.repeat([0, 1], [190, 10]))).code(8)
    'design = dmsgd.Stratified(y, k=8)'
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
    if found.data.classes and evenness(found.data.classes) < EVEN:
        return _stratified(found)
    why = "the classes are even" if found.data.classes else "there are no labels"
    reason = f"{why}, and nothing else was better when models were trained on real data"
    if found.candidate is not None:
        strong, effect = _repulsion(found.candidate, variance)
        X = "dmsgd.features.standardize(X)" if found.data.different_units else "X"
        cells = f", for which dmsgd.Partition(dmsgd.cells({X}, {found.k})) is worth a try early on"
        reason += f"; {effect} of independent batches{cells if strong else ''}"
    return Recommendation(DesignOptions(batches="uniform"), reason)


def _stratified(found: Comparison) -> Recommendation:
    of_k = [each for each in found.summaries if each.k == found.k]
    best = [each for each in of_k if each.name.startswith("w = ")]
    reach = f", where k-DPPs reach {max(each.evenness for each in best):.2f}" if best else ""
    return Recommendation(
        DesignOptions(batches="stratified"),
        f"labels are known and classes uneven ({evenness(found.data.classes):.2f}, where 1 is "
        f"even); stratified batches are as even as possible ({of_k[-1].evenness:.2f}{reach}) and "
        f"cost nothing; shuffle if classes are to count by their sizes",
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
