"""The table of docs/results/frameworks.md: every index of every framework beside `design.sample`.

`make frameworks` runs it. A cell holds if over ranks and accumulation every step of every epoch is
the draw it should be, or it is what the framework is told instead. Anything else ends in an error.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).parent / "distributed"
sys.path.insert(0, str(FOLDER))
from common import CELLS, EPOCHS, STEPS, TWO_RANKS, design  # noqa: E402, F401

#: The scripts, in the order of the table.
SCRIPTS = ("plain", "lightning_trainer", "fabric", "accelerated", "dispatched", "hugging_face")
SCRIPTS += ("sentences", "supervised")
#: How many processes run which of them. Accelerate stays where it has begun, and ranks that its
#: dispatching has left alone are good for nothing else.
ACCELERATED = ("hugging_face", "sentences", "supervised", "accelerated")
LAUNCHES = (
    (1, ("plain", "fabric", "lightning_trainer")),
    (1, (*ACCELERATED, "dispatched")),
    (2, ("plain", "fabric", "lightning_trainer")),
    (2, ACCELERATED),
    (2, ("dispatched",)),
)
PAGE = Path(__file__).parent.parent / "docs" / "results" / "frameworks.md"
BEGIN, END = "<!-- frameworks: written by make frameworks -->", "<!-- end of frameworks -->"


def run(scripts, world, folder):
    """Run scripts in the same `world` processes and return {script: what each rank saw}."""
    start = [sys.executable]
    if world > 1:
        start += ["-m", "torch.distributed.run", "--nproc_per_node", str(world)]
        start += ["--rdzv_backend=c10d", "--rdzv_endpoint=localhost:0"]
    paths = os.pathsep.join([str(FOLDER), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": paths}
    done = subprocess.run(
        [*start, FOLDER / "launch.py", folder, *scripts],
        env={**environment, "HF_HUB_OFFLINE": "1"}, capture_output=True, text=True, timeout=240,
    )  # fmt: skip
    ranks = [json.loads(path.read_text()) for path in sorted(Path(folder).glob("rank*.json"))]
    assert len(ranks) == world, done.stderr[-3000:]
    return {script: [rank[script] for rank in ranks] for script in scripts}


def verdict(ranks):
    """Return "holds" or the refusal, from what the ranks saw in one run; raise if it is wrong."""
    first = ranks[0]
    if "refused" in first:
        return first["refused"]
    steps = []
    for start in range(0, len(first["batches"]), first["accumulation"]):
        parts = [rank["batches"][start : start + first["accumulation"]] for rank in ranks]
        steps.append(sorted(np.array(parts).ravel().tolist()))
    drawn = np.sort(design().sample(first["epochs"] * STEPS, seed=0), axis=1).tolist()
    assert len(steps) == len(drawn)
    wrong = [step for step, pair in enumerate(zip(steps, drawn, strict=True)) if pair[0] != pair[1]]
    assert not wrong, f"steps {wrong} are not their draws"
    return "holds"


def verdicts(ranks):
    """Return {row: {cell: the verdicts of its runs}} of one script."""
    rows = [rank["rows"] for rank in ranks]
    return {
        row: {
            cell: [verdict(runs) for runs in zip(*(each[row][cell] for each in rows), strict=True)]
            for cell in cells
        }
        for row, cells in rows[0].items()
    }


def table(found):
    """Return the Markdown table of {row: {cell: verdicts}}, with the refusals below it."""
    columns, notes = [*CELLS, *TWO_RANKS], []
    lines = [f"| | {' | '.join(columns)} |", "|---" * (len(columns) + 1) + "|"]
    for row, cells in found.items():
        texts = []
        for column in columns:
            refusals = [text for text in cells[column] if text != "holds"]
            notes += [text for text in dict.fromkeys(refusals) if text not in notes]
            marks = sorted({notes.index(text) + 1 for text in refusals})
            texts.append("error " + ", ".join(map(str, marks)) if marks else "✓")
        lines.append(f"| {row} | {' | '.join(texts)} |")
    return "\n".join([*lines, "", *(f"{n}. {text}" for n, text in enumerate(notes, start=1))])


def main():
    rows = {script: {} for script in SCRIPTS}
    for world, scripts in LAUNCHES:
        print(world, *scripts, flush=True)
        with tempfile.TemporaryDirectory() as folder:
            for script, ranks in run(scripts, world, folder).items():
                for row, cells in verdicts(ranks).items():
                    rows[script].setdefault(row, {}).update(cells)
    found = {row: cells for of_script in rows.values() for row, cells in of_script.items()}
    text = PAGE.read_text()
    before, after = text.split(BEGIN)[0], text.split(END)[1]
    PAGE.write_text(f"{before}{BEGIN}\n{table(found)}\n{END}{after}")


if __name__ == "__main__":
    main()
