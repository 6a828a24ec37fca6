"""From what `examine` found to settings, with the reason, and to what is worth a warning."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

from dmsgd.designs import Design, Stratified, Uniform
from dmsgd.diagnostics.examination import Examination, Prospect, Settings

#: Classes this even need no help.
EVEN = 0.95
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

    def design(self, X: Any, k: int, labels: Any = None) -> Design:
        """Return the recommended design of this data."""
        if self.settings is not None:
            return self.settings.design(X, k, labels if self.settings.w > 0 else None)
        if self.kind == "stratified":
            return Stratified(labels, k)
        return Uniform(len(labels) if X is None else X.shape[0], k)

    def code(self, k: int) -> str:
        """Return the line of Python that makes the recommended design."""
        if self.kind == "stratified":
            return f"design = dmsgd.Stratified(y, k={k})"
        if self.settings is None:
            return f"design = dmsgd.Uniform(len(X), k={k})"
        return f"design = dmsgd.diversify({', '.join(_arguments(self.settings, k))})"

    def options(self) -> str:
        """Return the options of `dmsgd sample` and `dmsgd report` for it, "" where there are none.

        The labels are left to the caller, who knows their file.
        """
        settings, words = self.settings, []
        if settings is None:
            return ""
        if settings.w > 0:
            words.append(f"-w {settings.w:g}")
        if settings.rho is not None:
            words.append(f"--rho {settings.rho:g}")
        if settings.kernel != "linear":
            words.append(f"--kernel {settings.kernel}")
        if settings.scale is not None:
            words.append(f"--scale {settings.scale:.4g}")
        if settings.normalize:
            words.append("--normalize")
        return " ".join(words)


def _arguments(settings: Settings, k: int) -> list[str]:
    X = "X" if settings.rho is None else f"dmsgd.anneal(X, {settings.rho:g})"
    arguments = [X, f"k={k}"]
    if settings.w > 0:
        arguments.append(f"labels=y, w={settings.w:g}")
    if settings.kernel != "linear":
        arguments.append(f"kernel={settings.kernel!r}")
    if settings.scale is not None:
        arguments.append(f"scale={settings.scale:.4g}")
    if settings.normalize:
        arguments.append("normalize=True")
    return arguments


def advise(found: Examination) -> Advice:
    """Return the settings to try first.

    Uneven classes: the smallest w that gets nine tenths of the balance that any w gets; strata
    where that is not much. Even classes or none: w = 0, unless batches would be uniform anyway.
    """
    uniform, *kdpps = [each for each in found.prospects if each.name != "stratified"]
    unlabelled = kdpps[0]
    if found.classes and uniform.evenness < EVEN:
        return _balance(found, uniform, kdpps)
    why = "the classes are even" if found.classes else "there are no labels"
    repulsion = found.linear.repulsion / found.k
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
        f"({strength})",
    )


def _balance(found: Examination, uniform: Prospect, kdpps: list[Prospect]) -> Advice:
    best = max(each.evenness for each in kdpps)
    wanted = uniform.evenness + ENOUGH * (best - uniform.evenness)
    chosen = next(each for each in kdpps if each.evenness >= wanted)
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
        f"(at most {best:.2f}) while it leaves less to the features",
    )


def concerns(found: Examination) -> list[str]:
    """Return what about the data is worth a warning, in sentences."""
    n, k, room = found.n, found.k, found.linear
    rarest = min(found.classes.values(), default=n)
    candidates = [
        (
            room.rank < k,
            f"rank too small: the features have {room.rank} independent directions, fewer than "
            f"k = {k}; a linear kernel has no such batch, so an RBF kernel is used below",
        ),
        (
            k <= room.rank and room.crowding > 5,
            f"k = {k} is {room.crowding:.0f} times the effective rank {room.effective_rank:.1f}: "
            f"most places of a batch are filled from directions that hardly matter",
        ),
        (
            found.lengths > LENGTHS,
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
            found.empty > 0,
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
