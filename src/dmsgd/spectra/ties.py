"""One basis where equal eigenvalues leave a choice.

LAPACK's choice of it is rounding, and differs between processors; draws would too. Ours goes by
rows: its first vector is the one that is largest at a row, the second what is left of the span that
is largest at another, and so on. That is a QR decomposition with pivoting of the rows as columns,
but that of rows that are as long as the longest, to rounding, the first is taken.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy import linalg

from dmsgd.inputs.arrays import FloatArray, IntArray
from dmsgd.inputs.progress import Progress

#: A pivot is the first row this close to the longest, on every processor.
ALIKE = 1e-6

#: Rows among which the next pivots are looked for.
TOGETHER = 64

#: Values farther apart than this share of their size are never equal. A basis of the wrong vectors
#: moves inclusion probabilities by about as much.
WIDEST = 1e-9


def settle_ties(values: FloatArray, vectors: FloatArray, spread: float | FloatArray) -> None:
    """Replace the vectors of equal eigenvalues by one basis of their span.

    O(n m²) for m equal values, in products of matrices; nothing where there are none.
    """
    for tie in equal_groups(values, spread):
        vectors[:, tie] = _settled(vectors[:, tie])


def equal_groups(values: FloatArray, spread: float | FloatArray) -> Iterator[slice]:
    """Yield the slices of two or more eigenvalues, largest first, that rounding cannot tell apart.

    spread: how far rounding moves an eigenvalue, one number or one for each.

    All values of a group lie within `spread` of its first, and within WIDEST of it: neighbours do
    not chain, so that no group spans what rounding did not blur.

    >>> list(equal_groups(np.array([2.0, 1.0, 1.0, 0.5]), 1e-15))
    [slice(1, 3, None)]
    """
    least = values - np.minimum(spread, WIDEST * values)
    begun = np.flatnonzero(values[1:] >= least[:-1])
    stop = 0
    for start in begun.tolist():
        if start >= stop:
            stop = start + int(np.count_nonzero(values[start:] >= least[start]))
            yield slice(start, stop)


def _settled(basis: FloatArray) -> FloatArray:
    """Return the basis of the same span in which vector c is positive at pivot c, later ones 0."""
    Q, R = linalg.qr(basis[_pivots(basis)].T, check_finite=False)
    return np.asarray(basis @ (Q * np.sign(R.diagonal())))


def _pivots(basis: FloatArray) -> IntArray:
    """Return m rows of an orthonormal basis, (n, m): the longest, the longest of the rest, ..."""
    m = basis.shape[1]
    left = np.einsum("ij,ij->i", basis, basis)  # squares of what those before leave of rows
    directions, chosen = np.empty((m, m)), np.empty(m, dtype=np.int64)
    tell, done = Progress(f"the basis of {m:,} equal eigenvalues"), 0
    while done < m:
        rows = _candidates(left)
        rest, known = basis[rows], directions[:, :done]
        for _ in range(2):  # once leaves rounding of what is taken away
            rest -= (rest @ known) @ known.T
        taken = _taken(rest @ rest.T, rows, left, m - done)
        new, last = linalg.qr(rest[taken].T, mode="economic")[0], done + taken.size
        chosen[done:last], directions[:, done:last] = rows[taken], new
        left -= np.square(basis @ new).sum(axis=1)
        left[chosen[:last]] = 0.0
        done = last
        tell(done / m)
    return chosen


def _candidates(left: FloatArray) -> IntArray:
    """Return the next pivot and other rows that may follow it, in order."""
    first = np.argmax(left >= (1 - ALIKE) * left.max())
    alike = np.round(left / (ALIKE * left.max()))  # of those that are, the first
    longest = np.argsort(-alike, kind="stable")[:TOGETHER]
    return np.unique(np.append(longest, first))


def _taken(G: FloatArray, rows: IntArray, left: FloatArray, count: int) -> IntArray:
    """Return the places of the next pivots, at most `count`, among `rows` with inner products G.

    One after the other, as long as no other row can be the next: what is left of others is at most
    what was.
    """
    others = left.copy()
    others[rows] = 0.0
    most, now = float(others.max()), G.diagonal().copy()
    triangle, taken = np.zeros_like(G), list[int]()
    place = int(np.argmax(left[rows] >= (1 - ALIKE) * left.max()))
    while True:
        known = triangle[:, : len(taken)]
        column = (G[:, place] - known @ known[place]) / np.sqrt(now[place])
        triangle[:, len(taken)] = column
        now -= column**2
        taken.append(place)
        now[taken] = 0.0
        longest = float(now.max())
        place = int(np.argmax(now >= (1 - ALIKE) * longest))
        sure = len(taken) < count and now[place] >= (1 - ALIKE) * max(longest, most)
        if not sure or (others[: rows[place]] >= (1 - ALIKE) * longest).any():
            return np.array(taken)
