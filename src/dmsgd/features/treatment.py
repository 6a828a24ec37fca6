"""What happens to one block of rows in a pass: it is checked, hashed, mapped and worked on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from dmsgd.inputs.arrays import Matrix, as_array, as_matrix
from dmsgd.inputs.fingerprint import canonical, row_hashes

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
    if start == stop:
        block: Any = np.zeros((0, d))
    else:
        try:
            block = as_matrix(raw, name, allow_tiny=True)
        except ValueError as error:
            raise ValueError(f"{error} (rows count from the block's first, {start})") from None
    if expected_sparse:
        block = canonical(block if sparse.issparse(block) else sparse.csr_array(block))
    hashes = row_hashes(block) if full else None
    for part in parts:
        block = part(block)
    return work(block if expected_sparse else as_array(block), argument), hashes
