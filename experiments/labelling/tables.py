"""Tables and the figure of docs/results/labelling.md, from the stored results."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from experiments.core.compare import Difference, compare, mean, values
from experiments.labelling.ranks import Ranks, diagram, ranks_of

if TYPE_CHECKING:
    import polars as pl

COVER, MEDOIDS, ONE_M = "select", "select, medoids", "select, one m"
#: Rivals whose differences have intervals, and the arms of the table of labels that are needed.
RIVALS, SHOWN = ("UHerding", "BADGE", "margin"), ("random", "margin", "BADGE", "UHerding", COVER)
#: Data that select was made on, with other seeds.
MADE_ON = ("MNIST", "Oxford-102", "digits")
#: What is reached, of the accuracy with all labels.
SHARE = 0.95
KS, FITTING = (10, 50, 100), "labelling/robot sonar, 64 units"
MEAN, LAST, CLASSES = "mean accuracy", "accuracy", "mean over classes"


def rounds_there(table: pl.DataFrame, k: int) -> dict[str, str]:
    """Return data -> case of the rounds of k labels that are stored."""
    return named(table, "", f", k={k}")


def named(table: pl.DataFrame, start: str, end: str = "") -> dict[str, str]:
    """Return data -> case of those whose name begins and ends so."""
    start = f"labelling/{start}"
    return {case.removeprefix(start).removesuffix(end): case
            for case in table["experiment"].unique(maintain_order=True)
            if case.startswith(start) and case.endswith(end)}  # fmt: skip


def arms_there(table: pl.DataFrame, case: str) -> list[str]:
    """Return the arms of a case in their order."""
    return table.filter(experiment=case)["arm"].unique(maintain_order=True).to_list()


def steps_there(table: pl.DataFrame, case: str) -> list[int]:
    """Return the steps of a case."""
    return sorted(table.filter(experiment=case)["step"].unique())


def levels(
    table: pl.DataFrame, there: dict[str, str], measure: str, step: int | None = None
) -> tuple[list[str], np.ndarray]:
    """Return arms, and their means over seeds: a row for each data set, a column for each arm."""
    arms = arms_there(table, next(iter(there.values())))
    found = [[values(table, case, arm, measure, step).mean() for arm in arms]
             for case in there.values()]  # fmt: skip
    return arms, np.array(found)


def ranked(table: pl.DataFrame, k: int, measure: str) -> Ranks:
    """Return the average ranks in rounds of k."""
    return ranks_of(*levels(table, rounds_there(table, k), measure))


def level_rows(table: pl.DataFrame, k: int = 50, measure: str = MEAN) -> list[list[str]]:
    """Return a row for each arm, first ranks first: the accuracy on each data set, and the mean."""
    there = rounds_there(table, k)
    arms, found = levels(table, there, measure)
    rows = [["chosen by", *there, "mean"]]
    for arm in ranks_of(arms, found).arms:
        own = found[:, arms.index(arm)]
        rows.append([arm, *(f"{value:.1f}" for value in own), f"{own.mean():.1f}"])
    return rows


def rank_rows(table: pl.DataFrame) -> list[list[str]]:
    """Return a row for each arm: average ranks, how far select is ahead over sets, CPU time."""
    every = {f"k = {k}, {when}": (k, measure) for when, measure in (("mean", MEAN), ("last", LAST))
             for k in KS}  # fmt: skip
    found = {name: ranked(table, *of) for name, of in every.items()}
    times = levels(table, rounds_there(table, 50), "milliseconds per round")
    rows = [["chosen by", *found, "ms CPU per round, k = 50"]]
    for arm in found["k = 50, mean"].arms:
        places = [f"{each.means[each.arms.index(arm)]:.2f}" for each in found.values()]
        own = times[1][:, times[0].index(arm)]
        rows.append([arm, *places, f"{own.min():.0f} to {own.max():.0f}"])
    return rows


def ahead(table: pl.DataFrame, k: int, measure: str) -> dict[str, Difference]:
    """Return how far select is ahead of each other arm, with intervals over data sets."""
    arms, found = levels(table, rounds_there(table, k), measure)
    own = found[:, arms.index(COVER)]
    return {arm: mean(own - found[:, at]) for at, arm in enumerate(arms) if arm != COVER}


def ahead_rows(table: pl.DataFrame) -> list[list[str]]:
    """Return a row for each arm, first ranks first: how far select is ahead of it."""
    heads = {f"k = {k}, {when}": (k, measure) for when, measure in (("mean", MEAN), ("last", LAST))
             for k in KS}  # fmt: skip
    every = [ahead(table, *of) for of in heads.values()]
    ranks = [arm for arm in ranked(table, 50, MEAN).arms if arm != COVER]
    return [["select less", *heads], *([arm, *(of[arm].text(2) for of in every)] for arm in ranks)]


def lead_rows(
    table: pl.DataFrame,
    start: str = "",
    end: str = ", k=50",
    measure: str = MEAN,
    rivals: tuple[str, ...] = RIVALS,
) -> list[list[str]]:
    """Return a row for each data set: select's accuracy, and how far it is ahead of rivals."""
    there = named(table, start, end)
    rows = [["data", "seeds", COVER, *(f"less {arm}" for arm in rivals)]]
    leads = []
    for data, case in there.items():
        found = [compare(table, case, COVER, arm, measure) for arm in rivals]
        leads.append([each.mean for each in found])
        level = values(table, case, COVER, measure)
        rows.append(
            [data, str(level.size), f"{level.mean():.1f}", *(each.text(2) for each in found)]
        )
    other = [data not in MADE_ON for data in there]
    for name, some in (
        ("mean, interval over sets", leads),
        ("without the sets that select was made on", np.array(leads)[other]),
    ):
        rows.append([name, "", "", *(mean(each).text(2) for each in np.array(some).T)])
    return rows


def one_m_rows(table: pl.DataFrame) -> list[list[str]]:
    """Return a row for each data set: how far select is ahead of select with one m."""
    there = {k: named(table, "one m, ", f", {k} labels") for k in KS}
    found = {k: {data: compare(table, case, COVER, ONE_M, MEAN) for data, case in of.items()}
             for k, of in there.items()}  # fmt: skip
    rows = [["data", *(f"k = {k}" for k in KS)]]
    for data in there[min(KS)]:
        rows.append([data, *(of[data].text(2) if data in of else "" for of in found.values())])
    means = [mean(np.array([each.mean for each in of.values()])) for of in found.values()]
    return [*rows, ["mean, interval over sets", *(each.text(2) for each in means)]]


def first_rows(table: pl.DataFrame, start: str = "first, ") -> list[list[str]]:
    """Return a row for each arm: accuracy less random's, and medoids less it; means over sets."""
    there = named(table, start)
    steps = steps_there(table, next(iter(there.values())))
    found = {k: levels(table, there, LAST, k) for k in steps}
    arms = found[steps[0]][0]
    heads = [f"{of}k = {k}" for of in ("", f"{MEDOIDS} less it, ") for k in steps]
    rows = [["chosen by", *heads]]
    for at, arm in enumerate(arms):
        above, behind = ([mean(sign * (each[:, at] - each[:, arms.index(base)])).text()
                          for _, each in found.values()]
                         for sign, base in ((1, "random"), (-1, MEDOIDS)))  # fmt: skip
        rows.append([arm, *([""] * len(steps) if arm == "random" else above),
                     *([""] * len(steps) if arm == MEDOIDS else behind)])  # fmt: skip
    return rows


def first_set_rows(table: pl.DataFrame) -> list[list[str]]:
    """Return the accuracy of each first set less random's, for each data set and k."""
    there = named(table, "first, ")
    arms = [arm for arm in arms_there(table, next(iter(there.values()))) if arm != "random"]
    rows = [["data", "k", "random", *arms]]
    for data, case in there.items():
        for k in steps_there(table, case):
            level = values(table, case, "random", LAST, k).mean()
            leads = [compare(table, case, arm, "random", LAST, k).text() for arm in arms]
            rows.append([data, str(k), f"{level:.1f}", *leads])
    return rows


def needed(table: pl.DataFrame, case: str, arm: str, goal: float) -> float:
    """Return at how many labels the mean over seeds reaches a goal, between rounds on a line."""
    steps = np.unique(table.filter(experiment=case, measure=LAST)["step"].to_numpy())
    level = [values(table, case, arm, LAST, step).mean() for step in steps.tolist()]
    above = np.flatnonzero(np.array(level) >= goal)
    if not above.size or not above[0]:
        return float(steps[0]) if above.size else np.inf
    at = int(above[0])
    part = (goal - level[at - 1]) / (level[at] - level[at - 1])
    return float(steps[at - 1] + part * (steps[at] - steps[at - 1]))


def needed_rows(table: pl.DataFrame) -> list[list[str]]:
    """Return the labels by which 95 % of the accuracy with all labels is reached, k = 50."""
    rows = [["data", "all labels", *SHOWN]]
    for data, case in rounds_there(table, 50).items():
        every = values(table, f"labelling/all, {data}", "all", LAST).mean()
        last = table.filter(experiment=case)["step"].max()
        found = [needed(table, case, arm, SHARE * every) for arm in SHOWN]
        rows.append([data, f"{every:.1f}", *(f"{each:.0f}" if np.isfinite(each) else f"> {last}"
                                             for each in found)])  # fmt: skip
    return rows


def network_rows(table: pl.DataFrame, case: str = "labelling/network") -> list[list[str]]:
    """Return accuracies of one case, and how far select is ahead of each arm."""
    whens = {"mean over rounds": MEAN, "last round": LAST}
    rows = [["chosen by", *(cell for when in whens for cell in (when, "select less it"))]]
    for arm in arms_there(table, case):
        cells = [arm]
        for measure in whens.values():
            lead = compare(table, case, COVER, arm, measure).text(2)
            level = values(table, case, arm, measure).mean()
            cells += [f"{level:.1f}", "" if arm == COVER else lead]
        rows.append(cells)
    return rows


def kept_rows(table: pl.DataFrame, data: str) -> list[list[str]]:
    """Return accuracy over that of random items, its mean over classes, coverage, CPU time."""
    case = f"labelling/kept, {data}"
    percents = steps_there(table, case)
    rows = [["kept by", *(f"{percent} %" for percent in percents), "mean over classes, 10 %",
             "coverage, 10 %", "s CPU, 30 %"]]  # fmt: skip
    for arm in arms_there(table, case):
        cells = [arm]
        for measure, step in (*((LAST, percent) for percent in percents), (CLASSES, 10)):
            own = mean(values(table, case, arm, measure, step)).text(1, sign=False)
            less = compare(table, case, arm, "random", measure, step).text()
            cells.append(own if arm == "random" else less)
        covered = values(table, case, arm, "coverage", 10).mean()
        spent = values(table, case, arm, "milliseconds", 30).mean() / 1000
        rows.append([*cells, f"{covered:.1f}", f"{spent:.2f}"])
    return rows


def parts_rows(table: pl.DataFrame) -> list[list[str]]:
    """Return a row for each part that is left out: the mean over rounds less BADGE's."""
    there = named(table, "parts, ")
    rows = [["chosen by", *there]]
    for arm in arms_there(table, next(iter(there.values()))):
        if arm != "BADGE":
            found = [compare(table, case, arm, "BADGE", MEAN).text() for case in there.values()]
            rows.append([arm, *found])
    return rows


def set_rows(table: pl.DataFrame) -> list[list[str]]:
    """Return accuracy and its mean over classes for each way to choose one set of 50,000."""
    case = "labelling/one set"
    budgets = steps_there(table, case)
    rows = [["chosen by", *(f"{k:,}" for k in budgets), "s CPU, 1,000"]]
    for arm in arms_there(table, case):
        cells = [" / ".join(f"{values(table, case, arm, measure, k).mean():.1f}"
                            for measure in (LAST, CLASSES)) for k in budgets]  # fmt: skip
        spent = values(table, case, arm, "milliseconds").mean() / 1000
        rows.append([arm, *cells, f"{spent:.1f}"])
    return rows


TABLES = {
    "labelling": level_rows,
    "labelling-ranks": rank_rows,
    "labelling-ahead": ahead_rows,
    "labelling-leads": lead_rows,
    "labelling-last": partial(lead_rows, measure=LAST),
    "labelling-leads-10": partial(lead_rows, end=", k=10"),
    "labelling-leads-100": partial(lead_rows, end=", k=100"),
    "labelling-last-100": partial(lead_rows, end=", k=100", measure=LAST),
    "labelling-refine": partial(lead_rows, start="Refine, ", end="", rivals=("Refine", "UHerding")),
    "labelling-one-m": one_m_rows,
    "labelling-first": first_rows,
    "labelling-first-again": partial(first_rows, start="first again, "),
    "labelling-first-sets": first_set_rows,
    "labelling-needed": needed_rows,
    "labelling-network": network_rows,
    "labelling-fitting": partial(network_rows, case=FITTING),
    "labelling-kept-mnist": partial(kept_rows, data="MNIST"),
    "labelling-kept-fashion": partial(kept_rows, data="Fashion-MNIST"),
    "labelling-kept-debian": partial(kept_rows, data="Debian"),
    "labelling-parts": parts_rows,
    "labelling-set": set_rows,
}


def figures(table: Any, folder: Path) -> list[Path]:
    """Write critical-difference diagrams."""
    panels = {f"k = {k}, {when}": ranked(table, k, measure)
              for k, when, measure in (*((k, "mean over rounds", MEAN) for k in KS),
                                       (50, "last round", LAST))
              if rounds_there(table, k)}  # fmt: skip
    return [diagram(folder / "labelling-ranks.png", panels)]
