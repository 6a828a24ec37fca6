"""The page of an inspection, in a real browser."""

import base64
import json
import re

import numpy as np
import pytest

from browser import browser
from dmsgd.diagnostics import inspect
from test_inspect_page import EVIL, RNG, SHOWN, TEXTS, hostile_page, make_page

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "page.html"
    path.write_text(make_page())
    return f"file://{path}"


@pytest.fixture(scope="module")
def page(address, tmp_path_factory):
    with browser(tmp_path_factory.mktemp("profile")) as driver:
        driver.get(address)
        yield driver


def text(page, selector):
    return page.execute_script("return document.querySelector(arguments[0]).innerText", selector)


def count(page, selector):
    return page.execute_script("return document.querySelectorAll(arguments[0]).length", selector)


def test_no_request_leaves_the_page_and_nothing_is_logged(page):
    events = [json.loads(entry["message"])["message"] for entry in page.get_log("performance")]
    requests = [each["params"] for each in events if each["method"] == "Network.requestWillBeSent"]
    # The browser's own start page, which it opens before ours, is not ours.
    sent = [each["request"]["url"] for each in requests if each["documentURL"].startswith("file:")]
    outside = [url for url in sent if not url.startswith(("file:", "data:"))]
    assert sent
    assert outside == []
    assert page.get_log("browser") == []


def test_names_and_texts_show_as_text(page):
    assert EVIL in text(page, "table")
    assert EVIL in text(page, "h1")
    assert count(page, "script, main b b, .lines bdi *, .pictures bdi *") == 0
    assert any(each in text(page, "main") for each in TEXTS)


def test_everything_has_words(page):
    assert count(page, "svg:not([role=img][aria-label]), img:not([alt]), img[alt='']") == 0
    assert count(page, "circle:not(:has(title))") == 0
    assert "an item\nis seen per epoch" in text(page, "thead")
    page.execute_script("document.querySelector('details').open = true")
    assert "exp(entropy" in text(page, "dl")


def test_pictures_are_drawn(page):
    drawn = "return [...document.images].every((each) => each.complete && each.naturalWidth == 8)"
    assert count(page, "img") > 30
    assert page.execute_script(drawn)


def test_hostile_names_show_as_text(tmp_path):
    (tmp_path / "page.html").write_text(hostile_page(), encoding="utf-8")
    with browser(tmp_path / "profile") as other:
        other.get(f"file://{tmp_path / 'page.html'}")
        for each in SHOWN:
            assert each in text(other, "table"), each
        assert text(other, "h1").startswith('" onload="alert(1)שלום{{ 7 * 7 }} ${7 * 7} %3Cb%3E')
        assert len(text(other, "body")) < 100_000
        assert count(other, "[onload]") == 0
        wide = "return document.documentElement.scrollWidth"
        assert other.execute_script(wide) <= 1200
        assert other.get_log("browser") == []


def test_ten_thousand_classes(tmp_path):
    labels = np.arange(20_000) // 2
    found = inspect(RNG.normal(size=(20_000, 4)), 3, labels)
    (tmp_path / "page.html").write_text(found.html())
    assert len(found.html()) < 300_000
    with browser(tmp_path / "profile") as other:
        other.get(f"file://{tmp_path / 'page.html'}")
        assert count(other, "#h-holds ~ .scroll tbody tr") == 24
        assert "the commonest and the rarest" in text(other, "main")
        assert other.get_log("browser") == []


def test_printed_page_is_light(page):
    document = page.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})
    assert base64.b64decode(document["data"]).startswith(b"%PDF")
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {
        "media": "print", "features": [{"name": "prefers-color-scheme", "value": "dark"}]
    })  # fmt: skip
    colour = "return getComputedStyle(document.body).color"
    assert int(re.search(r"\d+", page.execute_script(colour))[0]) < 60
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


@pytest.mark.parametrize("dark", [False, True])
def test_phone(address, tmp_path, dark):
    with browser(tmp_path / "profile", width=390, height=844, dark=dark) as page:
        page.get(address)
        wide = "return document.documentElement.scrollWidth"
        assert page.execute_script(wide) <= 390
        shown = "return [...document.querySelectorAll(arguments[0])].map((e) => e.offsetWidth)"
        assert min(page.execute_script(shown, ".bar u")) >= 40  # bars have room to differ
        lines = "return [...document.querySelectorAll('th.whole')].map((e) => e.offsetHeight)"
        assert max(page.execute_script(lines)) < 40  # names of batches stay on one line
        colour = "return getComputedStyle(document.body).backgroundColor"
        red = int(re.search(r"\d+", page.execute_script(colour))[0])
        assert (red < 60) == dark
        assert page.get_log("browser") == []
