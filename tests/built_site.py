"""The built site, as its reader has it: from a folder, in Chromium, without a network.

    make docs        # runs the examples, builds build/site, then these tests

It is no part of `make test`, which builds nothing.
"""

from __future__ import annotations

import inspect
import os
import re
import time
from html.parser import HTMLParser
from importlib import import_module
from urllib.parse import unquote, urlsplit

import pytest
from selenium.webdriver.common.keys import Keys

from browser import browser
from test_site import DOCS, ROOT, documented

import docstrings  # isort: skip  (from docs/site, which test_site adds to the path)
import gallery  # isort: skip

SITE = ROOT / "build" / "site"
#: All but what servers show for addresses that are not there, whose links are of the server's.
PAGES = sorted(path.relative_to(SITE).as_posix() for path in SITE.rglob("*.html"))
PAGES = [name for name in PAGES if name != "404.html"]


class Links(HTMLParser):
    """What a page links to and loads, and the names within it that can be linked to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.loads: list[str] = []
        self.names: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        found = {name: value for name, value in attributes if value is not None}
        self.names |= {found[each] for each in ("id", "name") if each in found}
        if tag == "a" and "href" in found:
            self.targets.append(found["href"])
        elif tag == "link" and found.get("rel") not in ("canonical", "prev", "next"):
            self.loads.append(found["href"])
        elif "src" in found:
            self.loads.append(found["src"])


@pytest.fixture(scope="module")
def pages():
    assert len(PAGES) > 60, "run make docs"
    return {name: Links((SITE / name).read_text(encoding="utf-8")) for name in PAGES}


def test_every_link_leads_somewhere(pages):
    broken = []
    for name, page in pages.items():
        for link in page.targets + page.loads:
            parts = urlsplit(link)
            if parts.scheme in ("http", "https", "data", "mailto"):
                continue
            target = os.path.normpath(os.path.join(os.path.dirname(name), unquote(parts.path)))
            target = target if parts.path else name
            there = pages[target].names if target in pages else set()
            named = parts.fragment and not parts.fragment.startswith("__") and target in pages
            if not (SITE / target).exists() or (named and unquote(parts.fragment) not in there):
                broken.append(f"{name}: {link}")
    assert not broken, "\n".join(broken)


def test_no_page_loads_anything_from_elsewhere(pages):
    for name, page in pages.items():
        assert not [each for each in page.loads if urlsplit(each).scheme.startswith("http")], name
    for path in SITE.rglob("*.css"):
        assert not re.search(r"(url\(|@import )['\"]?https?:", path.read_text("utf-8")), path


def test_every_example_ran_and_is_shown():
    for name in gallery.names():
        page = (SITE / f"gallery/{name}.html").read_text(encoding="utf-8")
        command = gallery.SHOWN.get(name, f"python examples/{name}.py")
        assert re.sub(r"\s", "", command) in re.sub(r"<[^>]*>|\s", "", page), name


def test_the_reference_has_every_public_name():
    expected = {f"dmsgd.{name}" for name in docstrings.public("")}
    for module in docstrings.MODULES[1:]:
        expected |= {f"dmsgd.{module}.{name}" for name in docstrings.public(module)}
    assert set(documented()) == expected
    html = "".join((SITE / f"reference/{p.stem}.html").read_text("utf-8") for p in REFERENCE)
    assert not [name for name in expected if f'id="{name}"' not in html]


REFERENCE = sorted((DOCS / "reference").glob("*.md"))


@pytest.mark.parametrize("name", sorted({*documented()}))
def test_examples_of_the_reference_can_be_copied_and_run(name):
    """As shown: with the imports that docstrings leave to their module."""
    home, _, last = name.rpartition(".")
    text = inspect.getdoc(getattr(import_module(home), last)) or ""
    shown = docstrings.markdown(text)
    for code in re.findall(r"```python\n(.*?)```", shown, re.S):
        if re.search(r"^(import|from) ", code, re.M):
            exec(compile(code, name, "exec"), {})


@pytest.fixture(scope="module", params=[(1200, False), (1200, True), (390, False), (390, True)])
def driver(request, tmp_path_factory):
    width, dark = request.param
    with browser(tmp_path_factory.mktemp("profile"), width, 900, dark) as driver:
        driver.width, driver.dark = width, dark
        yield driver


def visit(driver, name):
    driver.get((SITE / name).as_uri())


SEEN = ("index.html", "concepts.html", "gallery/index.html", "gallery/pytorch.html",
        "results/paper.html", "reference/designs.html", "frameworks.html", "comparison.html",
        "troubleshooting.html", "good-for.html")  # fmt: skip


@pytest.mark.parametrize("name", SEEN)
def test_pictures_load_and_nothing_is_wider_than_the_screen(driver, name):
    visit(driver, name)
    driver.execute_script("document.querySelectorAll('img').forEach(i => i.loading = 'eager')")
    until(driver, "return [...document.images].every(i => i.complete)")
    small = "return [...document.images].filter(i => !i.naturalWidth).map(i => i.src)"
    assert driver.execute_script(small) == []
    assert driver.execute_script("return document.documentElement.scrollWidth") <= driver.width
    background = driver.execute_script("return getComputedStyle(document.body).backgroundColor")
    lightness = sum(map(int, re.findall(r"\d+", background)[:3]))
    assert (lightness < 200) == driver.dark
    assert [each for each in driver.get_log("browser") if each["level"] == "SEVERE"] == []


def until(driver, script, seconds=20):
    """Return the first true result of a script."""
    end = time.monotonic() + seconds
    while not (found := driver.execute_script(script)):
        assert time.monotonic() < end, script
        time.sleep(0.1)
    return found


def test_search_finds_names_and_words(driver):
    visit(driver, "index.html")
    opener = ".md-header label[for=__search]" if driver.width < 600 else SEARCH
    driver.find_element("css selector", opener).click()
    field = driver.find_element("css selector", SEARCH)
    for words, page in (
        ("DiverseSampler", "reference/torch.html"),
        ("two samplers", "troubleshooting.html"),
    ):
        field.clear()
        field.send_keys(words)
        found = "return [...document.querySelectorAll('.md-search-result__link')].map(a => a.href)"
        until(driver, f"{found}.some(each => each.includes('{page}'))")


SEARCH = "[data-md-component=search-query]"


def test_code_is_copied_whole(driver):
    visit(driver, "index.html")
    button = driver.find_element("css selector", "[data-clipboard-target]")
    driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", button)
    button.click()
    until(driver, "return document.querySelector('.md-dialog--active')")
    driver.execute_script("document.body.append(document.createElement('textarea'))")
    area = driver.find_element("css selector", "body > textarea:last-child")
    area.send_keys(Keys.CONTROL, "v")
    page = (DOCS / "index.md").read_text(encoding="utf-8")
    first = re.search(r"```python\n(.*?)```", page, re.S)[1]
    assert area.get_attribute("value").strip() == first.strip()


def test_no_request_leaves_the_folder(driver):
    """Of all that was asked for in the tests above, and of a search."""
    asked = [each["message"] for each in driver.get_log("performance")]
    urls = {
        url
        for message in asked
        if '"Network.requestWillBeSent"' in message
        for url in re.findall(r'"request":\{[^{}]*?"url":"([^"]+)"', message)
    }
    visit(driver, "index.html")
    assert not [url for url in urls if not url.startswith(("file:", "data:", "blob:"))]
