"""Facility location with an RBF kernel: similarities, and what each item would add to coverage."""

from __future__ import annotations

import numpy as np

from dmsgd.compiled.jit import entry

#: 2^f = 1 + Σ_p c_p f^p for -1/2 <= f <= 1/2, with the smallest relative error, 9e-8.
_C = tuple(np.float32(c) for c in (0.693147, 0.24022242, 0.05550734, 0.009671513, 0.0013264727))
#: Adding this rounds a float32 to an integer, which then is in the lowest bits.
_ROUND = np.float32(1.5 * 2**23)
_ZERO, _ONE, _LEAST = np.float32(0), np.float32(1), np.float32(-126)
#: Numbers that are added in float32 before they go to sums in float64.
COLUMNS = 4096


@entry(fastmath={"contract", "nsz"})  # "reassoc" would undo the rounding
def similarities(G, left, right):
    """Replace products G by np.exp2(np.minimum(G - left[:, None] - right, 0)) in float32.

    A compiler makes vector instructions of this form.
    """
    for i in range(G.shape[0]):
        row, size = G[i], left[i]
        for j in range(row.size):
            x = max(min(row[j] - size - right[j], _ZERO), _LEAST)
            y = x + _ROUND
            f = x - (y - _ROUND)
            p = (_C[4] * f + _C[3]) * (f * f) + (_C[2] * f + _C[1])
            p = p * (f * f) + (_C[0] * f + _ONE)
            exponent = np.int32(np.float32(y).view(np.int32) << 23)
            row[j] = np.int32(np.float32(p).view(np.int32) + exponent).view(np.float32)


@entry(fastmath={"contract", "nsz", "reassoc"})
def gains_of(S, rows, weights, covered):
    """Return what each of the rows adds to coverage: np.maximum(S[rows] - covered, 0) @ weights."""
    found = np.zeros(rows.size)
    for at in range(rows.size):
        for first in range(0, weights.size, COLUMNS):
            row, part = S[rows[at], first : first + COLUMNS], _ZERO
            weight, least = weights[first : first + COLUMNS], covered[first : first + COLUMNS]
            for j in range(row.size):
                part += weight[j] * max(row[j] - least[j], _ZERO)
            found[at] += part
    return found
