"""Conditional Poisson draws: O(k log k) steps and O(k) look-ups, whatever n is."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dmsgd.inputs.arrays import FloatArray, IntArray


def conditional_poisson_sampler(odds: FloatArray, k: int) -> Callable[[int, int, IntArray], int]:
    """Return (key, start, out) -> rows of `out` that were filled with draws start, start + 1, ...

    odds: as `ConditionalPoisson` has them. Tables take 12 bytes per item.
    """
    from dmsgd.compiled.conditional_poisson import ALONE, NUMBERS, draw, fill_aliases, find_leaves

    n, light = odds.size, odds <= ALONE
    first = np.empty(2 * np.count_nonzero(~light) + int(odds.sum(where=light)) + 3, np.int64)
    leaves = find_leaves(odds, n, first)
    first = first[: leaves + 1].copy()
    cut, alias = np.empty(n), np.empty(n, np.uint32)
    scratch = np.empty(int(np.diff(first).max()), np.uint32)
    fill_aliases(odds, first, leaves, cut, alias, scratch)
    width, shape, mass = _tree(odds, first, k)

    def fill_rows(key: int, start: int, out: IntArray) -> int:
        uniforms, counts = np.empty(NUMBERS), np.empty(2 * width, np.int64)
        return int(
            draw(*shape, mass, first, leaves, width, cut, alias, key, start, k, uniforms, counts,
                 out, out.shape[0])
        )  # fmt: skip

    return fill_rows


def _tree(odds: FloatArray, first: IntArray, k: int) -> tuple[int, IntArray, FloatArray]:
    """Return the number of the first leaf, and (where, low, sizes) and probabilities of nodes."""
    from dmsgd.compiled.conditional_poisson import DEEP, fill_tree

    leaves = first.size - 1
    width = 1 << max(leaves - 1, 0).bit_length()
    shape = np.zeros((3, 2 * width), np.int64)
    mass, end, node = np.empty(4 * leaves * DEEP), 0, 2 * width - 1
    while node:
        if node < 2 * width - 1:  # there was not room enough
            mass, end = np.concatenate([mass, np.empty(mass.size)]), int(shape[0, 0])
        node = fill_tree(odds, first, leaves, width, k, *shape, mass, mass.size, node, end)
    return width, shape, mass
