"""What happens to one block of rows in a pass: it is checked, hashed, mapped and worked on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from dmsgd.features.look import Look
from dmsgd.inputs.arrays import Matrix, as_array, as_matrix, sum_of_squares
from dmsgd.inputs.fingerprint import canonical, hash_factors, row_hashes
from dmsgd.samplers.computed_rows import SparseRows

#: What a pass computes from a block: work(rows, argument).
Work = Callable[[Matrix, Any], Any]


def treat(
    work: Work,
    full: bool,
    file: str,
    expected_sparse: bool,
    d: int,
    raw: Any,
    start: int,
    stop: int,
    parts: Sequence[Callable[[Matrix], Matrix]],
    argument: Any,
) -> tuple[Any, Any]:
    """Return what `work` makes of a block, and the hashes of its rows as they are stored."""
    name = f"{file}{': ' * bool(file)}the block of rows from {start} on"
    if raw.shape != (stop - start, d):
        raise ValueError(f"{name} has shape {raw.shape} and should have {(stop - start, d)}")
    if sparse.issparse(raw) and not expected_sparse:
        raise TypeError(
            f"{name} is sparse, but says that it is not; say so where the Dask array is made: "
            f"meta=scipy.sparse.csr_array((0, 0))"
        )
    look = Look()
    if start == stop:
        block: Any = np.zeros((0, d))
    else:
        try:
            block = as_matrix(
                raw, name, allow_tiny=True, squares_of=look if full else sum_of_squares
            )
        except ValueError as error:
            raise ValueError(f"{error} (rows count from the block's first, {start})") from None
    if expected_sparse:
        block = canonical(block if sparse.issparse(block) else sparse.csr_array(block))
    hashes = _hashes(block, look) if full else None
    for part in parts:
        block = part(block)
    return work(block if expected_sparse else as_array(block), argument), hashes


def _hashes(block: Matrix, look: Look) -> npt.NDArray[np.uint64]:
    if sparse.issparse(block):
        return sparse_row_hashes(SparseRows.of(block), block.shape[1])
    return row_hashes(np.ascontiguousarray(block)) if look.hashes is None else look.hashes


def sparse_row_hashes(rows: SparseRows, d: int) -> npt.NDArray[np.uint64]:
    """Return `row_hashes` of a CSR matrix as an array; none of its entries is zero."""
    from dmsgd.compiled.jit import address
    from dmsgd.compiled.row_hashes import hash_rows

    found, factors = np.empty(rows.n, dtype=np.uint64), hash_factors(d)
    bits = rows.data.view(np.uint64).byteswap()
    indptr, indices, _ = rows.addresses()
    given = (address(array, np.uint64) for array in (bits, factors))
    hash_rows(indptr, indices, *given, rows.n, address(found, np.uint64))
    return found
