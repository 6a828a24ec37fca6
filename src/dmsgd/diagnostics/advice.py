"""What batches hold, and the one recommendation of `inspect` with its reason and its price.

What counts is what a design gained over shuffled epochs, which every loader has, when models were
trained on real data (experiments/advice.py, docs/good-for.md). A k-DPP of the features did not: it
is recommended only where a target was requested.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np

from dmsgd.designs.build import make_design
from dmsgd.designs.contract import ClosedForm, Design
from dmsgd.designs.options import DesignOptions
from dmsgd.designs.partition import Partition
from dmsgd.designs.stratified import Uniform
from dmsgd.diagnostics.facts import DataFacts
from dmsgd.diagnostics.gradients import GradientVariance
from dmsgd.inputs.arrays import IntArray
from dmsgd.inputs.messages import visible
from dmsgd.polynomials import log_binomial

#: Classes with this evenness need no help.
EVEN = 0.95
#: Repulsion that removes this share of the variance halves the batch size that is needed.
STRONG = 0.5
#: Shares below this are not worth a word; characters of a class's name in a sentence.
FEW, NAME = 0.01, 30


@final
@dataclass(frozen=True, eq=False)
class BatchFigures:
    """What batches of one kind hold and do, in closed form but for `noise` where it has an error.

    name:      "shuffle", "Stratified" or "k-DPP".
    design:    of the items `rows`; of shuffled epochs `Uniform`.
    items:     expected items in a batch by class, and per_epoch: how often an item of the class is
               seen in an epoch; {} without labels.
    seen:      expected share of the items that occur in an epoch.
    noise:     variance of a batch's mean over that of independent draws with the same frequencies,
               and its standard error; None where nothing varies.
    variance:  the `gradient_variance` behind it; None for shuffled epochs.
    """

    name: str
    design: ClosedForm = field(repr=False)
    rows: IntArray = field(repr=False)
    items: dict[Any, float] = field(repr=False)
    per_epoch: dict[Any, float] = field(repr=False)
    seen: float
    noise: float | None = 1.0
    error: float = 0.0
    variance: GradientVariance | None = field(default=None, repr=False)

    def texts(self) -> tuple[str, str, str]:
        """Return what is seen, the noise, and which random batch is as steady, as text."""
        if self.noise is None:
            return f"{self.seen:.0%}", "-", "-"
        error = f" ± {2 * self.error:.0%}" if self.error else ""
        size = f"{self.design.k / self.noise:,.0f}" if self.noise > 0.001 else "-"
        return f"{self.seen:.0%}", f"{self.noise:.0%}{error}", size


@final
@dataclass(frozen=True)
class Advice:
    """The batches to use (`options`; batches="uniform" means shuffled epochs), why, and the price.

    reason, price: sentences.
    """

    options: DesignOptions
    k: int
    reason: str
    price: str

    @property
    def name(self) -> str:
        """The kind of batches: "shuffled epochs", "Stratified" or "k-DPP"."""
        names = {"uniform": "shuffled epochs", "stratified": "Stratified"}
        return names.get(self.options.batches, self.options.batches)

    @property
    def code(self) -> str:
        """The line of Python that makes these batches."""
        if self.options.batches == "uniform":
            return f"loader = torch.utils.data.DataLoader(data, batch_size={self.k}, shuffle=True)"
        return f"design = {self.options.code(self.k)}"

    def design(self, X: Any, labels: Any = None) -> Design:
        """Return the recommended design of this data; shuffled epochs are a `Partition`."""
        design = make_design(self.options, X, self.k, labels)
        return Partition(design) if isinstance(design, Uniform) else design


def kind_of_batches(facts: DataFacts, options: DesignOptions) -> DesignOptions:
    """Return the options of the batches to recommend.

    `Stratified` for uneven classes, otherwise shuffled epochs; a requested target is kept.
    """
    if options.target is not None:
        return options
    uneven = facts.classes and facts.evenness < EVEN
    return DesignOptions(batches="stratified" if uneven else "uniform")


def number(value: float) -> str:
    """Return a number with two digits, or all before the point."""
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def missed(facts: DataFacts, k: int) -> dict[Any, float]:
    """Return the share of shuffled batches that hold no item of a class, by class."""
    others = facts.n - np.array(list(facts.classes.values()), dtype=np.int64)
    logs = log_binomial(np.maximum(others, k), np.full(others.size, k))
    shares = np.where(others >= k, np.exp(logs - log_binomial(facts.n, k)), 0.0)
    return dict(zip(facts.classes, shares.tolist(), strict=True))


def advise(
    facts: DataFacts, k: int, options: DesignOptions, batches: Mapping[str, BatchFigures], what: str
) -> Advice:
    """Return the recommendation for batches whose figures are known, by name.

    what: whose variance was measured.
    """
    kind, drawn = kind_of_batches(facts, options), batches.get("k-DPP")
    if kind.batches == "stratified":
        return Advice(kind, k, *_stratified(facts, k, batches["Stratified"]))
    if kind.target is not None:
        reason = f"target {kind.target} fixes how often items are drawn, as requested."
        return Advice(kind, k, reason, "an eigendecomposition first, and more time per batch.")
    why = "the classes are even" if facts.classes else "there are no labels"
    reason = f"{why}, and nothing else was better when models were trained on real data."
    if drawn is not None and drawn.noise is not None:
        removed = 1 - drawn.noise
        margin = f" (± {2 * drawn.error:.0%})" if drawn.error else ""
        reason += f" A k-DPP would remove {max(removed, 0.0):.0%}{margin} of the variance of {what}"
        X = "dmsgd.features.standardize(X)" if facts.different_units else "X"
        cells = f": dmsgd.Partition(dmsgd.cells({X}, {k})) is worth a try early on."
        reason += cells if removed - 2 * drawn.error >= STRONG else "."
    return Advice(kind, k, reason, "none, every loader shuffles.")


def _stratified(facts: DataFacts, k: int, drawn: BatchFigures) -> tuple[str, str]:
    """Return why stratified batches are recommended, and what they cost."""
    first, *_, last = sorted(facts.classes, key=lambda each: -facts.classes[each])
    common, rare = (visible(each, NAME) for each in (first, last))
    ratio, without = facts.classes[first] / facts.classes[last], missed(facts, k)[last]
    reason = f"class {common} has {ratio:,.3g} times the items of class {rare}"
    if without >= FEW:
        reason += f", and {without:.0%} of shuffled batches hold no {rare}"
    price = f"in one epoch each item of class {rare} is seen {number(drawn.per_epoch[last])} times"
    unseen = (1 - k * drawn.per_epoch[first] / facts.n) ** (facts.n / k)
    if unseen >= FEW:
        price += f", and {unseen:.0%} of class {common} not at all"
    return f"{reason}.", f"{price}. Shuffle if all items are to count the same."
