"""What the documents say is true: examples run, named code exists."""

import doctest
import importlib
import inspect
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from pkgutil import walk_packages

import pytest

import dmsgd
import experiments

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize(
    "name",
    ["README.md", "CONTRIBUTING.md", "examples/README.md"]
    + [str(page.relative_to(ROOT)) for page in sorted((ROOT / "docs").rglob("*.md"))],
)
def test_linked_and_named_files_exist(name):
    text = (ROOT / name).read_text()
    for target in re.findall(r"\]\((?!http|#)([^)#]+)", text):
        assert (ROOT / name).parent.joinpath(target).exists(), target
    for path in re.findall(r"`(?:python )?([a-z_/]+\.py)\b", text):
        assert any((ROOT / base / path).exists() for base in ("", "src/dmsgd")), path


@pytest.mark.parametrize("page", sorted((ROOT / "docs").rglob("*.md")), ids=lambda page: page.stem)
def test_every_row_of_a_table_has_the_cells_of_its_heading(page):
    """A bar within a cell, as of |x|², is written with a backslash, or ends the cell."""
    cells = None
    for line in page.read_text().splitlines():
        row = line.strip()
        found = len(re.findall(r"(?<!\\)\|", row)) if row.startswith("|") else None
        assert cells is None or found in (None, cells), line
        cells = found


#: What a user may not have installed; an example that needs one of them runs where it is.
OPTIONAL = (
    "accelerate", "dask", "distributed", "polars", "pyarrow", "torch", "zarr",
)  # fmt: skip


def modules():
    """Return the names of all modules of the package and of the experiments."""
    packages = (dmsgd, experiments)
    found = (walk_packages(each.__path__, f"{each.__name__}.") for each in packages)
    return ["dmsgd", *(module.name for every in found for module in every)]


def imported(name):
    """Return the module, None if it needs a framework that is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        if (error.name or "").split(".")[0] not in OPTIONAL:
            raise
        return None


@pytest.mark.parametrize("name", modules())
def test_docstring_examples_run(name):
    module = imported(name)
    if module is None:
        pytest.skip("needs a framework that is not installed")
    missing = [each for each in OPTIONAL if find_spec(each) is None]
    runner = doctest.DocTestRunner()
    for example in doctest.DocTestFinder().find(module):
        if not any(re.search(rf"\b{each}\b", example.docstring) for each in missing):
            runner.run(example)
    assert runner.failures == 0


@pytest.mark.parametrize("name", ["diagnostics", "torch", "sgd", "lda"])
def test_every_function_that_users_call_has_an_example(name):
    """Classes that only carry results are shown by the functions that return them."""
    module = pytest.importorskip(f"dmsgd.{name}")
    own = {each for each, value in vars(module).items() if inspect.getmodule(value) is module}
    for each in getattr(module, "__all__", None) or own:
        found = getattr(module, each)
        if inspect.isfunction(found) and not each.startswith("_"):
            assert ">>>" in found.__doc__, each
            assert found.__doc__.startswith(("Return", "Make", "Predict")), each


def test_every_public_name_but_errors_has_an_example():
    for name in dmsgd.__all__:
        found = getattr(dmsgd, name)
        if not (inspect.isclass(found) and issubclass(found, Exception)):
            assert ">>>" in found.__doc__, name


def test_the_page_of_peers_is_what_their_results_say():
    command = [sys.executable, ROOT / "benchmarks/peers.py", "--check"]
    outcome = subprocess.run(command, capture_output=True, text=True)
    assert outcome.returncode == 0, outcome.stderr


def test_the_readme_quotes_the_benchmarks_page():
    readme, page = (
        (ROOT / each).read_text() for each in ("README.md", "docs/results/benchmarks.md")
    )
    rows = re.findall(r"^\|.*\|$", readme.split("## How fast\n")[1].split("\n## ")[0], flags=re.M)
    assert len(rows) > 3
    assert [row for row in rows if row not in page] == []
