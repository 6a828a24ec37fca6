"""How compiled loops make single rows of features from an array in memory."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
import numpy.typing as npt

from dmsgd.inputs.arrays import FloatArray, IntArray


@final
@dataclass(frozen=True, eq=False)
class Direct:
    """Row i is scale_i X_i, and behind it, where there are codes, extra_i in column codes_i."""

    X: npt.NDArray[Any]
    scale: FloatArray
    extra: FloatArray | None = None
    codes: IntArray | None = None

    def take(self, items: IntArray, width: int) -> FloatArray:
        """Return the rows with these numbers, of so many columns."""
        out, d = np.zeros((items.size, width)), self.X.shape[1]
        np.multiply(self.X[items], self.scale[items, None], out=out[:, :d])
        if self.extra is not None and self.codes is not None:
            out[np.arange(items.size), d + self.codes[items]] = self.extra[items]
        return out

    def scaled(self, factors: FloatArray) -> Direct:
        """Return the same with row i times factors[i]."""
        extra = None if self.extra is None else self.extra * factors
        return replace(self, scale=self.scale * factors, extra=extra)

    def labelled(self, codes: IntArray, w: float) -> Direct | None:
        """Return (1 - w) times the same, and w in the column of the code, if there is none yet."""
        if self.codes is not None:
            return None
        n, scale = self.X.shape[0], self.scale * (1 - w)
        return Direct(self.X, scale, np.full(n, w), np.ascontiguousarray(codes, dtype=np.int64))
