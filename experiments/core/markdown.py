"""Results as Markdown: claims, decompositions, and the marked places of the pages of docs."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import polars as pl

from experiments.core import provenance
from experiments.core.compare import Claim, Column, Decomposition, compare, decompose, mean, values

VERDICT = {True: "yes", False: "no", None: ""}
DOCS = Path(__file__).parents[2] / "docs"
#: A marked place: claims or a table, its name and, after a colon, a pattern of the rows to show.
MARK = re.compile(
    r"(<!-- (claims|table) ([\w-]+)(?:: ([^\n]+))? -->\n).*?(<!-- end -->)", re.DOTALL
)
#: A link to a table in a file of its own, beside the page.
LINK = re.compile(r"\]\(([\w-]+)\.csv\)")


def lined(rows: Sequence[Sequence[str]]) -> str:
    """Return a table whose first row is its head."""
    head, *lines = (f"| {' | '.join(each.replace('|', '/') for each in row)} |" for row in rows)
    return "\n".join([head, "|---" * len(rows[0]) + "|", *lines]) + "\n"


def filled(rows: Sequence[Sequence[str]]) -> list[list[str]]:
    """Return a table whose rows each have a first cell: an empty one repeats that above it."""
    whole: list[list[str]] = []
    for first, *rest in rows:
        whole.append([first or whole[-1][0], *rest])
    return whole


def matching(rows: Sequence[Sequence[str]], pattern: str) -> list[list[str]]:
    """Return the head and the rows in whose text, cells joined by " | ", a pattern is found."""
    head, *lines = filled(rows)
    return [head, *(row for row in lines if re.search(pattern, " | ".join(row)))]


def as_csv(rows: Sequence[Sequence[str]]) -> str:
    """Return a table as the text of a CSV file."""
    file = io.StringIO()
    csv.writer(file, lineterminator="\n").writerows(filled(rows))
    return file.getvalue()


def stored_rows(name: str) -> list[list[str]]:
    """Return the table that an earlier version left as a CSV file in docs/results."""
    path = DOCS / "results" / f"{name}.csv"
    if not path.is_file():
        raise FileNotFoundError(f"no experiment makes the table {name!r}, and there is no {path}")
    return list(csv.reader(io.StringIO(path.read_text(encoding="utf-8"))))


def claim_rows(claims: Iterable[Claim], table: pl.DataFrame) -> list[list[str]]:
    """Return where, statement, paper, ours and verdict of each claim, below a head."""
    rows = [["where", "what", "paper", "ours (± 95 %)", "holds"]]
    for claim in claims:
        verdict = VERDICT[claim.significant(table)]
        rows.append([claim.where, claim.statement, claim.paper, claim.ours(table), verdict])
    return rows


def claims_section(claims: Sequence[Claim], table: pl.DataFrame, recorded: dict[str, str]) -> str:
    """Return the claims of an experiment: the table, the notes, what made the results."""
    notes = list(dict.fromkeys(claim.note for claim in claims if claim.note))
    head, *rows = claim_rows(claims, table)
    for row, claim in zip(rows, claims, strict=True):
        row[1] += f" [{notes.index(claim.note) + 1}]" if claim.note else ""
    parts = [lined([head, *rows])]
    if notes:
        parts.append("  \n".join(f"[{at}] {note}" for at, note in enumerate(notes, 1)) + "\n")
    parts.append(f"Made on: {provenance.told(recorded)}.\n")
    return "\n".join(parts)


def all_claim_rows(
    found: Iterable[tuple[str, pl.DataFrame, Sequence[Claim]]],
) -> list[list[str]]:
    """Return the claims of all experiments, each row with the experiment's name."""
    rows = [["experiment", *claim_rows([], pl.DataFrame())[0]]]
    for name, table, claims in found:
        rows += [[name, *row] for row in claim_rows(claims, table)[1:]]
    return rows


def decomposition_rows(
    found: Iterable[tuple[str, pl.DataFrame, Sequence[Decomposition]]],
) -> list[list[str]]:
    """Return gains and where they come from: a row for each Decomposition of each experiment."""
    rows = [["experiment", "what is measured", "seeds", "uniform", "k-DPP minus uniform",
             "sampling frequency", "repulsion", "repulsion alone",
             "k-DPP minus shuffled"]]  # fmt: skip
    for name, table, every in found:
        for each in every:
            parts = decompose(table, each)
            level = values(table, each.experiment, each.against, each.measure, each.step)
            cells = [part.text(each.digits) for part in parts.values()]
            seeds = str(parts["k-DPP minus uniform"].seeds)
            row = [name, each.what, seeds, f"{level.mean():.{each.digits}f}", *cells, ""]
            rows.append([*row[:8], _from_shuffled(table, each)])
    return rows


def _from_shuffled(table: pl.DataFrame, row: Decomposition) -> str:
    """Return the gain over shuffled epochs, "" where they were not run."""
    if not table.filter(experiment=row.experiment, arm="shuffled", measure=row.measure).height:
        return ""
    pair = ("shuffled", row.arm) if row.lower else (row.arm, "shuffled")
    return compare(table, row.experiment, *pair, row.measure, row.step).text(row.digits)


def arm_rows(
    table: pl.DataFrame, columns: Mapping[str, Column], against: str, digits: int = 1
) -> list[list[str]]:
    """Return a row for each arm: means and, in brackets, how far they are from `against`'s."""
    rows = [["batches", *columns]]
    for arm in table["arm"].unique(maintain_order=True):
        cells = [arm]
        for experiment, measure, step in columns.values():
            level = mean(values(table, experiment, arm, measure, step))
            lead = compare(table, experiment, arm, against, measure, step).text(digits)
            own = f"{level.mean:.{digits}f} ({lead})"
            cells.append(level.text(digits, sign=False) if arm == against else own)
        rows.append(cells)
    return rows


def update_pages(make: Callable[[str, str, str], str], check: bool) -> list[Path]:
    """Write the marked tables of the pages, and the CSV files they link to; return what changed.

    make:  ("claims" or "table", name, pattern of rows, "" for all) -> Markdown; ("csv", name, "")
           -> the text of a file.
    check: change nothing.
    """
    changed = []
    for page in [*DOCS.parent.glob("README.md"), *sorted(DOCS.rglob("*.md"))]:
        text = page.read_text(encoding="utf-8")
        new = MARK.sub(lambda at: f"{at[1]}{make(at[2], at[3], at[4] or '')}{at[5]}", text)
        files = {
            page.with_name(f"{name}.csv"): make("csv", name, "") for name in LINK.findall(text)
        }
        for path, content in ({page: new} | files).items():
            if not path.is_file() or path.read_text(encoding="utf-8") != content:
                changed.append(path)
                if not check:
                    path.write_text(content, encoding="utf-8")
    return changed
