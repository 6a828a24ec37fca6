"""What to label next: ten rounds of k labels, and one set to label at the start.

Embeddings are fixed, with mean square 1 per column: 50 principal components of pixels, 100 of
features of images or of tf-idf. A round fits a softmax (or a network with one hidden layer) to the
labels, and an arm chooses k more from a pool by the class probabilities. The first k are random,
the same for all arms of a seed. `select` was tuned on MNIST, Oxford-102 and digits; R8, Debian and
the sonar of a robot are held out. The main cases have seeds that nothing was tuned or chosen on.
Products have no classes to learn. Greedy k-DPP sets gain most by rows of one length and a stronger
regularised softmax, which two cases have.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from experiments.core import Case, Claim, lines
from experiments.core.compare import compare, mean, values
from experiments.core.figures import differences
from experiments.labelling.arms import ACTIVEML, ALONE, COVER, DRAW, GREEDY, MAIN, PARTS, SIMPLE
from experiments.labelling.rounds import Choose, Task, run, task
from experiments.labelling.sets import SETS, run_set

TITLE = "What to label next: ten rounds, and one set"
DATA = ("MNIST", "R8", "Oxford-102", "Debian", "robot sonar")
#: Pool and test items, rounds.
POOL, TESTED, ROUNDS = 6000, 4000, 10
#: Labels of the one set, and its pool.
BUDGETS, LARGE = (50, 100, 200, 500, 1000), 50000
#: How strongly the softmax is regularised where that is better for random labels than 1, of 1 and
#: 10, on other seeds; and the first of the seeds on which no rule was tuned or chosen.
DECAY, FRESH = {"MNIST": 10.0, "Debian": 10.0}, 200
#: Arms of cases besides the main one.
FEW = {name: choose for name, choose in MAIN.items() if name != DRAW}


def arms_of(choices: dict[str, Choose]) -> dict[str, Any]:
    """Return arms as a case has them."""
    return {name: partial(_itself, choose=choose) for name, choose in choices.items()}


def _itself(task: Task, seed: int, choose: Any) -> Any:
    return choose


def case(
    title: str, data: str, k: int, seeds: int, arms: dict[str, Any], units: int = 0,
    pool: int = POOL, tested: int = TESTED, rounds: int = ROUNDS, unit: bool = False,
    decay: float = 1.0, first: int = 0,
) -> Case:  # fmt: skip
    """Return rounds of labelling, with the seeds from `first` on."""
    make = partial(task, data=data, k=k, pool=pool, tested=tested, unit=unit)
    learn = partial(run, rounds=rounds, units=units, decay=decay)
    return Case(f"labelling/{title}", make, arms, learn, seeds, first=first)


def sets_case(data: str, seeds: int, pool: int, tested: int, budgets: tuple[int, ...]) -> Case:
    """Return the sets that are labelled at once."""
    make = partial(task, data=data, k=1, pool=pool, tested=tested)
    arms = {name: partial(_itself, choose=name) for name in SETS}
    return Case("labelling/one set", make, arms, partial(run_set, budgets=budgets), seeds)


def cases(quick: bool = False) -> list[Case]:
    """Return all data with k = 50; other k; the network; parts; scikit-activeml; one set."""
    if quick:
        return [
            case("MNIST", "MNIST", 50, 2, arms_of(MAIN), pool=2000, tested=1000, rounds=3),
            case("parts, MNIST", "MNIST", 50, 2, arms_of(PARTS), pool=1000, tested=500, rounds=2),
        ]
    few, main = arms_of(FEW), arms_of(MAIN | {ALONE: PARTS[ALONE]})
    simple = arms_of({name: MAIN[name] for name in REGULARISED})
    return [
        sets_case("Debian", 5, LARGE, 10000, BUDGETS),  # first, because its runs are the longest
        *(case(data, data, 50, 20, main, decay=DECAY.get(data, 1.0), first=FRESH) for data in DATA),
        *(
            case(f"MNIST, decay={decay:g}", "MNIST", 50, 20, simple, decay=decay, first=FRESH)
            for decay in WEAKER
        ),
        *(case(f"{data}, k={k}", data, k, 20, few) for k in KS for data in DATA),
        *(case(f"{data}, network", data, 50, 20, few, units=64) for data in DATA),
        *(case(f"parts, {data}", data, 50, 20, arms_of(PARTS), pool=3000) for data in AGAIN),
        *(
            case(f"{data}, length 1", data, 50, 20, few, unit=True, decay=10.0)
            for data in ("MNIST", "Oxford-102")
        ),
        *(case(f"activeml, {data}", data, 50, 20, arms_of(ACTIVEML), pool=3000) for data in DATA),
    ]


#: Arms that are compared with a softmax that is regularised less, and how much.
REGULARISED, WEAKER = ("random", "margin", "BADGE", COVER), (0.1, 1.0)
#: k besides 50, and data whose parts are looked at.
KS, AGAIN = (10, 20, 100), ("MNIST", "Oxford-102", "Debian")


def tiny() -> list[Case]:
    """Return the same on small digits."""
    small: dict[str, Any] = {"pool": 300, "tested": 100, "rounds": 2}
    return [
        case("MNIST", "digits", 10, 2, arms_of(MAIN), **small),
        case("MNIST, network", "digits", 10, 2, arms_of(FEW), units=8, **small),
        case("parts, MNIST", "digits", 10, 2, arms_of(PARTS), **small),
        sets_case("digits", 2, 400, 100, (10, 20)),
    ]


MEAN = "mean over rounds: accuracy after each of ten rounds of k labels"
CLAIMS = [
    *(
        Claim("beyond", f"{data}, k = 50, {when}: cover against {against}", f"labelling/{data}",
              COVER, measure, against, note=MEAN if "mean" in measure else "")
        for data in DATA
        for when, measure in (("mean over rounds", "mean accuracy"), ("last round", "accuracy"))
        for against in ("BADGE", "random")
    ),
    *(
        Claim("beyond", f"one set of {k} of 50,000: cover against {against}", "labelling/one set",
              COVER, "accuracy", against, step=k)
        for k in BUDGETS for against in ("random", "k-means medoids")
    ),
]  # fmt: skip


def there(table: pl.DataFrame, name: str) -> list[str]:
    """Return the data with results for the case `name`, such as "{}, k=20"."""
    found = set(table["experiment"].unique())
    return [data for data in DATA if f"labelling/{name.format(data)}" in found]


def rounds_rows(
    table: pl.DataFrame, name: str, measure: str, arms: dict[str, Choose] = MAIN
) -> list[list[str]]:
    """Return a row for each arm: the measure less BADGE's, and the time per round."""
    data = there(table, name)
    rows = [["chosen by", *data, "ms CPU per round"]]
    for arm in arms if data else ():
        cells, times = [arm], []
        for case in (f"labelling/{name.format(each)}" for each in data):
            if arm == "BADGE":
                cells.append(mean(values(table, case, arm, measure)).text(1, sign=False))
            else:
                cells.append(compare(table, case, arm, "BADGE", measure).text())
            times.append(values(table, case, arm, "milliseconds per round").mean())
        rows.append([*cells, f"{min(times):.0f} to {max(times):.0f}"])
    return rows


def k_rows(table: pl.DataFrame, measure: str = "mean accuracy") -> list[list[str]]:
    """Return cover less each other arm, mean over data, by k and for the network."""
    names = {f"k = {k}": "{}" if k == 50 else f"{{}}, k={k}" for k in sorted([50, *KS])}
    names["k = 50, network"] = "{}, network"
    names = {head: name for head, name in names.items() if there(table, name)}
    rows = [["cover less", *names]]
    for arm in (*SIMPLE, GREEDY):
        cells = [arm]
        for name in names.values():
            found = [compare(table, f"labelling/{name.format(data)}", COVER, arm,
                             measure).mean for data in there(table, name)]  # fmt: skip
            cells.append(f"{np.mean(found):+.1f} ({min(found):+.1f} to {max(found):+.1f})")
        rows.append(cells)
    return rows


def parts_rows(table: pl.DataFrame) -> list[list[str]]:
    """Return a row for each part that is left out: the mean over rounds less BADGE's."""
    data = there(table, "parts, {}")
    rows = [["chosen by", *data]]
    for arm in PARTS:
        found = [compare(table, f"labelling/parts, {each}", arm, "BADGE", "mean accuracy")
                 for each in data]  # fmt: skip
        rows.append([arm, *("0" if arm == "BADGE" else each.text() for each in found)])
    return rows


def own_rows(table: pl.DataFrame) -> list[list[str]]:
    """Return what the item's own uncertainty adds, as a factor, to what it covers."""
    data = [each for each in there(table, "{}")
            if table.filter(experiment=f"labelling/{each}", arm=ALONE).height]  # fmt: skip
    rows = [["cover less plain facility location", *data]]
    for when, measure in (("mean over rounds", "mean accuracy"), ("last round", "accuracy")):
        found = [compare(table, f"labelling/{each}", COVER, ALONE, measure) for each in data]
        rows.append([when, *(each.text(2) for each in found)])
    return rows


def decay_rows(table: pl.DataFrame) -> list[list[str]]:
    """Return the accuracy on MNIST by how strongly the softmax is regularised."""
    names = {f"{decay:g}": f"MNIST, decay={decay:g}" for decay in WEAKER} | {"10": "MNIST"}
    names = {head: name for head, name in names.items() if there(table, name)}
    rows = [["chosen by", *(f"{head}, {when}" for when in ("mean over rounds", "last round")
                            for head in names)]]  # fmt: skip
    for arm in REGULARISED if names else ():
        cells = [arm]
        for measure in ("mean accuracy", "accuracy"):
            for name in names.values():
                own = mean(values(table, f"labelling/{name}", arm, measure))
                less = compare(table, f"labelling/{name}", arm, "BADGE", measure)
                cells.append(own.text(1, sign=False) if arm == "BADGE" else less.text())
        rows.append(cells)
    return rows


def set_rows(table: pl.DataFrame) -> list[list[str]]:
    """Return accuracy and its mean over classes for each way to choose one set."""
    rows = [["chosen by", *(f"{k:,}" for k in BUDGETS), "seconds for 1,000"]]
    name = "labelling/one set"
    for arm in SETS:
        cells = [
            " / ".join(f"{values(table, name, arm, measure, k).mean():.1f}"
                       for measure in ("accuracy", "mean over classes"))
            for k in BUDGETS
        ]  # fmt: skip
        spent = values(table, name, arm, "milliseconds").mean() / 1000
        rows.append([arm, *cells, f"{spent:.1f}"])
    return rows


#: Of cases that are not stored, a table has no columns.
TABLES = {
    "labelling": partial(rounds_rows, name="{}", measure="mean accuracy"),
    "labelling-last": partial(rounds_rows, name="{}", measure="accuracy"),
    "labelling-k": k_rows,
    "labelling-k-last": partial(k_rows, measure="accuracy"),
    "labelling-length": partial(
        rounds_rows, name="{}, length 1", measure="mean accuracy", arms=FEW
    ),
    "labelling-parts": parts_rows,
    "labelling-own": own_rows,
    "labelling-decay": decay_rows,
    "labelling-activeml": partial(
        rounds_rows, name="activeml, {}", measure="mean accuracy", arms=ACTIVEML
    ),
    "labelling-activeml-last": partial(
        rounds_rows, name="activeml, {}", measure="accuracy", arms=ACTIVEML
    ),
    "labelling-set": set_rows,
}


def above(table: pl.DataFrame, against: str) -> pl.DataFrame:
    """Return the accuracies less those of an arm with the same seed and number of labels."""
    found = table.filter(measure="accuracy")
    keys = ["experiment", "seed", "step"]
    base = found.filter(arm=against).select(*keys, base="value")
    return found.join(base, on=keys).with_columns(value=pl.col("value") - pl.col("base"))


def figures(table: Any, folder: Path) -> list[Path]:
    """Write accuracy over labels, and differences from BADGE."""
    panels = {data: f"labelling/{data}" for data in DATA}
    columns: Any = {data: (name, "mean accuracy", None) for data, name in panels.items()}
    arms = ["random", "margin", "CLUE", GREEDY, COVER]
    return [
        lines(above(table, "BADGE"), folder / "labelling-curves.png", panels, arms, "accuracy",
              "points above BADGE", "labels", same_scale=False),
        differences(table, folder / "labelling.png", columns, "BADGE",
                    "points above BADGE, mean over rounds"),
        lines(table, folder / "labelling-set.png", {"one set": "labelling/one set"}, list(SETS),
              "accuracy", "accuracy, %", "labels", log="x"),
    ]  # fmt: skip
