"""What of that which `examine` found is worth a warning."""

from __future__ import annotations

from dmsgd.designs.build import NEARLY_UNIFORM
from dmsgd.diagnostics.examination import UNITS, Examination, as_examination
from dmsgd.inputs.messages import counted

#: Squared lengths of the longest and the shortest tenth that differ by more than this matter.
LENGTHS = 3.0
#: The share of copies among the items that is worth a word.
COPIES = 0.005


def concerns(found: Examination) -> list[str]:
    """Return what about the data is worth a warning, in sentences.

    >>> import numpy as np
    >>> from dmsgd.diagnostics import examine
    >>> concerns(examine(np.vstack([np.eye(20), np.zeros((1, 20))]), 4))[-1]
    '1 item with only zeros as features: never drawn by a linear kernel'
    """
    as_examination(found)
    n, k, room = found.n, found.k, found.room
    linear = found.settings.kernel == "linear"
    by_length = linear and not found.settings.normalize and found.settings.target is None
    rarest = min(found.classes.values(), default=n)
    candidates = [
        (
            room.rank < k,
            f"rank too small: the features have {room.rank} independent directions, fewer than "
            f"k = {k}; a linear kernel has no such batch, an RBF kernel has",
        ),
        (
            k <= room.rank and room.crowding > 5,
            f"k = {k} is {room.crowding:.0f} times the effective rank {room.effective_rank:.1f}: "
            f"most places of a batch are filled from directions that hardly matter",
        ),
        (
            not found.settings.standardize and not found.words and found.scales > UNITS,
            f"columns in different units: the largest standard deviation is {found.scales:.3g} "
            f"times the median one, so the kernel sees few columns; standardize, or drop columns "
            f"that are no features",
        ),
        (
            by_length and found.lengths > LENGTHS,
            f"norms dominate: squared row lengths differ {found.lengths:.3g}-fold between the "
            f"longest and the shortest tenth, and a linear kernel favours long rows; normalise, "
            f"unless length is importance",
        ),
        (
            k > 1 and room.repulsion < NEARLY_UNIFORM,
            "near-uniform kernel: no two items look alike, so batches are those of plain SGD",
        ),
        (
            found.duplicates > COPIES * found.counted,
            f"duplicates: {counted(found.duplicates, 'item')} "
            f"({found.duplicates / found.counted:.1%}) equal to others; a k-DPP never puts two "
            f"copies in a batch, uniform sampling counts each",
        ),
        (
            linear and found.empty > 0,
            f"{counted(found.empty, 'item')} with only zeros as features: never drawn by a linear "
            f"kernel",
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
