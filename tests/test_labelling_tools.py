"""The rounds of docs/tutorials/labelling_tools.md, with tasks as Label Studio 1.23 exports them."""

import copy
import json
from pathlib import Path

import numpy as np
import pytest

import dmsgd
from test_pages import blocks

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs/tutorials/labelling_tools.md"
#: Three tasks of a real project: skipped, labelled in the first round and in the last.
EXPORTED = json.loads((ROOT / "tests/data/label_studio_export.json").read_text())


@pytest.fixture
def page(tmp_path, monkeypatch):
    """What the functions of the page are, for 200 items of three kinds."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    kinds = rng.integers(3, size=200)
    X = rng.normal(size=(3, 8))[kinds] + rng.normal(size=(200, 8))
    found = {"np": np, "dmsgd": dmsgd, "X": X, "texts": [f"text {i}" for i in range(200)]}
    code = [code for language, code in blocks(PAGE.read_text()) if language == "python"]
    for each in code[1:4]:  # the first makes items; the last lines of the fourth read an export
        exec(compile(each.split("\n\nclasses, skipped = ")[0], PAGE.name, "exec"), found)
    return found, kinds


def labelled(task, number, kind):
    """Return a task as it comes out of Label Studio; kind None: it was skipped."""
    out = copy.deepcopy(EXPORTED[0 if kind is None else 1])
    out |= {"id": number, **task}
    if kind is not None:
        out["annotations"][0]["result"][0]["value"]["choices"] = [kind]
    return out


def test_an_export_is_read(page):
    Path("export.json").write_text(json.dumps(EXPORTED))
    classes, skipped = page[0]["read_export"]("export.json")
    assert [each["data"]["item"] for each in EXPORTED] == [*skipped, *classes]
    assert [each["annotations"][0]["was_cancelled"] for each in EXPORTED] == [True, False, False]
    assert set(classes.values()) <= {"news", "sport", "arts"}


def test_rounds_hand_out_every_item_once(page):
    """What is skipped does not come again, and the first set is that of `select`."""
    found, kinds = page
    export, classes, skipped = [], {}, []
    for number in range(3):
        found["write_tasks"]("round.json", found["next_items"](classes, 20, skipped))
        tasks = json.loads(Path("round.json").read_text())
        assert all(set(task) == {"data"} for task in tasks)
        items = [task["data"]["item"] for task in tasks]
        if number == 0:
            assert items == dmsgd.select(found["X"], 20, how="medoids").tolist()
        for task, item in zip(tasks, items, strict=True):
            assert task["data"]["text"] == f"text {item}"
            kind = None if item == items[0] else ["news", "sport", "arts"][kinds[item]]
            export.append(labelled(task, len(export) + 1, kind))
        Path("export.json").write_text(json.dumps(export))
        classes, skipped = found["read_export"]("export.json")
        assert len(skipped) == number + 1
    handed_out = [task["data"]["item"] for task in export]
    assert len(set(handed_out)) == len(handed_out) == 60
    assert sorted([*classes, *skipped]) == sorted(handed_out)
