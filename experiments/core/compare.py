"""Differences between arms, seed by seed, with 95 % intervals, and claims about them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtri, stdtrit

if TYPE_CHECKING:
    import polars as pl

#: Fewer seeds have an interval, but no verdict: with two it is 13 standard errors wide.
ENOUGH = 5

#: What tables and figures show of each arm: experiment, measure, step (None: the last).
Column = tuple[str, str, int | None]


@dataclass(frozen=True)
class Difference:
    """A mean over seeds and half of its 95 % interval (Student's t).

    >>> Difference(0.54, 0.53, 10).significant, Difference(9.0, 0.1, 2).significant
    (True, None)
    """

    mean: float
    half: float
    seeds: int

    @property
    def significant(self) -> bool | None:
        """Whether the whole interval lies above 0; None for fewer than ENOUGH seeds.

        What is known without error, such as a closed form, has half = 0 and seeds = 0.
        """
        if self.seeds == 0:
            return self.mean > 0
        return None if self.seeds < ENOUGH else bool(self.mean - self.half > 0)

    def text(self, digits: int = 1, sign: bool = True) -> str:
        """Return "+3.8 ± 1.3", or "+3.8" where there is no interval."""
        number = f"{self.mean:+.{digits}f}" if sign else f"{self.mean:.{digits}f}"
        known = np.isfinite(self.half) and self.seeds > 0
        return f"{number} ± {self.half:.{digits}f}" if known else number

    def factor(self) -> str:
        """Return "0.53 (0.48 to 0.58)" for a difference of logarithms, small ones with more digits.

        >>> Difference(-5.4, 0.2, 9).factor()
        '0.0045 (0.0037 to 0.0055)'
        """
        ends = np.exp([self.mean, self.mean - self.half, self.mean + self.half])
        digits = 2 if ends[0] >= 0.05 else 4
        text = [f"{end:.{digits}f}" for end in ends]
        return f"{text[0]} ({text[1]} to {text[2]})" if np.isfinite(self.half) else text[0]


def mean(values: np.ndarray) -> Difference:
    """Return the mean of one value per seed, and half of its interval (NaN for one seed)."""
    count = values.size
    half = stdtrit(count - 1, 0.975) * values.std(ddof=1) / np.sqrt(count) if count > 1 else np.nan
    return Difference(float(values.mean()), float(half), count)


#: Tables by identity, each with its rows by (experiment, arm, measure): a page has thousands of
#: numbers, and to search a whole table for each took most of the time.
_CUT: dict[int, tuple[pl.DataFrame, dict[tuple[object, ...], pl.DataFrame]]] = {}
_TABLES = 32


def _cut(table: pl.DataFrame) -> dict[tuple[object, ...], pl.DataFrame]:
    """Return the rows of a table by (experiment, arm, measure)."""
    if id(table) not in _CUT:
        if len(_CUT) == _TABLES:
            _CUT.clear()
        parts = table.partition_by("experiment", "arm", "measure", as_dict=True)
        _CUT[id(table)] = table, parts  # a table that is kept keeps its identity
    return _CUT[id(table)][1]


def by_seed(
    table: pl.DataFrame, experiment: str, arm: str, measure: str, step: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return seeds, in their order, and values of one arm, at `step` or at the last step."""
    found = _cut(table).get((experiment, arm, measure))
    if found is None:
        raise ValueError(f"{experiment} has no {measure!r} of {arm!r}")
    seeds, steps, own = (found[name].to_numpy() for name in ("seed", "step", "value"))
    chosen = np.flatnonzero(steps == (steps.max() if step is None else step))
    if not chosen.size:
        raise ValueError(f"{experiment} has no {measure!r} of {arm!r} at step {step}")
    chosen = chosen[np.argsort(seeds[chosen])]
    return seeds[chosen], own[chosen]


def values(
    table: pl.DataFrame, experiment: str, arm: str, measure: str, step: int | None = None
) -> np.ndarray:
    """Return one value per seed, in their order."""
    return by_seed(table, experiment, arm, measure, step)[1]


def compare(
    table: pl.DataFrame,
    experiment: str,
    arm: str,
    against: str,
    measure: str,
    step: int | None = None,
    ratio: bool = False,
) -> Difference:
    """Return arm minus against over the seeds that both have; `ratio`: of their logarithms."""
    ours, theirs = (by_seed(table, experiment, each, measure, step) for each in (arm, against))
    both, *at = np.intersect1d(ours[0], theirs[0], assume_unique=True, return_indices=True)
    if not both.size:
        raise ValueError(f"{experiment}: {arm!r} and {against!r} have no seed in common")
    pair = ours[1][at[0]], theirs[1][at[1]]
    return mean(np.subtract(*(np.log(pair) if ratio else pair)))


def share_of_runs(
    table: pl.DataFrame, experiment: str, arm: str, measure: str, step: int | None = None
) -> Difference:
    """Return the share of runs whose value is not 0, with Wilson's 95 % interval."""
    found = values(table, experiment, arm, measure, step)
    z, runs, successes = float(ndtri(0.975)), found.size, int(np.count_nonzero(found))
    centre = (successes + z**2 / 2) / (runs + z**2)
    half = z * np.sqrt(successes * (runs - successes) / runs + z**2 / 4) / (runs + z**2)
    return Difference(float(centre), float(half), runs)


@dataclass(frozen=True)
class Claim:
    """A statement, and what decides it: "`arm` is better than `against` in `measure`".

    where:     the paper's figure or table, or "beyond" for what the paper does not have.
    paper:     what the paper says, such as "87.24"; "" where it says nothing.
    against:   another arm; or None for the number `limit`.
    step:      updates after which it is measured; None for the last.
    lower:     less is better.
    share:     values are 0 or 1: compare the share of runs with `limit`.
    verdict:   False where the paper's number is shown beside ours and nothing is claimed.
    note:      what was done otherwise, or why we differ.
    """

    where: str
    statement: str
    experiment: str
    arm: str
    measure: str
    against: str | None = None
    limit: float = 0.0
    step: int | None = None
    lower: bool = False
    share: bool = False
    verdict: bool = True
    paper: str = ""
    note: str = ""
    digits: int = 1

    def check(self, table: pl.DataFrame) -> Difference:
        """Return by how much the claim holds: above 0 if it does."""
        found = self._difference(table)
        return replace(found, mean=-found.mean) if self.lower else found

    def _difference(self, table: pl.DataFrame) -> Difference:
        where = self.experiment, self.arm
        if self.against is not None:
            return compare(table, *where, self.against, self.measure, self.step)
        if self.share:
            found = share_of_runs(table, *where, self.measure, self.step)
            return replace(found, mean=found.mean - self.limit)
        return mean(values(table, *where, self.measure, self.step) - self.limit)

    def ours(self, table: pl.DataFrame) -> str:
        """Return what was found: "82.1 → 85.9 (+3.8 ± 1.3)", or one number if against is None."""
        own = values(table, self.experiment, self.arm, self.measure, self.step)
        if self.share:
            return f"{np.count_nonzero(own)} of {own.size} runs"
        if self.against is None:
            return mean(own).text(self.digits, sign=False)
        theirs = values(table, self.experiment, self.against, self.measure, self.step)
        found = self._difference(table)
        pair = f"{theirs.mean():.{self.digits}f} → {own.mean():.{self.digits}f}"
        return f"{pair} ({found.text(self.digits)})"

    def significant(self, table: pl.DataFrame) -> bool | None:
        """Return whether it holds; None where nothing is claimed or there are too few seeds."""
        return self.check(table).significant if self.verdict else None


@dataclass(frozen=True)
class Decomposition:
    """Where a k-DPP's gain comes from: a row of "decomposition" in docs/results/paper.md.

    arm is the k-DPP. The arms "ARM, frequency-matched" (the same inclusion probabilities without
    repulsion) and, where there is one, "ARM, uniform frequency" (repulsion alone) stand beside it.
    """

    what: str
    experiment: str
    arm: str
    measure: str
    step: int | None = None
    lower: bool = False
    digits: int = 1
    against: str = "uniform"


def decompose(table: pl.DataFrame, row: Decomposition) -> dict[str, Difference]:
    """Return the whole gain, sampling frequency, repulsion, and repulsion alone where it was run.

    k-DPP - uniform = (frequency-matched - uniform) + (k-DPP - frequency-matched), seed by seed.
    """
    matched, alone = f"{row.arm}, frequency-matched", f"{row.arm}, uniform frequency"
    pairs = {
        "k-DPP minus uniform": (row.arm, row.against),
        "sampling frequency": (matched, row.against),
        "repulsion": (row.arm, matched),
    }
    if table.filter(experiment=row.experiment, arm=alone).height:
        pairs["repulsion alone"] = (alone, row.against)
    found = {}
    for name, pair in pairs.items():
        arms = reversed(pair) if row.lower else pair
        found[name] = compare(table, row.experiment, *arms, row.measure, row.step)
    return found
