"""Draws of conditional Poisson sampling: O(k log k) steps and O(k) look-ups, whatever n is."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dmsgd.inputs.arrays import FloatArray, IntArray


def conditional_poisson_sampler(odds: FloatArray, k: int) -> Callable[[int, int, IntArray], int]:
    """Return (key, start, out) -> rows of `out` that were filled with draws start, start + 1, ...

    odds: w_i as `ConditionalPoisson` has them. Tables take 12 bytes an item.
    """
    from dmsgd.compiled.conditional_poisson import (
        ALONE,
        NUMBERS,
        draw,
        fill_aliases,
        find_leaves,
    )
    from dmsgd.compiled.jit import address

    n = odds.size
    light = odds <= ALONE
    room = 2 * np.count_nonzero(~light) + int(odds.sum(where=light)) + 3
    first = np.empty(room, np.int64)
    of_items, of_leaves = address(odds, float), address(first, np.int64)
    leaves = find_leaves(of_items, n, of_leaves)
    first = first[: leaves + 1].copy()
    of_leaves = address(first, np.int64)
    cut, alias = np.empty(n), np.empty(n, np.uint32)
    scratch = np.empty(int(np.diff(first).max()), np.uint32)
    aliases = address(cut, float), address(alias, np.uint32)
    fill_aliases(of_items, of_leaves, leaves, *aliases, address(scratch, np.uint32))
    width, shape, mass = _tree(odds, first, k)

    def fill_rows(key: int, start: int, out: IntArray) -> int:
        uniforms, counts = np.empty(NUMBERS), np.empty(2 * width, np.int64)
        tree = [address(part, np.int64) for part in shape]
        items = address(first, np.int64), leaves, width, address(cut, float)
        number = np.uint64(key), np.uint64(start), k
        scratch = address(uniforms, float), address(counts, np.int64)
        return int(
            draw(*tree, address(mass, float), *items, address(alias, np.uint32), *number, *scratch,
                 address(out, np.int64), out.shape[0])
        )  # fmt: skip

    return fill_rows


def _tree(odds: FloatArray, first: IntArray, k: int) -> tuple[int, IntArray, FloatArray]:
    """Return the number of the first leaf, (where, low, sizes) of all nodes, and their laws."""
    from dmsgd.compiled.conditional_poisson import DEEP, fill_tree
    from dmsgd.compiled.jit import address

    leaves = first.size - 1
    width = 1 << max(leaves - 1, 0).bit_length()
    shape = np.zeros((3, 2 * width), np.int64)
    mass, end, node = np.empty(4 * leaves * DEEP), 0, 2 * width - 1
    while node:
        if node < 2 * width - 1:  # there was not room enough
            mass, end = np.concatenate([mass, np.empty(mass.size)]), int(shape[0, 0])
        node = fill_tree(
            address(odds, float), address(first, np.int64), leaves, width, k,
            *(address(part, np.int64) for part in shape), address(mass, float), mass.size,
            node, end,
        )  # fmt: skip
    return width, shape, mass
