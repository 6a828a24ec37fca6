"""Whether a linear kernel sees all of its features, or one part of them alone."""

from __future__ import annotations

import numpy as np

from dmsgd.errors import KernelWarning
from dmsgd.features import Features
from dmsgd.features.moments import column_moments
from dmsgd.inputs.arrays import FloatArray

#: A column with this share of the kernel's trace is nearly all of it.
WHOLE = 0.95
#: Labels with less than this share of the trace hardly count; rows of this mean square are long.
SWAMPED, LONG = 0.002, 100.0


def disproportion(X: Features, w: float, values: FloatArray) -> KernelWarning | None:
    """Return a warning about what carries nearly the whole kernel of [(1-w)X, wH], or None.

    values: the kernel's eigenvalues. The largest is at least the share of any column, so that X is
    read again only where there may be something to say.
    """
    if w == 1:
        return None
    trace = float(values.sum())
    share = w * w * X.n / trace
    length = (trace / X.n - w * w) / (1 - w) ** 2
    if w > 0 and share < SWAMPED and length > LONG:
        return KernelWarning(
            f"labels are {share:.1g} of the kernel at w={w:g} and hardly count, because the rows "
            f"of X are long (mean square {length:.3g}): scale them to length 1, or use a larger w",
            normalize=True,
        )
    if X.d == 1 or values.max() < WHOLE * trace:
        return None
    origin, found = column_moments(X)
    squares = (origin + found.means) ** 2 + found.deviations**2
    widest = int(np.argmax(squares))
    if squares[widest] < WHOLE * squares.sum():
        return None
    return KernelWarning(
        f"column {widest} of X (from 0) is {squares[widest] / squares.sum():.2%} of the kernel, so "
        f"batches are diverse in little else: drop it if it is no feature, such as an id, or "
        f"standardize if columns are in different units",
        standardize=True,
    )
