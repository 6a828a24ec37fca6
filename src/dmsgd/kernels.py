"""Kernels: similarity L over n items, seen through `n`, `diag()` and `block(I, J)`.

Every other kernel of the paper is a feature map (`dmsgd.features`) followed by `Linear` or `RBF`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, final

import numpy as np
from scipy import sparse

from dmsgd.features import one_hot, row_squares
from dmsgd.fingerprints import digest, fingerprint
from dmsgd.inputs.arrays import (
    FloatArray,
    IntArray,
    Matrix,
    as_count,
    as_items,
    as_labels,
    as_matrix,
    as_positive,
)
from dmsgd.inputs.memory import reserve
from dmsgd.inputs.seeding import Seed, key_of
from dmsgd.streams.recognise import as_rows
from dmsgd.streams.rows import Rows

#: How many items the median heuristic looks at.
MEDIAN_SUBSAMPLE = 1000


class Kernel(ABC):
    """A symmetric positive semi-definite matrix over n items, never formed unless asked for."""

    n: int
    #: What this kernel was computed from, as a hash, where its own numbers are rounded results.
    origin: str | None = None

    @abstractmethod
    def diag(self) -> FloatArray:
        """Return L_ii for all items, shape (n,)."""

    @abstractmethod
    def block(self, I: Any, J: Any) -> FloatArray:  # noqa: E741 - index sets, as in the paper
        """Return the (len(I), len(J)) block of L at these rows and columns."""

    @abstractmethod
    def columns(self, J: Any) -> FloatArray:
        """Return L[:, J], shape (n, len(J)): block(everyone, J) without copying the features."""

    def restricted(self, items: Any) -> Kernel:
        """Return the kernel over these items alone."""
        return _Part(self, as_items(items, self.n, "items"))

    @abstractmethod
    def fingerprint(self) -> str:
        """Return a hash of everything that L is a function of; other data gives another one."""


@final
class Linear(Kernel):
    """L = B Bᵀ for a feature matrix B, dense or CSR; the rank is at most the number of features.

    Features larger than memory, or on a Dask cluster, are read in blocks (`dmsgd.streams`).
    """

    def __init__(self, B: Any) -> None:
        rows = as_rows(B)
        if rows is not None:  # read in blocks, and checked as they are read
            self.features: Matrix | Rows = rows
            self.n = rows.shape[0]
            return
        self.features = as_matrix(B, "X")
        values = self.features.data if sparse.issparse(self.features) else self.features
        if not (values[:1000].any() or values.any()):  # as a rule the first rows tell
            raise ValueError("all features are zero, so no batch has a positive determinant")
        self.n = int(self.features.shape[0])

    def diag(self) -> FloatArray:
        """Return the squared norms of the feature rows."""
        B = self.features
        if isinstance(B, Rows):
            return np.concatenate(list(B.run(_squares_of, "diag")))
        return row_squares(B)

    def block(self, I: Any, J: Any) -> FloatArray:  # noqa: E741
        """Return B_I B_Jᵀ."""
        rows, columns = as_items(I, self.n, "I"), as_items(J, self.n, "J")
        product = _chosen(self.features, rows) @ _chosen(self.features, columns).T
        return product.toarray() if sparse.issparse(product) else np.asarray(product)

    def columns(self, J: Any) -> FloatArray:
        """Return B B_Jᵀ."""
        chosen = _chosen(self.features, as_items(J, self.n, "J"))
        if isinstance(self.features, Rows):
            reserve(self.n * chosen.shape[0], "the columns of the kernel", "ask for fewer")
            return np.concatenate(list(self.features.run(_products_with, "columns", chosen)))
        product = self.features @ chosen.T
        return product.toarray() if sparse.issparse(product) else np.asarray(product)

    def restricted(self, items: Any) -> Linear:
        """Return Linear(B_items)."""
        return Linear(_chosen(self.features, as_items(items, self.n, "items")))

    def fingerprint(self) -> str:
        """Return the hash of the features."""
        return self.origin or digest("Linear", _hash_of(self.features))

    def __repr__(self) -> str:
        if isinstance(self.features, Rows):
            kind = "streamed"
        else:
            kind = "sparse" if sparse.issparse(self.features) else "dense"
        return f"Linear({self.n} items, {self.features.shape[1]} {kind} features)"


def _chosen(features: Matrix | Rows, items: IntArray) -> Matrix:
    return features.take(items) if isinstance(features, Rows) else features[items]


def _squares_of(block: FloatArray, shared: None, argument: Any) -> FloatArray:
    return row_squares(block)


def _products_with(block: FloatArray, chosen: FloatArray, argument: Any) -> FloatArray:
    return np.asarray(block @ chosen.T)


def _similar_to(block: FloatArray, shared: tuple[FloatArray, float], argument: Any) -> FloatArray:
    return similarity(block, *shared)


def _hash_of(features: Matrix | Rows) -> str:
    return features.fingerprint() if isinstance(features, Rows) else fingerprint(features)


@final
class RBF(Kernel):
    """L_ij = exp(-|x_i - x_j|² / (2 scale²)).

    The default scale is the median distance between distinct items of a random subsample of
    1,000 (`median_scale`): half of the pairs are then closer than one scale.
    """

    def __init__(self, X: Any, scale: float | None = None) -> None:
        rows = as_rows(X)
        X = as_matrix(X) if rows is None else rows
        self.features: Matrix | Rows = X
        self.n = int(X.shape[0])
        self.scale = median_scale(X) if scale is None else as_positive(scale, "scale")
        self._named_scale = "median" if scale is None else self.scale.hex()

    def diag(self) -> FloatArray:
        """Return ones."""
        return np.ones(self.n)

    def block(self, I: Any, J: Any) -> FloatArray:  # noqa: E741
        """Return exp(-distance² / (2 scale²)) between the items I and J."""
        rows, columns = as_items(I, self.n, "I"), as_items(J, self.n, "J")
        L = similarity(_chosen(self.features, rows), _chosen(self.features, columns), self.scale)
        L[rows[:, None] == columns[None, :]] = 1.0
        return L

    def columns(self, J: Any) -> FloatArray:
        """Return exp(-distance² / (2 scale²)) between everyone and the items J."""
        columns = as_items(J, self.n, "J")
        others = _chosen(self.features, columns)
        if isinstance(self.features, Rows):
            reserve(self.n * columns.size, "the columns of the kernel", "ask for fewer")
            shared = (others, self.scale)
            L = np.concatenate(list(self.features.run(_similar_to, "columns", shared)))
        else:
            L = similarity(self.features, others, self.scale)
        L[columns, np.arange(columns.size)] = 1.0
        return L

    def restricted(self, items: Any) -> RBF:
        """Return the RBF kernel of the same scale over these items."""
        return RBF(_chosen(self.features, as_items(items, self.n, "items")), self.scale)

    def fingerprint(self) -> str:
        """Return the hash of the features and the scale, or of how it is found.

        The last digits of a median distance differ between processors.
        """
        return digest("RBF", _hash_of(self.features), self._named_scale)

    def __repr__(self) -> str:
        return f"RBF({self.n} items, scale={self.scale:.4g})"


@final
class Precomputed(Kernel):
    """A kernel matrix that the user already has: symmetric and positive semi-definite."""

    def __init__(self, L: Any) -> None:
        L = as_matrix(L, "L")
        L = L.toarray() if sparse.issparse(L) else L
        if L.shape[0] != L.shape[1]:
            raise ValueError(f"L must be square, got shape {L.shape}")
        size = np.abs(L).max()
        if size == 0:
            raise ValueError("L is all zeros, so no batch has a positive determinant")
        gap = np.abs(L - L.T).max()
        if gap > 1e-8 * size:
            raise ValueError(
                f"L is not symmetric: |L - Lᵀ| reaches {gap:.3g}; is (L + L.T) / 2 meant?"
            )
        self.matrix: FloatArray = (L + L.T) / 2
        self.n = int(L.shape[0])
        self._refuse_indefinite(size)

    def _refuse_indefinite(self, size: float) -> None:
        slack = 100 * self.n * np.finfo(float).eps * size
        try:
            np.linalg.cholesky(self.matrix + slack * np.eye(self.n))
        except np.linalg.LinAlgError:
            raise ValueError(
                "L is not positive semi-definite (it has a negative eigenvalue), so its "
                "determinants are no probabilities; use B Bᵀ or RBF, or clip its eigenvalues"
            ) from None

    def diag(self) -> FloatArray:
        """Return the diagonal of L."""
        return self.matrix.diagonal().copy()

    def block(self, I: Any, J: Any) -> FloatArray:  # noqa: E741
        """Return L[I, J]."""
        return self.matrix[np.ix_(as_items(I, self.n, "I"), as_items(J, self.n, "J"))]

    def columns(self, J: Any) -> FloatArray:
        """Return L[:, J]."""
        return self.matrix[:, as_items(J, self.n, "J")]

    def fingerprint(self) -> str:
        """Return the hash of the matrix."""
        return self.origin or digest("Precomputed", fingerprint(self.matrix))

    def __repr__(self) -> str:
        return f"Precomputed({self.n} items)"


@final
class _Part(Kernel):
    """A kernel seen at some of its items."""

    def __init__(self, whole: Kernel, items: IntArray) -> None:
        self.whole, self.items, self.n = whole, items, int(items.size)

    def diag(self) -> FloatArray:
        return self.whole.diag()[self.items]

    def block(self, I: Any, J: Any) -> FloatArray:  # noqa: E741
        return self.whole.block(self.items[I], self.items[J])

    def columns(self, J: Any) -> FloatArray:
        return self.whole.block(self.items, self.items[J])

    def fingerprint(self) -> str:
        return digest("part", self.whole.fingerprint(), self.items)


def strata(y: Any, balanced: bool = False) -> Linear:
    """Return the kernel of stratified sampling: L_ij = 1 within a stratum, else 0 (Proposition 1).

    With k = number of strata every batch holds one item of each. With smaller k, large strata are
    still drawn more often; `balanced=True` divides each block by its size, and then all strata are
    equally likely for every k.
    """
    H = one_hot(as_labels(y, name="y"))
    if balanced:
        H = sparse.csr_array(H @ sparse.diags_array(1 / np.sqrt(H.sum(axis=0))))
    return Linear(H)


def identity(n: int) -> Linear:
    """Return the kernel of plain SGD, L = I: every batch is equally likely.

    The batches are drawn *without* replacement, so C_ij is slightly negative rather than 0.
    """
    return Linear(sparse.eye_array(as_count(n, "n"), format="csr"))


def median_scale(X: Any, seed: Seed = 0) -> float:
    """Return the median distance between distinct items among 1,000 drawn from X."""
    rows = as_rows(X)
    X = as_matrix(X) if rows is None else rows
    n = X.shape[0]
    rng = np.random.default_rng(key_of(seed))
    items = np.sort(rng.choice(n, min(n, MEDIAN_SUBSAMPLE), replace=False))
    sample = _chosen(X, items)
    squares = _squared_distances(sample, sample)[np.triu_indices(items.size, 1)]
    positive = squares[squares > 1e-12 * squares.max(initial=0.0)]
    if positive.size == 0:
        raise ValueError("all items look alike, so there is no median distance; pass scale=")
    return float(np.sqrt(np.median(positive)))


def similarity(A: Matrix, B: Matrix, scale: float) -> FloatArray:
    """Return exp(-|a - b|² / (2 scale²)) for the rows a of A and b of B."""
    L = _squared_distances(A, B)
    L *= -0.5 / scale**2
    return np.exp(L, out=L)


def _squared_distances(A: Matrix, B: Matrix) -> FloatArray:
    if isinstance(A, np.ndarray) and isinstance(B, np.ndarray):
        centre = B.mean(axis=0)  # distances are the same, and less is lost to rounding
        A, B = A - centre, B - centre
    product = A @ B.T
    distances = product.toarray() if sparse.issparse(product) else np.asarray(product)
    distances *= -2.0
    distances += row_squares(A)[:, None]
    distances += row_squares(B)[None, :]
    return np.maximum(distances, 0.0, out=distances)
