"""What to label: ten rounds of k labels, the first set, a network, and what to keep for training.

Embeddings are fixed, with mean square 1: principal components of pixels, of features of images or
of tf-idf, or the columns of a table. A round fits a softmax to the labels, and an arm chooses k
more from a pool by the class probabilities. The first k are random, the same for all arms of a
seed. Nothing was tuned or chosen on the seeds that are reported.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from experiments.core import Case, Claim
from experiments.labelling import arms, coverage, curate, first, network
from experiments.labelling.rounds import Choose, Task, run, run_all, task
from experiments.labelling.tables import COVER, FITTING, KS, ONE_M, RIVALS, SHOWN, TABLES, figures

__all__ = ["CLAIMS", "TABLES", "TITLE", "cases", "figures", "tiny"]

TITLE = "What to label next, what to label first, what to keep"
#: Raised when all stored runs must be made again.
RUNS = 1
DATA = ("MNIST", "R8", "Oxford-102", "Debian", "robot sonar", "Fashion-MNIST", "Spambase", "digits",
        "breast cancer", "EEG", "occupancy", "products", "wine")  # fmt: skip
#: Pool and test items, rounds; pools of small sets are three quarters of them.
POOL, TESTED, ROUNDS = 4000, 4000, 10
SMALL = {"digits": 1348, "breast cancer": 427, "wine": 134, "Spambase": 3451}
#: Seeds of a case, more of a small set, those of the network, and the first seed.
SEEDS, MORE, NETWORK_SEEDS, FRESH = 20, {("breast cancer", 50): 50}, 10, 400
NEXT: dict[str, Choose] = {
    "random": arms.random,
    "margin": arms.margin,
    "entropy": arms.entropy,
    "BADGE": arms.badge,
    "CLUE": arms.clue,
    "Falcun": arms.falcun,
    "DropQuery": arms.drop_query,
    "TypiClust": coverage.typiclust,
    "ProbCover": coverage.prob_cover,
    "MaxHerding": coverage.max_herding,
    "UHerding": coverage.uherding,
    COVER: arms.by_select,
}
#: Refine takes half as long as all others together: it has its own cases, with k = 50 alone.
REFINE = {"UHerding": coverage.uherding, "Refine": coverage.refine, COVER: arms.by_select}
#: Whether m should be smaller beside given items, as it is.
SCALES = {COVER: arms.by_select, ONE_M: arms.at_one_m}
#: Arms of the network.
FEW = ("random", "margin", "BADGE", "CLUE", "TypiClust", "MaxHerding", "UHerding", COVER)
#: Labels of the first set; its strongest arms, which have ten more seeds from NEW on; and the sets
#: with pools that are large enough.
BUDGETS, NEW = (10, 50, 200), 420
AGAIN = ("random", "k-means medoids", "TypiClust", "MaxHerding", "select", "select, medoids")
LARGE = tuple(data for data in DATA if data not in SMALL or data == "Spambase")
#: Data of which a part is kept with their seeds, how many percent, items at first.
KEPT, PERCENTS, MANY = {"MNIST": 20, "Fashion-MNIST": 20, "Debian": 3}, (5, 10, 30), 8000


def rounds_of(data: str, k: int) -> int:
    """Return how many rounds of k there are until half of the pool is labelled, ten at most."""
    return min(ROUNDS, SMALL.get(data, POOL) // (2 * k) - 1)


def arms_of(choices: dict[str, Any]) -> dict[str, Any]:
    """Return arms as a case has them."""
    return {name: partial(_itself, choose=choose) for name, choose in choices.items()}


def _itself(task: Task, seed: int, choose: Any) -> Any:
    return choose


def fitting_task(seed: int, **what: Any) -> Task:
    """Return rounds on robot sonar with 64 hidden units: a softmax does not fit these data."""
    return replace(task(seed, data="robot sonar", **what), units=64)


def rounds_case(data: str, k: int, seeds: int, **sizes: int) -> Case:
    """Return rounds of labelling."""
    sizes = {"pool": POOL, "tested": TESTED, "rounds": rounds_of(data, k)} | sizes
    learn = partial(run, rounds=sizes.pop("rounds"))
    make = partial(task, data=data, k=k, **sizes)
    return Case(f"labelling/{data}, k={k}", make, arms_of(NEXT), learn, seeds, first=FRESH)


def cases(quick: bool = False) -> list[Case]:
    """Return rounds for all data and k, all labels, first sets, the network, what is kept."""
    if quick:
        return [rounds_case("digits", 10, 2, pool=1000, tested=400, rounds=3)]
    make = partial(task, k=1, pool=POOL, tested=TESTED)
    learn, see = partial(run, rounds=ROUNDS), partial(run, rounds=ROUNDS, learn=network.Network)
    images = partial(network.images_task, data="Fashion-MNIST", k=50, pool=POOL, tested=TESTED)
    found = [
        *(
            rounds_case(data, k, MORE.get((data, k), SEEDS))
            for k in KS for data in DATA if rounds_of(data, k) >= 3
        ),
        *(
            replace(rounds_case(data, 50, SEEDS), name=f"labelling/Refine, {data}",
                    arms=arms_of(REFINE))
            for data in DATA if rounds_of(data, 50) >= 3
        ),
        *(
            replace(rounds_case(data, k, MORE.get((data, k), SEEDS)),
                    name=f"labelling/one m, {data}, {k} labels", arms=arms_of(SCALES))
            for k in KS for data in DATA if rounds_of(data, k) >= 3
        ),
        *(
            Case(f"labelling/all, {data}", partial(make, data=data), arms_of({"all": None}),
                 run_all, SEEDS)
            for data in DATA
        ),
        *(
            Case(f"labelling/first, {data}", partial(make, data=data), arms_of(first.FIRST),
                 partial(first.run_first, budgets=BUDGETS), SEEDS)
            for data in LARGE
        ),
        *(
            Case(f"labelling/first again, {data}", partial(make, data=data),
                 arms_of({name: first.FIRST[name] for name in AGAIN}),
                 partial(first.run_first, budgets=BUDGETS), 10, first=NEW)
            for data in LARGE
        ),
        Case(FITTING, partial(fitting_task, k=50, pool=POOL, tested=TESTED),
             arms_of({name: NEXT[name] for name in SHOWN}), learn, SEEDS),
        Case("labelling/network", images, arms_of({name: NEXT[name] for name in FEW}), see,
             NETWORK_SEEDS),
        *(
            Case(f"labelling/kept, {data}",
                 partial(curate.redundant, data=data, pool=MANY, tested=TESTED),
                 arms_of(curate.KEEP), partial(curate.run_keep, percents=PERCENTS), seeds)
            for data, seeds in KEPT.items()
        ),
    ]  # fmt: skip
    return [replace(case, first=case.first or FRESH) for case in found]


def tiny() -> list[Case]:
    """Return the same on small digits."""
    small: dict[str, int] = {"pool": 300, "tested": 100}
    make = partial(task, data="digits", k=1, **small)
    sets = {name: first.FIRST[name] for name in ("random", "select")}
    return [
        replace(rounds_case("digits", 10, 2, rounds=2, **small), first=0),
        Case("labelling/all, digits", make, arms_of({"all": None}), run_all, 2),
        Case("labelling/first, MNIST", make, arms_of(sets),
             partial(first.run_first, budgets=(10, 20)), 2),
        Case("labelling/kept, digits", partial(curate.redundant, data="digits", **small),
             arms_of(curate.KEEP), partial(curate.run_keep, percents=(30,)), 2),
    ]  # fmt: skip


CLAIMS = [
    *(
        Claim("beyond", f"{data}, {when}: select against {against}",
              f"labelling/{data}, k=50", COVER, measure, against, digits=2)
        for data in DATA if rounds_of(data, 50) >= 3
        for when, measure in (("mean over rounds", "mean accuracy"), ("last round", "accuracy"))
        for against in RIVALS
    ),
    *(
        Claim("beyond", f"{data}, first {k}: select, medoids against {against}",
              f"labelling/first, {data}", "select, medoids", "accuracy", against, step=k)
        for data in LARGE for k in BUDGETS for against in ("k-means medoids", "TypiClust", "select")
    ),
]  # fmt: skip
