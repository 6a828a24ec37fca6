"""What is timed on R8, and what comes out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dmsgd.inputs.arrays import FloatArray

TITLE = "Tables 1 and 4: the cost of a batch beside an LDA update on Reuters R8"

#: The sampler that is used unless another is asked for.
DEFAULT = "exact (default)"

#: The paper's batch sizes and seconds.
PAPER_SIZES = (10, 30, 50, 80)

PAPER = {
    "fast k-DPP": (0.001, 0.0139, 0.0541, 0.2199),
    "k-DPP": (0.0098, 0.1468, 0.6438, 2.6698),
    "LDA update": (0.8777, 1.2530, 1.6414, 2.2312),
}

#: The two ways to stop local inference: scikit-learn's default, and that of the experiment `r8`.
CONVERGED, EARLY = "converged", "stopped early"


@dataclass(frozen=True)
class Config:
    """What is timed.

    cores, chain_steps: the two readings of the paper's M.
    iterations: local iterations at most, for inference that converges.
    seeds:   rounds of all measurements; the median over rounds is reported.
    updates: LDA updates timed in a round and batch size, after `warm_up` that are not.
    slow_draws: draws of the reference sampler in a round.
    documents:  training documents, None for all.
    """

    seeds: int = 5
    sizes: tuple[int, ...] = PAPER_SIZES
    cores: int = 100
    chain_steps: int = 100
    iterations: int = 100
    updates: int = 10
    warm_up: int = 3
    slow_draws: int = 2
    documents: int | None = None


QUICK = Config(seeds=2, updates=5, slow_draws=1, documents=2000)


@dataclass(frozen=True, eq=False)
class Result:
    """CPU seconds; columns follow `config.sizes`.

    sampling: sampler -> (rounds, sizes), one draw.
    setup:    sampler -> (sizes,), once before the first draw.
    spectrum: seconds of the eigendecomposition, part of every exact sampler's set-up.
    update:   local inference -> (rounds, sizes), one LDA update.
    """

    config: Config
    sampling: dict[str, FloatArray]
    setup: dict[str, FloatArray]
    spectrum: float
    update: dict[str, FloatArray]

    def share(self, sampler: str, update: str) -> FloatArray:
        """Return the cost of a draw in percent of an update's, shape (rounds, sizes)."""
        return np.asarray(100 * self.sampling[sampler] / self.update[update])
