"""Conditional Poisson draws: k items, given that k of n independent ones are included.

O(k log k) steps and O(k) look-ups per draw, whatever n is.

Neighbouring items form leaves: one heavy item, or light ones whose odds sum to about 1; the last
leaves may be empty. Nodes of a binary tree over the leaves have the distribution of the number of
items below them. A draw begins at the root with k and splits counts between children, P(a of c go
left) ∝ left[a] right[c - a], down to the leaves. In a leaf c items are drawn independently, all
again until they differ, which gives the right distribution. Items of a leaf are looked up in its
alias table (Walker 1977, Vose 1991).

Node h has the children 2h and 2h + 1; leaf g is node `width` + g. The counts from low[h] on have
the probabilities mass[where[h]], mass[where[h] + 1] and so on, sizes[h] of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba.types import int64, uint64

from dmsgd.compiled.jit import callback, float64_ptr, helper, inlined, int64_ptr, uint32_ptr
from dmsgd.compiled.llvm import shift
from dmsgd.compiled.philox import fill_uniforms

#: Odds above this make a leaf of their own; others share one until their sum is 1.
ALONE = 0.25
#: More items than this never come from a leaf of light ones: that has a probability below 1e-60.
DEEP = 48
#: Counts whose probability is below this times the largest are left out: no uniform resolves them.
NEVER = 1e-40
#: Random numbers that are made at a time.
NUMBERS = 256


@callback(int64(float64_ptr, int64, int64_ptr))
def find_leaves(odds, n, first):
    """Fill `first` with the item that each leaf begins with; return how many there are."""
    count, inside = 0, 0.0
    for i in range(n):
        if i == 0 or max(odds[i - 1], odds[i]) > ALONE or inside >= 1.0:
            first[count] = i
            count += 1
            inside = 0.0
        inside += odds[i]
    return count


@callback(int64(float64_ptr, int64_ptr, int64, float64_ptr, uint32_ptr, uint32_ptr))
def fill_aliases(odds, first, leaves, cut, alias, scratch):
    """Fill the alias table of each leaf: place j is item j below cut[j], and alias[j] above.

    Both count from the leaf's first item; `scratch` has room for the largest leaf.
    """
    for g in range(leaves):
        start, size = first[g], first[g + 1] - first[g]
        total = 0.0
        for i in range(start, start + size):
            total += odds[i]
        if size == 1 or total == 0.0:
            continue
        small, large = 0, size  # small ones go to the front of scratch, large ones to its end
        for j in range(size):
            cut[start + j] = odds[start + j] * (size / total)
            alias[start + j] = j
            if cut[start + j] < 1.0:
                scratch[small] = j
                small += 1
            else:
                large -= 1
                scratch[large] = j
        while small > 0 and large < size:
            small -= 1
            poor, rich = np.int64(scratch[small]), np.int64(scratch[large])
            alias[start + poor] = rich
            cut[start + rich] -= 1.0 - cut[start + poor]
            if cut[start + rich] < 1.0:
                large += 1
                scratch[small] = rich
                small += 1
        for s in range(size):
            if s < small or s >= large:  # left over by rounding
                cut[start + np.int64(scratch[s])] = 1.0
    return leaves


@helper
def _count_leaf(odds, size, out):
    """Fill `out` with P(c of these items are included), c = 0, 1, ...; return how many c."""
    if size == 1:
        out[0] = 1.0 / (1.0 + odds[0])
        out[1] = 1.0 - out[0] if out[0] < 0.5 else odds[0] / (1.0 + odds[0])
        return 2
    top, none = 0, 0.0
    out[0] = 1.0
    for i in range(size):
        w = odds[i]
        none += np.log1p(w)
        if top < DEEP:
            top += 1
            out[top] = 0.0
        for c in range(top, 0, -1):
            out[c] += w * out[c - 1]
    share = np.exp(-none)
    for c in range(top + 1):
        out[c] *= share
    return top + 1


@helper
def _join(left, left_low, left_size, right, right_low, right_size, low, out, size):
    """Fill `out` with the probabilities of the sum of two counts, from low on; as `_split` does."""
    for s in range(size):
        c = low + s
        least = max(left_low, c - (right_low + right_size - 1))
        most = min(left_low + left_size - 1, c - right_low)
        total = 0.0
        for a in range(least, most + 1):
            total += left[a - left_low] * right[c - a - right_low]
        out[s] = total


@callback(int64(float64_ptr, int64_ptr, *2 * [int64], *3 * [int64_ptr], float64_ptr))
def fill_tree(odds, first, width, k, where, low, sizes, mass):
    """Fill the probabilities of counts of all nodes, from the last leaf to the root."""
    end = 0
    for node in range(2 * width - 1, 0, -1):
        out, start, size = shift(mass, end), 0, 1
        if node < width:
            a, b = 2 * node, 2 * node + 1
            start = low[a] + low[b]
            size = min(sizes[a] + sizes[b] - 1, k + 1 - start)
            _join(shift(mass, where[a]), low[a], sizes[a],
                  shift(mass, where[b]), low[b], sizes[b], start, out, size)  # fmt: skip
        else:
            g = node - width
            size = _count_leaf(shift(odds, first[g]), first[g + 1] - first[g], out)
        likeliest = 0.0
        for s in range(size):
            likeliest = max(likeliest, out[s])
        skip = 0
        while skip < size - 1 and out[skip] <= NEVER * likeliest:
            skip += 1
        while size > skip + 1 and out[size - 1] <= NEVER * likeliest:
            size -= 1
        where[node], low[node], sizes[node] = end + skip, start + skip, size - skip
        end += size
    return end


@inlined
def _split(where, low, sizes, mass, node, c, uniform):
    """Return how many of the c items below `node` are below its left child."""
    a, b = 2 * node, 2 * node + 1
    least = max(low[a], c - (low[b] + sizes[b] - 1))
    most = min(low[a] + sizes[a] - 1, c - low[b])
    left, right = where[a] - low[a], where[b] - low[b] + c
    target = uniform * mass[where[node] + c - low[node]]
    total = 0.0
    for count in range(least, most):
        total += mass[left + count] * mass[right - count]
        if total > target:
            return count
    return most


@callback(
    int64(
        *3 * [int64_ptr], float64_ptr, int64_ptr, int64, float64_ptr, uint32_ptr,
        uint64, uint64, int64, float64_ptr, int64_ptr, int64_ptr, int64,
    )
)  # fmt: skip
def draw(
    where, low, sizes, mass, first, width, cut, alias, key, start, k, uniforms, counts, out, size,
):  # fmt: skip
    """Fill row t of `out` with draw start + t, in random order; return how many rows."""
    for t in range(size):
        number = np.uint64(start + np.uint64(t))
        block, used, row = 0, NUMBERS, shift(out, t * k)
        counts[1] = k
        for node in range(1, width):
            c = counts[node]
            left = 0
            if c > 0:
                if used == NUMBERS:
                    block, used = fill_uniforms(key, number, block, uniforms, NUMBERS), 0
                left = _split(where, low, sizes, mass, node, c, uniforms[used])
                used += 1
            counts[2 * node], counts[2 * node + 1] = left, c - left
        done = 0
        for g in range(width):
            c, begin = counts[width + g], first[g]
            among = first[g + 1] - begin
            if c == among:
                for i in range(c):
                    row[done + i] = begin + i
                done += c
            elif c > 0:
                i = 0
                while i < c:
                    if used + 2 > NUMBERS:
                        block, used = fill_uniforms(key, number, block, uniforms, NUMBERS), 0
                    place = begin + np.int64(uniforms[used] * among)
                    other = begin + np.int64(alias[place])
                    item = place if uniforms[used + 1] < cut[place] else other
                    used += 2
                    row[done + i] = item
                    i += 1
                    for earlier in range(i - 1):
                        if row[done + earlier] == item:
                            i = 0  # all again
                done += c
        for i in range(k - 1, 0, -1):
            if used == NUMBERS:
                block, used = fill_uniforms(key, number, block, uniforms, NUMBERS), 0
            j = np.int64(uniforms[used] * (i + 1))
            used += 1
            row[i], row[j] = row[j], row[i]
    return size


def conditional_poisson_sampler(odds: Any, k: int) -> Callable[[int, int, Any], int]:
    """Return (key, start, out) -> rows of `out` that were filled with draws start, start + 1, ...

    odds: as `ConditionalPoisson` has them. Tables take 12 bytes per item.
    """
    n, light = odds.size, odds <= ALONE
    first = np.empty(2 * np.count_nonzero(~light) + int(odds.sum(where=light)) + 3, np.int64)
    leaves = find_leaves(odds, n, first)
    depth = (leaves - 1).bit_length()
    width = 1 << depth
    first = np.append(first[:leaves], np.full(width + 1 - leaves, n))
    cut, alias, among = np.empty(n), np.empty(n, np.uint32), np.diff(first)
    fill_aliases(odds, first, width, cut, alias, np.empty(int(among.max()), np.uint32))
    # A node has fewer counts than its children together, so that no level takes more than leaves.
    room = int((np.minimum(among, DEEP) + 1).sum()) * (depth + 1)
    tree, mass = np.zeros((3, 2 * width), np.int64), np.empty(room)
    fill_tree(odds, first, width, k, *tree, mass)
    tables = (*tree, mass, first, width, cut, alias)

    def fill_rows(key: int, start: int, out: Any) -> int:
        uniforms, counts = np.empty(NUMBERS), np.empty(2 * width, np.int64)
        return int(draw(*tables, key, start, k, uniforms, counts, out, len(out)))

    return fill_rows
