"""What features are to everyone else: an (n, d) matrix, wherever it lives.

Callers ask for what they need, rows by number, products, squares, and never for the kind. A new
kind is one file in this folder, one line in `convert` and one in tests/test_features.py.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

from dmsgd.inputs.arrays import FloatArray, IntArray, Matrix
from dmsgd.samplers.computed_rows import DenseRows


class Map(Protocol):
    """Turns rows of features into rows of other features, dense ones or CSR.

    fills: whether it makes dense rows of sparse ones.
    """

    fills: bool

    def width(self, columns: int) -> int:
        """Return the number of columns of the result."""

    def part(self, start: int, stop: int) -> Callable[[Matrix], Matrix]:
        """Return the function for the rows start..stop; it can be pickled."""

    def fingerprint(self) -> str:
        """Return what tells this map from all others: its name and parameters."""

    def direct(self, rows: DenseRows) -> DenseRows | None:
        """Return how compiled loops make its rows from these, if they can."""


class Features(ABC):
    """An (n, d) matrix F of float64, finite; n and d are at least 1.

    kind:     in words, for reprs.
    resident: whether all rows are in memory, so that results of the same size may be, too.
    """

    n: int
    d: int
    kind: str
    resident: bool

    @property
    def shape(self) -> tuple[int, int]:
        """(n, d)."""
        return self.n, self.d

    @abstractmethod
    def take(self, items: IntArray) -> Matrix:
        """Return the rows with these numbers, in that order: an array, or CSR."""

    @abstractmethod
    def blocks(self) -> Iterator[tuple[int, Matrix]]:
        """Yield (number of the first row, rows) for parts of the matrix, in order, none empty."""

    @abstractmethod
    def row_squares(self) -> FloatArray:
        """Return |f_i|², shape (n,)."""

    @abstractmethod
    def squares_of(self, B: FloatArray) -> FloatArray:
        """Return |f_i B|², shape (n,)."""

    @abstractmethod
    def times(self, B: Matrix) -> FloatArray:
        """Return F B, shape (n, columns of B), in memory."""

    @abstractmethod
    def similarities(self, points: Matrix, scale: float) -> FloatArray:
        """Return exp(-|f_i - p|² / (2 scale²)) for the rows p of `points`, shape (n, points)."""

    @abstractmethod
    def gram(self, weights: FloatArray | None = None) -> FloatArray:
        """Return Fᵀ diag(weights) F, shape (d, d), weights being positive, by default 1."""

    @abstractmethod
    def gram_of(self, S: FloatArray) -> FloatArray:
        """Return (F S)ᵀ(F S)."""

    @abstractmethod
    def normal(self, S: FloatArray) -> tuple[FloatArray, float]:
        """Return FᵀF S, shape (d, columns of S), and |F S|² (Frobenius)."""

    @abstractmethod
    def mapped(self, map: Map) -> Features:
        """Return the features that `map` makes of these, which stay as they are."""

    @abstractmethod
    def whole(self) -> InMemory:
        """Return the same features in memory, or raise MemoryError if they do not fit."""

    @abstractmethod
    def owned(self) -> Features:
        """Return features that no change of the caller's array can reach."""

    @abstractmethod
    def fingerprint(self) -> str:
        """Return a hash of the source and of the maps that were put on it.

        Two sources with the same numbers have the same, in memory, in a file or on a cluster.
        """

    def words(self) -> bool:
        """Return whether these are sparse and nowhere negative, as words of texts (by a pass)."""
        return False

    def dense(self) -> FloatArray | None:
        """Return the array itself, if that is what these features are."""
        return None

    def sparse(self) -> InMemory | None:
        """Return these features, if they are a CSR array."""
        return None

    def passes(self) -> InPasses | None:
        """Return these features as what passes go over, if that is how they are read."""
        return None

    def direct(self) -> DenseRows | None:
        """Return how compiled loops make single rows from an array, if that is how it is best."""
        return None

    def device(self) -> Any:
        """Return these features as `OnDevice`, if they are on a graphics card."""
        return None

    def disjoint(self) -> bool:
        """Return whether it is known that no row has more than one entry that is not zero."""
        return False

    def __len__(self) -> int:
        return self.n

    def __repr__(self) -> str:
        return f"Features({self.n:,} x {self.d:,}, {self.kind})"


class InMemory(Features):
    """Features that are an array or a CSR array."""

    resident = True
    matrix: Matrix

    @abstractmethod
    def owned(self) -> InMemory:
        """Return features that no change of the caller's array can reach."""

    @abstractmethod
    def transposed(self) -> InMemory:
        """Return Fᵀ."""


class InPasses(Features):
    """Features that are read block by block: a pass computes something from every block.

    bounds: row numbers at which blocks begin and end, from 0 to n; blocks may be empty.
    sparse_rows: whether blocks are CSR arrays.
    """

    resident = False
    bounds: IntArray
    sparse_rows: bool

    @abstractmethod
    def run(
        self, work: Callable[[Matrix, Any], Any], name: str,
        arguments: Sequence[Any] | None = None,
    ) -> Iterator[Any]:  # fmt: skip
        """Yield work(rows, argument) for each block, in order. `name` is for where tasks have one.

        Blocks whose argument is None are not read, and None is yielded for them; without
        `arguments` all are read.
        """

    @abstractmethod
    def block_masses(self, B: FloatArray, precise: bool) -> FloatArray | None:
        """Return Σ_i (f_i B)_j² over each block, shape (blocks, columns of B), if it is known.

        From what a pass has left behind, unless that is not `precise` enough.
        """

    @abstractmethod
    def survey(self, B: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return Σ_i (f_i B)_j² over each block, and Σ_j (f_i B)_j² weights_j for each row."""
