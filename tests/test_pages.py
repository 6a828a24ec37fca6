"""Every block of code of README.md and of the pages in docs runs, in order, in an empty folder.

A page finds what its reader has at hand (`READER`, unless it is `ALONE`), and every block finds
what the blocks before it made. Commands run too; of those that take minutes the options alone are
read.
"""

from __future__ import annotations

import os
import re
import shlex
from importlib.util import find_spec
from pathlib import Path

import pytest

from command_line import CliRunner
from dmsgd.commands import app
from experiments.__main__ import parser as experiments
from experiments.datasets.files import VARIABLE, cache_folder

ROOT = Path(__file__).parent.parent
#: What `make test` runs; all other pages are for `make test-long`.
FIRST_READ = ("README.md", "docs/choose.md", "docs/frameworks.md")
PAGES = ["README.md", *(str(p.relative_to(ROOT)) for p in sorted((ROOT / "docs").rglob("*.md")))]
#: Their blocks are doctests, which tests/test_docs.py runs.
PAGES = [page for page in PAGES if "<!-- ::: " not in (ROOT / page).read_text(encoding="utf-8")]

#: Fences that are no code of ours; help texts are held by tests/test_commands.py.
OTHERS = ("", "bibtex", "math", "text")
#: Commands that are read and not run: they take minutes.
LONG = ("demo", "bench")

#: Packages of recipes; a block that imports one is left out where it is missing.
RECIPES = (
    "langchain_core", "llama_index", "haystack", "flwr", "datasets", "cleanlab", "fiftyone",
    "imblearn",
)  # fmt: skip

#: Data sets that pages load, by the file that must be there: a test downloads nothing.
LOADED = {"datasets.mnist()": "mnist/mnist.npz", "datasets.debian()": "debian/descriptions.txt.gz"}

#: What readers have at hand: features and labels, in memory and in files.
READER = """
import numpy as np

import dmsgd

rng = np.random.default_rng(0)
y = np.repeat(np.arange(4), [200, 100, 60, 40])
X = rng.normal(size=(400, 80)) + 2 * rng.normal(size=(4, 80))[y]
losses = 1 + rng.random(400)
design = dmsgd.diversify(X, k=20, labels=y, w=0.7, normalize=True)
np.save("features.npy", X)
np.save("y.npy", y)
"""

#: Pages whose blocks make all that they need, but for files: they find those, and no names.
ALONE = (
    "docs/quickstart.md", "docs/select.md", "docs/frameworks.md", "docs/from-samplers.md",
    "docs/tutorials/label_next.md", "docs/tutorials/labelling_tools.md",
)  # fmt: skip

#: What readers of some pages have besides.
BESIDES = {
    "README.md": """
from sklearn.datasets import load_iris

frame = load_iris(as_frame=True).frame.rename(columns={"target": "species"})
frame.to_csv("data.csv", index=False)
""",
    "docs/diagnostics.md": """
import pathlib

import torch

np.save("x.npy", rng.integers(256, size=(400, 4, 4), dtype=np.uint8))
np.save("g.npy", rng.normal(size=(400, 5)))
pathlib.Path("docs.txt").write_text("a text\\n" * 400)
X, y = torch.tensor(X), torch.tensor(y)
model = torch.nn.Linear(80, 4, dtype=X.dtype)
""",
    "docs/large.md": """
import pathlib

import dask.array
import dask.distributed
import scipy.sparse
import zarr

zarr.save("features.zarr", X)
dask_array = dask.array.from_array(X, chunks=(100, 80))
cluster = dask.distributed.LocalCluster(processes=False, n_workers=1, dashboard_address=":0")
scheduler_address = cluster.scheduler_address
parts = [scipy.sparse.csr_array(np.maximum(part, 0)) for part in np.split(X, 4)]
pathlib.Path("corpus").mkdir()
for number, part in enumerate(parts):
    scipy.sparse.save_npz(f"corpus/{number:03d}.npz", part)
X = rng.poisson(0.05, size=(128, 400)).astype(float)  # short texts, few words in common
""",
    "docs/select.md": """
import csv

with open("pool.csv", "w", newline="") as file:
    writer = csv.writer(file)
    writer.writerow(["name", "body", "score", *(f"x{j}" for j in range(80))])
    for i in range(400):
        writer.writerow([f"text {i}", f"The text number {i}.", rng.random(), *X[i]])
""",
    "docs/tutorials/labelling_tools.md": """
import json

kinds = np.array(["news", "sport", "arts", "food"])[y]
export = []
with open("done.jsonl", "w") as done:  # what people answered
    for i in range(0, 400, 8):
        answer = {"accept": [kinds[i]], "answer": "accept" if i else "ignore"}
        line = {"id": f"doc-{i}", "text": f"The text {i}.", "_task_hash": -i, **answer}
        done.write(json.dumps(line) + "\\n")
        answer = {"was_cancelled": i == 0, "result": [{"value": {"choices": [kinds[i]]}}]}
        export.append({"data": {"item": i}, "annotations": [answer]})
with open("export.json", "w") as file:
    json.dump(export, file)
""",
}


def blocks(text: str) -> list[tuple[str, str]]:
    """Return the blocks of a page in order: "python" and code, or "sh" and lines of commands.

    An indented block is one of commands if its first line begins with the name of one.
    """
    pattern = r"^```(?P<language>\w*)\n(?P<fenced>.*?)^```|^\n(?P<indented>(?: {4}[^\n]*\n)+)"
    found = []
    for each in re.finditer(pattern, text, flags=re.S | re.M):
        if each["indented"] is None:
            found.append((each["language"], each["fenced"]))
        elif re.match(r" {4}(dmsgd|make|pip|python|DMSGD_DATA=\S+) ", each["indented"]):
            found.append(("sh", each["indented"]))
    return [(language, code) for language, code in found if language not in OTHERS]


def run_command(line: str) -> None:
    """Run a command of dmsgd; of another command see that what it names is there."""
    words = shlex.split(line, comments=True)
    while words and re.fullmatch(r"[A-Z_]+=\S*", words[0]):
        words = words[1:]
    program, rest = words[0], words[1:]
    if program == "dmsgd" and rest[0] in LONG:
        app.commands[rest[0]].make_context(rest[0], rest[1:])
    elif program == "dmsgd":
        answer = CliRunner().invoke(app, rest)
        assert answer.exit_code == 0, f"{line}\n{answer.output}"
    elif program == "make":
        assert re.search(rf"^{rest[0]}:", (ROOT / "Makefile").read_text(), flags=re.M), line
    elif program == "python" and rest[:2] == ["-m", "experiments"]:
        experiments().parse_args(rest[2:])
    elif program == "python" and rest[0] != "-m":
        assert (ROOT / rest[0]).exists(), line
    elif program == "pip":
        known = (ROOT / "pyproject.toml").read_text().split("[project.optional-dependencies]")[1]
        for extra in re.findall(r"\w+", "".join(re.findall(r"\[(.*?)\]", rest[-1]))):
            assert re.search(rf"^{extra} = \[", known, flags=re.M), line
    else:
        assert program == "python", f"{line}: no command that is known here"


def first_example() -> str:
    text = (ROOT / "README.md").read_text()
    return next(code for kind, code in blocks(text) if kind == "python")


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(page, marks=() if page in FIRST_READ else pytest.mark.long)
        for page in PAGES
        if blocks((ROOT / page).read_text())
    ],
)
def test_every_block_runs(name, tmp_path, monkeypatch, capsys):
    text = (ROOT / name).read_text()
    optional = ("torch", "dask", "zarr", "pyarrow", "lightning", "transformers")
    for module in (*optional, "sentence_transformers"):
        if re.search(rf"\b{module}\b", "".join(code for _, code in blocks(text))):
            pytest.importorskip(module)
    if 'device="cuda"' in text and not pytest.importorskip("torch").cuda.is_available():
        pytest.skip("no CUDA device")
    for call, file in LOADED.items():
        folders = (Path(os.environ.get(VARIABLE, "")), cache_folder())
        if call in text and not any((each / file).is_file() for each in folders):
            pytest.skip(f"no {file} in the folder that {VARIABLE} names, nor in the cache")
    monkeypatch.chdir(tmp_path)
    found: dict[str, object] = {}
    exec(BESIDES.get(name, "") if name == "README.md" else READER + BESIDES.get(name, ""), found)
    if name in ALONE:
        found.clear()
    try:
        for language, code in blocks(text):
            assert language in ("python", "sh"), language
            if any(f"from {each}" in code and find_spec(each) is None for each in RECIPES):
                continue
            if language == "python":
                exec(compile(code, name, "exec"), found)
                if (name, code) == ("README.md", first_example()):
                    assert capsys.readouterr().out
            else:
                for line in code.splitlines():
                    run_command(line)
    finally:
        for held in ("client", "cluster"):
            if held in found:
                found[held].close()


def test_the_first_example_is_short_and_prints():
    """`test_every_block_runs` sees that it prints."""
    code = first_example()
    assert len(code.strip().splitlines()) <= 12
    assert "print(" in code


def test_blocks_are_found_in_order():
    text = (
        "a\n\n    dmsgd demo\n    make test\n\n```python\nx = 1\n```\n\n    π = 3\n\n```\nno\n```\n"
    )
    assert blocks(text) == [("sh", "    dmsgd demo\n    make test\n"), ("python", "x = 1\n")]


@pytest.mark.parametrize(
    "line", ["dmsgd inspect", "make nothing", "pip install '.[nothing]'", "python nothing.py", "ls"]
)
def test_a_command_that_is_wrong_is_noticed(line):
    with pytest.raises(AssertionError):
        run_command(line)


def test_options_of_long_commands_are_read():
    run_command("dmsgd demo --out folder")
    run_command("python -m experiments toy --quick")
    with pytest.raises(Exception, match=r"[Nn]o such option:? .*--fast"):
        run_command("dmsgd demo --fast")
    with pytest.raises(SystemExit):
        run_command("python -m experiments toy --fast")
