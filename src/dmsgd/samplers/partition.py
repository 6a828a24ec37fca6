"""One epoch of a partition: random batches, then rounds in which pairs of them exchange items."""

from __future__ import annotations

from itertools import pairwise
from math import prod

import numpy as np

from dmsgd.inputs.arrays import FloatArray, IntArray
from dmsgd.samplers.parallel import SHARES, parallel_map


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


def exchange_items(
    batches: IntArray,
    rows: FloatArray,
    kinds: IntArray | None,
    rounds: int,
    ridge: float,
    numbers: RandomStream,
    workers: int,
) -> float:
    """Let batches exchange items, in place; return the fraction of proposals that were accepted.

    A round pairs all batches at random, and each pair makes k proposals.
    """
    from dmsgd.compiled.exchange import NUMBERS, exchange, integer_room, room
    from dmsgd.compiled.linear_algebra import product

    count, k = batches.shape
    d, accepted, visit = rows.shape[1], 0, (NUMBERS * k + 1) // 2
    of_place = np.zeros_like(batches) if kinds is None else kinds[batches]
    bounds = np.linspace(0, count // 2, min(SHARES * workers, count // 2) + 1).astype(int)
    parts = list(pairwise(bounds.tolist()))
    for _ in range(rounds):
        pairs = numbers.order(count)[: count // 2 * 2]

        def work(part: tuple[int, int], pairs: IntArray = pairs) -> int:
            first, last = part
            doubles, integers = np.empty(room(k, d, k)), np.empty(integer_room(k, k), np.int64)
            chosen = np.ascontiguousarray(pairs[2 * first : 2 * last])
            random = numbers.key, numbers.epoch, numbers.block + first * visit
            return int(
                exchange(product.address, rows, d, batches, of_place, k, chosen, last - first,
                         *random, k, ridge, doubles, integers)
            )  # fmt: skip

        accepted += sum(parallel_map(work, parts, workers))
        numbers.block += count // 2 * visit
    return float(accepted / max(rounds * (count // 2) * k, 1))
