"""`Design`, a distribution over batches, and `ClosedForm`, one whose probabilities are known."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any

import numpy as np

from dmsgd.designs.stream import Stream, fixed_seed
from dmsgd.inputs.arrays import TINY, FloatArray, IntArray, as_items, as_pairs
from dmsgd.inputs.messages import counted, kind_of
from dmsgd.inputs.scalars import Seed, as_count, seed_key
from dmsgd.runtime.memory import reserve
from dmsgd.runtime.threads import thread_count

#: What to do where inclusion probabilities have no closed form.
COUNT = "use KDPP(kernel, k), or count: np.bincount(design.sample(m).ravel(), minlength=n) / m"
#: Pairs of items per call of `joint` in `second_moment`.
PAIRS = 2**20


def check_range(size: Any, start: Any, numbers: int) -> tuple[int, int]:
    """Return size and start as ints; raise if that many batches of `numbers` numbers do not fit."""
    size, start = as_count(size, "size", least=0), as_count(start, "start", least=0)
    if start + size > 2**63:  # beyond, random numbers would repeat
        raise ValueError(f"batches are numbered below 2**63, got start + size = {start + size}")
    advice = "draw fewer at a time (start=), or presample them to a file (presample(path=))"
    reserve(size * numbers, f"an array of {size:,} batches", advice)
    return size, start


class Design(ABC):
    """A distribution over batches of k distinct items out of n; base class of all but `DPP`.

    n, k: number of items, and of items per batch.

    >>> import dmsgd
    >>> design: dmsgd.Design = dmsgd.Uniform(9, k=3)
    >>> design.n, design.k, design.sample(5, seed=0).shape
    (9, 3, (5, 3))
    """

    n: int
    k: int

    @property
    def chunk(self) -> int:
        """How many batches `sample` makes at a time, at the cost of one."""
        return 1

    def sample(self, size: int, seed: Seed = None, *, start: int = 0, workers: int = 1) -> IntArray:
        """Return batches start..start+size, shape (size, k), int64, distinct within a row.

        Batch t depends on (seed, t) only, however batches are split into calls and over `workers`
        (threads, at most one per core; -1 for all cores). The order within a row is random, so any
        part of a row is a fair share of it. For features on a GPU the result is a CUDA tensor.
        """
        size, start = check_range(size, start, self.k)
        return self._draw(seed_key(seed), start, size, thread_count(workers))

    def stream(self, seed: Seed) -> Stream:
        """Return the batches of one seed in order, as training loops take them."""
        return Stream(self, fixed_seed(seed))

    @abstractmethod
    def _draw(self, key: int, start: int, size: int, workers: int) -> IntArray:
        """Return batches start..start+size of the random stream `key`."""

    @abstractmethod
    def fingerprint(self) -> str:
        """Return a hash of everything that the distribution depends on."""

    def provenance(self) -> dict[str, str]:
        """Return where batches come from, in words: design, kernel, its fingerprint, sampler."""
        return {"design": repr(self), "kernel": "", "data": "", "sampler": ""}

    def __getstate__(self) -> dict[str, Any]:
        """Pickle what defines the distribution, without cached tables and the latest state."""
        made_again = {
            name
            for name in vars(self)
            if name == "_latest" or isinstance(getattr(type(self), name, None), cached_property)
        }
        return {name: value for name, value in vars(self).items() if name not in made_again}


class ClosedForm(Design):
    """A design with exact probabilities; below, m_i = 1 if item i is in the batch, else 0.

    >>> import dmsgd
    >>> design = dmsgd.Stratified(["a", "a", "b"], k=2)  # one of each
    >>> design.joint(0, [1, 2]).tolist(), np.exp(design.log_prob([0, 2])).round(6).tolist()
    ([0.0, 0.5], 0.5)
    """

    @abstractmethod
    def inclusion(self) -> FloatArray:
        """Return b_i = E[m_i], the probability that item i is in a batch, shape (n,)."""

    def joint(self, i: Any, j: Any) -> FloatArray:
        """Return E[m_i m_j] for item numbers i and j, broadcast against each other.

        All pairs of two lists: design.joint(I[:, None], J). For i = j it is b_i. Three items of a
        k-DPP: design.joint(i, j) * design.given([i, j]).inclusion()[l].
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

        P is the probability of the set: the order of a row does not matter. With gradients, for
        k-DPPs and DPPs: `dmsgd.torch.log_prob`.
        """
        Y = as_items(batches, self.n, "batches")
        if Y.ndim not in (1, 2) or Y.shape[-1] != self.k:
            raise ValueError(f"batches must be rows of k={self.k} items, got shape {Y.shape}")
        rows = np.atleast_2d(Y)
        ordered = np.sort(rows, axis=1)
        twice = (ordered[:, 1:] == ordered[:, :-1]).any(axis=1)
        logs = np.minimum(self._log_prob(rows), 0.0)  # rounding may leave 2e-16
        return np.where(twice, -np.inf, logs).reshape(Y.shape[:-1])

    @abstractmethod
    def _log_prob(self, batches: IntArray) -> FloatArray:
        """Return log P(Y) for each row of a (size, k) array of distinct items."""

    def second_moment(self, Y: FloatArray) -> float:
        """Return E|Σ_{i in batch} y_i|² for the rows y_i of Y, shape (n, p)."""
        return float(self.inclusion() @ np.einsum("ip,ip->i", Y, Y)) + self._pair_moment(Y)

    def _pair_moment(self, Y: FloatArray) -> float:
        """Return Σ_{i≠j} E[m_i m_j] y_iᵀy_j."""
        everyone, total, step = np.arange(self.n), 0.0, max(1, PAIRS // self.n)
        for start in range(0, self.n, step):
            rows = everyone[start : start + step]
            joint = self.joint(rows[:, None], everyone)
            joint[np.arange(rows.size), rows] = 0.0
            total += np.einsum("ip,ip->", joint @ Y, Y[rows])
        return float(total)


def inclusion_of(design: Any) -> FloatArray:
    """Return b_i of a design or a schedule that has them, shape (n,)."""
    if isinstance(design, type) or not hasattr(design, "sample"):
        raise TypeError(f"design must be a design of dmsgd or a Schedule, got {kind_of(design)}")
    if not hasattr(design, "inclusion"):
        kind = type(design).__name__
        raise TypeError(f"{kind} has no closed form for its inclusion probabilities; {COUNT}")
    return np.asarray(design.inclusion())


def unbiased_weights(design: Any) -> FloatArray:
    """Return 1 / (n b_i), so that the weighted sum over a batch estimates the mean over the data.

    design: any with `inclusion`, also `DPP` or a schedule.

    E[Σ_{i in batch} weight_i g_i] = (1/n) Σ_i g_i; the paper's 1/(k b_i) is n/k times that. A
    weight has the relative error of b_i, for a k-DPP `design.spectrum.inclusion_error(k)` / b_i at
    most: with an error of 1e-14, the weight of an item with b_i = 1e-10 is right to four digits.

    Raises ValueError if an item is never drawn, and TypeError if the design has no `inclusion`.
    See also `dmsgd.torch.WithLossWeights`.

    >>> import dmsgd
    >>> unbiased_weights(dmsgd.Stratified(["a", "a", "b"], k=2))
    array([0.66666667, 0.66666667, 0.33333333])
    """
    b = inclusion_of(design)
    never = np.flatnonzero(b < TINY)
    if never.size:
        raise ValueError(
            f"b_i is {b[never[0]]:g} for {counted(never.size, 'item')} never drawn (the first is "
            f"item {never[0]}); give them features, or drop them"
        )
    return np.asarray(1 / (design.n * b))
