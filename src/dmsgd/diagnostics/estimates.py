"""A number known from draws alone, with how far off it may be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from dmsgd.inputs.arrays import FloatArray


@final
@dataclass(frozen=True)
class Estimate:
    """The mean of `draws` independent values and its standard error."""

    value: float
    error: float
    draws: int

    def __str__(self) -> str:
        return f"{self.value:.4g} ± {self.error:.2g} ({self.draws} draws)"


def mean_of(values: FloatArray) -> Estimate:
    """Return the mean of independent values as an `Estimate`; at least two are needed."""
    error = values.std(ddof=1) / np.sqrt(values.size)
    return Estimate(float(values.mean()), float(error), int(values.size))
