"""Batches of items that keep their distance from each other, by throwing darts."""

from __future__ import annotations

import numpy as np

from dmsgd.compiled.jit import compiled
from dmsgd.samplers.compiled.random import fill_uniform

#: Darts whose random numbers are made at a time; even, as random numbers come in pairs.
DARTS = 64


@compiled(fastmath={"contract", "nsz", "reassoc"})
def is_far(X, j, items, count, squared_radius):
    """Return (((X[items[:count]] - X[j])**2).sum(axis=1) >= squared_radius).all()."""
    dart = X[j]
    for p in range(count):
        row, total = X[items[p]], 0.0
        for f in range(row.size):
            total += (row[f] - dart[f]) ** 2
        if total < squared_radius:
            return False
    return True


@compiled()
def draw_disks(X, radius, misses, shrink, least, key, start, out, radii):
    """Fill row t of `out` with draw start + t, and radii[t] with the radius that it came down to.

    A dart is one of all items, at random. It misses if it has been hit already or is closer than
    the radius to one that has. After `misses` misses in a row the radius is multiplied by
    `shrink` until the row is full, and below `least` it is 0: then all distinct items are far
    enough, and every row gets filled. The items of a row end up in random order.
    """
    n, k = X.shape[0], out.shape[1]
    hit = np.zeros(n, np.bool_)
    uniforms, order = np.empty(DARTS), np.empty(k)
    for t in range(out.shape[0]):
        draw, row = np.uint64(start + t), out[t]
        block = fill_uniform(key, draw, 0, order)
        filled, missed, now, dart = 0, 0, radius, DARTS
        while filled < k:
            if dart == DARTS:
                block, dart = fill_uniform(key, draw, block, uniforms), 0
            j = np.int64(uniforms[dart] * n)
            dart += 1
            if not hit[j] and (now == 0.0 or is_far(X, j, row, filled, now * now)):
                row[filled], hit[j] = j, True
                filled, missed = filled + 1, 0
                continue
            missed += 1
            if missed == misses:
                missed, now = 0, now * shrink
                now = now if now >= least else 0.0
        radii[t] = now
        for i in range(k - 1, -1, -1):
            p = np.int64(order[i] * (i + 1))
            row[i], row[p] = row[p], row[i]
            hit[row[i]] = False
    return out.shape[0]
