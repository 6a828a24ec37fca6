"""Write the tables of docs/paper.md and the pages beyond it from the results in docs/results.

    python docs/claims.py            # after new results were saved there
    python docs/claims.py --check    # exit 1 if a page is not up to date

The claims of an experiment and what made them stand between <!-- claims NAME --> and <!-- end -->,
NAME as in `dmsgd reproduce NAME`; another of TABLES between <!-- table NAME --> and <!-- end -->.
Results come from `dmsgd reproduce NAME --out docs/results`; their pictures go to docs/images/paper.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from dmsgd.commands.reproduce import BEYOND, EXPERIMENTS, experiment
from dmsgd.paper import provenance, storage
from dmsgd.paper.debian.claims import kernels as kernels_of
from dmsgd.paper.debian.claims import summary as sections
from dmsgd.paper.intervals import paired, show, shown
from dmsgd.paper.partitions.claims import summary as once
from dmsgd.paper.protocol import Claim
from dmsgd.paper.repulsion.claims import summary as apart
from dmsgd.paper.subgroups.result import EARLY, RAREST
from dmsgd.paper.topics.claims import summary as found_topics

#: The experiments that are the paper's own.
PAPER = [name for name in EXPERIMENTS if name not in BEYOND]

FOLDER = Path(__file__).parent
PAGES = (
    FOLDER / "paper.md",
    FOLDER / "targets.md",
    FOLDER / "repulsion.md",
    FOLDER / "partitions.md",
    FOLDER / "topics.md",
)
MARK = re.compile(r"(<!-- (claims|table) ([\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def table(name: str) -> str:
    """Return the claims of an experiment as Markdown: the paper's, then, folded, what is beyond."""
    path = stored(name)
    claims = experiment(name).claims(result_of(name))
    notes = list(dict.fromkeys(claim.note for claim in claims if claim.note))
    beyond = [claim for claim in claims if claim.where == "beyond"]
    own = [claim for claim in claims if claim.where != "beyond"]
    lines = rows(own, notes) if own else []
    if beyond:
        summary = f"Beyond the paper: {len(beyond)} more"
        lines += ["", "<details>", f"<summary>{summary}</summary>", "", *rows(beyond, notes)]
        lines += ["", "</details>"]
    if notes:
        numbered = (f"[{number}] {note}" for number, note in enumerate(notes, 1))
        lines += ["", "  \n".join(numbered)]
    lines += ["", f"Made on: {provenance.told(storage.recorded(path))}."]
    return "\n".join(lines) + "\n"


def stored(name: str) -> Path:
    """Return where the result of an experiment lies."""
    return FOLDER / "results" / f"{name}.json"


def result_of(name: str) -> Any:
    """Return the stored result of an experiment."""
    return storage.load(experiment(name).Result, stored(name))


def halves() -> str:
    """Return what is who is seen and what is who meets, over all experiments."""
    lines = [
        "| experiment | what is measured | seeds | uniform | k-DPP - uniform "
        "| who is seen: same b - uniform | who meets: k-DPP - same b "
        "| repulsion alone: uniform b - uniform |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name in EXPERIMENTS:
        for each in experiment(name).halves(result_of(name)):
            differences = [each.text(difference) for difference in each.differences.values()]
            level = f"{each.uniform.mean():.{each.digits}f}"
            cells = [name, each.what, str(each.kdpp.size), level, *differences, ""]
            lines.append(f"| {' | '.join(cells[:8])} |")
    return "\n".join(lines) + "\n"


def targets() -> str:
    """Return accuracy of every way to balance classes, early and late, and less stratified's."""
    result = result_of("targets")
    columns = [(task, late) for task in result.sizes for late in (False, True)]
    heads = ["method"]
    for task, late in columns:
        epochs = result.config.epochs if task == "flowers" else result.config.digits_epochs
        heads += [
            f"{task}, {epochs[-1 if late else 0]:g} epoch{'s' if late else ''}",
            "- stratified",
        ]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for method in result.methods(next(iter(result.sizes))):
        cells = [method]
        for task, late in columns:
            ours, theirs = (100 * result.accuracy(task, m, late) for m in (method, "stratified"))
            lead = "" if method == "stratified" else shown(*paired(ours, theirs), sign=True)
            cells += [show(ours, scale=1), lead]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def subgroups() -> str:
    """Return what rare digits make of a batch, accuracy by digit, and less that of uniform."""
    result = result_of("subgroups")
    steps = result.config.checkpoints
    columns = [(measure, at) for measure in ("worst", "mean") for at in (EARLY, -1)]
    heads = ["method", "rarest digits in a batch"]
    for measure, at in columns:
        heads += [f"{measure}, {steps[at]} steps", "- uniform"]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for each in result.outcomes:
        cells = [each.method, show(each.shares[:, RAREST].sum(axis=1))]
        for measure, at in columns:
            gain = result.gain(each.method, measure, at)
            lead = "" if each.method == "uniform" else shown(*gain, sign=True)
            cells += [show(result.accuracy(each.method, measure, at)), lead]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def repulsion() -> str:
    """Return late steps and variances over those of uniform batches, where b is uniform."""
    return lined(apart(result_of("repulsion")))


def partitions() -> str:
    """Return noise, losses and costs of ways to batch, over those of shuffled epochs."""
    return lined(once(result_of("partitions")))


def topics() -> str:
    """Return how many topics are found, by size and design, at equal updates and words."""
    return lined(found_topics(result_of("topics")))


def debian() -> str:
    """Return accuracies and perplexity of every design at equal words, less those of uniform."""
    return lined(sections(result_of("debian")))


def kernels() -> str:
    """Return how often documents of small sections are drawn, by kernel."""
    return lined(kernels_of(result_of("debian")))


def lined(table: list[list[str]]) -> str:
    """Return the cells of a table, the first row being its head, as Markdown."""
    head, *lines = (f"| {' | '.join(cells)} |" for cells in table)
    return "\n".join([head, "|---" * len(table[0]) + "|", *lines]) + "\n"


#: Tables that are not the claims of one experiment.
TABLES = {"halves": halves, "targets": targets, "subgroups": subgroups, "repulsion": repulsion,
          "partitions": partitions, "topics": topics, "debian": debian,
          "kernels": kernels}  # fmt: skip


def rows(claims: list[Claim], notes: list[str]) -> list[str]:
    """Return the lines of a table; notes are referred to by their numbers."""
    lines = ["| where | what | paper | ours (± 95 %) | holds |", "|---|---|---|---|---|"]
    for claim in claims:
        verdict = {True: "yes", False: "no", None: ""}[claim.holds]
        mark = f" [{notes.index(claim.note) + 1}]" if claim.note else ""
        cells = (claim.where, claim.statement + mark, claim.paper, claim.ours, verdict)
        lines.append(f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |")
    return lines


def written(text: str) -> str:
    """Return a page with all tables made anew."""

    def made(found: re.Match[str]) -> str:
        content = table(found[3]) if found[2] == "claims" else TABLES[found[3]]()
        return f"{found[1]}{content}{found[4]}"

    return MARK.sub(made, text)


def main() -> None:
    """Bring the pages up to date, or check that they are."""
    marked = {(found[2], found[3]) for page in PAGES for found in MARK.finditer(page.read_text())}
    missing = {("claims", name) for name in PAPER} | {("table", name) for name in TABLES}
    if missing - marked:
        sys.exit(f"no page has {', '.join(map(' '.join, sorted(missing - marked)))}")
    for page in PAGES:
        text = page.read_text()
        new = written(text)
        if "--check" not in sys.argv:
            page.write_text(new)
        elif new != text:
            sys.exit(f"{page.name} is not up to date: run python docs/claims.py")


if __name__ == "__main__":
    main()
