"""Elementary symmetric polynomials e_l of eigenvalues: normaliser and eigenvector probabilities.

e_l itself leaves the floating point range at once, so it is never formed. Computed is the ratio

    R[n, l] = e_l(λ_1..λ_n) / e_{l-1}(λ_1..λ_n),

which has the size of an eigenvalue. From e_l^n = e_l^{n-1} + λ_n e_{l-1}^{n-1} (the supplement):

    R[n, l] = (R[n-1, l] + λ_n) / (1 + λ_n / R[n-1, l-1]).

All terms are positive, and R decreases in l (Newton's inequality), so rounding errors add up and
never grow. (The supplement's `e_0^l <- 1` is meant as e_l^0 <- 0 for l >= 1.)

The eigenvectors of a k-DPP batch form a Markov chain: going from the last eigenvector to the first
with l still to choose, eigenvector n is chosen with probability

    p[n, l] = λ_n e_{l-1}^{n-1} / e_l^n = λ_n / (λ_n + R[n-1, l]),

and every probability below is a sum over the paths of this chain, hence free of cancellation.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dmsgd.inputs.arrays import FloatArray, IntArray

#: From this n on, four terms of Stirling's series are right to 1e-17.
LARGE = 30.0


def ratios(values: FloatArray, k: int) -> FloatArray:
    """Return R of values (..., r), shape (..., r + 1, k + 1). O(rk).

    R[..., 0] is infinite, and R[n, l] = 0 for l > n. Zeros come last, after k values or more.
    """
    *leading, r = values.shape
    R = np.zeros((r + 1, k + 1, *leading))  # entries of many spectra lie together
    R[:, 0] = np.inf
    for n, value in enumerate(np.moveaxis(values, -1, 0), start=1):
        top = min(n, k) + 1
        R[n, 1:top] = (R[n - 1, 1:top] + value) / (1 + value / R[n - 1, : top - 1])
    return np.moveaxis(R, (0, 1), (-2, -1))


def log_polynomials(values: FloatArray, k: int) -> FloatArray:
    """Return log e_l(λ_1..λ_n), shape (k + 1, r + 1) indexed [l, n]; -inf where l > n. O(rk)."""
    logs = np.zeros((k + 1, values.size + 1))
    with np.errstate(divide="ignore"):
        np.cumsum(np.log(ratios(values, k)[:, 1:].T), axis=0, out=logs[1:])
    return logs


def log_polynomial(values: FloatArray, k: int) -> Any:
    """Return log e_k of values (..., r), shape (...): the log-normaliser of the k-DPP. O(rk)."""
    return np.log(ratios(values, k)[..., -1, 1:]).sum(axis=-1)


def log_polynomial_gradient(values: FloatArray, k: int) -> FloatArray:
    """Return ∂ log e_k / ∂λ_n = e_{k-1}(λ without n) / e_k(λ), of the shape of values (..., r).

    It is a sum over the paths of the chain with p[n, l] / λ_n = 1 / (λ_n + R[n-1, l]), which is
    finite where λ_n = 0. O(rk).
    """
    sums = values[..., None] + ratios(values, k)[..., :-1, :]
    rows, columns = np.moveaxis(sums, (-2, -1), (0, 1)), np.moveaxis(values, -1, 0)
    left = np.zeros(rows.shape[1:])  # left[l] = P(l still to choose when the chain arrives at n)
    left[k] = 1.0
    gradient = np.empty(columns.shape)
    for n in range(len(rows) - 1, -1, -1):
        share = left / rows[n]
        gradient[n] = share.sum(axis=0)
        share *= columns[n]
        left -= share
        left[:-1] += share[1:]
    return np.moveaxis(gradient, 0, -1)


def eigenvector_inclusion(values: FloatArray, k: int) -> FloatArray:
    """Return π_n = P(eigenvector n is chosen) = λ_n e_{k-1}(λ without n) / e_k(λ), shape (r,).

    The probabilities sum to k. O(rk).
    """
    return values * log_polynomial_gradient(values, k)


def eigenvector_joint(values: FloatArray, k: int) -> FloatArray:
    """Return π_nm = P(both n and m are chosen), shape (r, r), with π_n on the diagonal. O(r²k).

    The textbook formula (λ_m π_n - λ_n π_m) / (λ_m - λ_n) cancels for close eigenvalues; following
    the chain from every chosen n down to every m < n at once does not.
    """
    r = values.size
    p = np.zeros((r + 1, k + 1))  # P(n is chosen with l left to choose); p[n, 0] = 0
    p[1:, 1:] = values[:, None] / (values[:, None] + ratios(values, k)[:-1, 1:])
    left = np.zeros(k + 1)
    left[k] = 1.0
    pairs = np.zeros((r, r))
    given = np.zeros((r, k + 1))  # given[n, l] = P(n was chosen and l are still to choose)
    for m in range(r, 0, -1):
        later = given[m:]
        chosen = later * p[m]
        pairs[m:, m - 1] = chosen.sum(axis=1)
        later -= chosen
        later[:, :-1] += chosen[:, 1:]
        now = left * p[m]
        pairs[m - 1, m - 1] = now.sum()
        left -= now
        left[:-1] += now[1:]
        given[m - 1, :-1] = now[1:]
    return pairs + np.tril(pairs, -1).T


def weighted_squares(V: FloatArray, pi: FloatArray) -> FloatArray:
    """Return Σ_n V_in² π_n for every row i of V, shape (n,): b, if π_n = P(n is chosen)."""
    return np.asarray(np.einsum("in,in,n->i", V, V, pi, optimize=False))


def log_binomial(n: int | IntArray, k: int | IntArray) -> FloatArray:
    """Return log of the number of k-subsets of n items.

    By n! = sqrt(2π n) (n/e)^n exp(rest): differences of log n! cancel all digits for large n.
    """
    fewer = np.minimum(k, np.subtract(n, k))
    few, all_ = np.maximum(fewer, 1.0), np.maximum(n, 2.0)
    many = all_ - few
    logs = few * np.log(all_ / few) - many * np.log1p(-few / all_)
    logs -= (np.log(2 * np.pi * few) + np.log(many / all_)) / 2
    logs += _rest(all_) - _rest(few) - _rest(many)
    return np.where(fewer == 0, 0.0, logs)


def _rest(n: FloatArray) -> FloatArray:
    """Return log n! - log(sqrt(2π n) (n/e)^n) for n >= 1."""
    from scipy.special import gammaln  # slow to import and rarely needed

    m = np.minimum(n, LARGE)
    small = gammaln(m + 1) - (m + 0.5) * np.log(m) + m - np.log(2 * np.pi) / 2
    x = 1 / np.maximum(n, LARGE)
    large = x / 12 - x**3 / 360 + x**5 / 1260 - x**7 / 1680
    return np.where(n < LARGE, small, large)
