"""One epoch of a partition: every item in one of n // k random batches, kinds spread evenly."""

from __future__ import annotations

from math import prod

import numpy as np

from dmsgd.inputs.arrays import FloatArray, IntArray


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
