"""The one look at features that are given: that their numbers are finite, and what they are."""

from __future__ import annotations

from typing import final

import numpy as np
import numpy.typing as npt

from dmsgd.inputs.arrays import FloatArray, sum_of_squares
from dmsgd.inputs.fingerprint import hash_factors

#: Arrays of so many numbers are looked through by a compiled loop, which others need not wait for.
LARGE = 2**22


@final
class Look:
    """`dmsgd.inputs.arrays.sum_of_squares`, which keeps the `row_hashes` of a large array."""

    hashes: npt.NDArray[np.uint64] | None = None

    def __call__(self, values: FloatArray) -> float:
        """Return the sum of squares of an array."""
        if values.ndim != 2 or values.size < LARGE:
            return sum_of_squares(values)
        from dmsgd.compiled.jit import address
        from dmsgd.compiled.row_hashes import look_through

        (n, d), factors = values.shape, hash_factors(values.shape[1])
        self.hashes = np.empty(n, np.uint64)
        where = address(factors, np.uint64), address(self.hashes, np.uint64)
        return float(look_through(address(values, float), n, d, *where))
