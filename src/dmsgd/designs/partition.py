"""`Partition`: every item once per epoch; `OnePerGroup`: groups kept apart."""

from __future__ import annotations

from math import prod
from typing import Any, final

import numpy as np

from dmsgd.designs.contract import Design
from dmsgd.designs.stratified import Stratified, Uniform
from dmsgd.inputs.arrays import FloatArray, IntArray
from dmsgd.inputs.fingerprint import digest
from dmsgd.inputs.messages import counted, visible


class Partition(Design):
    """Epochs of n // k batches in which every item comes once.

    design: what a batch looks like. `Stratified`, such as `cells` returns: each class is spread
            evenly over the batches, in proportion to its size. Batches are not balanced, as those
            of `Stratified` are: a rare class stays rare. `Uniform`: shuffled epochs.

    Batch t is batch t % (n // k) of epoch t // (n // k). The n % k leftover items are another
    random sample in every epoch: every item has b = k/n, so plain averages are unbiased, and over
    an epoch without leftovers they are exact. Raises TypeError for other designs.
    See also `OnePerGroup`, `cells`, `KDPP` for independent batches.

    >>> import dmsgd
    >>> X = np.random.default_rng(0).normal(size=(12, 5))
    >>> epoch = Partition(dmsgd.cells(X, k=3)).sample(4, seed=0)
    >>> sorted(epoch.ravel().tolist()) == list(range(12))
    True
    """

    #: Key, number and batches of the latest epoch.
    _latest: tuple[int, int, IntArray] | None = None

    def __init__(self, design: Stratified | Uniform) -> None:
        if not isinstance(design, Stratified | Uniform):
            kind = type(design).__name__
            raise TypeError(
                f"design must be Stratified, as of dmsgd.cells, or Uniform, got {kind}; for "
                "diverse batches with every item once per epoch, dmsgd.Partition(dmsgd.cells(X, k))"
            )
        self.design = design
        self.n, self.k = design.n, design.k
        #: Batches of an epoch.
        self.batches = self.n // self.k
        self._kinds = design.stratum if isinstance(design, Stratified) else None

    @property
    def chunk(self) -> int:
        return self.batches  # an epoch is made as a whole

    def _draw(self, key: int, start: int, size: int, workers: int) -> IntArray:
        out = np.empty((size, self.k), dtype=np.int64)
        done = 0
        while done < size:
            epoch, first = divmod(start + done, self.batches)
            part = self._epoch(key, epoch)[first : first + size - done]
            out[done : done + len(part)] = part
            done += len(part)
        return out

    def _epoch(self, key: int, epoch: int) -> IntArray:
        if (latest := self._latest) and latest[:2] == (key, epoch):
            return latest[2]
        numbers = RandomStream(key, epoch)
        batches = deal(self._kinds, self.n, self.k, numbers)
        batches = np.take_along_axis(batches, numbers.order(*batches.shape), axis=1)
        self._latest = key, epoch, batches
        return batches

    def inclusion(self) -> FloatArray:
        """Return b_i = k/n, the probability that item i is in a batch, shape (n,)."""
        return np.full(self.n, self.k / self.n)

    def fingerprint(self) -> str:
        return digest("Partition", self.k, self.design.fingerprint())

    def provenance(self) -> dict[str, str]:
        return {**self.design.provenance(), "design": repr(self), "sampler": "partition"}

    def __repr__(self) -> str:
        shares = ", classes in proportion to their sizes, not balanced"
        classes = shares if self._kinds is not None else ""
        return f"Partition({self.design!r}, k={self.k}{classes})"


@final
class OnePerGroup(Partition):
    """Epochs of n // k batches in which every item comes once and no batch has two of a group.

    groups: (n,) the group of each item: a question and its answers, versions of a text, a patient.

    Raises ValueError if a group has more than n // k items, one for each batch of an epoch.

    Which groups share a batch is random, and so are the n % k leftover items of an epoch. Batches
    are global: under DDP no two ranks have items of one group in a step. The batches are those of
    `Partition(Stratified(groups, k))`, which does not check the sizes of groups.
    See also `Partition`.

    >>> epoch = OnePerGroup([0, 0, 0, 1, 1, 1, 2, 2, 2], k=3).sample(3, seed=0)
    >>> np.sort(epoch // 3, axis=1).tolist()
    [[0, 1, 2], [0, 1, 2], [0, 1, 2]]
    """

    def __init__(self, groups: Any, k: int) -> None:
        design = Stratified(groups, k)
        sizes, batches = np.bincount(design.stratum), design.n // design.k
        largest = int(np.argmax(sizes))
        if (size := int(sizes[largest])) > batches:
            raise ValueError(
                f"group {visible(design.strata[largest], 60)} has {size:,} items, but at k={k} the "
                f"number of batches per epoch is {batches:,}, so that two of them would share a "
                f"batch; lower k to at most {design.n // size}, or leave out some of its items"
            )
        super().__init__(design)
        self._groups = sizes.size

    def __repr__(self) -> str:
        return f"OnePerGroup(n={self.n}, k={self.k}, {counted(self._groups, 'group')})"


class RandomStream:
    """The random numbers of (key, epoch), one after the other."""

    def __init__(self, key: int, epoch: int) -> None:
        self.key, self.epoch, self.block = key, epoch, 0

    def uniform(self, *shape: int) -> FloatArray:
        """Return numbers in (0, 1) of this shape."""
        from dmsgd.compiled.philox import fill_uniform

        out = np.empty(prod(shape))
        self.block = int(fill_uniform(self.key, self.epoch, self.block, out))
        return out.reshape(shape)

    def order(self, *shape: int) -> IntArray:
        """Return random orders of range(shape[-1])."""
        return np.argsort(self.uniform(*shape), axis=-1, kind="stable").astype(np.int64)


def deal(kinds: IntArray | None, n: int, k: int, numbers: RandomStream) -> IntArray:
    """Return n // k random batches of distinct items; n % k random items are left out.

    The numbers of a kind in two batches differ by one at most. In a batch, items of a kind are side
    by side. Which kinds are together in a batch is random: the order of kinds is another in every
    epoch, and each layer, one item per batch, is dealt out anew.
    """
    count = n // k
    items = numbers.order(n)[: count * k]
    if kinds is None:
        return np.ascontiguousarray(items.reshape(k, count).T[numbers.order(count)])
    place = numbers.order(int(kinds.max()) + 1)
    layers = items[np.argsort(place[kinds[items]], kind="stable")].reshape(k, count)
    batches = np.empty((count, k), dtype=np.int64)
    kind, has_more = -1, np.zeros(count)  # last kind of a layer, and the batches that got it there
    uniforms = numbers.uniform(k, 2, count)
    for number, layer in enumerate(layers):
        of_item = kinds[layer]
        shared = int(np.count_nonzero(of_item == kind))
        first, rest = uniforms[number]
        # The kind goes on in batches that did not get it; all others are shuffled.
        order = np.argsort(first + has_more, kind="stable")
        order[shared:] = order[shared:][np.argsort(rest[shared:], kind="stable")]
        batches[order, number] = layer
        if shared < count:
            kind = int(of_item[-1])
            has_more = np.zeros(count)
            has_more[order[of_item == kind]] = 1.0
    return batches
