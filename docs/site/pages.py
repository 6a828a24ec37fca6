"""Puts the pages of the site together in build/pages, from which any generator can build it.

    python docs/site/gallery.py && python docs/site/pages.py && mkdocs build --strict

Pages of docs/ are taken as they are, except for links that leave docs/. The gallery shows the
examples with what they printed (docs/site/gallery.py). CONTRIBUTING.md and CHANGELOG.md become
pages, and so does every other file of the repository that a page links to. Formulas become MathML,
and tutorials can be had as scripts and notebooks.
"""

from __future__ import annotations

import json
import posixpath
import re
import shutil
import textwrap

import gallery
import maths
import tutorials

ROOT = gallery.ROOT
DOCS = ROOT / "docs"
FOLDER = ROOT / "build" / "pages"
LINK = re.compile(r"(\]\()((?!https?:|#|mailto:)[^)\s#]+)")
WIDE = "---\nhide: [navigation, toc]\n---\n\n"
PAGES = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}


def home(path: str) -> str | None:
    """Return the page of the site that shows a file of the repository outside docs/."""
    if path in PAGES:
        return PAGES[path]
    if path == "README.md":
        return "index.md"
    if path in ("examples", "examples/README.md"):
        return "gallery/index.md"
    if match := re.fullmatch(r"examples/(\w+)\.py", path):
        return "source/examples/data.md" if match[1] == "data" else f"gallery/{match[1]}.md"
    if path.endswith(".py") and (ROOT / path).is_file():
        return f"source/{path.removesuffix('.py')}.md"
    return None


def inside(markdown: str, source: str, page: str) -> str:
    """Return the text of a file at `source` in the repository, with links as of `page` in docs/."""

    def replaced(match: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(source), match[2]))
        if target.startswith("docs/"):
            target = target.removeprefix("docs/")
        else:
            target = home(target) or target
        return match[1] + posixpath.relpath(target, posixpath.dirname(page) or ".")

    return LINK.sub(replaced, markdown)


#: A public name as the page has it in a clone; mkdocstrings shows it better.
SHOWN = re.compile(r"<!-- (::: \S+) -->\n.*?<!-- end -->\n", re.S)
TABS = re.compile(r"<!-- tabs -->\n(.*?)<!-- end tabs -->\n", re.S)


def tabbed(markdown: str) -> str:
    """Return a page with the sections between two marks as tabs; files keep them as sections."""

    def tabs(found: re.Match[str]) -> str:
        _, *parts = re.split(r"^## (.+)\n", found[1], flags=re.M)
        pairs = zip(parts[::2], parts[1::2], strict=True)
        made = (f'=== "{title}"\n\n{textwrap.indent(body, "    ")}\n' for title, body in pairs)
        return "".join(made)

    return TABS.sub(tabs, markdown)


def documents() -> dict[str, str]:
    """Return every page of the site, as Markdown, and the tables beside them, by their paths."""
    found = {
        path.relative_to(DOCS).as_posix(): path.read_text("utf-8") for path in DOCS.rglob("*.csv")
    }
    for path in sorted(DOCS.rglob("*.md")):
        uri = path.relative_to(DOCS).as_posix()
        text = SHOWN.sub(r"\1\n", tabbed(path.read_text("utf-8")))
        found[uri] = inside(text, f"docs/{uri}", uri)
    for source, page in PAGES.items():
        found[page] = inside((ROOT / source).read_text("utf-8"), source, page)
    found |= gallery_pages()
    for text in list(found.values()):
        for path in re.findall(r"\]\([./]*source/([\w/]+)\.md", text):
            found[f"source/{path}.md"] = _listing(f"{path}.py")
    return found


def main() -> None:
    """Write all pages, pictures and reports anew."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    for folder in ("assets", "images"):
        shutil.copytree(DOCS / folder, FOLDER / folder)
    shutil.copytree(gallery.RESULTS, FOLDER / "gallery", ignore=shutil.ignore_patterns("*.json"))
    for uri, text in documents().items():
        path = FOLDER / uri
        text = maths.rendered(text) if uri.endswith(".md") else text
        if uri.startswith("tutorials/"):
            name = path.stem
            text = tutorials.with_downloads(text, name)
            source = (DOCS / uri).read_text("utf-8")
            for ending, made in (("py", tutorials.script), ("ipynb", tutorials.notebook)):
                path.parent.mkdir(parents=True, exist_ok=True)
                path.with_suffix(f".{ending}").write_text(made(source), encoding="utf-8")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def _listing(path: str) -> str:
    return f"# {path}\n\n```python\n{(ROOT / path).read_text('utf-8')}```\n"


def gallery_pages() -> dict[str, str]:
    """Return the pages of the gallery: one for each example, and their table."""
    made, cards = {}, []
    for name in gallery.names():
        result = gallery.RESULTS / f"{name}.json"
        if not result.is_file():
            raise SystemExit(f"examples/{name}.py was not run: python docs/site/gallery.py {name}")
        title, said, page = _example(name, json.loads(result.read_text("utf-8")))
        made[f"gallery/{name}.md"] = page
        drawn = f'<img src="{name}.svg" alt="" loading="lazy">' if _has(f"{name}.svg") else ""
        cards.append(f'<a href="{name}.html">{drawn}<strong>{title}</strong>{_html(said)}</a>')
    readme = (ROOT / "examples/README.md").read_text("utf-8")
    text = inside(readme, "examples/README.md", "gallery/index.md")
    head, intro, rest = text.split("\n\n", 2)
    ran = "All of them ran when this site was built; each page shows what was printed."
    grid = '<div class="gallery">\n' + "\n".join(cards) + "\n</div>"
    made["gallery/index.md"] = (
        f"{WIDE}{head}\n\n{intro} {ran}\n\n{grid}\n\n## In one table\n\n{rest}"
    )
    return made


def _html(text: str) -> str:
    return re.sub(r"`([^`]*)`", r"<code>\1</code>", text)


def _has(name: str) -> bool:
    return (gallery.RESULTS / name).is_file()


def _example(name: str, result: dict[str, str]) -> tuple[str, str, str]:
    """Return the title, the subtitle and the page of one example."""
    source = (ROOT / f"examples/{name}.py").read_text("utf-8")
    found = re.match(r'"""(.*?)"""\n+(.*)', source, re.S)
    assert found
    about, code = found[1], found[2]
    first, _, rest = about.partition("\n")
    title, _, said = (part.strip() for part in first.partition(":"))
    said = said[0].upper() + said[1:]
    parts = [f"# {title}", said, _prose(rest)]
    if _has(f"{name}.svg"):
        parts.append(f"![What it printed, drawn]({name}.svg)")
    parts.append(f"```console\n$ {result['command']}\n{result['output']}\n```")
    if _has(f"{name}-report.html"):
        parts.append(f'The page that it wrote: <a href="{name}-report.html">report.html</a>.')
    parts.append(f"```python\n{code}```")
    if "from data import" in code:
        parts.append("The data is made by [data.py](../source/examples/data.md).")
    return title, said, "\n\n".join(parts) + "\n"


def _prose(text: str) -> str:
    """Return the rest of an example's docstring: aligned "Word:  text" lines become a list."""
    text = re.sub(r"^(\w[\w ,]*):\s{1,}(\S.*(?:\n {4,}\S.*)*)", _item, text.strip("\n"), flags=re.M)
    return re.sub(r"^\n*((?: {4}\S.*\n?)+)", lambda m: f"```console\n{_dedent(m[1])}```\n", text)


def _item(match: re.Match[str]) -> str:
    return f"- **{match[1]}:** {' '.join(match[2].split())}"


def _dedent(text: str) -> str:
    return re.sub(r"^ {4}", "", text.rstrip("\n"), flags=re.M) + "\n"


if __name__ == "__main__":
    main()
