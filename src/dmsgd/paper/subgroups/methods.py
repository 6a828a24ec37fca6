"""The ways to draw batches; all but the oracle know pixels and parity alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

import dmsgd
from dmsgd.inputs.arrays import FloatArray
from dmsgd.paper.halves import SAME_B
from dmsgd.paper.subgroups.result import Config
from dmsgd.paper.subgroups.task import Task


@dataclass(frozen=True)
class Method:
    """A design for a task, and the weights of items in the update (None: 1/k)."""

    name: str
    design: Callable[[Task, Config, int], dmsgd.ClosedForm]
    weights: Callable[[Task, Config], FloatArray] | None = None


def linear(
    task: Task,
    config: Config,
    seed: int,
    target: dmsgd.TargetName | None = None,
    strength: float | None = None,
) -> dmsgd.KDPP:
    """Return the k-DPP that is linear in the pixels, rows of unit length."""
    if strength is not None:
        X = dmsgd.normalize(task.X)
        b = dmsgd.density_target(X, config.k, strength)
        return dmsgd.diversify(X, config.k, target=b)
    labels = task.y if target == "balanced" else None
    return dmsgd.diversify(task.X, config.k, labels, normalize=True, target=target)


def rbf(
    task: Task, config: Config, seed: int, target: dmsgd.TargetName | None = None, w: float = 0.0
) -> dmsgd.KDPP:
    """Return the k-DPP with an RBF kernel on the pixels, by a factor of rank `config.rank`."""
    factor = partial(dmsgd.pivoted_cholesky, rank=config.rank, oversampling=1.0)
    labels = task.y if w > 0 or target == "balanced" else None
    return dmsgd.diversify(
        task.X, config.k, labels, w, kernel="rbf", target=target, spectrum=factor
    )


def same_b(
    design: Callable[..., dmsgd.KDPP],
) -> Callable[[Task, Config, int], dmsgd.Weighted]:
    """Return what makes the same b as `design` without its repulsion."""
    return lambda task, config, seed: design(task, config, seed).without_repulsion()


def parity_weights(task: Task, config: Config) -> FloatArray:
    """Return weights that give both classes the same weight in the loss."""
    of_class = np.bincount(task.y)
    return np.asarray(task.y.size / (2 * of_class[task.y]) / config.k)


ORACLE = "stratified by digit (oracle)"

METHODS = (
    Method("uniform", lambda task, config, seed: dmsgd.Uniform(task.y.size, config.k)),
    Method("stratified by parity", lambda task, config, seed: dmsgd.Stratified(task.y, config.k)),
    Method(
        "class-weighted loss",
        lambda task, config, seed: dmsgd.Uniform(task.y.size, config.k),
        parity_weights,
    ),
    Method(
        "clustered",
        lambda task, config, seed: dmsgd.clustered(task.X, config.k, seed=seed),
    ),
    Method("k-DPP linear", linear),
    Method(f"k-DPP linear, {SAME_B}", same_b(linear)),
    Method("k-DPP rbf", rbf),
    Method(f"k-DPP rbf, {SAME_B}", same_b(rbf)),
    Method("k-DPP rbf, w=0.5", partial(rbf, w=0.5)),
    Method("linear, uniform target", partial(linear, target="uniform")),
    Method("linear, balanced target", partial(linear, target="balanced")),
    Method("linear, density target", partial(linear, target="density")),
    Method("linear, density, strength 1", partial(linear, strength=1.0)),
    Method(f"linear, density, strength 1, {SAME_B}", same_b(partial(linear, strength=1.0))),
    Method("rbf, uniform target", partial(rbf, target="uniform")),
    Method("rbf, density target", partial(rbf, target="density")),
    Method(ORACLE, lambda task, config, seed: dmsgd.Stratified(task.digit, config.k)),
)
