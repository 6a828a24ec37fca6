"""The ways to balance classes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import dmsgd
from dmsgd.inputs.arrays import FloatArray, IntArray
from dmsgd.paper.halves import SAME_B


@dataclass(frozen=True)
class Method:
    """A design for features X, labels y and k, and the weights of its items (None: 1/k)."""

    name: str
    design: Callable[[FloatArray, IntArray, int], dmsgd.ClosedForm]
    weights: Callable[[dmsgd.ClosedForm, IntArray], FloatArray] | None = None


def kdpp(w: float, target: dmsgd.TargetName | None = None) -> Callable[..., dmsgd.KDPP]:
    """Return what makes the k-DPP on [(1-w)X, wH] with this target."""
    counts = w > 0 or target == "balanced"
    return lambda X, y, k: dmsgd.diversify(X, k, y if counts else None, w, target=target)


def same_b(design: Callable[..., dmsgd.KDPP]) -> Callable[..., dmsgd.Weighted]:
    """Return what makes the same b as `design` without its repulsion."""
    return lambda X, y, k: design(X, y, k).without_repulsion()


def class_weights(design: dmsgd.ClosedForm, y: IntArray) -> FloatArray:
    """Return n / (C n_c) / k: the weighted loss gives every class the same weight."""
    sizes = np.bincount(y)
    return np.asarray(y.size / (np.count_nonzero(sizes) * sizes[y]) / design.k)


METHODS = (
    Method("uniform", lambda X, y, k: dmsgd.Uniform(y.size, k)),
    Method("stratified", lambda X, y, k: dmsgd.Stratified(y, k)),
    Method("class-weighted loss", lambda X, y, k: dmsgd.Uniform(y.size, k), class_weights),
    Method("w=0", kdpp(0.0)),
    Method(f"w=0, {SAME_B}", same_b(kdpp(0.0))),
    Method("w=0.7", kdpp(0.7)),
    Method("w=0.9", kdpp(0.9)),
    Method(f"w=0.9, {SAME_B}", same_b(kdpp(0.9))),
    Method("w=0.9 unbiased", kdpp(0.9), lambda design, y: dmsgd.unbiased_weights(design)),
    Method("w=0, uniform target", kdpp(0.0, "uniform")),
    Method("w=0.9, uniform target", kdpp(0.9, "uniform")),
    Method("w=0, balanced target", kdpp(0.0, "balanced")),
    Method("w=0.5, balanced target", kdpp(0.5, "balanced")),
    Method("w=0.9, balanced target", kdpp(0.9, "balanced")),
    Method(f"w=0.9, balanced target, {SAME_B}", same_b(kdpp(0.9, "balanced"))),
)
