"""Conditional Poisson sampling: P(Y) ∝ Π_{i∈Y} w_i over sets of k items, and the w for given b.

Among all distributions over sets of k items with the same inclusion probabilities it has the
largest entropy, and it is the k-DPP of the diagonal kernel with entries w_i (Hájek 1964; Chen,
Dempster, Liu 1994). Include every item independently with p_i = w_i / (1 + w_i), and let S be their
number: the distribution is that of the items given S = k. Multiplying all w_i by a number changes
nothing; Σ_i p_i should be close to k, so that S = k is likely.

All closed forms are probabilities of S, and of S without one or two items. Those are sums over
roots of unity,

    P(S = l) = 1/M Σ_m φ(θ_m) exp(-i l θ_m),     φ(θ) = Π_i (1 + p_i u),   u = exp(iθ) - 1,

exact as soon as M is so large that P(|S - l| >= M) is negligible. S has variance
d = Σ p_i (1 - p_i), hence M is about 10 √d, and since |φ(θ)| <= exp(-d (1 - cos θ)), only two dozen
of the M terms count where d is large. Leaving out item i divides φ by 1 + p_i u. For a small p_i a
few terms of the power series suffice, so that n items cost O(n) and not O(n M).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import final

import numpy as np
import numpy.typing as npt

from dmsgd.errors import SamplingError
from dmsgd.inputs.arrays import FloatArray, IntArray
from dmsgd.runtime.pieces import slices

#: Items with a p up to this are summed by their power series.
SMALL = 1 / 16
#: Numbers at a time.
NUMBERS = 2**16
#: exp(-TAIL) is negligible beside a probability of S.
TAIL = 50.0
#: Relative error of b (to 0.001 for smaller b) that ends the search, or is accepted after STEPS.
TOLERANCE, ACCEPTED = 1e-12, 1e-10
#: Most steps to find w (3 to 12 are usual), plain ones before extrapolation, those that it uses.
STEPS, PLAIN, MEMORY = 100, 8, 3

Complex = npt.NDArray[np.complex128]


@final
class ConditionalPoisson:
    """Sets of k out of n items with P(Y) ∝ Π_{i∈Y} w_i.

    odds: w_i, shape (n,), with Σ w_i / (1 + w_i) close to k; 0 is never drawn, inf always.
    """

    def __init__(self, odds: FloatArray, k: int) -> None:
        self.odds = odds
        variance, largest = 0.0, 0.0
        for _, p in _probabilities(self.odds):
            variance += float(np.sum(p * (1 - p)))
            largest = max(largest, float(p.max(where=p <= SMALL, initial=0.0)))
        size = min(odds.size, int(np.sqrt(2 * TAIL * variance) + TAIL)) + 3 | 1
        angles = 2 * np.pi / size * np.arange(size // 2 + 1)  # the others are their conjugates
        angles = angles[variance * (1 - np.cos(angles)) <= TAIL]
        self._u: Complex = np.expm1(1j * angles)
        self._step = max(1, NUMBERS // angles.size)
        reach = max(largest * float(np.abs(self._u).max()), 1e-9)
        #: (-u)^j for the powers that an item of small p needs, shape (powers, nodes).
        self._powers: Complex = (-self._u) ** np.arange(int(-TAIL / np.log(reach)) + 2)[:, None]
        share = np.where(angles > 0, 2 / size, 1 / size)
        #: φ(θ) exp(-i k θ) / M, whose real parts add up to P(S = k).
        self._phi: Complex = share * np.exp(self._log_phi() - 1j * k * angles)
        self._p_k = float(self._phi.sum().real)

    def _log_phi(self) -> Complex:
        """Return Σ_i log(1 + p_i u) for every node; small p by Σ_j -(-u)^j Σ_i p_i^j / j."""
        heavy = np.zeros(self._u.size, np.complex128)
        sums = np.zeros(self._powers.shape[0])
        for _, p in _probabilities(self.odds):
            light = p[p <= SMALL]
            power = np.ones(light.size)
            for j in range(1, sums.size):
                power *= light
                sums[j] += power.sum()
            for _, part in _slices(p[p > SMALL], self._step):
                heavy += np.log1p(part[:, None] * self._u).sum(axis=0)
        sums[1:] /= np.arange(1, sums.size)
        return heavy - sums @ self._powers

    def _without(self, p: FloatArray, terms: Complex) -> FloatArray:
        """Return Re Σ_m terms_m / (1 + p u_m): P(S = l) without an item, for each p."""
        light, out = p <= SMALL, np.empty(p.size)
        small, heavy, total = p[light], p[~light], np.zeros(np.count_nonzero(light))
        for coefficient in (self._powers @ terms).real[::-1]:  # in place, unlike np.polyval
            total *= small
            total += coefficient
        out[light] = total
        for part, x in _slices(heavy, self._step):
            heavy[part] = (terms / (1 + x[:, None] * self._u)).sum(axis=1).real
        out[~light] = heavy
        return out

    def inclusion(self, p: FloatArray) -> FloatArray:
        """Return b_i = p_i P(S without i = k - 1) / P(S = k) for items of these p_i. O(n)."""
        return p * self._without(p, self._phi * (1 + self._u) / self._p_k)

    def joint(self, i: IntArray, j: IntArray) -> FloatArray:
        """Return P(i and j are in the set) for items i ≠ j. O(√k) per pair, less for large k."""
        terms = self._phi * (1 + self._u) ** 2 / self._p_k
        out = np.empty(i.size)
        for part, _ in _slices(out, self._step):
            p, q = (as_probability(self.odds[items[part]])[:, None] for items in (i, j))
            both = terms / ((1 + p * self._u) * (1 + q * self._u))
            out[part] = np.maximum((p * q)[:, 0] * both.sum(axis=1).real, 0.0)
        return out

    def second_moment(self, Y: FloatArray) -> float:
        """Return E|Σ_{i in the set} y_i|² for the rows of Y, shape (n, p). O(n p) nodes.

        Σ_{i≠j} P(i and j) y_iᵀy_j is Re Σ_m t_m (|T_m|² - Σ_i |y_i|² a_im²), where
        a_im = p_i / (1 + p_i u_m) and T_m = Σ_i a_im y_i, without conjugates.
        """
        terms = self._phi * (1 + self._u) ** 2 / self._p_k
        T = np.zeros((self._u.size, Y.shape[1]), np.complex128)
        own, squares = 0.0, np.einsum("ip,ip->i", Y, Y)
        for part, p in _probabilities(self.odds, self._step):
            a = p[:, None] / (1 + p[:, None] * self._u)
            T += a.T @ Y[part]
            own += float(squares[part] @ (self.inclusion(p) - (a**2 @ terms).real))
        return own + float((terms @ np.einsum("mp,mp->m", T, T)).real)

    def log_prob(self, batches: IntArray) -> FloatArray:
        """Return log P(Y) for each row of a (size, k) array of distinct items."""
        always = np.isinf(self.odds)
        with np.errstate(divide="ignore"):
            logs = np.log(np.where(always[batches], 1.0, self.odds[batches])).sum(axis=1)
        missing = np.count_nonzero(always[batches], axis=1) < np.count_nonzero(always)
        none = sum(float(np.log1p(w[np.isfinite(w)]).sum()) for _, w in _slices(self.odds))
        return np.where(missing, -np.inf, logs - none - np.log(self._p_k))

    def corrected(self, b: FloatArray, strength: float) -> tuple[FloatArray, float]:
        """Return weights with inclusion probabilities nearer to b, and how far off these are.

        A step of Newton's method on log w, with the covariance approximated by that of
        independent items given their number, diag(c) - c cᵀ / Σc. Its diagonal is b (1 - b) if
        c = (1 - √(1 - 4 b (1 - b) / strength)) strength / 2 and strength = Σc.
        """
        out, error = np.empty(self.odds.size), 0.0
        for part, p in _probabilities(self.odds):
            w, wanted = self.odds[part], b[part]
            more = self._without(p, self._phi * (1 + self._u))
            less = self._without(p, self._phi)
            found = p * more / self._p_k
            gap = np.abs(found - wanted) / np.maximum(wanted, 1e-3)
            error = max(error, float(gap.max()))
            root = np.sqrt(np.maximum(1 - 4 * wanted * (1 - wanted) / strength, 0.0))
            open_ = (wanted > 0) & (wanted < 1)
            w, wanted, ratio = w[open_], wanted[open_], more[open_] / less[open_]
            step = np.log(wanted / (1 - wanted) / (w * ratio)) * (1 + root[open_]) / 2
            out[part] = self.odds[part]
            out[part][open_] = w * np.exp(step)
        return out, error


def with_inclusion(b: FloatArray, k: int) -> ConditionalPoisson:
    """Return the design whose inclusion probabilities are b, which must sum to k. O(n) per step."""
    with np.errstate(divide="ignore"):
        weights = b / (1 - b)  # right if items were independent
    strength = max(float(b @ (1 - b)), 4 * float((b * (1 - b)).max()), 1e-300)  # nearly Σc
    open_, error = (b > 0) & (b < 1), np.inf
    past: deque[tuple[FloatArray, FloatArray]] = deque(maxlen=MEMORY + 1)
    for number in range(STEPS):
        found = ConditionalPoisson(weights, k)
        weights, error = found.corrected(b, strength)
        if error <= TOLERANCE:
            return found
        if number >= PLAIN:  # a few items with b near 1 beside many rare ones
            logs = np.log(found.odds[open_])
            past.append((logs, np.log(weights[open_]) - logs))
            weights[open_] = np.exp(extrapolate(past, (b * (1 - b))[open_]))
    if error <= ACCEPTED:
        return found
    raise SamplingError(
        f"no weights were found for these inclusion probabilities: {STEPS} steps left them off by "
        f"{error:.1g} (relative); move those that are very close to 0 or 1 a little away from it"
    )


def extrapolate(past: Sequence[tuple[FloatArray, FloatArray]], weights: FloatArray) -> FloatArray:
    """Return Anderson's extrapolation: where the gap would vanish if gaps were linear in θ.

    past:    (θ, gap) of each step, the last one last; a plain step goes from θ to θ + gap.
    weights: of the entries in the size of a gap.
    """
    thetas, gaps = (np.array(each) for each in zip(*past, strict=True))
    changes = gaps[-1] - gaps[:-1]
    weighted = changes * weights
    share, *_ = np.linalg.lstsq(weighted @ changes.T, weighted @ gaps[-1], rcond=1e-12)
    return np.asarray(thetas[-1] + gaps[-1] - share @ (thetas[-1] - thetas[:-1] + changes))


def as_probability(odds: FloatArray) -> FloatArray:
    """Return p = w / (1 + w), 1 for infinite odds."""
    with np.errstate(divide="ignore", over="ignore"):
        p = 1 / (1 + 1 / odds)
    return np.where(p > 0, p, odds)  # 1 / odds is infinite for the smallest, which p equals


def _slices(values: FloatArray, step: int = NUMBERS) -> Iterator[tuple[slice, FloatArray]]:
    return ((part, values[part]) for part in slices(values.size, step))


def _probabilities(odds: FloatArray, step: int = NUMBERS) -> Iterator[tuple[slice, FloatArray]]:
    return ((part, as_probability(w)) for part, w in _slices(odds, step))
