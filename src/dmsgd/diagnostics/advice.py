"""From what `examine` found to settings, with the reason, and to what is worth a warning."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

from dmsgd.designs import ClosedForm, Stratified, Uniform
from dmsgd.diagnostics.examination import EVEN, Examination, Prospect
from dmsgd.diagnostics.settings import Settings

#: Where no w makes classes more even than this, strata are the better tool.
UNEVEN = 0.75
#: The smallest w that gets this part of the evenness that any w gets.
ENOUGH = 0.9
#: Below this repulsion (nats) batches are within 5 % of uniform ones.
NEARLY_UNIFORM = 0.05
#: Below this repulsion per place of a batch (nats), the items of a batch hardly repel each other.
WEAK = 0.1
#: Squared lengths of the longest and the shortest tenth that differ by more than this matter.
LENGTHS = 3.0
#: The share of copies among the items that is worth a word.
COPIES = 0.005


@final
@dataclass(frozen=True)
class Advice:
    """A design to use and why: "k-DPP" with settings, "stratified" or "uniform"."""

    kind: str
    settings: Settings | None
    reason: str

    def design(self, X: Any, k: int, labels: Any = None) -> ClosedForm:
        """Return the recommended design of this data."""
        if self.settings is not None:
            return self.settings.design(X, k, labels)
        if self.kind == "stratified":
            return Stratified(labels, k)
        return Uniform(len(labels) if X is None else X.shape[0], k)

    def code(self, k: int) -> str:
        """Return the line of Python that makes the recommended design."""
        if self.settings is not None:
            return f"design = {self.settings.code(k)}"
        if self.kind == "stratified":
            return f"design = dmsgd.Stratified(y, k={k})"
        return f"design = dmsgd.Uniform(len(X), k={k})"

    def options(self) -> str:
        """Return the options of `dmsgd sample` and `dmsgd report` for it, "" where there are none.

        The labels are left to the caller, who knows their file.
        """
        return "" if self.settings is None else self.settings.options()


def advise(found: Examination) -> Advice:
    """Return the settings to try first, chosen among `found.candidates`.

    Uneven classes: the smallest w that gets nine tenths of the balance that any w gets; strata
    where that is not much. Even classes or none: w = 0, unless batches would be uniform anyway.
    A target is kept: it says already what all this is about.

    >>> import numpy as np
    >>> from dmsgd.diagnostics import examine
    >>> X = np.random.default_rng(0).normal(size=(200, 20))
    >>> advise(examine(X, 8)).code(8)
    'design = dmsgd.diversify(X, k=8, normalize=True)'
    """
    if found.settings.target is not None:
        return Advice(
            "k-DPP", found.settings, f"target {found.settings.target} says how often items are seen"
        )
    uniform, unlabelled = found.prospects[0], found.candidates[0]
    if found.classes and uniform.evenness < EVEN:
        return _balance(found, uniform)
    why = "the classes are even" if found.classes else "there are no labels"
    repulsion = unlabelled.repulsion / found.k
    strength = f"{repulsion:.2g} nats a place, {unlabelled.effective_items:.0%} effective items"
    if repulsion < WEAK and unlabelled.effective_items > EVEN:
        return Advice(
            "uniform",
            None,
            f"{why}, and items neither repel each other nor stand out ({strength}), so there is "
            f"little to gain",
        )
    return Advice(
        "k-DPP",
        unlabelled.settings,
        f"{why}, but similar items can be kept apart and unusual ones drawn more often "
        f"({strength})" + _scaled(found, unlabelled),
    )


def _scaled(found: Examination, chosen: Prospect) -> str:
    """Return why rows are scaled, "" where that was asked for or is not advised."""
    settings = chosen.settings
    if settings is None or not settings.normalize or found.settings.normalize:
        return ""
    if settings.w == 0:
        return "; rows are scaled to length 1, as a linear kernel favours long ones"
    given = [each.evenness for each in found.prospects if each.name == chosen.name]
    instead = f", without which it would be {given[0]:.2f}" if given else ""
    return f"; rows are scaled to length 1{instead}"


def _balance(found: Examination, uniform: Prospect) -> Advice:
    best = max(each.evenness for each in found.candidates)
    wanted = uniform.evenness + ENOUGH * (best - uniform.evenness)
    chosen = next(each for each in found.candidates if each.evenness >= wanted)
    if best < UNEVEN:
        return Advice(
            "stratified",
            None,
            f"classes are uneven ({uniform.evenness:.2f}, where 1 is even) and labels have only "
            f"{len(found.classes)} directions for k = {found.k}, so no w gets beyond {best:.2f}; "
            f"strata are even by construction (target='balanced' of diversify is too, and keeps "
            f"similar items apart, after a longer set-up)",
        )
    return Advice(
        "k-DPP",
        chosen.settings,
        f"classes are uneven ({uniform.evenness:.2f}, where 1 is even); {chosen.name} makes "
        f"batches {chosen.evenness:.2f} even, and a larger w hardly more "
        f"(at most {best:.2f}) while it leaves less to the features" + _scaled(found, chosen),
    )


def concerns(found: Examination) -> list[str]:
    """Return what about the data is worth a warning, in sentences.

    >>> import numpy as np
    >>> from dmsgd.diagnostics import examine
    >>> concerns(examine(np.vstack([np.eye(20), np.zeros((1, 20))]), 4))[-1]
    '1 items have only zeros as features: a linear kernel never draws them'
    """
    n, k, room = found.n, found.k, found.room
    linear = found.settings.kernel == "linear"
    by_length = linear and not found.settings.normalize and found.settings.target is None
    rarest = min(found.classes.values(), default=n)
    candidates = [
        (
            room.rank < k,
            f"rank too small: the features have {room.rank} independent directions, fewer than "
            f"k = {k}; a linear kernel has no such batch, so an RBF kernel is advised",
        ),
        (
            k <= room.rank and room.crowding > 5,
            f"k = {k} is {room.crowding:.0f} times the effective rank {room.effective_rank:.1f}: "
            f"most places of a batch are filled from directions that hardly matter",
        ),
        (
            by_length and found.lengths > LENGTHS,
            f"norms dominate: squared row lengths differ {found.lengths:.3g}-fold between the "
            f"longest and the shortest tenth, and a linear kernel favours long rows; normalise, "
            f"unless length is importance",
        ),
        (
            room.repulsion < NEARLY_UNIFORM,
            "near-uniform kernel: no two items look alike, so batches are those of plain SGD",
        ),
        (
            found.duplicates > COPIES * found.counted,
            f"duplicates: {found.duplicates:,} items ({found.duplicates / found.counted:.1%}) are "
            f"copies of others; a k-DPP never puts two copies in a batch, uniform sampling counts "
            f"each",
        ),
        (
            linear and found.empty > 0,
            f"{found.empty:,} items have only zeros as features: a linear kernel never draws them",
        ),
        (
            bool(found.classes) and rarest == 1,
            "at least one class has a single item, which balanced batches show again and again",
        ),
        (
            len(found.classes) > k,
            f"{len(found.classes)} classes and k = {k}: no batch can hold them all",
        ),
    ]
    return [sentence for holds, sentence in candidates if holds]
