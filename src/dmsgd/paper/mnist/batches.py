"""The first stage: all batches of all methods and seeds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

import dmsgd
from dmsgd.inputs.arrays import FloatArray, IntArray
from dmsgd.paper.halves import SAME_B, UNIFORM_B
from dmsgd.paper.mnist.result import UNBIASED, Config

if TYPE_CHECKING:
    from dmsgd.datasets import Images


@dataclass(frozen=True, eq=False)
class Drawn:
    """The first stage: what to train on, and what is known before training.

    items:   the chosen half of the training set; batches count within it.
    batches: (k, method) -> (seeds, steps, k); the unbiased update has the k-DPP's.
    weights: k -> weight of every item in the unbiased update.
    shares:  (k, method) -> expected share of a batch by class.
    """

    items: IntArray
    batches: dict[tuple[int, str], IntArray]
    weights: dict[int, FloatArray]
    shares: dict[tuple[int, str], FloatArray]
    scale: float
    rank: int
    trace_error: float


def chosen(data: Images, items: int) -> tuple[IntArray, FloatArray, IntArray]:
    """Return which training items are used, their pixels in 0..1 as rows, and their labels."""
    order = np.random.default_rng(0).permutation(len(data.y_train))
    used = np.sort(order[:items])
    return used, data.x_train[used].reshape(used.size, -1) / 255, data.y_train[used]


def factor(X: FloatArray, y: IntArray, w: float, rank: int) -> tuple[dmsgd.RBF, dmsgd.Spectrum]:
    """Return the kernel on [(1-w)X, wH] and the spectrum of its factor."""
    kernel = dmsgd.RBF(dmsgd.concat(X, y, w))
    return kernel, dmsgd.pivoted_cholesky(kernel, rank=rank, oversampling=1.0)


def draw(config: Config, data: Images) -> Drawn:
    """Return all batches of all methods and seeds."""
    if len(config.ks) != len(config.checkpoints):
        raise ValueError(f"{len(config.ks)} batch sizes, but {len(config.checkpoints)} checkpoints")
    items, X, y = chosen(data, config.items)
    kernel, spectrum = factor(X, y, config.w, config.rank)
    batches, weights, shares = {}, {}, {}
    for k, checkpoints in zip(config.ks, config.checkpoints, strict=True):
        kdpp = dmsgd.KDPP(spectrum, k)
        designs: dict[str, dmsgd.ClosedForm] = {
            "random": dmsgd.Uniform(len(items), k),
            "stratified": dmsgd.Stratified(y, k),
            "clustered": dmsgd.clustered(X, k),
            SAME_B: kdpp.without_repulsion(),
            UNIFORM_B: dmsgd.KDPP(dmsgd.exact(dmsgd.prescribe(spectrum, k, "uniform")), k),
            "k-DPP": kdpp,
        }
        for method, design in designs.items():
            draws = [
                design.sample(checkpoints[-1], seed, workers=-1) for seed in range(config.seeds)
            ]
            batches[k, method] = np.array(draws)
            shares[k, method] = np.bincount(y, design.inclusion(), minlength=10) / k
        weights[k] = dmsgd.unbiased_weights(kdpp)
        shares[k, UNBIASED] = shares[k, "k-DPP"]
    return Drawn(items, batches, weights, shares, kernel.scale, spectrum.rank, spectrum.trace_error)
