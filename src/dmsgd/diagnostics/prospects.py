"""What one design would do before anything is trained: who is seen, who meets, and the price."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from functools import cache
from typing import Any, final

import numpy as np

from dmsgd.designs import KDPP, ClosedForm, Stratified, Uniform, Weighted
from dmsgd.designs.options import DesignOptions
from dmsgd.diagnostics.diversity import repelled
from dmsgd.diagnostics.estimates import Estimate
from dmsgd.diagnostics.exposure import coverage, effective_batch, effective_items
from dmsgd.diagnostics.frequency import class_shares, evenness
from dmsgd.inputs.arrays import IntArray, on_host
from dmsgd.inputs.scalars import Seed
from dmsgd.kernels import identity
from dmsgd.spectra import exact

#: The names of the classes, and for each item the number of its own: found once, as text is slow.
Classes = tuple[list[Any], IntArray]

#: Draws that are timed and that repulsion is estimated from: at most, and at least.
DRAWS = (200, 20)
#: Rounds that the draws are timed in; the median counts.
ROUNDS = 5
#: About as many floating point operations are spent on the draws of one design.
OPERATIONS = 1e9


@final
@dataclass(frozen=True)
class Price:
    """Seconds, as measured: once before the first batch, and for each batch, on one thread."""

    setup: float
    draw: float


@final
@dataclass(frozen=True, eq=False)
class Prospect:
    """What one design would do: its batches by class, in closed form, and what they cost.

    name:     "uniform", "w = 0.7", "stratified".
    settings: of the k-DPP, None for the others.
    shares:   by class, {} without labels; evenness is theirs, 1 if all are equal.
    seen:     expected fraction of the items seen in one epoch of n/k batches.
    effective_batch: what a batch counts with unbiased weights, at most k.
    effective_items: (Σ b)² / Σ b² as a share of the items, 1 if all are equally likely.
    repulsion: share of the variance of a batch's features that repulsion removes
              (`estimate_repulsion`); None where there is no kernel.
    price:    of the design; same_b is that of batches with the same b without repulsion, None
              where there is no kernel. Both begin with the kernel's eigenvalues, which b needs.
    """

    name: str
    settings: DesignOptions | None
    shares: dict[Any, float] = field(repr=False)
    evenness: float
    seen: float
    effective_batch: float
    effective_items: float
    repulsion: Estimate | None
    price: Price
    same_b: Price | None


def prospect(
    name: str,
    settings: DesignOptions | None,
    design: ClosedForm,
    classes: Classes | None,
    setup: float = 0.0,
) -> Prospect:
    """Return what `design` would do; `setup` is how many seconds it took to make."""
    shares = {}
    if classes is not None:
        names, codes = classes
        shares = {names[c]: share for c, share in class_shares(design, codes).items()}
    price, batches = priced(design, setup)
    repulsion, same_b = None, None
    if isinstance(design, KDPP):
        _, repulsion, same_b = halves(design, batches, setup)
    epoch = math.ceil(design.n / design.k)
    return Prospect(
        name=name,
        settings=settings,
        shares=shares,
        evenness=evenness(shares) if shares else 1.0,
        seen=float(coverage(design, epoch)),
        effective_batch=effective_batch(design),
        effective_items=effective_items(design) / design.n,
        repulsion=repulsion,
        price=price,
        same_b=same_b,
    )


def halves(
    design: KDPP, batches: IntArray, setup: float, seed: Seed = 0
) -> tuple[Weighted, Estimate, Price]:
    """Return the same b without repulsion, how much repulsion does in these batches, and a price.

    That of the same b; `setup` is what both designs begin with.
    """
    began = time.perf_counter()
    weighted = Weighted.like(design)
    price, without = priced(weighted, setup + time.perf_counter() - began, seed)
    return weighted, repelled(design.spectrum, batches, without), price


def priced(design: ClosedForm, setup: float = 0.0, seed: Seed = 0) -> tuple[Price, IntArray]:
    """Return the price of a design that took `setup` seconds to make, and the batches drawn."""
    _compile()
    began = time.perf_counter()
    design.sample(1, seed)
    ready, rounds, parts = time.perf_counter() - began, [], []
    size = _draws(design.k) // ROUNDS
    for start in range(0, ROUNDS * size, size):
        began = time.perf_counter()
        parts.append(on_host(design.sample(size, seed, start=start)))
        rounds.append((time.perf_counter() - began) / size)
    draw = float(np.median(rounds))
    return Price(setup + max(ready - draw, 0.0), draw), np.concatenate(parts)


def _draws(k: int) -> int:
    """Return how many draws are quick enough."""
    most, least = DRAWS
    return int(np.clip(OPERATIONS / (4 * k**3), least, most))


@cache
def _compile() -> None:
    """Draw from a small design of each kind: compiling is no part of anyone's price."""
    kernel = KDPP(exact(identity(4)), 2)
    for design in (kernel, Weighted([0.5] * 4, 2), Uniform(4, 2), Stratified([0, 0, 1, 1], 2)):
        design.sample(2, seed=0)
