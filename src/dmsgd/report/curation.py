"""What to look at when data is curated: near-copies, which exclude each other, and outliers.

Both are of the kernel without labels, L_ij = f_iᵀf_j, with cosines L_ij / √(L_ii L_jj).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
import numpy.typing as npt

from dmsgd.inputs.arrays import FloatArray, IntArray
from dmsgd.report.items import packed
from dmsgd.spectra import Spectrum

#: Two items with a cosine above this share a batch at most a hundredth as often as unlike ones:
#: det of their kernel is 1 - cos² of what it is at cos = 0.
COSINE = 0.995
#: Groups and outliers that are listed, and items shown of a group.
LISTED, MEMBERS = 12, 8
#: Minus half the square of the distance at which they are, with room for rounding.
NEAR = -1.002 * (1 - COSINE)
#: About as many products are spent on looking for near-copies.
PRODUCTS = 5e10
#: Columns that are looked at first, and items that tell whether these are enough.
COLUMNS, TRIED = 32, 100
#: Rows that are compared with all others at a time: few first, for they may take most of them.
BLOCKS = (16, 256)

Units = npt.NDArray[np.float32]


@final
@dataclass(frozen=True, eq=False)
class Curation:
    """What was found.

    first:    (n,) the item that each is a near-copy of, itself where there is none.
    searched: items among which near-copies were looked for, n as a rule.
    alike:    (n,) root mean square cosine with all other items; outliers have small ones.
    """

    first: IntArray
    searched: int
    alike: FloatArray

    def for_page(self, codes: IntArray | None) -> dict[str, Any]:
        """Return groups of near-copies and the items least like others.

        The largest groups, those with several classes before others: one label may be wrong.
        """
        copies = np.flatnonzero(self.first != np.arange(self.first.size))
        leaders, sizes = np.unique(self.first[copies], return_counts=True)
        mixed = np.zeros(self.first.size, dtype=bool)
        if codes is not None:
            mixed[self.first[codes != codes[self.first]]] = True
        order = np.lexsort([-sizes, ~mixed[leaders]])[:LISTED]
        outliers = np.argsort(self.alike, kind="stable")[: min(LISTED, self.alike.size // 2)]
        return {
            "searched": self.searched,
            "copies": int(copies.size),
            "groups": int(leaders.size),
            "listed": [self._group(int(leaders[g]), codes) for g in order],
            "outliers": [[int(i), round(float(self.alike[i]), 4)] for i in outliers],
            "middle": round(float(np.median(self.alike)), 4),
        }

    def _group(self, leader: int, codes: IntArray | None) -> dict[str, Any]:
        rows = np.flatnonzero(self.first == leader)
        classes = 0 if codes is None else int(np.unique(codes[rows]).size)
        return {"size": int(rows.size), "rows": rows[:MEMBERS].tolist(), "classes": classes}


def curate(spectrum: Spectrum, rng: np.random.Generator) -> Curation:
    """Return near-copies and outliers by this kernel. O(n r²) and the search."""
    U = _units(spectrum)
    first, searched = near_copies(U, rng)
    return Curation(first, searched, _alike(U))


def named(found: dict[str, Any]) -> IntArray:
    """Return the items that the page names."""
    groups = [row for group in found["listed"] for row in group["rows"]]
    return np.array(groups + [row for row, _ in found["outliers"]], dtype=np.int64)


def copies(first: IntArray) -> dict[str, str]:
    """Return the near-copies and what they are copies of, packed."""
    rows = np.flatnonzero(first != np.arange(first.size))
    return {"of": packed(rows, "u4"), "first": packed(first[rows], "u4")}


def near_copies(U: Units, rng: np.random.Generator) -> tuple[IntArray, int]:
    """Return for each row the first of its near-copies, itself if none; and the rows searched.

    Rows have length 1 or 0. In order, each row takes those that are near it and nobody's yet. In
    some of the columns distances are no longer than in all, so that no near-copy is missed by
    looking there first. Where all pairs would take long, fewer rows are searched.
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
    """Return how many of the first columns tell apart most of what all columns do."""
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


def _units(spectrum: Spectrum) -> Units:
    """Return the features of the kernel with rows of length 1; those of length 0 stay."""
    F = np.asarray(spectrum.vectors) * np.sqrt(spectrum.values / spectrum.values[0])
    lengths = np.linalg.norm(F, axis=1, keepdims=True)
    F /= np.where(lengths > 0, lengths, 1.0)
    return np.asarray(F, dtype=np.float32)


def _alike(U: Units) -> FloatArray:
    """Return the root of the mean of cos² with all other rows: uᵀ (Σ u uᵀ) u without its own."""
    squares = np.einsum("ij,ij->i", U @ (U.T @ U), U, dtype=np.float64)
    own = np.einsum("ij,ij->i", U, U, dtype=np.float64)
    return np.asarray(np.sqrt(np.maximum(squares - own, 0.0) / max(len(U) - 1, 1)))
