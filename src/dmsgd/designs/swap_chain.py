"""The k-DPP by a Markov chain of swaps, for kernels that cannot or need not be diagonalised.

An exchange chain, as in Li, Jegelka, Sra (2016, arXiv 1603.06052) and Anari, Oveis Gharan, Rezaei
(2016, arXiv 1602.05242): from a set Y of k items, pick i in Y and j among all n items uniformly;
if j is not in Y, move to Y' = Y - i + j with probability min(1, det(L_Y') / det(L_Y)).

The stationary law is exactly the k-DPP: proposals are symmetric (Y' proposes Y with the same
probability, 1/(kn)), so that det(L_Y) min(1, det(L_Y') / det(L_Y)) = min(det(L_Y), det(L_Y'))
is the flow in both directions. Sets with a positive determinant are the bases of a matroid, so
swaps lead from any of them to any other. The chain is lazy only in that j may be in Y (probability
k/n > 0), which is enough to make it aperiodic.

How long it takes is measured, not proved, here. The theory: k-DPPs are strongly Rayleigh, and on
such laws chains of this kind mix rapidly (Anari et al.), in continuous time within about
k n log log(1 / P(first set)) (Hermon, Salez 2023, arXiv 1902.02775). That is a bound for the worst
case; `diagnose` measures your kernel, and docs/approximations.md has the error by steps.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any, NamedTuple, final

import numpy as np

from dmsgd.designs.mixing import Mixing, mixing
from dmsgd.designs.sampled import Sampled
from dmsgd.errors import RankError
from dmsgd.inputs.arrays import FloatArray, IntArray
from dmsgd.inputs.fingerprint import digest
from dmsgd.inputs.memory import reserve
from dmsgd.inputs.scalars import Seed, as_batch_size, as_count, seed_key
from dmsgd.inputs.threads import thread_count
from dmsgd.kernels import RBF, Kernel, Linear, Precomputed
from dmsgd.samplers.parallel import parallel_map
from dmsgd.samplers.swap import Advance, block_steps, compiled_steps, pivots


class State(NamedTuple):
    """A chain at a draw: its set in the chain's order and as a batch, and the moves made since."""

    draw: int
    items: IntArray
    batch: IntArray
    moves: int
    log_det: float


@final
class SwapChain(Sampled):
    """Batches of k items with nearly the law of the k-DPP, from single entries of the kernel.

    burn_in: steps from a chain's first set to its first draw. Default 10 n, so that each item has
             been proposed about ten times.
    thin:    steps from one draw to the next. Default 10 k, ten proposals for each place.
    chain_length: draws made by one chain. Draw t belongs to chain t // chain_length, which starts
             from a set of its own and uses random numbers of its own: chains run on threads.

    A chain starts from a randomly pivoted Cholesky, whose sets come close to the k-DPP already.
    Measured (n = 200 to 2000, k = 10 to 50; linear and RBF kernels, a rare cluster, heavy-tailed
    norms): after 3 n steps inclusion frequencies cannot be told from those of exact draws; at 10 k
    steps the autocorrelation time of log det(L_Y) is 1.0 to 1.6 draws, and up to 4 with
    heavy-tailed norms, where a few items have b_i near 1 and wait n steps to be proposed again.
    `diagnose` measures it for your kernel.

    Cost: k kernel entries and O(k²) operations a step, n k entries and O(n k²) for a chain's start.
    KDPP(exact(kernel), k) is exact and faster wherever its set-up, O(n³) or O(n d²), is affordable.

    There is no `inclusion`, `joint` or `log_prob`: e_k(λ) needs the spectrum, and det(L_Y) alone is
    no probability. `estimate_inclusion` counts.

    >>> import dmsgd
    >>> SwapChain(dmsgd.identity(9), k=2).sample(100, seed=0).shape
    (100, 2)
    """

    def __init__(
        self,
        kernel: Kernel,
        k: int,
        burn_in: int | None = None,
        thin: int | None = None,
        chain_length: int = 100,
    ) -> None:
        if not isinstance(kernel, Kernel):
            raise TypeError(
                f"SwapChain needs a Kernel, got {type(kernel).__name__}; "
                f"use SwapChain(Linear(X), k) or SwapChain(RBF(X), k)"
            )
        self.kernel = kernel
        self.n = kernel.n
        self.k = as_batch_size(k, self.n)
        self.burn_in = 10 * self.n if burn_in is None else as_count(burn_in, "burn_in", least=0)
        self.thin = 10 * self.k if thin is None else as_count(thin, "thin")
        self.chain_length = as_count(chain_length, "chain_length")
        self._greedy = pivots(kernel, self.k)
        if self._greedy.size < self.k:
            raise RankError(
                self.k, self._greedy.size, "every other item has less than 1e-12 of its own"
            )
        self._latest: tuple[int, int, State] | None = None

    @cached_property
    def _advance(self) -> Advance:
        return _steps(self.kernel)

    def _draw(self, key: int, start: int, size: int, workers: int) -> IntArray:
        out = np.empty((size, self.k), dtype=np.int64)
        stop = start + size
        begins = range(start - start % self.chain_length, stop, self.chain_length)

        def work(begin: int) -> None:
            for state in self._resume(key, begin, start, min(stop, begin + self.chain_length)):
                if state.draw >= start:
                    out[state.draw - start] = state.batch
                if state.draw == stop - 1:
                    self._latest = (key, begin, state)

        parallel_map(work, begins, workers)
        return out

    def _resume(self, key: int, begin: int, start: int, stop: int) -> Iterator[State]:
        """Yield states of the chain that begins at draw `begin`: those from `start` at least."""
        latest = self._latest
        if latest and latest[:2] == (key, begin) and latest[2].draw < start:
            return self._states(key, begin, stop, latest[2])
        return self._states(key, begin, stop)

    def _states(
        self, key: int, begin: int, stop: int, after: State | None = None
    ) -> Iterator[State]:
        """Yield the states of draws begin..stop of one chain, or those that follow `after`.

        The steps towards draw t use random numbers of (key, t) alone, and the factor is computed
        afresh for each draw, so that going on is the same as going there from the beginning.
        """
        from dmsgd.compiled.philox import fill_uniform

        uniforms = np.empty(2 * self.k)
        Y = None if after is None else after.items.copy()
        for t in range(begin if after is None else after.draw + 1, stop):
            block = fill_uniform(np.uint64(key), np.uint64(t), 0, uniforms)
            steps = self.thin if t > begin else self.burn_in
            if Y is None:
                Y = self._first(uniforms[self.k :])
            _, moves, log_det = self._advance(Y, key, t, block, steps)
            yield State(t, Y.copy(), Y[np.argsort(uniforms[: self.k])], moves, log_det)

    def _first(self, uniforms: FloatArray) -> IntArray:
        """Return a set for a chain to start from: drawn, or greedy where that runs out of rank."""
        drawn = pivots(self.kernel, self.k, uniforms)
        return drawn if drawn.size == self.k else self._greedy.copy()

    def diagnose(
        self, size: int = 200, seed: Seed = None, *, chains: int = 4, workers: int = 1
    ) -> Mixing:
        """Return how well `chains` chains of `size` draws each mix, with this burn-in and thinning.

        It looks at log det(L_Y) alone: a good result is necessary, not sufficient.
        """
        size, chains = as_count(size, "size", least=4), as_count(chains, "chains", least=2)
        key = seed_key(seed)
        # states with two arrays of k and 60 numbers besides
        reserve(chains * size * (2 * self.k + 60), f"{chains} x {size:,} states", "ask for fewer")

        def run(chain: int) -> list[State]:
            return list(self._states(key, chain * size, (chain + 1) * size))

        runs = parallel_map(run, range(chains), thread_count(workers))
        trace = np.array([[state.log_det for state in states] for states in runs])
        moves = sum(state.moves for states in runs for state in states[1:])
        return mixing(trace, moves / (chains * (size - 1) * self.thin))

    def fingerprint(self) -> str:
        """Return the hash of the kernel, k and how long the chains run."""
        lengths = (self.burn_in, self.thin, self.chain_length)
        return digest("SwapChain", self.k, *lengths, self.kernel.fingerprint())

    def provenance(self) -> dict[str, str]:
        """Return where draws come from, in words: design, kernel, its fingerprint, sampler."""
        origin = {"kernel": repr(self.kernel), "data": self.kernel.fingerprint()}
        return {"design": repr(self), **origin, "sampler": "swap chain"}

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"_latest": None}

    def __repr__(self) -> str:
        return (
            f"SwapChain(k={self.k}, {self.kernel!r}, burn_in={self.burn_in}, thin={self.thin}, "
            f"chain_length={self.chain_length})"
        )


def _steps(kernel: Kernel) -> Advance:
    """Return the fastest way to make steps with this kernel."""
    points = kernel.points()
    X = None if points is None else points.dense()
    if isinstance(kernel, Precomputed):
        return compiled_steps("MATRIX", kernel.matrix, 0.0, kernel.diag())
    if isinstance(kernel, Linear) and X is not None:
        return compiled_steps("LINEAR", X, 0.0, kernel.diag())
    if isinstance(kernel, RBF) and X is not None:
        return compiled_steps("GAUSSIAN", X, 0.5 / kernel.scale**2, kernel.diag())
    return block_steps(kernel)
