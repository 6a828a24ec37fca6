"""Σ_n V_in² π_n: how much of each item the eigenvectors hold, each weighed by its probability."""

from __future__ import annotations

import numpy as np

from dmsgd.inputs.arrays import FloatArray


def weighed_squares(V: FloatArray, pi: FloatArray) -> FloatArray:
    """Return Σ_n V_in² π_n for every row i of V, shape (n,): b, if π_n = P(n is chosen)."""
    return np.asarray(np.einsum("in,in,n->i", V, V, pi, optimize=False))
