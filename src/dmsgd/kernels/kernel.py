"""What a kernel is: similarity L over n items, seen through `n`, `diag()` and `block(I, J)`.

Every other kernel of the paper is a feature map (`dmsgd.features`) followed by `Linear` or `RBF`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, final

import numpy as np

from dmsgd.features import Features, as_features
from dmsgd.inputs.arrays import FloatArray, IntArray, as_items, check_nonzero
from dmsgd.inputs.fingerprint import digest
from dmsgd.inputs.memory import reserve
from dmsgd.inputs.messages import counted


class Kernel(ABC):
    """A symmetric positive semi-definite matrix over n items, never formed unless asked for.

    >>> import dmsgd
    >>> kernel: dmsgd.Kernel = dmsgd.Linear([[1.0, 0.0], [1.0, 1.0]])
    >>> kernel.n, kernel.diag().tolist(), kernel.block([0, 1], [1]).tolist()
    (2, [1.0, 2.0], [[1.0], [2.0]])
    """

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

    def factor(self) -> Features | None:
        """Return features F with L = F Fᵀ, if the kernel is given by some."""
        return None

    def landmark_features(self, items: IntArray, whitening: FloatArray) -> Features:
        """Return the features C W, C being the columns of L at `items` and W the `whitening`."""
        reserve_columns(self.n, items.size)
        return as_features(self.columns(items) @ whitening, allow_tiny=True)

    def points(self) -> Features | None:
        """Return the features that items are similar by, if there are any."""
        return None

    def on_device(self, J: IntArray | None = None) -> Any:
        """Return L, or L[:, J], as a tensor on the card where the features are, if that is so."""
        return None

    def restricted(self, items: Any) -> Kernel:
        """Return the kernel over these items alone."""
        return _Part(self, as_part(items, self.n))

    @abstractmethod
    def fingerprint(self) -> str:
        """Return a hash of everything that L is a function of; other data gives another one."""


def as_kernel(value: Any, who: str) -> Kernel:
    """Return `value`, which is a kernel; `who` needs one."""
    if not isinstance(value, Kernel):
        name = value.__name__ if isinstance(value, type) else type(value).__name__
        raise TypeError(
            f"{who} needs a kernel, got {name}; make one of features first, such as "
            f"{who}(Linear(X))"
        )
    return value


def as_part(value: Any, n: int) -> IntArray:
    """Return `value`, item numbers of which there is at least one."""
    items = as_items(value, n, "items", 1)
    if not items.size:
        raise ValueError("items is empty, and there is no kernel over no items; name one at least")
    return items


def reserve_columns(n: int, count: int) -> None:
    """Raise MemoryError if there is no room for `count` columns of n items and as many features."""
    reserve(2 * n * count, "the columns of the landmarks", "use fewer landmarks")


@final
class _Part(Kernel):
    """A kernel seen at some of its items."""

    def __init__(self, whole: Kernel, items: IntArray) -> None:
        self.whole, self.items, self.n = whole, items, int(items.size)
        check_nonzero(bool(self.diag().any()))

    def diag(self) -> FloatArray:
        return self.whole.diag()[self.items]

    def block(self, I: Any, J: Any) -> FloatArray:  # noqa: E741
        rows, columns = as_items(I, self.n, "I", 1), as_items(J, self.n, "J", 1)
        return self.whole.block(self.items[rows], self.items[columns])

    def columns(self, J: Any) -> FloatArray:
        return self.block(np.arange(self.n), J)

    def fingerprint(self) -> str:
        return digest("part", self.whole.fingerprint(), self.items)

    def __repr__(self) -> str:
        return f"{counted(self.n, 'item')} of {self.whole!r}"
