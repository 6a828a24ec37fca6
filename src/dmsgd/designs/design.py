"""The contract of a design: what can be drawn from, and what has closed forms besides."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from dmsgd.designs.cards import card, how_often
from dmsgd.designs.stream import Stream, fixed_seed
from dmsgd.inputs.arrays import FloatArray, IntArray, as_items, as_pairs
from dmsgd.inputs.memory import reserve
from dmsgd.inputs.scalars import Seed, as_count, seed_key
from dmsgd.inputs.threads import thread_count


def refuse_too_many(size: int, numbers: int) -> None:
    """Raise MemoryError if `size` draws of so many numbers each are more than memory may hold."""
    advice = "draw fewer at a time (start=), or presample them to a file (presample(path=))"
    reserve(size * numbers, f"an array of {size:,} draws", advice)


def refuse_far_draws(stop: int) -> None:
    """Raise if draws are numbered beyond what 63 bits count, where numbers would begin again."""
    if stop > 2**63:
        raise ValueError(f"draws are numbered below 2**63, and start + size is {stop}; lower start")


class Design(ABC):
    """A law over batches of k distinct items out of n, that can be drawn from.

    >>> import dmsgd
    >>> design: dmsgd.Design = dmsgd.Uniform(9, k=3)
    >>> design.n, design.k, design.sample(5, seed=0).shape
    (9, 3, (5, 3))
    """

    n: int
    k: int

    @property
    def chunk(self) -> int:
        """Number of batches that `sample` makes for the price of one; 1 if each has its own."""
        return 1

    def sample(self, size: int, seed: Seed = None, *, start: int = 0, workers: int = 1) -> IntArray:
        """Return draws number start..start+size, shape (size, k), int64, distinct within a row.

        Draw t is a function of (seed, t) alone: it is the same for any number of workers (threads,
        at most one a core; -1 for all cores) and any way of cutting the draws into calls. The order
        within a row is random too, so any part of a row is a fair share of it. For features on a
        graphics card it is a CUDA tensor there.
        """
        size = as_count(size, "size", least=0)
        start = as_count(start, "start", least=0)
        refuse_far_draws(start + size)
        refuse_too_many(size, self.k)
        return self._draw(seed_key(seed), start, size, thread_count(workers))

    def stream(self, seed: Seed) -> Stream:
        """Return the batches of one seed in order, as training loops take them."""
        return Stream(self, fixed_seed(seed))

    @abstractmethod
    def _draw(self, key: int, start: int, size: int, workers: int) -> IntArray:
        """Return draws start..start+size of the random stream `key`."""

    @abstractmethod
    def fingerprint(self) -> str:
        """Return a hash of everything that the law is a function of: other data, another hash."""

    def provenance(self) -> dict[str, str]:
        """Return where draws come from, in words: design, kernel, its fingerprint, sampler."""
        return {"design": repr(self), "kernel": "", "data": "", "sampler": ""}

    def _repr_html_(self) -> str:
        """Return what notebooks show: size and origin."""
        return card(type(self).__name__, self._facts())

    def _facts(self) -> dict[str, str]:
        rows = {"items": f"{self.n:,}", "batch size k": f"{self.k:,}"}
        return rows | {name: text for name, text in self.provenance().items() if text}

    def __getstate__(self) -> dict[str, Any]:
        """Pickle what defines the law; tables are made again where they are needed."""
        cached = {
            name
            for kind in type(self).__mro__
            for name, value in vars(kind).items()
            if type(value).__name__ == "cached_property"
        }
        return {name: value for name, value in vars(self).items() if name not in cached}


class ClosedForm(Design):
    """A design whose probabilities have closed forms; m_i = 1 if item i is in the batch.

    >>> import dmsgd
    >>> design = dmsgd.Stratified(["a", "a", "b"], k=2)  # one of each
    >>> isinstance(design, dmsgd.ClosedForm), design.inclusion().tolist()
    (True, [0.5, 0.5, 1.0])
    >>> design.joint(0, [1, 2]).tolist(), np.exp(design.log_prob([0, 2])).round(6).tolist()
    ([0.0, 0.5], 0.5)
    """

    @abstractmethod
    def inclusion(self) -> FloatArray:
        """Return b_i = E[m_i], the probability that item i is in a batch, shape (n,)."""

    def joint(self, i: Any, j: Any) -> FloatArray:
        """Return E[m_i m_j] for item numbers i and j, broadcast against each other.

        All pairs of two lists: design.joint(I[:, None], J). For i = j it is b_i.
        """
        i, j = as_pairs(i, j, self.n)
        pairs = self._joint(i.ravel(), j.ravel()).reshape(i.shape)
        same = i == j
        return np.where(same, self.inclusion()[i], pairs) if same.any() else pairs

    @abstractmethod
    def _joint(self, i: IntArray, j: IntArray) -> FloatArray:
        """Return E[m_i m_j] for 1-D arrays; entries with i = j are ignored."""

    def log_prob(self, batches: Any) -> FloatArray:
        """Return log P(Y) for each row of `batches`, -inf for rows that are never drawn.

        P is the probability of the set: the order of a row does not matter.
        """
        Y = as_items(batches, self.n, "batches")
        if Y.ndim not in (1, 2) or Y.shape[-1] != self.k:
            raise ValueError(
                f"batches must be rows of k={self.k} item numbers, got shape {Y.shape}"
            )
        rows = np.atleast_2d(Y)
        logs = self._log_prob(rows)
        ordered = np.sort(rows, axis=1)
        logs = np.where((ordered[:, 1:] == ordered[:, :-1]).any(axis=1), -np.inf, logs)
        return logs.reshape(Y.shape[:-1])

    @abstractmethod
    def _log_prob(self, batches: IntArray) -> FloatArray:
        """Return log P(Y) for each row of a (size, k) array of distinct items."""

    def _repr_html_(self) -> str:
        """Return what notebooks show: size, origin, and how evenly items are drawn."""
        b = self.inclusion()
        return card(type(self).__name__, {**self._facts(), "items are drawn": how_often(b)}, b)
