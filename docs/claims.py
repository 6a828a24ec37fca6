"""Write the tables of docs/paper.md from the results in docs/results, and what made those.

    python docs/claims.py            # after new results were saved there
    python docs/claims.py --check    # exit 1 if the page is not up to date

A table stands between <!-- claims NAME --> and <!-- end -->, NAME as in `dmsgd reproduce NAME`, and
that of the halves of all experiments between <!-- halves --> and <!-- end -->.
Results come from `dmsgd reproduce NAME --out docs/results`; their pictures go to docs/images/paper.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from dmsgd.commands.reproduce import BEYOND, EXPERIMENTS, experiment
from dmsgd.paper import provenance, storage
from dmsgd.paper.protocol import Claim

#: The experiments that are the paper's own.
PAPER = [name for name in EXPERIMENTS if name not in BEYOND]

FOLDER = Path(__file__).parent
PAGE = FOLDER / "paper.md"
MARK = re.compile(r"(<!-- claims ([\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)
HALVES = re.compile(r"(<!-- halves -->\n).*?(<!-- end -->)", re.DOTALL)


def table(name: str) -> str:
    """Return the claims of an experiment as Markdown: the paper's, then, folded, what is beyond."""
    chosen, path = experiment(name), stored(name)
    claims = chosen.claims(storage.load(chosen.Result, path))
    notes = list(dict.fromkeys(claim.note for claim in claims if claim.note))
    beyond = [claim for claim in claims if claim.where == "beyond"]
    lines = rows([claim for claim in claims if claim.where != "beyond"], notes)
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


def halves() -> str:
    """Return what is who is seen and what is who meets, over all experiments."""
    lines = [
        "| experiment | what is measured | seeds | uniform | k-DPP - uniform "
        "| who is seen: same b - uniform | who meets: k-DPP - same b "
        "| repulsion alone: uniform b - uniform |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name in EXPERIMENTS:
        chosen = experiment(name)
        for each in chosen.halves(storage.load(chosen.Result, stored(name))):
            differences = [each.text(difference) for difference in each.differences.values()]
            level = f"{each.uniform.mean():.{each.digits}f}"
            cells = [name, each.what, str(each.kdpp.size), level, *differences, ""]
            lines.append(f"| {' | '.join(cells[:8])} |")
    return "\n".join(lines) + "\n"


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
    """Return the page with all tables made anew."""
    text = HALVES.sub(lambda found: f"{found[1]}{halves()}{found[2]}", text)
    return MARK.sub(lambda found: f"{found[1]}{table(found[2])}{found[3]}", text)


def main() -> None:
    """Bring the page up to date, or check that it is."""
    text = PAGE.read_text()
    missing = set(PAPER) - {found[2] for found in MARK.finditer(text)}
    if missing:
        sys.exit(f"{PAGE.name} has no table for {', '.join(sorted(missing))}")
    new = written(text)
    if "--check" in sys.argv:
        sys.exit(0 if new == text else f"{PAGE.name} is not up to date: run python docs/claims.py")
    PAGE.write_text(new)


if __name__ == "__main__":
    main()
