"""Uniform and stratified batches."""

from __future__ import annotations

import numpy as np

from dmsgd.compiled.jit import entry, helper, inlined
from dmsgd.compiled.philox import fill_uniforms


@inlined
def _width(most):
    """Return the size of a hash set of `most` items: a power of 2, at least twice as large."""
    width = 4
    while width < 2 * most:
        width *= 2
    return width


@helper
def _choose(n, uniforms, table, out):
    """Fill `out` with a simple random sample of range(n) (Floyd's algorithm), O(len(out)).

    `table` is an open-addressing hash set of at least `_width(len(out))` entries; its first ones
    are used, as few as will do, for many strata that give an item each would clear it k times.
    """
    c = out.size
    width = _width(c)
    table[:width] = -1
    mask = width - 1
    for i in range(c):
        top = n - c + i
        item = np.int64(uniforms[i] * (top + 1))
        slot = (item * 0x9E3779B1) & mask
        while table[slot] != -1 and table[slot] != item:
            slot = (slot + 1) & mask
        if table[slot] == item:  # it has been taken
            item = top
            slot = (item * 0x9E3779B1) & mask
            while table[slot] != -1:
                slot = (slot + 1) & mask
        table[slot] = item
        out[i] = item


@helper
def _shuffle(items, uniforms):
    """Put `items` in random order (Fisher-Yates)."""
    for i in range(items.size - 1, 0, -1):
        j = np.int64(uniforms[i] * (i + 1))
        items[i], items[j] = items[j], items[i]


@entry()
def draw_uniform(n, key, start, out):
    """Fill row t of `out` with draw start + t of a simple random sample of range(n)."""
    k = out.shape[1]
    uniforms, table = np.empty(2 * k), np.empty(_width(k), np.int64)
    for t in range(out.shape[0]):
        fill_uniforms(key, np.uint64(start + t), 0, uniforms, uniforms.size)
        _choose(n, uniforms, table, out[t])
        _shuffle(out[t], uniforms[k:])
    return out.shape[0]


@entry()
def draw_stratified(members, starts, base, extra, key, start, out):
    """Fill row t of `out` with draw start + t of a stratified sample, in random order.

    Stratum s is members[starts[s]:starts[s + 1]] and gives base[s] items; `extra` of the strata
    with room for one more, chosen at random, give one more.
    """
    strata, k = base.size, out.shape[1]
    sizes = starts[1:] - starts[:-1]
    open_strata = np.flatnonzero(base < sizes)
    counts, lucky = np.empty(strata, np.int64), np.empty(extra, np.int64)
    uniforms = np.empty(2 * k + extra)
    table = np.empty(_width(max(k, extra)), np.int64)
    for t in range(out.shape[0]):
        fill_uniforms(key, np.uint64(start + t), 0, uniforms, uniforms.size)
        counts[:] = base
        _choose(open_strata.size, uniforms[2 * k :], table, lucky)
        for s in lucky:
            counts[open_strata[s]] += 1
        filled = 0
        for s in range(strata):
            part = out[t, filled : filled + counts[s]]
            _choose(sizes[s], uniforms[filled:], table, part)
            for i in range(part.size):
                part[i] = members[starts[s] + part[i]]
            filled += counts[s]
        _shuffle(out[t], uniforms[k:])
    return out.shape[0]
