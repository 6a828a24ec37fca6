"""What `compare` returns: a summary of each design, and warnings about the data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, final

from dmsgd.designs.chosen_spectrum import NEARLY_UNIFORM
from dmsgd.designs.kdpp import KDPP
from dmsgd.designs.options import DesignOptions
from dmsgd.diagnostics.data import DataSummary
from dmsgd.diagnostics.similarity import Estimate
from dmsgd.inputs.arrays import FloatArray, IntArray
from dmsgd.inputs.messages import counted
from dmsgd.spectra import Spectrum

#: Squared norms of the longest and the shortest tenth that differ by more than this matter.
NORMS = 3.0
#: Duplicates above this share of the items deserve a warning.
DUPLICATES = 0.005


@final
@dataclass(frozen=True, eq=False)
class DesignSummary:
    """What one design would do; all but `repulsion` and `seconds_per_batch` in closed form.

    name:      "uniform", "w = 0.7", "target density" or "stratified".
    inclusion: probability that an item is in a batch, by item that was compared.
    shares:    expected share of a batch by class, {} without labels.
    coverage:  expected fraction of the items that occur in one epoch of n/k batches.
    effective_items: (Σ b)² / Σ b² as a share of the items, 1 if all are equally likely.
    effective_batch: effective size of a batch with unbiased weights, at most k.
    repulsion: share of the variance of a batch's features that repulsion removes
               (`estimate_repulsion`); 0 ± 0 without a kernel.
    seconds_per_batch: as measured, on one thread.
    examples:  batches, as places in `Comparison.rows`.
    """

    name: str
    options: DesignOptions
    k: int
    inclusion: FloatArray = field(repr=False)
    shares: dict[Any, float] = field(repr=False)
    evenness: float
    coverage: float
    effective_items: float
    effective_batch: float
    repulsion: Estimate
    seconds_per_batch: float
    examples: IntArray = field(repr=False)


@final
@dataclass(frozen=True, eq=False)
class Comparison:
    """The designs that `compare` has compared, and the data.

    data:        facts about all items.
    rows:        numbers of the items that designs were made of, sorted; all or a random sample.
    names, codes: the classes of these items, and for each item the number of its own (or None).
    summaries:   of uniform batches, k-DPPs with several w (those that exist), targets, stratified
                 batches if there are labels; for k, then for the other sizes. Each has `name`, `k`,
                 `inclusion`, `shares` (by class), `evenness`, `coverage` (of an epoch),
                 `effective_items`, `effective_batch`, `repulsion` and `seconds_per_batch`.
    requested:   the summary of the requested design, None if it does not exist.
    options:     as requested, with the kernel that "auto" chose.
    candidate:   the k-DPP that `recommend` judges: without labels, with the kernel that "auto"
                 chooses; word counts annealed, columns in different units standardized. Options
                 with kernel="rbf" or a target are kept. None where classes are uneven, and where
                 its rank is below k.
    unavailable: why designs do not exist, by their options.
    spectrum, design: the kernel without labels, and the requested k-DPP, of the compared items.
    """

    k: int
    options: DesignOptions
    data: DataSummary
    rows: IntArray = field(repr=False)
    names: list[Any] = field(repr=False)
    codes: IntArray | None = field(repr=False)
    summaries: tuple[DesignSummary, ...] = field(repr=False)
    requested: DesignSummary | None = field(repr=False)
    candidate: DesignSummary | None = field(repr=False)
    unavailable: dict[DesignOptions, Exception] = field(repr=False)
    spectrum: Spectrum = field(repr=False)
    design: KDPP | None = field(repr=False)

    @property
    def rank(self) -> int:
        """The rank of the requested kernel without labels: the largest possible k."""
        return self.spectrum.rank

    @property
    def effective_rank(self) -> float:
        """About how many groups of items that kernel tells apart: exp(entropy of eigenvalues)."""
        return self.spectrum.effective_rank()

    def warnings(self) -> list[str]:
        """Return sentences about properties of the data that deserve a warning.

        >>> import numpy as np
        >>> from dmsgd.diagnostics import compare
        >>> X = np.vstack([np.eye(20), np.zeros((1, 20))])
        >>> compare(X, 4).warnings()[-1]
        '1 item with only zeros as features: never drawn by a linear kernel'
        """
        return list(self._warnings())

    def _warnings(self) -> Iterator[str]:
        data, k, linear = self.data, self.k, self.options.kernel == "linear"
        crowding = k / self.effective_rank
        by_norm = linear and not self.options.unit_rows and self.options.target is None
        if self.rank < k:
            yield (
                f"rank too small: the features have {self.rank} independent directions, fewer than "
                f"k = {k}; a linear kernel has no such batch, an RBF kernel has"
            )
        elif crowding > 5:
            rank = f"{self.effective_rank:.1f}"
            yield f"k = {k} is {crowding:.0f} times the effective rank {rank}: choose a smaller k"
        if data.different_units and not self.options.standardize:
            yield (
                f"columns in different units: the largest standard deviation is "
                f"{data.column_scale_ratio:.3g} times the median one, so the kernel sees few "
                f"columns; standardize, or drop columns that are no features"
            )
        if by_norm and data.norm_ratio > NORMS:
            yield (
                f"norms dominate: squared row norms differ {data.norm_ratio:.3g}-fold between the "
                f"longest and the shortest tenth, and a linear kernel favours long rows; "
                f"normalize, unless the norm is importance"
            )
        if 1 < k <= self.rank and self.spectrum.repulsion(k) < NEARLY_UNIFORM:
            yield "near-uniform kernel: no two items are similar, so batches are nearly uniform"
        share = data.duplicates / data.counted
        if share > DUPLICATES:
            yield (
                f"duplicates: {counted(data.duplicates, 'item')} ({share:.1%}) equal to others; a "
                f"k-DPP never puts two of them in a batch, uniform sampling counts each"
            )
        if linear and data.empty:
            empty = counted(data.empty, "item")
            yield f"{empty} with only zeros as features: never drawn by a linear kernel"
        if 1 in data.classes.values():
            yield "at least one class has a single item, which balanced batches often repeat"
        if len(data.classes) > k:
            yield f"{len(data.classes)} classes and k = {k}: no batch can hold them all"
