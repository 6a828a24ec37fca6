"""Facility location with an RBF kernel: similarities, and what each item would add to coverage."""

from __future__ import annotations

import numpy as np

from dmsgd.compiled.jit import entry

_MATH = {"contract", "nsz", "reassoc"}
#: 2^f for -1/2 <= f <= 1/2: Taylor's coefficients, highest power first, error 2e-7.
_POWERS = tuple(np.float32(np.log(2.0) ** p / f) for p, f in ((6, 720), (5, 120), (4, 24), (3, 6)))
_HALF, _LOG = np.float32(np.log(2.0) ** 2 / 2), np.float32(np.log(2.0))
_ZERO, _ONE, _LEAST = np.float32(0), np.float32(1), np.float32(-126)
#: Numbers that are added in float32 before they go to sums in float64.
COLUMNS = 4096


@entry(fastmath=_MATH)
def similarities(G, left, right, rate):
    """Replace products G by 2^(rate d²), d² = left_i + right_j - 2 G_ij, rate < 0, in float32.

    This is np.exp2(rate * np.maximum(left[:, None] + right - 2 * G, 0)) in a form that a compiler
    makes vector instructions of.
    """
    for i in range(G.shape[0]):
        row, size = G[i], left[i]
        for j in range(row.size):
            x = rate * (size + right[j] - row[j] - row[j])
            x = max(min(x, _ZERO), _LEAST)
            whole = np.int32(x - np.float32(0.5))
            f = x - np.float32(whole)
            p = _POWERS[0] * f + _POWERS[1]
            p = (p * f + _POWERS[2]) * f + _POWERS[3]
            p = ((p * f + _HALF) * f + _LOG) * f + _ONE
            row[j] = p * np.int32((whole + 127) << 23).view(np.float32)


@entry(fastmath=_MATH)
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
