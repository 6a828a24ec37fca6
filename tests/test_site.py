"""The site's reference has every public name, and what makes its pages does so rightly."""

import re
import sys
from pathlib import Path

import pytest

import dmsgd

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
sys.path.append(str(DOCS / "site"))


def documented():
    """Return the names that the pages of the reference show."""
    pages = (DOCS / "reference").glob("*.md")
    return [
        n
        for page in pages
        for n in re.findall(r"^<!-- ::: (\S+) -->$", page.read_text("utf-8"), re.M)
    ]


def test_the_reference_has_every_public_name_once():
    """Those of dmsgd.torch and other modules that load a framework: tests/built_site.py."""
    found = documented()
    assert len(found) == len(set(found))
    own = {name for name in found if name.count(".") == 1}
    assert own == {f"dmsgd.{name}" for name in dmsgd.__all__}
    index = (DOCS / "reference/index.md").read_text(encoding="utf-8")
    assert {f"#{name}" for name in found} == set(re.findall(r"\.md(#[\w.]+)\)", index))


def test_pages_of_the_reference_have_the_docstrings_of_today():
    import reference

    for page in reference.FOLDER.glob("*.md"):
        for _, name, shown, _ in reference.MARK.findall(page.read_text("utf-8")):
            assert shown == (reference.written(name) or shown), "python docs/site/reference.py"


def test_every_page_of_the_reference_opens_with_a_link_to_the_guide():
    for page in (DOCS / "reference").glob("*.md"):
        links = re.findall(r"\]\((\.\./[\w-]+\.md)\)", page.read_text("utf-8").split("\n\n")[1])
        assert links, page.name
        assert all((page.parent / each).is_file() for each in links), page.name


def test_see_also_links_public_names():
    import docstrings
    import reference

    places = reference.places()
    assert places["Weighted"] == "designs.md#dmsgd.Weighted"
    text = "`KDPP`. See also `KDPP`, `dmsgd.select` or\n`Weighted.like`. Not `KDPP`."
    assert docstrings.linked(text, {"KDPP": "(a.md)", "select": "[b]"}) == (
        "`KDPP`. See also [`KDPP`](a.md), [`dmsgd.select`][b] or\n`Weighted.like`. Not `KDPP`."
    )


def test_docstrings_become_markdown():
    import docstrings

    text = "Return it.\n\nX:    features,\n      (n, d)\nk, w: more\n\n    a formula\n\n"
    text += ">>> Uniform(4, 2).k\n2"
    assert docstrings.markdown(text) == (
        "Return it.\n\n- **`X`** – features, (n, d)\n- **`k`**, **`w`** – more\n\n"
        "```\na formula\n```\n\n"
        "```python\nfrom dmsgd import Uniform\nUniform(4, 2).k\n# 2\n```"
    )


def test_links_between_files_become_links_between_pages():
    import pages

    text = (
        "[a](../examples/pytorch.py) [b](../CHANGELOG.md#x) [c](select.md) [d](https://e.org/f.py)"
    )
    assert pages.inside(text, "docs/frameworks.md", "frameworks.md") == (
        "[a](gallery/pytorch.md) [b](changelog.md#x) [c](select.md) [d](https://e.org/f.py)"
    )
    assert pages.inside("[a](docs/large.md)", "README.md", "x/y.md") == "[a](../large.md)"


def test_tables_that_pages_link_to_are_on_the_site(monkeypatch):
    import pages

    monkeypatch.setattr(pages, "gallery_pages", dict)
    site = pages.documents()
    linked = {
        f"results/{name}"
        for path in (DOCS / "results").glob("*.md")
        for name in re.findall(r"\]\(([\w-]+\.csv)\)", path.read_text("utf-8"))
    }
    assert linked
    assert linked == {uri for uri in site if uri.endswith(".csv")}


def test_every_example_has_a_picture_in_the_gallery(tmp_path, monkeypatch):
    import gallery

    monkeypatch.setattr(gallery, "RESULTS", tmp_path)
    gallery.draw("notebook", "(plain SGD 0.629; frequency-matched 0.647 -> with repulsion 0.35)")
    assert "with repulsion" in (tmp_path / "notebook.svg").read_text("utf-8")
    with pytest.raises(SystemExit, match="FIGURES"):
        gallery.draw("notebook", "uniform: balanced test accuracy 0.7")
