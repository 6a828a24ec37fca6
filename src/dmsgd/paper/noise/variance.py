"""The noise of gradients at many points of training, exactly, and what it depends on.

`dmsgd.diagnostics.gradient_variance` needs a pass over the spectrum for every set of gradients.
Here the joint probabilities of a design are made once, as a matrix, and serve all of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

import dmsgd
from dmsgd.inputs.arrays import FloatArray
from dmsgd.polynomials.symmetric import selection


def joint_matrix(design: dmsgd.KDPP) -> FloatArray:
    """Return E[m_i m_j] for all pairs, b_i on the diagonal, shape (n, n). O(n² r) times about ten.

    E[m_i m_j] = Σ_{n≠m} π_nm (V_in² V_jm² - V_in V_im V_jn V_jm), where the terms n = m cancel. So
    π may have any diagonal, and with that of `smooth_pairs` it is a sum of few products a aᵀ, each
    of which makes one n x n matrix, (V diag(a) Vᵀ)² element by element.
    """
    V = design.spectrum.vectors
    pairs = smooth_pairs(design.spectrum.values, design.k)
    squares = V * V
    joint: FloatArray = squares @ pairs @ squares.T
    sizes, parts = np.linalg.eigh(pairs)
    for n in np.flatnonzero(np.abs(sizes) > 1e-14 * np.abs(sizes).max()):
        product = (V * parts[:, n]) @ V.T
        product *= product
        product *= sizes[n]
        joint -= product
    np.fill_diagonal(joint, design.inclusion())
    return joint


def smooth_pairs(values: FloatArray, k: int) -> FloatArray:
    """Return π_nm = P(both n and m are chosen) off the diagonal, a smooth continuation on it.

    A k-DPP is a DPP given its size, so π_nm is the mean of p_n(z) p_m(z), p_n = zλ_n / (1 + zλ_n),
    over more than r points z on a circle, weighted by e(z) z^-k with the polynomial
    e(z) = Π (1 + zλ_n). The circle on which the expected size is k loses no digits.
    """
    from scipy.optimize import brentq

    logs = np.log(values)

    def excess(log_z: float) -> float:
        return float(np.sum(1 / (1 + np.exp(-log_z - logs))) - k)

    r = values.size
    if r == k:
        return np.ones((r, r))
    radius = np.exp(brentq(excess, -logs.max() - 40, -logs.min() + 40))
    points = 2 * (r // 2 + 1)
    angles = 2 * np.pi * (np.arange(points) + 0.5) / points  # never the negative real axis
    z = radius * np.exp(1j * angles)
    size = np.log1p(np.outer(z, values)).sum(axis=1) - np.log1p(radius * values).sum()
    weights = np.exp(size - 1j * k * angles)
    weights /= weights.sum()
    p = np.outer(z, values)
    p /= 1 + p
    return np.asarray(((p.T * weights) @ p).real)


@final
class Batches:
    """The first two moments of a k-DPP's batches: what the variance of any update is made of."""

    def __init__(self, design: dmsgd.KDPP) -> None:
        self.design = design
        self.b = design.inclusion()
        self.covariance = joint_matrix(design) - np.outer(self.b, self.b)

    def variance(self, gradients: FloatArray, weights: FloatArray | None = None) -> float:
        """Return Tr Cov(Σ a_i g_i) over a batch, with a_i = 1/k unless `weights` are given.

        It is Σ_ij Cov(m_i, m_j) y_iᵀy_j with y_i = a_i g_i.
        """
        a = np.full(self.b.size, 1 / self.design.k) if weights is None else weights
        y = a[:, None] * (gradients - gradients.mean(axis=0) if weights is None else gradients)
        return float(np.einsum("ip,ip->", self.covariance @ y, y))


@dataclass(frozen=True)
class Reasons:
    """Why a k-DPP's gradients are as noisy as they are, given equal b_i.

    With the marginal kernel K, a determinantal process has Cov(m_i, m_j) = -K_ij²: items keep each
    other out of a batch by K_ij². Hence its variance, over that of uniform batches, is
    1 - strength x likeness (up to terms of 1/n; for a k-DPP about so).

    seen:     the share of the gradients' variance that a regression on the kernel's k leading
              eigenvectors explains (adjusted R²; 0 for gradients that have nothing to do with it).
    likeness: the mean of g_iᵀg_j over pairs weighted by K_ij², over the mean of |g_i|² (centred):
              1 if items that keep each other out have the same gradient, 0 if an unrelated one.
    strength: Σ_{i≠j} K_ij² / Σ_i K_ii (1 - K_ii): 1 for a projection, 0 for K = (k/n) I.
    """

    seen: float
    likeness: float
    strength: float


def reasons(design: dmsgd.KDPP, gradients: FloatArray) -> Reasons:
    """Return the measured conditions for small noise. O(n² (r + p))."""
    V, pi = design.spectrum.vectors, selection(design.spectrum.values, design.k)
    g = gradients - gradients.mean(axis=0)
    squares = np.einsum("ip,ip->i", g, g)
    K = (V * pi) @ V.T
    own = K.diagonal().copy()
    exclusion = K**2
    np.fill_diagonal(exclusion, 0.0)
    alike = np.einsum("ip,ip->", exclusion @ g, g) / max(exclusion.sum(), 1e-300)
    return Reasons(
        seen=_explained(V[:, : design.k], g),
        likeness=float(alike / squares.mean()),
        strength=float(exclusion.sum() / np.sum(own * (1 - own))),
    )


def _explained(columns: FloatArray, g: FloatArray) -> float:
    """Return the adjusted R² of a regression of the centred g on columns and a constant."""
    n, k = columns.shape
    basis = np.linalg.svd(columns - columns.mean(axis=0), full_matrices=False)[0]
    left = g - basis @ (basis.T @ g)
    return float(1 - np.sum(left**2) / np.sum(g**2) * (n - 1) / (n - k - 1))
