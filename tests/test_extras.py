"""`pip install dmsgd` alone: batches and the command line work, and what needs more says so."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from dmsgd.inputs.messages import EXTRAS, require

#: All that an environment without extras does not have.
ABSENT = sorted(
    {*(m for modules in EXTRAS.values() for m in modules), "dask", "distributed", "pandas"}
)

BLOCKED = f"""
import json, sys
sys.modules.update(dict.fromkeys({ABSENT}))
"""

CORE = """
import numpy as np
from click.testing import CliRunner
import dmsgd
from dmsgd.commands import app

X = np.random.default_rng(0).normal(size=(60, 6))
y = np.repeat([0, 1, 2], [40, 15, 5])
design = dmsgd.diversify(X, 4, labels=y, w=0.5, target="uniform")
for each in (design, dmsgd.Weighted.like(design), dmsgd.diversify(X, 4, kernel="rbf"),
             dmsgd.Partition(dmsgd.cells(X, 4)), dmsgd.Stratified(y, 4), dmsgd.cells(X, 4),
             dmsgd.designs.SwapChain(dmsgd.kernels.Linear(X), 4)):
    assert each.sample(3, seed=0).shape == (3, 4)
dmsgd.kernels.nystrom(dmsgd.kernels.RBF(X), 20)
dmsgd.presample(design, 20, path="s.npy", progress=True)
np.savetxt("x.csv", X, delimiter=",", header="a,b,c,d,e,f", comments="")
np.save("y.npy", y)
for command in ("inspect x.csv --labels y.npy -k 4", "inspect x.csv -k 4 --page r.html",
                "sample x.csv -k 4 -n 9 -o b.npy", "select x.csv -k 4 -o c.csv",
                "--versions"):
    done = CliRunner().invoke(app, command.split(), catch_exceptions=False)
    assert done.exit_code == 0, (command, done.output)
print("core", file=sys.stderr)
"""

MESSAGES = """
import importlib, os
import numpy as np
from click.testing import CliRunner
import dmsgd
from dmsgd.commands import app

X = np.random.default_rng(0).normal(size=(60, 6))
np.save("x.npy", X)
open("x.parquet", "w").write("x")
open("x.zarr", "w").write("x")

def told(call):
    try:
        call()
    except ImportError as error:
        return str(error).removeprefix(os.getcwd() + os.sep)  # of files

def command(line):
    done = CliRunner().invoke(app, line.split())
    return done.output.strip()

print(json.dumps({
    "clustered": told(lambda: dmsgd.designs.clustered(X, 4)),
    "coreset": told(lambda: dmsgd.kernels.coreset(dmsgd.kernels.RBF(X), 12)),
    "train_torch": told(lambda: dmsgd.sgd.train_torch(1, 2, 3, 4, 5, 6)),
    "parquet": told(lambda: dmsgd.diversify("x.parquet", 4)),
    "zarr": told(lambda: dmsgd.diversify("x.zarr", 4)),
    **{name: told(lambda: importlib.import_module(name)) for name in (
        "dmsgd.torch", "dmsgd.sklearn")},
    "demo": command("demo"),
}))
"""


#: What each of them says: who needs what, from which extra.
EXPECTED = {
    part: f'{who} needs {what}; pip install "dmsgd[{extra}]"'
    for part, who, what, extra in (
        ("clustered", "k-means", "scikit-learn", "sklearn"),
        ("coreset", "k-means", "scikit-learn", "sklearn"),
        ("train_torch", "train_torch", "torch", "torch"),
        ("parquet", "x.parquet: reading Parquet", "pyarrow", "parquet"),
        ("zarr", "x.zarr: reading Zarr", "zarr 3 and Python 3.11 or later", "zarr"),
        ("dmsgd.torch", "dmsgd.torch", "torch", "torch"),
        ("dmsgd.sklearn", "dmsgd.sklearn", "scikit-learn", "sklearn"),
        ("demo", "error: the demo", "scikit-learn", "sklearn"),
    )
}


def run(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "error", "-c", BLOCKED + code]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)


@pytest.mark.long
def test_batches_and_commands_need_no_extra(tmp_path: Path) -> None:
    done = run(CORE, tmp_path)
    assert done.stderr.endswith("core\n"), done.stderr


@pytest.fixture(scope="module")
def messages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    done = run(MESSAGES, tmp_path_factory.mktemp("messages"))
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("part", EXPECTED)
def test_a_part_that_needs_an_extra_names_it(part: str, messages: dict[str, str]) -> None:
    assert messages[part] == EXPECTED[part]


def test_a_folder_of_the_same_name_is_not_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "zoo").mkdir()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(EXTRAS, "zoo", {"zoo": "zoology"})
    with pytest.raises(ImportError, match=r'a zebra needs zoology; pip install "dmsgd\[zoo\]"'):
        require("zoo", "a zebra")
    monkeypatch.setitem(EXTRAS, "zoo", {"zoo.zebra": "zoology", "no.such": "nothing"})
    with pytest.raises(ImportError, match="a zebra needs zoology and nothing"):
        require("zoo", "a zebra")
    (tmp_path / "zoo" / "zebra.py").touch()
    monkeypatch.setitem(EXTRAS, "zoo", {"zoo.zebra": "zoology"})
    require("zoo", "a zebra")
