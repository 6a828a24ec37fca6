"""Singular values over many decades, from products that square them.

FᵀF = U Λ Uᵀ has the squared singular values of F, but eigenvalues below 1e-6 of the largest drown
in rounding, and so do the directions that belong to them. Each round takes what the rounds before
could not resolve, the span of the columns S of U, and squares it alone, so that three more decades
of singular values come out. Before that S is turned so that F S is orthogonal to what is resolved:
with W the resolved columns, S <- S - W Λ_W^-1 Wᵀ FᵀF S, whose last term rounding in FᵀF has hidden.
It ends where all is resolved, or where rounding in F S itself is all that is left.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from dmsgd.features import Features
from dmsgd.inputs.arrays import FloatArray
from dmsgd.spectra.eigen import eigh, noise
from dmsgd.spectra.ties import settle_ties

#: Eigenvalues below this fraction of the largest are too small for a squared matrix to resolve.
SQUARED_LIMIT = 1e-6


class Squared(Protocol):
    """What rounds ask of F: products that are arrays or tensors, as what they are given is."""

    def gram(self) -> Any:
        """Return FᵀF."""

    def gram_of(self, S: Any) -> Any:
        """Return (F S)ᵀ(F S)."""

    def normal(self, S: Any) -> tuple[Any, float]:
        """Return FᵀF S and |F S|²."""


def right_vectors(F: Features) -> tuple[FloatArray, FloatArray]:
    """Return the squared singular values of F that are above rounding, and their right vectors.

    O(n d² + d³) a round, of which there is one unless the condition of F is above 1000; for
    features in blocks a round is one or two passes over the data.
    """
    return in_rounds(F, eigh, settle_ties)


def in_rounds(
    F: Squared,
    eigh: Callable[[Any], tuple[Any, Any]],
    settle_ties: Callable[[Any, Any, float], None],
) -> tuple[Any, Any]:
    """Return `right_vectors` of F, by functions as in `eigen` and `ties` for its arrays."""
    values, U = eigh(F.gram())
    size = U.shape[1]
    least = noise(size) ** 2 * float(values[0])
    done = 0
    while True:
        top = float(values[done])
        well = done + int((values[done:] > max(SQUARED_LIMIT * top, least)).sum())
        settle_ties(values[done:well], U[:, done:well], noise(size) * top)
        if well in (done, size):
            return values[:well], U[:, :well]
        done = well
        W, S = U[:, :done], U[:, done:]
        squared, length = F.normal(S)
        if length <= least:
            return values[:done], W
        hidden = W.T @ squared / values[:done, None]
        turned = S - W @ hidden
        gram = F.gram_of(turned)
        if float(gram.trace()) <= least:
            return values[:done], W
        W += (hidden @ S.T).T  # the same turn for both keeps them orthogonal; laid out as W is
        values[done:], R = eigh(gram)
        U[:, done:] = turned @ R
