"""What the documents say is true: examples run, named code exists."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import dmsgd

ROOT = Path(__file__).parent.parent


def blocks(name, language="python"):
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / name).read_text(), flags=re.S)


def test_the_first_example_is_short_and_runs(capsys):
    first = blocks("README.md")[0]
    assert len(first.strip().splitlines()) <= 12
    exec(compile(first, "README.md", "exec"), {})
    assert capsys.readouterr().out


@pytest.mark.parametrize(
    "name",
    ["README.md", "CONTRIBUTING.md", "examples/README.md"]
    + [f"docs/{page.name}" for page in sorted((ROOT / "docs").glob("*.md"))],
)
def test_linked_and_named_files_exist(name):
    text = (ROOT / name).read_text()
    for target in re.findall(r"\]\((?!http|#)([^)#]+)", text):
        assert (ROOT / name).parent.joinpath(target).exists(), target
    for path in re.findall(r"`([a-z_/]+\.py)`", text):
        assert any((ROOT / base / path).exists() for base in ("", "src/dmsgd")), path


def test_docstring_examples_run():
    import doctest
    import importlib

    tried = 0
    for module in (
        "features", "fingerprints", "sources", "spectra.exact", "designs.kdpp",
        "designs.stratified", "designs.build", "designs.swap_chain", "designs.poisson_disk",
        "schedules.drawing", "prescription.tilt", "experiments.intervals", "diagnostics.variance",
    ):  # fmt: skip
        result = doctest.testmod(importlib.import_module(f"dmsgd.{module}"))
        assert result.failed == 0
        tried += result.attempted
    assert tried >= 6


def test_every_public_name_is_documented():
    assert all(getattr(dmsgd, name).__doc__ for name in dmsgd.public.__all__)


def test_the_papers_page_is_what_the_results_say():
    outcome = subprocess.run(
        [sys.executable, ROOT / "docs/claims.py", "--check"], capture_output=True, text=True
    )
    assert outcome.returncode == 0, outcome.stderr
