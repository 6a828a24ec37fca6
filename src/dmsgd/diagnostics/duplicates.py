"""Near-duplicates and outliers of a kernel without labels, for people who curate data.

Both follow from the cosines L_ij / √(L_ii L_jj) of the kernel L_ij = f_iᵀf_j.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
import numpy.typing as npt

from dmsgd.diagnostics.repulsion import as_spectrum, kernel_features, unit_rows
from dmsgd.inputs.arrays import FloatArray, IntArray
from dmsgd.inputs.scalars import Seed, seed_key
from dmsgd.spectra import Spectrum

#: Two items with a cosine above this share a batch at most a hundredth as often as unlike ones:
#: the determinant of their kernel is 1 - cos² of what it is at cos = 0.
COSINE = 0.995
#: Minus half the squared distance of two units with that cosine, with a margin for rounding.
NEAR = -1.002 * (1 - COSINE)
#: About as many products are spent on looking for near-duplicates.
PRODUCTS = 5e10
#: Columns that are compared first, and items that tell whether these are enough.
COLUMNS, TRIED = 32, 100
#: Rows that are compared with all others at a time: few first, which may claim most of them.
BLOCKS = (16, 256)

Units = npt.NDArray[np.float32]


@final
@dataclass(frozen=True, eq=False)
class NearDuplicates:
    """Groups of near-duplicates, and how similar items are to all others.

    representative: (n,) the first item of each item's group, itself where it has no near-duplicate.
    searched:       items among which near-duplicates were searched, n as a rule.
    similarity:     (n,) root mean square cosine with all other items; outliers have small ones.
    """

    representative: IntArray
    searched: int
    similarity: FloatArray


def near_duplicates(spectrum: Spectrum, seed: Seed = 0) -> NearDuplicates:
    """Return groups of items with a cosine above 0.995, and each item's similarity to the others.

    spectrum: of the kernel whose cosines are meant, such as `diversify(X, k).spectrum`.

    In order, each item claims those that are near it and not yet claimed. Where all pairs would
    take long, a random part of the items is searched. O(n r²) and the search, O(n² r) at most.

    >>> import dmsgd
    >>> X = np.vstack([np.eye(4), np.eye(4)[:1]])
    >>> near_duplicates(dmsgd.diversify(X, k=2).spectrum).representative.tolist()
    [0, 1, 2, 3, 0]
    """
    F = kernel_features(as_spectrum(spectrum), np.arange(spectrum.n))
    U = unit_rows(F).astype(np.float32)
    representative, searched = _search(U, np.random.default_rng(seed_key(seed)))
    return NearDuplicates(representative, searched, _similarity(U))


def _search(U: Units, rng: np.random.Generator) -> tuple[IntArray, int]:
    """Return for each row the first of its near-duplicates, itself if none; and the rows searched.

    Rows have norm 1 or 0. In some of the columns distances are no longer than in all, so that no
    near-duplicate is missed by comparing these first.
    """
    first, rows = np.arange(len(U)), np.flatnonzero(U.any(axis=1))
    columns = _columns(U[rows], rng)
    most = int(np.sqrt(2 * PRODUCTS / columns))
    searched = len(U) if rows.size <= most else most
    if rows.size > most:
        rows = np.sort(rng.choice(rows, most, replace=False))
    A, B = _sides(U[rows, :columns])
    free, start, size = np.ones(rows.size, dtype=bool), 0, BLOCKS[0]
    while start < rows.size:
        block = start + np.flatnonzero(free[start : start + size])
        others = start + np.flatnonzero(free[start:])
        near = A[block] @ B[others].T >= NEAR
        for place in np.flatnonzero(np.count_nonzero(near, axis=1) > 1):
            if free[i := block[place]]:
                found = others[near[place]]
                found = found[free[found]]
                found = found[U[rows[found]] @ U[rows[i]] >= COSINE]
                first[rows[found]] = rows[i]
                free[found] = False
        start, size = start + size, min(2 * size, BLOCKS[1])
    return first, searched


def _sides(P: Units) -> tuple[Units, Units]:
    """Return A and B with A Bᵀ = -|p_i - p_j|² / 2."""
    half, one = -np.einsum("ij,ij->i", P, P) / 2, np.ones(len(P), dtype=np.float32)
    return np.column_stack([P, half, one]), np.column_stack([P, one, half])


def _columns(U: Units, rng: np.random.Generator) -> int:
    """Return how many of the first columns separate most pairs that all columns separate."""
    count = int(U.shape[1])
    if len(U) ** 2 * count <= 2 * PRODUCTS:
        return count
    tried = rng.choice(len(U), min(TRIED, len(U)), replace=False)
    true = np.count_nonzero(U[tried] @ U.T >= COSINE)
    columns = COLUMNS
    while columns < count:
        A, B = _sides(U[:, :columns])
        if np.count_nonzero(A[tried] @ B.T >= NEAR) <= 2 * true + 20 * tried.size:
            return columns
        columns *= 2
    return count


def _similarity(U: Units) -> FloatArray:
    """Return the root of the mean of cos² with all other rows: uᵀ (Σ u uᵀ) u without its own."""
    squares = np.einsum("ij,ij->i", U @ (U.T @ U), U, dtype=np.float64)
    own = np.einsum("ij,ij->i", U, U, dtype=np.float64)
    return np.asarray(np.sqrt(np.maximum(squares - own, 0.0) / max(len(U) - 1, 1)))
