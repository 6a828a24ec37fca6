"""What an experiment is, so that one command can run, save, plot and compare any of them.

An experiment is a folder with

    result.py   TITLE    one line
                Config   a frozen dataclass: every setting, `seeds` among them, and `workers`
                         where processes can share the runs (the result does not depend on it)
                QUICK    a Config that takes about a minute
                Result   a frozen dataclass: `config`, then what was measured
    run.py      load(config, data_dir) -> data, which it reads or generates
                run(config, data, progress) -> Result
    claims.py   claims(result) -> [Claim], the paper's numbers beside ours
                halves(result) -> [Halves], where something is learnt: see `halves`
    figures.py  plot(result, folder) -> [Path], pictures from the result alone

and what `run` needs besides. `run` is pure: the same config and data give the same result (but for
measured seconds). Claims and figures know the result and never what made it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

#: Is told the fraction of the work that is done.
Progress = Callable[[float], None]

#: Below this share of the update it is for, in percent, we call a batch cheap.
CHEAP = 2.0


@dataclass(frozen=True)
class Claim:
    """One statement of the paper (or beyond it) and what we found.

    where:       "Fig. 4", "Table 1", or "beyond" for what the paper does not have.
    paper, ours: short, such as "87.24" and "86.1 ± 0.8"; "" where there is none.
    holds:       whether the statement holds, by `intervals.holds`; None if there is none, no
                 interval, or one of too few runs.
    note:        why we differ, or what was done otherwise.
    """

    where: str
    statement: str
    paper: str
    ours: str
    holds: bool | None = None
    note: str = ""


@dataclass(frozen=True)
class Experiment:
    """The parts of an experiment."""

    TITLE: str
    Config: Any
    QUICK: Any
    Result: Any
    load: Callable[..., Any]
    run: Callable[..., Any]
    claims: Callable[..., list[Claim]]
    halves: Callable[..., list[Any]]
    plot: Callable[..., list[Path]]
