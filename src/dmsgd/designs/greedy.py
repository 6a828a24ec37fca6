"""Greedy sets of an RBF kernel: each item adds most to the determinant of those before.

Each has the largest w_i r_i of those left, w_i being the square of its quality, and r_i what the
items chosen before it leave of S_ii = 1, by steps of a Cholesky factor C Cᵀ of S (Chen, Zhang, Zhou
2018). r_i only falls, so a part of the items whose last known w_i r_i are below the best of others
is left alone (Minoux 1978). When its turn comes, it gets all steps that it has missed.

Where little is left of an item, rounding counts. A bound on its error is kept beside r_i: items
that differ by less are ties, and an item of which no more is left depends on those chosen.
"""

from __future__ import annotations

from typing import final

import numpy as np

from dmsgd.features import Features
from dmsgd.features.products import median_square, row_norms2
from dmsgd.inputs.arrays import TINY, BoolArray, FloatArray, IntArray, Matrix, as_array, is_sparse
from dmsgd.inputs.messages import counted
from dmsgd.runtime.pieces import slices
from dmsgd.runtime.progress import Progress, plan_work
from dmsgd.spectra.rounding import TIED

#: Items of a part. Multiplications of matrices in the time of one of a matrix and a vector.
PART, SLOWER = 2**12, 16
#: Arrays of more numbers than this are in float32.
LARGE = 2**28
#: Numbers per item beside its row and its column of the factor.
VECTORS = 8


def greedy_set(
    F: Features,
    q: FloatArray,
    k: int,
    known: IntArray | None = None,
    free: BoolArray | None = None,
    least: float = 0.0,
) -> tuple[IntArray, float]:
    """Return the greedy set of k free items beside the known ones, best first, and an RBF scale.

    It is smaller if all others are duplicates, or of quality 0. The scale begins as that of
    `select`, and is reduced whenever all items that are left depend on those that are chosen:
    rounding hides what these leave of them, or it is no more than `least`.
    """
    X, square, worth = F.to_memory().matrix, median_square(F), np.where(q**2 >= TINY, q**2, 0.0)
    if free is not None:
        worth[~free] = 0.0
    numbers = np.argsort(-worth, kind="stable")  # some parts have little worth
    chosen = np.empty(0, np.int64) if known is None else np.argsort(numbers)[known]
    worth, count = worth[numbers], chosen.size + k
    what = f"a greedy set of {counted(k, 'item')} of {F.n:,}"
    rows = 2 * X.nnz if is_sparse(X) else X.size // (2 if X.size > LARGE else 1)
    size = rows + count * (F.n // (2 if F.n * count > LARGE else 1) + F.d) + VECTORS * F.n
    plan_work(SLOWER * count * (X.size + F.n * count / 2), size, what, "ask for fewer items")
    parts = _centred_parts(X, numbers)
    while True:
        found = Greedy(parts, square, worth, numbers, count, least, what)
        chosen = found.choose(chosen)
        worth[chosen] = 0.0
        farthest = float(found.near[worth > 0].max(initial=0.0))
        if chosen.size == count or farthest == 0:
            return numbers[chosen[count - k :]], float(np.sqrt(square / 2))
        square = min(square / 4, farthest)
        del found  # or its factor would stay beside the next one


def _centred_parts(X: Matrix, numbers: IntArray) -> list[Matrix]:
    """Return copies of the rows in this order, less their mean unless they are sparse."""
    if is_sparse(X):
        return [X[numbers[some]] for some in slices(numbers.size, PART)]
    kind, mean, parts = np.float32 if X.size > LARGE else np.float64, X.mean(0), []
    for some in slices(numbers.size, PART):
        part = X[numbers[some]]
        part -= mean
        parts.append(part.astype(kind, order="C", copy=False))
    return parts


@final
class Greedy:
    """A greedy set of `count` items at one scale, of rows in parts, in the order of their worth.

    C:     (count, n) rows of the Cholesky factor.
    left:  (n,) what is left of each item, and `doubt`, the error of that; both 0 if nothing is.
    most:  (n,) their sum times the worth of the item.
    near:  (n,) squared distance to the nearest chosen item.
    steps: of each chosen item that does not depend on others, the item, twice its row, what was
           left of it and the error of that; each part has `seen` some of them.
    """

    def __init__(
        self,
        parts: list[Matrix],
        square: float,
        worth: FloatArray,
        numbers: IntArray,
        count: int,
        least: float,
        what: str,
    ) -> None:
        n, self.count, self.numbers, self.worth = worth.size, count, numbers, worth
        self.parts, self.square, self.least, self.what = parts, square, least, what
        self.norms = np.concatenate([row_norms2(X) for X in parts]).astype(float)
        self.noise = float(np.finfo(parts[0].dtype).eps) * (8 + parts[0].shape[1] ** 0.5)
        self.C = np.empty((count, n), np.float32 if n * count > LARGE else np.float64)
        self.eps, self.left, self.doubt = float(np.finfo(self.C.dtype).eps), np.ones(n), np.zeros(n)
        self.most, self.near = worth.copy(), np.full(n, np.inf)
        self.steps = list[tuple[int, FloatArray, float, float]]()
        self.seen = [0] * len(parts)

    def choose(self, before: IntArray) -> IntArray:
        """Return the items `before` and others that are independent of each other and them."""
        chosen, tell = list[int](), Progress(self.what)
        for place in range(self.count):
            if place < before.size:
                item = int(before[place])
                self._catch_up(item // PART)
            elif (item := self._best()) < 0:
                break
            chosen.append(item)
            if (left := float(self.left[item])) > 0:
                part, row = divmod(item, PART)
                twice = 2 * as_array(self.parts[part][[row]])[0]
                self.steps.append((item, twice, left, float(self.doubt[item])))
            for known in self.left, self.doubt, self.most, self.near:
                known[item] = 0.0
            tell((place + 1) / self.count)
        return np.array(chosen, dtype=np.int64)

    def _best(self) -> int:
        """Return the first item with the largest w_i r_i, up to ties; -1 if nothing is left."""
        top, parts = 0.0, range(len(self.parts))
        for part in parts:
            most = self.most[part * PART : (part + 1) * PART]
            if top == 0 or most.max() >= (1 - TIED) * top:
                top = max(top, self._catch_up(part))
        if top < TINY:
            for part in parts:
                self._catch_up(part)
            return -1
        tied = (self.most >= (1 - TIED) * top).nonzero()[0]
        return int(tied[self.numbers[tied].argmin()])

    def _catch_up(self, part: int) -> float:
        """Apply the steps that a part has missed; return its largest w_i r_i."""
        some, first, X = slice(part * PART, (part + 1) * PART), self.seen[part], self.parts[part]
        C, norms, left, doubt = self.C[:, some], self.norms[some], self.left[some], self.doubt[some]
        near, worth = self.near[some], self.worth[some]
        for place, (item, twice, pivot, error) in enumerate(self.steps[first:], first):
            squares, root = norms + self.norms[item], pivot**0.5
            rounding = self.noise * squares
            squares -= X @ twice
            squares[squares <= rounding] = 0.0
            values = np.exp(squares / -self.square)
            rounding *= values / self.square
            rounding += self.eps
            values -= self.C[:place, item] @ C[:place]
            values /= root
            C[place], squared = values, values * values
            left -= squared
            doubt += 2 / root * np.abs(values) * rounding + error / pivot * squared
            gone = left <= np.maximum(self.least, doubt)
            left[gone] = doubt[gone] = 0.0
            np.minimum(near, squares, out=near)
        self.seen[part], scores = len(self.steps), worth * left
        self.most[some] = scores + worth * doubt
        return float(scores.max())
