"""A set drawn by a Markov chain that is provably close to the k-DPP, for any number of items."""

from __future__ import annotations

from math import ceil, lgamma, log
from typing import final

import numpy as np

from dmsgd.features import Features
from dmsgd.features.products import similarity
from dmsgd.inputs.arrays import FloatArray, IntArray
from dmsgd.inputs.messages import counted
from dmsgd.runtime.memory import reserve
from dmsgd.runtime.progress import Progress, announce

#: The chain ends within this total variation of the k-DPP.
ERROR = 0.01
#: Proposals at a time, at most; multiplications at a time, a fraction of a second; how many times
#: longer they take than those of large matrices.
BLOCK, AT_A_TIME, SLOWER = 128, 2e9, 3
#: Numbers of the inverse that are changed at a time.
PRODUCT = 2**23
#: Moves after which the inverse is checked, if the set is not larger.
CHECKED = 1000
#: Given items of which the others leave no more than this share are left out.
DEPENDENT = 1e-4
#: No more than this is left of a duplicate; the inverse is made anew where it is off by a tenth.
ROUNDING = 1e-8


def steps_needed(k: int, logs: float) -> int:
    """Return how many steps bring a set Y within ERROR of the k-DPP, if log 1/P(Y) <= `logs`.

    k (log log 1/P(Y) + log 1/(2ε²)) for a total variation of ε (Cryan, Guo, Mousa 2019, arXiv
    1903.06081): a step takes 1/k of the relative entropy to the k-DPP away.
    """
    return ceil(k * (log(max(logs, 1.0)) + log(0.5 / ERROR**2)))


@final
class Walk:
    """A set of k items beside those given, on its way to the k-DPP of an RBF kernel.

    The first set is that of a randomly pivoted Cholesky factor (Chen, Epperly, Tropp, Webber 2022).
    Then come the `steps_needed` of the down-up walk (`dmsgd.compiled.redraw`), by P(Y) =
    det(L_Y) / e_k and e_k <= trace(L)^k / k!.

    worth: the squares of qualities, 0 for items that may not be chosen.
    least: where fewer proposals are accepted there is no first set, and `complete` is False.
    """

    def __init__(
        self,
        F: Features,
        worth: FloatArray,
        k: int,
        given: IntArray,
        square: float,
        key: int,
        least: float,
    ) -> None:
        self.F, self.k, self.scale = F, k, float(np.sqrt(square / 2))
        self._worth, self._sums = worth, np.cumsum(worth)
        self._last = int(np.flatnonzero(worth)[-1])
        self._rng = np.random.default_rng(key)
        self._what, size = f"a draw of {counted(k, 'item')} of {F.n:,}", given.size + k
        reserve(size * (size + 4 * BLOCK), self._what, "ask for fewer items")
        self._block = max(8, min(BLOCK, int(AT_A_TIME / size**2)))
        self._Y, self._M = np.full(size, -1, dtype=np.int64), np.zeros((size, size))
        self._log_det, self._filled = 0.0, 0
        self._add(given, DEPENDENT)
        self._fixed, size = self._filled, self._filled + k
        if size < self._Y.size:
            self._Y, self._M = self._Y[:size].copy(), self._M[:size, :size].copy()
        self._log_det, tried = 0.0, 0  # of what the given items leave
        self._accepted, progress = 1.0, Progress(f"the first set of {self._what}")
        while self._filled < self._Y.size and tried * least < 4:
            turns = self._move(np.arange(self._filled, self._Y.size), *self._proposals(), ROUNDING)
            tried = 0 if turns else tried + self._block
            self._filled += turns
            progress((max(self._filled, 1) / self._Y.size) ** 2)  # later items take longer
        #: Whether there is a first set from which to go on.
        self.complete = self._filled == self._Y.size and self._accepted >= least

    def run(self) -> IntArray:
        """Return the items after all steps, in random order."""
        logs = self.k * log(self._sums[-1]) - lgamma(self.k + 1) - self._log_det
        logs -= float(np.log(self._worth[self._Y[self._fixed :]]).sum())
        steps, size = steps_needed(self.k, logs), self._Y.size
        places = self._fixed + self._rng.integers(self.k, size=steps)
        products = SLOWER * steps * float(size) ** 2 * (1 / self._accepted + 2)
        announce(products, size**2, self._what, "ask for fewer items, or use how='cover'")
        done, checked, progress = 0, 0, Progress(self._what)
        while done < steps:
            done += self._move(places[done : done + self._block], *self._proposals(), ROUNDING)
            if done - checked >= max(size, CHECKED):
                checked = done
                if self._drift() > ROUNDING / 10:
                    items, self._filled = self._Y.copy(), 0
                    self._Y[:], self._M[:] = -1, 0.0
                    self._add(items, 0.0)
            progress(max(done, 1) / steps)
        return self._rng.permutation(self._Y[self._fixed :])

    def _proposals(self) -> tuple[IntArray, FloatArray]:
        """Return items by their worth, and a uniform number for each."""
        numbers = self._rng.random((2, self._block))
        items = np.searchsorted(self._sums, numbers[0] * self._sums[-1], side="right")
        return np.minimum(items, self._last), numbers[1]

    def _add(self, items: IntArray, least: float) -> None:
        """Put items at empty places, but none of which those before leave no more than `least`."""
        for first in range(0, items.size, self._block):
            part = items[first : first + self._block]
            places = np.arange(self._filled, self._filled + part.size)
            self._filled += self._move(places, part, np.zeros(part.size), least)

    def _move(self, places: IntArray, items: IntArray, uniforms: FloatArray, least: float) -> int:
        """Redraw the items at `places` in turn with these proposals; return how many were."""
        from dmsgd.compiled.redraw import redraw

        rows, b, there = self.F.take(items), items.size, self._filled
        size = min(self._Y.size, there + b)  # no more places are filled
        S, T = np.zeros((2, b, size))
        if there:
            S[:, :there] = similarity(rows, self.F.take(self._Y[:there]), self.scale)
            T[:, :there] = S[:, :there] @ self._M[:there, :there]
        covered, changes, signs = (S * T).sum(1), np.empty((2 * b, size)), np.empty(2 * b)
        self._accepted = max(float(1 - covered.mean()), 1e-9)
        among = np.asarray(similarity(rows, rows, self.scale))
        move = places, items, uniforms, least, S, among, T, covered, changes, signs
        turns, used, log_det = redraw(self._Y[:size], self._M, *move)
        changes = changes[:used]
        signed, step = (changes * signs[:used, None]).T, max(1, PRODUCT // size)
        for first in range(0, size, step):
            part = slice(first, min(first + step, size))
            self._M[part, :size] += signed[part] @ changes
        self._log_det += log_det
        return int(turns)

    def _drift(self) -> float:
        """Return how far the inverse is off, at some places."""
        some = self._rng.choice(self._Y.size, min(self._block, self._Y.size), replace=False)
        rows = self.F.take(self._Y)
        off = similarity(rows[some], rows, self.scale) @ self._M
        off[np.arange(some.size), some] -= 1.0
        return float(np.abs(off).max())
