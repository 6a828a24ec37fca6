"""`Features`: an (n, d) matrix wherever it lives, its products and its spectrum.

Callers say what they need and never ask for the kind. A new kind is a class that derives from
`Features`, one line in `convert` and one in tests/test_features.py.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property, partial, reduce
from operator import iadd
from typing import Any

import numpy as np

from dmsgd.features import products
from dmsgd.inputs.arrays import FloatArray, IntArray, Matrix, on_host
from dmsgd.runtime.memory import reserve
from dmsgd.runtime.progress import EIGH, plan_work
from dmsgd.samplers.factored_rows import ComputedRows
from dmsgd.spectra.decompose import like, right_singular_vectors
from dmsgd.spectra.eigenpairs import Spectrum, truncate
from dmsgd.spectra.eigenvectors import Projected
from dmsgd.spectra.rounding import Rounding

#: Designs that need no eigendecomposition (docs/results/large.md has their errors).
SHORTER = (
    "without it dmsgd.designs.SwapChain(dmsgd.kernels.Linear(X), k) is approximate, and "
    "dmsgd.cells(X, k) keeps similar items apart with every item equally likely; with fewer "
    "features, such as the most frequent words, it is quick and exact. X are the features of the "
    "kernel, after any maps (dmsgd.features)"
)


def joined(parts: Iterable[FloatArray], n: int) -> FloatArray:
    """Return a new array of the n rows of all parts, below each other."""
    start, whole = 0, np.empty(0)
    for part in parts:
        if start == 0:  # filled part by part: to concatenate would need twice the memory
            whole = np.empty((n, *part.shape[1:]), part.dtype)
        whole[start : start + len(part)] = part
        start += len(part)
    return whole


class RowMap(ABC):
    """Turns rows of features into rows of other features: arrays, CSR arrays or tensors.

    fills: whether it makes dense rows of sparse ones.
    """

    fills = False

    @abstractmethod
    def __call__(self, X: Matrix) -> Matrix:
        """Return the rows that it makes of the rows X."""

    @abstractmethod
    def fingerprint(self) -> str:
        """Return its name and parameters."""

    def part(self, start: int, stop: int) -> RowMap:
        """Return the map of rows start to stop alone."""
        return self

    def width(self, columns: int) -> int:
        """Return the number of columns of the result."""
        return columns


class Features(ABC):
    """An (n, d) matrix F of finite float64 numbers, n and d at least 1; it never changes.

    kind:        as text, for reprs.
    sparse_rows: whether rows are CSR arrays.
    matrix:      the array or CSR array, of features in memory.
    bounds:      row numbers at which blocks begin and end, from 0 to n, of features in blocks.
    """

    n: int
    d: int
    kind: str
    sparse_rows: bool = False
    matrix: Matrix
    bounds: IntArray

    @property
    def shape(self) -> tuple[int, int]:
        """(n, d)."""
        return self.n, self.d

    @abstractmethod
    def take(self, items: IntArray) -> Matrix:
        """Return these rows, in this order: an array or CSR."""

    @abstractmethod
    def blocks(self) -> Iterator[Matrix]:
        """Yield all rows in blocks, none empty: arrays or CSR arrays."""

    @abstractmethod
    def mapped(self, map: RowMap) -> Features:
        """Return the features that `map` makes of these."""

    @abstractmethod
    def to_memory(self) -> Features:
        """Return the same rows in memory (`matrix`), or raise MemoryError."""

    @cached_property
    @abstractmethod
    def _fingerprint(self) -> str: ...

    def fingerprint(self) -> str:
        """Return a hash of the source and its maps, equal for equal numbers in any kind."""
        return self._fingerprint

    @abstractmethod
    def gram(self) -> Any:
        """Return FᵀF, shape (d, d), where the features live; raise if all features are zero."""

    def unwrap(self) -> Any:
        """Return the array, CSR array or tensor that these are; features in blocks themselves."""
        return self

    def copied(self) -> Features:
        """Return features that no change of the caller's array can reach."""
        return self

    def readable_rows(self, limit: int) -> int:
        """Return n, or at most `limit` where reading all rows takes a pass."""
        return min(self.n, limit)

    def map_blocks(self, work: Callable[..., Any], name: str) -> Iterator[Any]:
        """Yield work(rows) of each block in order; `name` is shown where tasks are."""
        return map(work, self.blocks())

    def _each(self, function: Callable[..., Any], name: str, **arguments: Any) -> Iterator[Any]:
        """Yield function(rows, **arguments) of each block, where the features live."""
        return self.map_blocks(partial(function, **arguments), name)

    def _join(self, parts: Iterable[Any], columns: int = 1) -> Any:
        """Return parts below each other, where the features live."""
        if columns > 1:  # to ask for the free memory takes longer than small sums
            reserve(self.n * columns, f"{columns} columns for {self!r}", "ask for fewer")
        return joined(parts, self.n)

    def row_norms2(self) -> FloatArray:
        """Return |f_i|², shape (n,)."""
        return on_host(self._join(self._each(products.row_norms2, "norms")))

    def times(self, B: Matrix) -> Any:
        """Return F B, shape (n, columns of B), where the features live."""
        return self._join(self._each(products.product, "times", B=B), B.shape[1])

    def similarities(self, points: Matrix, scale: float) -> Any:
        """Return exp(-|f_i - p|² / (2 scale²)) for the rows p of `points`, where F lives."""
        parts = self._each(products.similarity, "similarities", B=points, scale=scale)
        return self._join(parts, points.shape[0])

    def gram_of(self, S: Any) -> Any:
        """Return (F S)ᵀ(F S), where the features live."""
        return reduce(iadd, self._each(products.gram_of, "gram", S=S))

    def gram_times(self, S: Any) -> tuple[Any, float]:
        """Return FᵀF S, where the features live, and |F S|²."""
        total: Any = 0.0
        length = 0.0
        for part, size in self._each(products.gram_times, "gram", S=S):
            total += part
            length += size
        return total, length

    def column_masses(self, B: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return Σ_i (f_i B)_j² over each block, and Σ_j (f_i B)_j² weights_j for each row.

        The first in the shape that samplers of these features take.
        """
        if (source := self.computed_rows(B)) is not None:
            return source.block_sums(weights)
        found = list(self._each(products.column_masses, "masses", B=B, weights=weights))
        return np.array([mass for mass, _ in found]), np.concatenate([b for _, b in found])

    def gram_masses(self, B: FloatArray) -> FloatArray | None:
        """Return the first of `column_masses` without a pass, if blocks' Grams are kept."""
        return None

    def transposed(self) -> Any:
        """Return Fᵀ."""
        return self.to_memory().transposed()

    def spectrum(
        self, tol: float = 0.0, *, overwrite: bool = False, advice: str = SHORTER
    ) -> Spectrum:
        """Return the spectrum of F Fᵀ, from the smaller of FᵀF and F Fᵀ. O(n d min(n, d)).

        overwrite: the memory of an array may be used for its eigenvectors.
        advice:    what to do where there is too little memory or time.
        """
        self.plan_spectrum(advice)
        if self.d >= self.n:
            values, V = right_singular_vectors(self.transposed())
            V[like(V, self.row_norms2() == 0)] = 0.0  # exact zeros; eigh leaves rounding noise here
            route = "primal"
        else:
            values, V = self.eigenpairs(*right_singular_vectors(self), overwrite)
            route = "dual"
        return truncate(values, V, route, Rounding(0.5, min(self.n, self.d)), tol)

    def plan_spectrum(self, advice: str) -> None:
        """Reserve the memory of `spectrum` and announce its time."""
        size = min(self.n, self.d)
        products = EIGH * size**3
        if self.d < self.n and not self.sparse_rows:
            products += 2.0 * self.n * self.d**2  # FᵀF and F U
        what = f"the eigendecomposition of {self.n:,} items x {self.d:,} features"
        plan_work(products, 5 * size**2, what, advice)

    def eigenpairs(self, values: FloatArray, U: Any, overwrite: bool) -> tuple[FloatArray, Any]:
        """Return eigenvalues and eigenvectors V = F U Λ^(-1/2) of F Fᵀ, for those of FᵀF.

        Here V is as large as F and never stored.
        """
        return values, Projected.of(self, values, U)

    def computed_rows(self, B: FloatArray) -> ComputedRows | None:
        """Return V = F B for draws that compute single rows; None where a row takes a pass."""
        return None

    def __repr__(self) -> str:
        return f"Features({self.n:,} x {self.d:,}, {self.kind})"
