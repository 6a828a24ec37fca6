"""Hashes that tell whether two data sets are the same, the same on every platform."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from dmsgd.inputs.arrays import Matrix, is_sparse

#: Numbers that are hashed at a time.
PIECE = 2**17


def fingerprint(matrix: Matrix) -> str:
    """Return a hash of the values of a float64 (n, d) array or CSR array, equal for equal values.

    -0.0 and 0.0 are equal. The sha256 of the shape and of one 64-bit number per row (`row_hashes`).
    """
    return fingerprint_rows(matrix.shape, [row_hashes(matrix)])


def fingerprint_rows(shape: tuple[int, int], hashes: Iterable[npt.NDArray[np.uint64]]) -> str:
    """Return the `fingerprint` of a matrix whose `row_hashes` come block by block."""
    sha = _hashed("dense", np.array(shape, dtype=np.int64))
    sha.update(f"<u8({shape[0]},)".encode())
    for block in hashes:
        sha.update(np.ascontiguousarray(block, dtype="<u8").data)
    return str(sha.hexdigest())


def row_hashes(X: Matrix) -> npt.NDArray[np.uint64]:
    """Return Σ_j a_j swap(bits of X_ij) mod 2^64 for each row i, a_j fixed random odd numbers.

    One changed value always shows, because odd factors are invertible. Different factors show
    values that change places, such as the ones of one-hot labels. The bytes are swapped because
    a product modulo 2^64 loses high bits: otherwise two changed signs in a row would cancel, and
    short numbers (0, 1, 0.5) would hardly be told apart.
    """
    factors = hash_factors(X.shape[1])
    if not is_sparse(X):
        parts = [np.einsum("ij,j->i", _swapped(piece), factors) for piece in _pieces(X)]
        return np.concatenate(parts)
    X = canonical(X)
    sums = np.zeros(X.nnz + 1, np.uint64)
    np.cumsum(_swapped(X.data) * factors[X.indices], out=sums[1:])  # zeros add nothing
    return np.asarray(sums[X.indptr[1:]] - sums[X.indptr[:-1]])


def _pieces(X: npt.NDArray[Any]) -> Iterator[npt.NDArray[Any]]:
    """Yield the rows in blocks, with 0.0 for -0.0: the two are equal, but their bits are not."""
    step = max(1, PIECE * len(X) // max(1, X.size))
    for first in range(0, max(1, len(X)), step):
        yield X[first : first + step] + 0.0


def _swapped(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    bits = np.ascontiguousarray(values, dtype=np.float64).view(np.uint64)
    return bits.view(bits.dtype.newbyteorder())


def hash_factors(d: int) -> npt.NDArray[np.uint64]:
    """Return a_1, ..., a_d of `row_hashes`."""
    return np.asarray(np.random.Philox(key=0).random_raw(d) | np.uint64(1))


def digest(*parts: str | int | npt.NDArray[Any]) -> str:
    """Return the sha256 of these parts, in hexadecimal; arrays are hashed as little-endian."""
    return str(_hashed(*parts).hexdigest())


def _hashed(*parts: str | int | npt.NDArray[Any]) -> Any:
    sha = hashlib.sha256()
    for part in parts:
        if isinstance(part, np.ndarray):
            array = np.ascontiguousarray(part, dtype=part.dtype.newbyteorder("<"))
            sha.update(f"{array.dtype.str}{array.shape}".encode())
            for piece in _pieces(array) if array.dtype.kind == "f" else [array]:
                sha.update(piece.astype(array.dtype, copy=False).data)
        else:
            text = str(part).encode()
            sha.update(b"%d:" % len(text) + text)
    return sha


def canonical(matrix: Matrix) -> Matrix:
    """Return a CSR array with ordered columns, no duplicate entries and no stored zeros."""
    if matrix.has_canonical_format and matrix.data.all():
        return matrix
    matrix = matrix.copy()
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    return matrix
