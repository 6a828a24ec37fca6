"""The exact variance of batch gradients at many points of training, and what it depends on.

`dmsgd.diagnostics.gradient_variance` needs a pass over the spectrum for every set of gradients.
Here the joint probabilities of a k-DPP are computed once, as a matrix, and serve all of them.
"""

from __future__ import annotations

import numpy as np

import dmsgd


def uniform_variance(gradients: np.ndarray, k: int) -> float:
    """Return Tr Cov of the mean gradient of k items drawn without replacement, all as likely."""
    n = len(gradients)
    centred = gradients - gradients.mean(axis=0)
    return float((1 / k - 1 / n) / (n - 1) * np.sum(centred**2))


class Moments:
    """The first two moments of a k-DPP's batches: what the variance of any update is made of.

    For n items and rank r: O(n² r) times about ten.
    """

    def __init__(self, design: dmsgd.KDPP) -> None:
        self.k = design.k
        b = design.inclusion()
        self.covariance = joint_probabilities(design) - np.outer(b, b)

    def variance(self, gradients: np.ndarray, weights: np.ndarray | None = None) -> float:
        """Return Tr Cov(Σ a_i g_i) over a batch, with a_i = 1/k unless `weights` are given.

        It is Σ_ij Cov(m_i, m_j) y_iᵀy_j with y_i = a_i g_i.
        """
        if weights is None:
            y = (gradients - gradients.mean(axis=0)) / self.k
        else:
            y = weights[:, None] * gradients
        return float(np.einsum("ip,ip->", self.covariance @ y, y))


def joint_probabilities(design: dmsgd.KDPP) -> np.ndarray:
    """Return P(i and j are in a batch) for all pairs, b_i on the diagonal, shape (n, n).

    It is Σ_{n≠m} π_nm (V_in² V_jm² - V_in V_im V_jn V_jm), where terms with n = m cancel. So π may
    have any diagonal, and with that of `selected_pairs` it is a sum of few products a aᵀ, each of
    which makes one n x n matrix, (V diag(a) Vᵀ)² element by element.
    """
    V = np.asarray(design.spectrum.vectors)
    pairs = selected_pairs(design.spectrum.values, design.k)[1]
    squares = V * V
    joint = squares @ pairs @ squares.T
    sizes, parts = np.linalg.eigh(pairs)
    for n in np.flatnonzero(np.abs(sizes) > 1e-14 * np.abs(sizes).max()):
        product = (V * parts[:, n]) @ V.T
        product *= product
        product *= sizes[n]
        joint -= product
    np.fill_diagonal(joint, design.inclusion())
    return np.asarray(joint)


def selected_pairs(values: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return how likely a k-DPP selects each eigenvector, (r,), and each pair of them, (r, r).

    The diagonal of the pairs is a smooth continuation of the rest.

    A k-DPP is a DPP given its size, so π_nm is the mean of p_n(z) p_m(z), p_n = zλ_n / (1 + zλ_n),
    over more than r points z on a circle, weighted by e(z) z^-k with the polynomial
    e(z) = Π (1 + zλ_n). The circle on which the expected size is k loses no digits.
    """
    from scipy.optimize import brentq

    logs, r = np.log(values), values.size
    if r == k:
        return np.ones(r), np.ones((r, r))

    def excess(log_z: float) -> float:
        return float(np.sum(1 / (1 + np.exp(-log_z - logs))) - k)

    radius = np.exp(brentq(excess, -logs.max() - 40, -logs.min() + 40))
    points = 2 * (r // 2 + 1)
    angles = 2 * np.pi * (np.arange(points) + 0.5) / points  # never the negative real axis
    z = radius * np.exp(1j * angles)
    size = np.log1p(np.outer(z, values)).sum(axis=1) - np.log1p(radius * values).sum()
    weights = np.exp(size - 1j * k * angles)
    weights /= weights.sum()
    p = np.outer(z, values)
    p /= 1 + p
    return (weights @ p).real, np.asarray(((p.T * weights) @ p).real)


def reasons(design: dmsgd.KDPP, gradients: np.ndarray) -> dict[str, float]:
    """Return why a k-DPP's gradients are as noisy as they are, given equal b_i. O(n² (r + p)).

    With the marginal kernel K, a determinantal process has Cov(m_i, m_j) = -K_ij²: items keep each
    other out of a batch by K_ij². Hence its variance, over that of uniform batches, is
    1 - strength x likeness (up to terms of 1/n; for a k-DPP about so).

    seen:     the share of the gradients' variance that a regression on the kernel's k leading
              eigenvectors explains (adjusted R²; 0 for gradients that have nothing to do with it).
    likeness: the mean of g_iᵀg_j over pairs weighted by K_ij², over the mean of |g_i|² (centred):
              1 if items that keep each other out have the same gradient, 0 if an unrelated one.
    strength: Σ_{i≠j} K_ij² / Σ_i K_ii (1 - K_ii): 1 for a projection, 0 for K = (k/n) I.
    """
    V = np.asarray(design.spectrum.vectors)
    g = gradients - gradients.mean(axis=0)
    K = (V * selected_pairs(design.spectrum.values, design.k)[0]) @ V.T
    own = K.diagonal().copy()
    exclusion = K**2
    np.fill_diagonal(exclusion, 0.0)
    alike = np.einsum("ip,ip->", exclusion @ g, g) / max(exclusion.sum(), 1e-300)
    n, k = design.n, design.k
    leading = V[:, :k] - V[:, :k].mean(axis=0)
    basis = np.linalg.svd(leading, full_matrices=False)[0]
    left = g - basis @ (basis.T @ g)
    return {
        "seen": float(1 - np.sum(left**2) / np.sum(g**2) * (n - 1) / (n - k - 1)),
        "likeness": float(alike / np.sum(g**2) * n),
        "strength": float(exclusion.sum() / np.sum(own * (1 - own))),
    }
