"""Steps of the down-up walk over sets Y of items, whose stationary distribution is the k-DPP.

One step: an item leaves Y, and one of all items comes in, j with a probability in proportion to
w_j r_j, r_j being what the others in Y leave of S_jj = 1. Items are proposed by w_j and accepted by
r_j. With the inverse M of S_Y and p the place that is free, t = M S[Y, j],

    r_j = 1 - S[j, Y] t + t_p² / M_pp,

so that a proposal takes one product with M. These are made for a block of proposals at a time, and
corrected after every move; M itself is corrected after the block:

    M <- M - m mᵀ / M_pp + z zᵀ / r_j,   m = M[:, p],   z = t - m t_p / M_pp, but z_p = -1.

The first items come in at places that are empty, where M is zero.
"""

from __future__ import annotations

import numpy as np

from dmsgd.compiled.jit import entry

_MATH = {"contract", "nsz", "reassoc"}


@entry(fastmath=_MATH)
def redraw(Y, M, places, items, uniforms, least, S, among, T, covered, changes, signs):
    """Redraw the items of Y at `places`, in turn, with these proposals.

    Return how many places were redrawn, how many rows of `changes` belong to moves (M is to become
    M + changesᵀ diag(signs) changes), and the sum of log r_j.

    least:   a proposal of which no more is left is never accepted.
    S:       similarities of b proposals to Y, 0 at empty places; `among` those of proposals.
    T:       S M, (b, |Y|), and covered = (S * T).sum(1). S, T and covered are kept up to date.
    changes: room for 2b rows.
    """
    turn, used, log_det, known = 0, 0, 0.0, False
    pivot = 0.0
    for c in range(items.size):
        if turn == places.size:
            break
        p = places[turn]
        if not known:
            pivot, known = M[p, p], True
            for u in range(used):
                pivot += signs[u] * changes[u, p] * changes[u, p]
        left = 1 - covered[c]
        if pivot > 0:
            left += T[c, p] * T[c, p] / pivot
        if left <= least or uniforms[c] >= left:
            continue
        where = -1
        for y in range(Y.size):
            if Y[y] == items[c]:
                where = y
        if where >= 0 and where != p:  # nothing is left of it but rounding
            continue
        turn, known = turn + 1, False
        if where == p:
            continue
        z, m = changes[used], changes[used + 1]
        if pivot > 0:
            m[:] = M[p, : m.size]
            for u in range(used):
                factor, row = signs[u] * changes[u, p], changes[u]
                for y in range(m.size):
                    m[y] += factor * row[y]
            factor = T[c, p] / pivot
            for y in range(m.size):
                z[y] = T[c, y] - factor * m[y]
        else:
            z[:] = T[c]
        z[p] = -1.0
        mine = S[c]
        for other in range(c + 1, items.size):
            row, product = T[other], 0.0
            if pivot > 0:
                factor = row[p] / pivot
                covered[other] -= factor * row[p]
                for y in range(m.size):
                    row[y] -= factor * m[y]
                row[p] = 0.0
            for y in range(m.size):
                product += mine[y] * row[y]
            both = among[c, other] - product
            factor = both / left
            covered[other] += factor * both
            for y in range(m.size):
                row[y] -= factor * z[y]
            S[other, p] = among[c, other]
        z /= np.sqrt(left)
        signs[used] = 1.0
        used += 1
        if pivot > 0:
            m /= np.sqrt(pivot)
            signs[used] = -1.0
            used += 1
        Y[p] = items[c]
        log_det += np.log(left)
    return turn, used, log_det
