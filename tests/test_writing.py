"""README and guide are short and in plain words.

python tests/test_writing.py     # words of every page beside its budget
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

#: Words of each page of the guide, tables included, without code; a tenth more is allowed.
GUIDE = {
    "index": 400, "quickstart": 600, "choose": 500, "good-for": 800, "concepts": 1200,
    "tutorials/long_tailed": 900, "tutorials/choose_500": 900, "tutorials/label_next": 900,
    "tutorials/labelling_tools": 600, "tutorials/federated": 600, "tutorials/reranking": 400,
    "from-dppy": 700,
    "from-samplers": 400, "frequencies": 900, "epochs": 500, "frameworks": 1200, "select": 1300,
    "large": 800, "gpu": 500, "services": 500, "kernels": 800, "learning": 450, "diagnostics": 800,
    "troubleshooting": 1200, "comparison": 500, "guarantees": 700, "cheatsheet": 300,
}  # fmt: skip
PAGES = {name: ROOT / f"docs/{name}.md" for name in GUIDE}
RESULTS = sorted((ROOT / "docs/results").glob("*.md"))
README = ROOT / "README.md"

#: Private words and riddles, with what to write instead.
NOT = {
    r"who is seen|who meets|the halves": "sampling frequency, repulsion",
    r"same b\b|frequencies alone": "frequency-matched control",
    r"\blaws?\b": "distribution",
    r"\bstrata\b": "Stratified, stratified batches",
    r"\b(near[- ])?copies\b": "duplicates",
    r"\bcards?\b": "GPU",
    r"\blots?\b": "prefetched batches; many",
    r"\bsure\b": "significant",
    r"\bbut for\b|\bthat which\b|\bso many\b": "say the thing",
    r"\b(it|and) says so\b|\bis told\b|\bneeds no word\b": "raises, warns, prints, returns",
    r"\bare refused\b|\bis refused\b": "raises an error",
    r"\d[^.|]{0,12} (an?) (draw|item|batch|epoch|step|second|round|row|class)\b": "per",
    r"\bN\b( =| items| x)": "n",
    r"pip install dmsgd\b": "there is no release: pip install .",
    r"plain shuffling": "`Uniform` draws independent batches; shuffled epochs are shuffle=True",
}


def prose(path: Path) -> str:
    """Return the text of a page without front matter, code, comments and link targets."""
    text = re.sub(r"\A---\n.*?\n---\n", "", path.read_text(encoding="utf-8"), flags=re.S)
    text = re.sub(r"^```.*?^```", "", text, flags=re.S | re.M)
    text = re.sub(r"<!--.*?-->", "", text, flags=re.S)
    text = re.sub(r"(?<=\n\n)(?: {4}[^\n]*\n)+", "", text)
    return re.sub(r"\]\([^)]*\)", "]", text)


def count(path: Path, tables: bool = True) -> int:
    """Return how many words a page has."""
    text = prose(path)
    if not tables:
        text = re.sub(r"^ *\|.*$", "", text, flags=re.M)
    return len(re.findall(r"\S*\w\S*", text))


@pytest.mark.parametrize("name", GUIDE)
def test_a_page_of_the_guide_keeps_to_its_words(name: str) -> None:
    assert count(PAGES[name]) <= 1.1 * GUIDE[name]


def test_the_guide_has_sixteen_thousand_words_at_most() -> None:
    assert sum(map(count, PAGES.values())) <= 16_000


@pytest.mark.parametrize("page", RESULTS, ids=lambda page: page.stem)
def test_a_page_of_results_has_a_thousand_words_at_most(page: Path) -> None:
    assert count(page, tables=False) <= 1000


def test_the_readme_is_a_page() -> None:
    assert len(README.read_text(encoding="utf-8").splitlines()) <= 150


@pytest.mark.parametrize("page", [README, *PAGES.values()], ids=lambda page: page.stem)
def test_plain_words(page: Path) -> None:
    """Code and tables, too: readers meet them all the same."""
    text = re.sub(r"\]\([^)]*\)|`[^`\n]*`", "", page.read_text(encoding="utf-8"))
    for pattern, better in NOT.items():
        if re.search(pattern, text):
            line = re.search(f".*({pattern}).*", text)
            pytest.fail(f"{line[0].strip()!r}: write {better}")


if __name__ == "__main__":
    for name, budget in GUIDE.items():
        words = count(PAGES[name]) if PAGES[name].exists() else 0
        print(f"{words:6,} of {budget:6,}  {name}")
    print(f"{sum(count(p) for p in PAGES.values() if p.exists()):6,} of 16,000")
    for page in RESULTS:
        print(f"{count(page, tables=False):6,} of  1,000  results/{page.stem}")
    print(f"{len(README.read_text(encoding='utf-8').splitlines())} lines of README.md")
