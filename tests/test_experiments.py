"""One contract for every experiment, on tiny data and on the stored results; units of the core."""

from __future__ import annotations

import os
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.error import URLError

import numpy as np
import polars as pl
import pytest
from matplotlib.figure import Figure

import dmsgd
from experiments.__main__ import EXPERIMENTS, STORED, main
from experiments.core import Case, Claim, Decomposition, decompose, markdown, provenance, training
from experiments.core import table as tables
from experiments.core.compare import Column, Difference, compare, mean, share_of_runs
from experiments.core.figures import bars, lines
from experiments.core.journal import Job, Journal
from experiments.core.protocol import at_the_edge, best_rates, results
from experiments.models import softmax

#: Experiments that compare no trainings, and a measure that is of batches alone.
UNTRAINED, OF_BATCHES = ("r8_cost", "mnist_cost", "labelling"), {"variance"}
#: Experiments whose figures show models that are not stored: those of the tiny data are drawn.
TRAINED_AGAIN = ("r8",)
#: Values that depend on the clock.
TIMES = r"^(ms per batch|milliseconds|set-up)"

Found = Iterator[tuple[int, str, float]]


def module_of(name: str) -> ModuleType:
    return import_module(f"experiments.{name}")


# The contract


#: Left to `make test-long`.
SLOW = {
    "debian", "federated", "labelling", "long_tailed", "mnist", "r8", "r8_cost", "topics",
}  # fmt: skip


def tiny_cases(name: str) -> list[Case]:
    return [replace(case, seeds=2, tuning_seeds=1) for case in module_of(name).tiny()]


@pytest.mark.parametrize(
    "name", [pytest.param(each, marks=[pytest.mark.long] * (each in SLOW)) for each in EXPERIMENTS]
)
def test_an_experiment_runs_and_gives_the_same_again(name: str) -> None:
    cases = tiny_cases(name)
    assert {case.name.partition("/")[0] for case in cases} == {name}
    table = results(cases)
    assert table.schema == tables.SCHEMA
    assert not table.select(tables.KEYS).is_duplicated().any()
    for case in cases:
        own = table.filter(experiment=case.name)
        assert set(own["arm"]) == set(case.arms)
        assert set(own["seed"]) == {0, 1}
        measures = set(own.filter(pl.col("step") > 0)["measure"]) - OF_BATCHES
        if measures and name not in UNTRAINED:
            assert list(case.arms)[:2] == ["uniform", "shuffled"], case.name
        last = list(case.arms)[-1]
        again = results([replace(case, seeds=1, arms={last: case.arms[last]})])
        before = own.filter(arm=last, seed=0)
        assert again.select(tables.KEYS).equals(before.select(tables.KEYS))
        if not name.endswith("_cost"):
            fixed = ~pl.col("measure").str.contains(TIMES)
            assert again.filter(fixed).equals(before.filter(fixed)), case.name


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_claims_are_about_what_is_stored_and_what_is_run(name: str) -> None:
    module, stored = module_of(name), tables.read(name)
    cases = {case.name: case for case in module.cases()}
    assert {case.name.partition("/")[0] for case in (*cases.values(), *module.cases(True))} == {
        name
    }
    assert isinstance(module.TITLE, str)
    assert module.CLAIMS
    for claim in module.CLAIMS:
        assert np.isfinite(claim.check(stored).mean), claim
        assert claim.ours(stored), claim
        assert {claim.arm, claim.against} <= {*cases[claim.experiment].arms, None}, claim
    for row in getattr(module, "DECOMPOSED", ()):
        parts = decompose(stored, row)
        whole, frequency, repulsion = (part.mean for part in list(parts.values())[:3])
        assert frequency + repulsion == pytest.approx(whole), row
    for made in getattr(module, "TABLES", {}).values():
        rows = made(stored)
        assert len({len(row) for row in rows}) == 1


@pytest.mark.parametrize(
    "name", ["toy", *(pytest.param(each, marks=pytest.mark.long) for each in EXPERIMENTS[1:])]
)
def test_figures_are_drawn_from_what_is_stored(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = Figure.savefig

    def coarse(self: Figure, path: Path, dpi: float) -> None:
        whole(self, path, dpi=25)

    def offline(*_: Any) -> None:
        raise URLError("tests fetch nothing")

    monkeypatch.setattr(Figure, "savefig", coarse)
    monkeypatch.setattr(urllib.request, "urlretrieve", offline)
    table = results(tiny_cases(name)) if name in TRAINED_AGAIN else tables.read(name)
    try:
        written = module_of(name).figures(table, tmp_path)
    except OSError as error:
        if "DMSGD_DATA" in os.environ:
            raise
        pytest.skip(f"needs real data: {error}")
    assert sorted(written) == sorted(tmp_path.iterdir())
    assert all(path.name.replace("-", "_").startswith(name) for path in written)


def test_the_tables_of_the_docs_are_those_of_the_stored_results(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["tables", "--check"]) == 0, capsys.readouterr().out


def test_every_stored_result_belongs_to_an_experiment() -> None:
    stored = {path.name for path in tables.RESULTS.iterdir()}
    assert stored == {f"{name}.parquet" for name in (*EXPERIMENTS, *STORED)}


@pytest.mark.parametrize("name", STORED)
def test_a_stored_study_has_its_runs_and_tables(name: str) -> None:
    assert {case.partition("/")[0] for case in tables.read(name)["experiment"].unique()} == {name}
    made = [path.stem for path in (markdown.DOCS / "results").glob(f"{name}*.csv")]
    assert made
    for each in made:
        rows = markdown.stored_rows(each)
        assert len({len(row) for row in rows}) == 1
        assert len(rows) > 1


#: Columns of stored tables: experiment, measure, step; what differences are from; digits.
COLUMNS: dict[tuple[str, str], tuple[Column, str, int]] = {
    ("targets", "flowers, 1 epoch"): (("targets/flowers", "accuracy", 60), "stratified", 1),
    ("targets", "digits, 40 epochs"): (("targets/digits", "accuracy", None), "stratified", 1),
    ("subgroups", "worst digit, 300 updates"): (("subgroups", "worst digit", 300), "uniform", 1),
    ("rare-flowers", "flowers: rare classes, %"): (
        ("rare/flowers", "accuracy of rare classes", None), "shuffled", 1,
    ),
    ("negatives-alone", "Abt-Buy, alone: recall@1"): (
        ("negatives/Abt-Buy, alone", "recall@1", None), "shuffled", 1,
    ),
    ("coordinates-elevation", "k = 4,096, 200 updates"): (
        ("coordinates/elevation, k=4096", "PSNR", 200), "shuffled", 2,
    ),
}  # fmt: skip


@pytest.mark.parametrize(("name", "title"), COLUMNS)
def test_stored_tables_are_those_of_the_stored_runs(name: str, title: str) -> None:
    column, against, digits = COLUMNS[name, title]
    runs = tables.read(name.partition("-")[0]).filter(experiment=column[0])
    head, *rows = markdown.stored_rows(name)
    shown = [["batches", title], *([row[0], row[head.index(title)]] for row in rows)]
    assert shown == markdown.arm_rows(runs, {title: column}, against, digits)


def test_a_table_that_nothing_makes_is_named() -> None:
    with pytest.raises(FileNotFoundError, match="no-such-table"):
        markdown.stored_rows("no-such-table")


# The command line


def test_an_experiment_is_run_written_read_again_and_not_replaced(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["toy", "--quick", "--seeds", "2", "--out", str(tmp_path)]) == 0
    assert "k-DPP restores the balance" in capsys.readouterr().out
    names = {"toy.parquet", "toy.png"}
    assert {path.name for path in tmp_path.iterdir()} == names  # no journal
    saved = (tmp_path / "toy.parquet").read_bytes()
    (tmp_path / "toy.png").unlink()
    assert main(["toy", "--replot", "--out", str(tmp_path)]) == 0
    assert (tmp_path / "toy.png").is_file()
    with pytest.raises(SystemExit, match="2"):
        main(["toy", "--out", str(tmp_path)])
    assert "--force" in capsys.readouterr().err
    assert (tmp_path / "toy.parquet").read_bytes() == saved


def test_an_unknown_experiment_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["figure-2"])
    assert "synthetic_lda" in capsys.readouterr().err


# Units of the core

ROWS = [
    ("e", arm, seed, step, "score", value)
    for arm, values in {"uniform": (70, 60, 80, 75, 65), "k-DPP": (74, 66, 83, 79, 68)}.items()
    for seed, value in enumerate(values)
    for step in (5, 10)
] + [("e", "k-DPP, frequency-matched", seed, 10, "score", 72.0) for seed in range(5)]  # fmt: skip
TABLE = tables.as_table(ROWS)
GAIN = np.array([4.0, 6, 3, 4, 3])


def test_a_claim_by_hand() -> None:
    claim = Claim("Fig. 1", "better", "e", "k-DPP", "score", "uniform")
    found = claim.check(TABLE)
    assert (found.mean, found.seeds) == (pytest.approx(4.0), 5)
    assert found.half == pytest.approx(2.776445 * GAIN.std(ddof=1) / np.sqrt(5))
    assert claim.significant(TABLE) is True
    assert claim.ours(TABLE) == "70.0 → 74.0 (+4.0 ± 1.5)"
    assert replace(claim, lower=True).check(TABLE).mean == pytest.approx(-4.0)
    assert replace(claim, lower=True).significant(TABLE) is False
    assert replace(claim, verdict=False).significant(TABLE) is None
    few = TABLE.filter(pl.col("seed") < 4)
    assert claim.significant(few) is None  # too few seeds
    above = replace(claim, against=None, limit=60.0)
    assert above.check(TABLE).mean == pytest.approx(14.0)
    assert above.ours(TABLE).startswith("74.0 ± ")
    logs = compare(TABLE, "e", "k-DPP", "uniform", "score", ratio=True)
    assert logs.mean == pytest.approx(np.log([74 / 70, 66 / 60, 83 / 80, 79 / 75, 68 / 65]).mean())
    assert logs.factor().startswith("1.06 (")


@pytest.mark.parametrize(
    ("lead", "half", "seeds", "expected"),
    [
        (0.54, 0.53, 9, True),
        (0.53, 0.54, 9, False),
        (0.5, 0.5, 9, False),  # touches 0
        (-0.6, 0.5, 9, False),
        (9.0, 0.1, 4, None),
        (9.0, float("nan"), 1, None),
        (1e-12, 0.0, 0, True),  # a closed form
    ],
)
def test_a_statement_holds_if_its_interval_lies_above_0(
    lead: float, half: float, seeds: int, expected: bool | None
) -> None:
    assert Difference(lead, half, seeds).significant is expected


def test_seeds_are_joined_and_not_positions() -> None:
    other = TABLE.filter(~((pl.col("arm") == "uniform") & (pl.col("seed") == 0)))
    assert compare(other.reverse(), "e", "k-DPP", "uniform", "score").mean == GAIN[1:].mean()
    with pytest.raises(ValueError, match="no 'loss'"):
        compare(TABLE, "e", "k-DPP", "uniform", "loss")
    apart = TABLE.filter((pl.col("arm") == "uniform") == (pl.col("seed") < 2))
    with pytest.raises(ValueError, match="in common"):
        compare(apart, "e", "k-DPP", "uniform", "score")


def test_a_decomposition_adds_up() -> None:
    found = decompose(TABLE, Decomposition("score", "e", "k-DPP", "score"))
    whole, frequency, repulsion = found.values()
    assert whole.mean == pytest.approx(4.0)
    assert frequency == mean(72.0 - np.array([70.0, 60, 80, 75, 65]))
    assert frequency.mean + repulsion.mean == pytest.approx(whole.mean)
    lower = decompose(TABLE, Decomposition("score", "e", "k-DPP", "score", lower=True))
    assert [part.mean for part in lower.values()] == [-part.mean for part in found.values()]
    alone = [("e", "k-DPP, uniform frequency", seed, 10, "score", 71.0) for seed in range(5)]
    more = decompose(tables.as_table(ROWS + alone), Decomposition("", "e", "k-DPP", "score"))
    assert more["repulsion alone"].mean == pytest.approx(1.0)
    (head, row) = markdown.decomposition_rows(
        [("x", TABLE, [Decomposition("s", "e", "k-DPP", "score")])]
    )
    assert row[:5] == ["x", "s", "5", "70.0", "+4.0 ± 1.5"]
    assert len(row) == len(head)


def test_the_share_of_runs_has_wilsons_interval() -> None:
    """At its ends, the test of the score is significant at exactly 5 %."""
    hits = [("e", "a", seed, 0, "found", float(seed < 7)) for seed in range(20)]
    found = share_of_runs(tables.as_table(hits), "e", "a", "found")
    for edge in (found.mean - found.half, found.mean + found.half):
        z = (7 / 20 - edge) / np.sqrt(edge * (1 - edge) / 20)
        assert abs(z) == pytest.approx(1.959964, abs=1e-5)
    claim = Claim("Fig. 1", "most", "e", "a", "found", share=True, limit=0.5)
    assert claim.significant(tables.as_table(hits)) is False
    assert claim.ours(tables.as_table(hits)) == "7 of 20 runs"


def test_the_first_five_columns_are_keys() -> None:
    with pytest.raises(ValueError, match="two values"):
        tables.as_table([*ROWS, ROWS[0]])


def test_a_table_comes_back_with_what_made_it(tmp_path: Path) -> None:
    tables.write(TABLE, tmp_path / "e.parquet")
    assert tables.read("e", tmp_path).equals(TABLE)
    recorded = tables.recorded("e", tmp_path)
    assert tuple(recorded) == provenance.FIELDS
    assert recorded["numpy"] == np.__version__
    line = provenance.told(recorded)
    assert f"numpy {np.__version__}" in line
    assert "not recorded" not in line
    assert provenance.told({"machine": "Linux"}).startswith("Linux; not recorded: processor")


def test_a_table_that_cannot_be_written_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "e.parquet").mkdir()
    with pytest.raises(OSError, match="directory"):
        tables.write(TABLE, tmp_path / "e.parquet")
    assert [file.name for file in tmp_path.iterdir()] == ["e.parquet"]


def test_missing_and_damaged_tables_are_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="experiments e first"):
        tables.read("e", tmp_path)
    tables.write(TABLE, tmp_path / "e.parquet")
    content = (tmp_path / "e.parquet").read_bytes()
    for damaged in (content[:-20], b"", b"PAR1" + content[4:200]):
        (tmp_path / "e.parquet").write_bytes(damaged)
        with pytest.raises(ValueError, match="damaged"):
            tables.read("e", tmp_path)
    TABLE.drop("seed").write_parquet(tmp_path / "e.parquet")
    with pytest.raises(ValueError, match="damaged"):
        tables.read("e", tmp_path)


def test_a_commit_is_that_of_the_checkout() -> None:
    package = Path(dmsgd.__file__).parent
    assert provenance.commit(package.parent.parent / "nowhere") == ""
    known = provenance.commit(package).removesuffix("+changes")
    assert known == "" or len(known) >= 7


# Running


def score(task: Any, design: Any, seed: int, rate: float) -> Found:
    """Yield what is best at rate 2, at one whose neighbour is bad, at the only one not lost, or
    at rate 2 with bad neighbours, of which the farther from an end is better.
    """
    every = {
        "plain": (5.0, 6.0, 5.5, np.nan),
        "lucky": (5.0, 5.5, 0.0, 5.6),
        "lost": (1.0, np.inf, np.inf, np.inf),
        "peak": (1.0, 9.0, 2.0, 1.0),
    }
    value = every[design][RATES.index(rate)]
    yield 1, "validation accuracy", value
    yield 1, "score", value + seed


ARMS = {arm: lambda task, seed, arm=arm: arm for arm in ("plain", "lucky", "lost", "peak")}
RATES = (1.0, 2.0, 4.0, 8.0)
CASE = Case("e", lambda seed: seed, ARMS, score, seeds=3, rates=RATES, tuning_seeds=2)


def test_each_arm_has_its_own_rate_from_other_seeds() -> None:
    told: list[float] = []
    table = results([CASE], progress=told.append)
    rates = dict(table.filter(measure="rate").select("arm", "value").iter_rows())
    # Neighbours count, NaN is the worst, and an end does not win by its neighbour alone.
    assert rates == {"plain": 2.0, "lucky": 1.0, "lost": 1.0, "peak": 2.0}
    three = replace(CASE, arms={"peak": ARMS["peak"]}, rates=RATES[:3])
    assert results([three]).filter(measure="rate")["value"].to_list() == [2.0]
    assert at_the_edge(CASE, table) == ["lucky", "lost"]
    assert table["seed"].max() == 2  # seeds that choose are not reported
    assert told[-1] == 1.0
    assert told == sorted(told)
    assert best_rates(replace(CASE, rates=(3.0,)), Journal(None, "")) == dict.fromkeys(
        CASE.arms, 3.0
    )


def test_processes_share_the_runs_and_change_nothing() -> None:
    assert results([CASE], workers=2).equals(results([CASE]))


def test_a_journal_goes_on_after_a_cut_line_and_anew_for_other_code(tmp_path: Path) -> None:
    path, done = tmp_path / "below" / "e.journal", []

    def run(*arguments: Any) -> Found:
        done.append(arguments[2:])
        yield from score(*arguments)

    case = replace(CASE, run=run)
    whole = results([case], journal=Journal(path, "version 1"))
    jobs = len(done)
    assert jobs == len(ARMS) * (len(RATES) * 2 + 3)
    text = path.read_text(encoding="utf-8")
    path.write_text(text[:-10], encoding="utf-8")  # killed while it wrote the last line
    again = Journal(path, "version 1")
    assert len(again) == jobs - 1
    assert results([case], journal=again).equals(whole, null_equal=True)
    assert len(done) == jobs + 1
    assert path.read_text(encoding="utf-8") == text
    assert Job("e", "plain", 0, 2.0) in again
    assert len(Journal(path, "version 2")) == 0
    assert path.read_text(encoding="utf-8") == '"version 2"\n'


def test_the_journal_of_an_interrupted_run_is_used_and_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    toy, options = module_of("toy"), ["toy", "--quick", "--seeds", "2", "--out", str(tmp_path)]
    made: list[int] = []

    def interrupted(seed: int) -> Any:
        made.append(seed)
        if len(made) == 4:
            raise KeyboardInterrupt
        return toy.tiny()[0].task(seed)

    monkeypatch.setattr(
        toy, "cases", lambda quick: [replace(toy.tiny()[0], task=interrupted, seeds=2)]
    )
    with pytest.raises(KeyboardInterrupt):
        main(options)
    assert (tmp_path / "toy.journal").is_file()
    assert main(options) == 0
    assert "3 finished runs" in capsys.readouterr().out
    assert len(made) == 4 + 5  # of eight
    assert not (tmp_path / "toy.journal").exists()


def test_arms_of_a_training_begin_with_uniform_and_shuffled() -> None:
    arms = training(10, 5, {"mine": lambda task, seed: None})
    assert list(arms) == ["uniform", "shuffled", "mine"]
    epoch = arms["shuffled"](None, 0).sample(2, seed=0)
    assert sorted(epoch.ravel().tolist()) == list(range(10))


def test_data_that_advice_is_tested_on_stays_held_out() -> None:
    advice = module_of("advice")
    assert advice.held_out() == ["breast cancer", "dblp", "wine", "eeg"]
    assert [len(advice.GROUPS[each]) for each in ("held out", "others")] == [6, 12]
    assert not set(advice.MADE_ON) & set(advice.HELD_OUT)


def test_pooled_data_sets_are_means_seed_by_seed() -> None:
    advice = module_of("advice")
    names = advice.GROUPS["held out"]
    rows = [
        (f"advice/{name}", "advice", seed, 20, advice.SCORE, float(number + 10 * seed))
        for number, name in enumerate(names)
        for seed in (0, 1)
    ]
    pooled = advice.pooled(tables.as_table(rows)).filter(experiment="advice/held out")
    assert pooled.sort("seed")["value"].to_list() == [2.5, 12.5]


# Tables and figures


def test_marked_places_of_pages_and_linked_files_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(markdown, "DOCS", tmp_path)
    page, file = tmp_path / "page.md", tmp_path / "x-y.csv"
    page.write_text(
        "a\n<!-- claims r8-cost -->\nold\n<!-- end -->\nb <!-- table x: k = 1, -->\n<!-- end -->\n"
        "[all](x-y.csv) [not of ours](https://e.org/z.csv)\n"
    )
    (tmp_path / "other.md").write_text("nothing to do\n")

    def make(kind: str, name: str, pattern: str) -> str:
        return f"{kind} of {name}{pattern}\n"

    assert markdown.update_pages(make, check=True) == [page, file]
    assert "old" in page.read_text()
    assert not file.exists()
    assert markdown.update_pages(make, check=False) == [page, file]
    assert "<!-- claims r8-cost -->\nclaims of r8-cost\n<!-- end -->" in page.read_text()
    assert "<!-- table x: k = 1, -->\ntable of xk = 1,\n<!-- end -->" in page.read_text()
    assert file.read_text() == "csv of x-y\n"
    assert markdown.update_pages(make, check=True) == []
    file.write_text("altered\n")
    assert markdown.update_pages(make, check=True) == [file]


def test_rows_are_chosen_by_a_pattern_and_files_have_every_cell() -> None:
    rows = [["task", "arm"], ["a", "one"], ["", "two, three"], ["b", "one"]]
    assert markdown.matching(rows, r"^a \| two|^b") == [rows[0], ["a", "two, three"], rows[3]]
    assert markdown.as_csv(rows) == 'task,arm\na,one\na,"two, three"\nb,one\n'


def test_claims_of_all_experiments_are_one_table() -> None:
    claim = Claim("Fig. 1", "more", "e", "k-DPP", "score", "uniform")
    head, row = markdown.all_claim_rows([("name", TABLE, [claim]), ("none", TABLE, ())])
    assert row[:3] == ["name", "Fig. 1", "more"]
    assert len(head) == len(row)


def test_claims_have_notes_and_what_made_them() -> None:
    claims = [
        Claim("Fig. 1", f"a | {n}", "e", "k-DPP", "score", "uniform", note="why") for n in (1, 2)
    ]
    text = markdown.claims_section(claims, TABLE, {"machine": "Linux"})
    assert "| Fig. 1 | a / 1 [1] |  | 70.0 → 74.0 (+4.0 ± 1.5) | yes |" in text
    assert text.count("[1] why") == 1
    assert "Made on: Linux" in text


def test_curves_and_differences_are_drawn(tmp_path: Path) -> None:
    arms = ("uniform", "k-DPP", "not there")
    lines(TABLE, tmp_path / "lines.png", {"one": "e"}, arms, "score", "score", log="xy")
    gain = {"k-DPP": compare(TABLE, "e", "k-DPP", "uniform", "score"), "one seed": mean(np.ones(1))}
    bars(tmp_path / "bars.png", {"a": gain, "b": gain}, "points")
    assert all((tmp_path / f"{name}.png").stat().st_size > 1000 for name in ("lines", "bars"))


# Models


@pytest.mark.parametrize("weighted", [False, True])
def test_a_step_of_softmax_follows_the_numerical_gradient(weighted: bool) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(6, 3)), np.array([0, 1, 2, 2, 1, 0])
    targets, batch = np.eye(3)[y], np.array([0, 2, 3, 4])
    weights, share = softmax.initial_weights(3, 3, rng), rng.random(6) if weighted else None

    def loss(flat: np.ndarray) -> float:
        p = softmax.probabilities(flat.reshape(weights.shape), X[batch])
        each = -np.log(p[np.arange(4), y[batch]])
        return float(each.mean() if share is None else share[batch] @ each)

    steps = 1e-6 * np.eye(weights.size)
    gradient = [(loss(weights.ravel() + e) - loss(weights.ravel() - e)) / 2e-6 for e in steps]
    moved = softmax.train(weights, X, targets, batch[None], 0.3, share)
    assert moved - weights == pytest.approx(-0.3 * np.reshape(gradient, weights.shape), abs=1e-8)
