"""Inclusion probabilities of k-DPPs in 70 digits or exact, against which rounding is measured."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from itertools import combinations

import mpmath
import numpy as np


def enumerated(F, k, given=()):
    """Return b of the k-DPP of F Fᵀ given some items, by enumeration in whole numbers: exact.

    Floats are whole numbers times a power of two, which a k-DPP does not notice.
    """
    numbers = [[Fraction(float(x)) for x in row] for row in np.asarray(F)]
    scale = max(x.denominator for row in numbers for x in row)
    rows = [[int(x * scale) for x in row] for row in numbers]
    L = [[sum(x * y for x, y in zip(a, b, strict=True)) for b in rows] for a in rows]
    given, weights, total = list(given), [0] * len(rows), 0
    others = [i for i in range(len(rows)) if i not in given]
    for more in combinations(others, k - len(given)):
        Y = [*given, *more]
        det = _determinant([[L[i][j] for j in Y] for i in Y])
        total += det
        for i in Y:
            weights[i] += det
    return np.array([float(Fraction(weight, total)) for weight in weights])


def _determinant(A):
    """Return the determinant of whole numbers (Bareiss: every division is exact)."""
    before = 1
    for c in range(len(A) - 1):
        pivot = next((r for r in range(c, len(A)) if A[r][c]), None)
        if pivot is None:
            return 0
        if pivot != c:
            A[c], A[pivot] = A[pivot], [-x for x in A[c]]
        for r in range(c + 1, len(A)):
            for j in range(c + 1, len(A)):
                A[r][j] = (A[r][j] * A[c][c] - A[r][c] * A[c][j]) // before
        before = A[c][c]
    return A[-1][-1]


def inclusion(F, k):
    """Return b of the k-DPP of F Fᵀ, for an (n, d) array F that is taken as exact."""
    with mpmath.workdps(70):
        values, V = _spectrum(tuple(map(tuple, np.asarray(F).tolist())))
        kept = [i for i in range(len(values)) if values[i] > mpmath.mpf(10) ** -45 * max(values)]
        lengths = [mpmath.norm(V[:, i]) for i in kept]
        return _weighed(V, kept, lengths, _selection([values[i] for i in kept], k))


@cache
def _spectrum(rows):
    """Return eigenvalues and eigenvectors of F Fᵀ of any length, which serve several k."""
    B = mpmath.matrix(rows)
    values, U = mpmath.eigsy(B.T * B if B.cols < B.rows else B * B.T)
    return values, B * U if B.cols < B.rows else U


def rbf_inclusion(X, scale, k):
    """Return b of the k-DPP of the RBF kernel over the rows of X."""
    with mpmath.workdps(70):
        values, V = _rbf_spectrum(tuple(map(tuple, np.asarray(X).tolist())), float(scale))
        return _weighed(V, range(V.rows), [1] * V.rows, _selection(list(values), k))


@cache
def _rbf_spectrum(rows, scale):
    """Return eigenvalues and eigenvectors, which are asked for with several k."""
    rows = [[mpmath.mpf(float(x)) for x in row] for row in rows]
    gamma = 1 / (2 * mpmath.mpf(scale) ** 2)
    L = mpmath.matrix(len(rows))
    for i, x in enumerate(rows):
        for j, y in enumerate(rows):
            squares = sum((a - b) ** 2 for a, b in zip(x, y, strict=True))
            L[i, j] = mpmath.exp(-gamma * squares)
    return mpmath.eigsy(L)


def _weighed(V, kept, lengths, pi):
    """Return Σ_n (V_in / length_n)² π_n as floats."""
    return np.array(
        [
            float(sum((V[i, n] / s) ** 2 * p for n, s, p in zip(kept, lengths, pi, strict=True)))
            for i in range(V.rows)
        ]
    )


def _selection(values, k):
    """Return π_n = λ_n e_{k-1}(λ without n) / e_k(λ), from sums over those before and after n."""
    before, after = _polynomials(values, k), _polynomials(values[::-1], k)[::-1]
    whole = before[-1][k]
    return [
        value * sum(before[n][m] * after[n + 1][k - 1 - m] for m in range(k)) / whole
        for n, value in enumerate(values)
    ]


def _polynomials(values, k):
    """Return [e_0..e_k of the first n values] for n = 0..len(values)."""
    rows = [[mpmath.mpf(1)] + [mpmath.mpf(0)] * k]
    for value in values:
        last = rows[-1]
        rows.append([last[0]] + [last[m] + value * last[m - 1] for m in range(1, k + 1)])
    return rows
