"""Every framework in one and two processes: every global batch is its draw, or is refused."""

import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from frameworks import BEGIN, CELLS, LAUNCHES, PAGE, TWO_RANKS, design, run, verdicts

pytestmark = pytest.mark.frameworks

RESUMED = {cell for cell in (*CELLS, *TWO_RANKS) if "resumed" in cell}
#: The cells of the table that are refused, and by which words; all others hold.
REFUSED = {
    "PyTorch, `DataLoader`": (RESUMED, "no attribute 'state_dict'"),
    "Fabric": ({cell for cell in RESUMED if "epoch 2" in cell}, "without setup_dataloaders"),
    "Accelerate, `split_batches=True`": (set(TWO_RANKS), "leave out.*split_batches=True"),
    "Accelerate, `use_stateful_dataloader=True`": (
        {*CELLS, *TWO_RANKS},
        "saves no epoch.*skip_first_batches",
    ),
    "Accelerate, `dispatch_batches=True`": (RESUMED & set(TWO_RANKS), "leave out dispatch_batches"),
    "Accelerate, both stateful and dispatched": (
        {*CELLS, *TWO_RANKS},
        "saves no epoch.*skip_first_batches",
    ),
}


def check(ranks):
    """Hold the verdicts of a script against what is known, and against the page."""
    page = PAGE.read_text().split(BEGIN)[1].splitlines()
    for row, cells in verdicts(ranks).items():
        refused, words = REFUSED.get(row, (set(), ""))
        line = next(line for line in page if line.startswith(f"| {row} |"))
        written = dict(zip((*CELLS, *TWO_RANKS), line.split(" | ")[1:], strict=True))
        for cell, found in cells.items():
            assert (cell in refused) == (set(found) != {"holds"}), (row, cell, found)
            assert written[cell].startswith("error" if cell in refused else "✓")
            assert all(text == "holds" or re.search(words, text) for text in found), found


def check_lightning(rank):
    every = design().sample(len(rank["at_the_end"]), seed=0).tolist()
    assert rank["at_the_end"] == every
    assert "overfit on m draws" in rank["refused"]
    assert [item for batch in rank["overfit"] for item in batch] == [
        item for batch in [*every[:2], *every[:2]] for item in batch
    ]


def check_accelerate(rank):
    registered, *stateful = rank["refused"]
    assert "state_dict" in registered
    assert len(stateful) == 2
    assert all("saves no epoch" in message for message in stateful)
    lines = ("loader.set_epoch(epoch)", "accelerator.skip_first_batches(loader, batches)")
    assert any(all(line in message for line in lines) for message in rank["said"]), rank["said"]
    check_registered(rank)


def check_registered(*ranks):
    messages = [message for rank in ranks for message in rank["registered"]]
    assert all("only it knows how many batches" in message for message in messages), messages


def check_sentences(rank):
    assert "batches of several datasets" in rank["refused"]
    assert rank["evaluated"]


def check_supervised(rank):
    assert re.search(r"has \d+ items, the design 48;", rank["refused"])


#: What a script shows beside its rows, in how many processes.
BESIDE = {
    ("lightning_trainer", 1): check_lightning,
    ("accelerated", 1): check_accelerate,
    ("sentences", 1): check_sentences,
    ("supervised", 1): check_supervised,
    ("accelerated", 2): check_registered,
}


@pytest.mark.parametrize(("world", "scripts"), LAUNCHES)
def test_frameworks(tmp_path, world, scripts):
    for script, ranks in run(scripts, world, tmp_path).items():
        check(ranks)
        BESIDE.get((script, world), lambda *_: None)(*ranks)
