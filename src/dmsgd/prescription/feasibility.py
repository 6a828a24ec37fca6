"""Why a target cannot be reached.

A batch holds at most rank(F_A) items of any set A, because more would be linearly dependent. So b*
is out of reach if it asks for more than that of some A. The iteration then never ends: it raises A
over everything else, and still b falls short of b* there. That is how A is found.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dmsgd.errors import TargetError
from dmsgd.inputs.arrays import FloatArray, IntArray
from dmsgd.inputs.messages import counted

#: Shares of the largest shortfall at which a set of items is cut out.
LEVELS = (0.9, 0.5, 0.25, 0.1, 0.02)


def refuse_out_of_reach(
    target: FloatArray, b: FloatArray, rank_of: Callable[[IntArray], int]
) -> None:
    """Raise TargetError if a set of items that b falls short of has too small a rank."""
    shortfall = np.log(target / b)
    for level in LEVELS:
        items = np.flatnonzero(shortfall > level * max(shortfall.max(), 0.0))
        if not items.size:
            continue
        asked, rank = float(target[items].sum()), rank_of(items)
        if asked >= rank * (1 - 1e-9):
            raise TargetError(_message(items, asked, rank))


def _message(items: IntArray, asked: float, rank: int) -> str:
    shown = ", ".join(map(str, items[:8])) + (", ..." if items.size > 8 else "")
    return (
        f"the target asks for {asked:.4g} of {counted(items.size, 'item')} in a batch, but their "
        f"features have rank {rank}, so a batch never holds more than {rank} of them: items "
        f"{shown}; ask for less than {rank} of them in all, give them more features, or use a "
        f"smaller k"
    )
