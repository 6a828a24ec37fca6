"""How well a Markov chain mixes, from one number followed along several chains."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from dmsgd.inputs.arrays import FloatArray


@final
@dataclass(frozen=True)
class Mixing:
    """What `SwapChain.diagnose` measures, with log det(L_Y) followed along the chains.

    acceptance:           share of the steps that were moves.
    autocorrelation_time: draws of one chain that are worth one independent draw (1 is ideal).
    effective_size:       how many independent draws all draws are worth.
    r_hat:                Gelman-Rubin ratio of the halves of all chains. Of a few hundred draws,
                          noise alone gives up to 1.02; above 1.05 the chains have not forgotten
                          where they started, or wander slowly: raise burn_in and thin.
    """

    acceptance: float
    autocorrelation_time: float
    effective_size: float
    r_hat: float


def mixing(trace: FloatArray, acceptance: float) -> Mixing:
    """Return the diagnostics of `trace`, shape (chains, draws)."""
    time = autocorrelation_time(trace)
    return Mixing(acceptance, time, trace.size / time, r_hat(trace))


def autocorrelation_time(trace: FloatArray) -> float:
    """Return 1 + 2 Σ_l ρ_l, at least 1, from chains in the rows of `trace`.

    ρ is estimated about the mean of all chains, so that chains stuck apart count as correlated.
    Sums of neighbours, ρ_2m + ρ_2m+1, are positive for a reversible chain, so the sum is cut where
    the first one is not (Geyer 1992).
    """
    length = trace.shape[1]
    centred = trace - trace.mean()
    spectrum = np.abs(np.fft.rfft(centred, 2 * length, axis=1)) ** 2
    covariance = np.fft.irfft(spectrum, axis=1).mean(axis=0)[:length] / length
    if covariance[0] <= 0:  # one and the same value throughout, as with k = n
        return 1.0
    rho = covariance[: length - length % 2] / covariance[0]
    pairs = rho[0::2] + rho[1::2]
    negative = np.flatnonzero(pairs <= 0)
    cut = negative[0] if negative.size else pairs.size
    return max(1.0, float(2 * pairs[:cut].sum() - 1))


def r_hat(trace: FloatArray) -> float:
    """Return sqrt((within + between) / within) of the variances of half chains (split R-hat)."""
    half = trace.shape[1] // 2
    halves = np.concatenate([trace[:, :half], trace[:, -half:]])
    within = halves.var(axis=1, ddof=1).mean()
    between = halves.mean(axis=1).var(ddof=1)
    if within == 0:
        return 1.0 if between == 0 else np.inf
    return float(np.sqrt((half - 1) / half + between / within))
