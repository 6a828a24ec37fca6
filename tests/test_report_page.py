"""The page of the report, in a real browser."""

import base64
import json
import re

import numpy as np
import pytest

import dmsgd
from browser import browser
from dmsgd.designs import DesignOptions
from test_report import (  # noqa: F401 (fixtures)
    EVIL,
    LABELS,
    RNG,
    TEXTS,
    X,
    content,
    hostile,
    html,
    made,
    unpack,
)

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def opened(html, tmp_path_factory):
    """A browser and the address of the page."""
    folder = tmp_path_factory.mktemp("page")
    (folder / "report.html").write_text(html)
    with browser(folder / "profile") as driver:
        yield driver, f"file://{folder / 'report.html'}"


@pytest.fixture
def page(opened):
    """The page as it opens, whatever another test has done to it."""
    driver, address = opened
    driver.get("about:blank")
    driver.get(address)
    return driver


def text(page, selector):
    return page.execute_script("return document.querySelector(arguments[0]).innerText", selector)


def pixels(page, selector):
    return page.execute_script(
        "return document.querySelector(arguments[0]).toDataURL()", f"{selector}"
    )


def slide(page, name, position):
    page.execute_script(
        "const input = document.getElementById(arguments[0]); input.value = arguments[1];"
        "input.dispatchEvent(new Event('input', {bubbles: true}))",
        name,
        position,
    )


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
    assert EVIL in text(page, "#classes")
    assert EVIL in text(page, "h1")
    assert page.execute_script("return document.querySelectorAll('main script').length") == 0
    listed = text(page, "#most")
    assert re.search(r"item \"\d+\" isn't <b>bold</b> & </script> \$\{x\}", listed)
    assert page.execute_script("return document.querySelectorAll('#most b').length") == 0


@pytest.mark.parametrize(("name", "position"), [("w", 0), ("k", 1)])
def test_sliders_change_the_charts(page, name, position):
    parts = ("#map", "#inclusion canvas", "#coverage canvas")
    words = ("#summary", "#effects", "#classes", "#most", "#diverse", "#map-text")
    before = [pixels(page, each) for each in parts] + [text(page, each) for each in words]
    slide(page, name, position)
    after = [pixels(page, each) for each in parts] + [text(page, each) for each in words]
    changed = [one != other for one, other in zip(before, after, strict=True)]
    assert all(changed), dict(zip(parts + words, changed, strict=True))
    value = {"w": "0", "k": "5"}[name]
    assert text(page, f"#{name}-value") == value
    assert f"{name} = {value}" in text(page, "#summary")
    slide(page, name, {"w": 3, "k": 2}[name])
    assert [pixels(page, each) for each in parts] == before[: len(parts)]


def test_hover_shows_an_item(page, content):
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.by import By

    canvas = page.find_element(By.ID, "map")
    page.execute_script("arguments[0].scrollIntoView({block: 'center'})", canvas)
    assert text(page, "#tip") == ""
    size, edge = canvas.size, 14
    place = [unpack(content["points"][axis], "u2")[7] / 65535 for axis in "xy"]
    x = (place[0] - 0.5) * (size["width"] - 2 * edge)
    y = (0.5 - place[1]) * (size["height"] - 2 * edge)
    ActionChains(page, duration=0).move_to_element_with_offset(canvas, x, y).perform()
    shown = text(page, "#tip")
    item = int(re.search(r"^item (\d+)$", shown, re.M)[1])
    assert item == 7
    assert f"class {LABELS[item]}" in shown
    assert TEXTS[item] in shown
    assert re.search(r"drawn \d.*×.as often", shown.replace("\u00a0", " "))
    assert page.execute_script("return document.querySelectorAll('#tip canvas').length") == 1
    ActionChains(page, duration=0).move_to_element_with_offset(canvas, 0, -260).perform()
    assert page.execute_script("return document.getElementById('tip').style.display") == "none"


def test_sliders_name_their_stops_and_legends_have_no_blanks(page):
    assert text(page, "#w-stops").split() == ["0", "0.3", "0.5", "0.7", "0.9"]
    assert text(page, "#k-stops").split() == ["2", "5", "10", "20"]
    assert re.fullmatch(r"diverse\s*uniform", text(page, "#coverage .u-legend").strip())
    names = "return Array.from(document.querySelectorAll('#choices tbody th'), (e) => e.innerText)"
    targets = [f"target {name}" for name in ("uniform", "balanced", "density")]
    ws = [f"w = {w}" for w in (0, 0.3, 0.5, 0.7, 0.9)]
    assert page.execute_script(names) == ["uniform", "stratified", *ws, *targets]


def test_every_chart_has_words_and_figures(page):
    for name in ("inclusion", "coverage"):
        assert len(page.execute_script(f"return {name}.getAttribute('aria-label')")) > 40
        assert page.execute_script(f"return {name}.parentElement.querySelectorAll('td').length") > 9
    assert "most favoured item" in text(page, "#map-text")
    assert "Recommended: stratified" in text(page, "#advice")
    assert re.search(r"Repulsion: it removes \d+\s%.* of the noise", text(page, "#effects"))
    assert page.execute_script("return map.getAttribute('aria-label')").startswith("Map of 150")
    assert "the variance of a uniform one of" in text(page, "#variance-text")
    assert re.search(r"repulsion to \d+\s% of that", text(page, "#variance-text"))
    assert "frequency-matched" in text(page, "#variance")
    assert "noise removed" in page.execute_script("return document.querySelector('dl').textContent")


def elements(page):
    return page.execute_script("return document.getElementsByTagName('*').length")


def test_hostile_names_show_as_text(hostile, tmp_path):
    (tmp_path / "report.html").write_text(hostile[1], encoding="utf-8")
    with browser(tmp_path / "profile") as other:
        other.get(f"file://{tmp_path / 'report.html'}")
        shown = text(other, "#classes").split("\n")
        for each in hostile[0]["classes"]:
            assert any(each["name"] in line for line in shown), each["name"]
        assert "”, from" in text(other, "#summary")
        slide(other, "w", 3)
        assert "w = 0.7" in text(other, "#summary")
        assert text(other, "h1").startswith('" onload="alert(1)שלום{{ 7 * 7 }} ${7 * 7} %3Cb%3E')
        assert len(text(other, "body")) < 100_000
        assert other.execute_script("return document.querySelectorAll('[onload]').length") == 0
        wide = "return document.documentElement.scrollWidth"
        assert other.execute_script(wide) <= 1200
        assert other.get_log("browser") == []


def test_ten_thousand_classes(tmp_path):
    """Two hundred are listed, when asked for, and every item still knows its own."""
    labels = np.arange(20_000) // 2
    found = dmsgd.report.build(
        RNG.normal(size=(20_000, 4)), 3, labels, DesignOptions(target="uniform")
    )
    content = found.content
    assert len(content["classes"]) == 10_000
    assert content["listed"] == [*range(100), *range(9_900, 10_000)]
    assert len(content["choices"][0][0]["shares"]) == 200
    assert content["uniform"][0]["evenness"] == pytest.approx(1)
    (tmp_path / "report.html").write_text(found.html())
    with browser(tmp_path / "profile") as other:
        other.get(f"file://{tmp_path / 'report.html'}")
        few = elements(other)
        assert few < 2000
        assert "100 commonest and the 100 rarest of 10,000" in text(other, "#which-classes")
        assert text(other, "#all-classes") == ""
        other.execute_script("document.getElementById('more-classes').open = true")
        other.execute_async_script("requestAnimationFrame(() => setTimeout(arguments[0], 50))")
        assert (
            other.execute_script("return document.querySelectorAll('#all-classes tr').length")
            == 200
        )
        assert other.get_log("browser") == []


def test_a_slider_with_one_position_is_not_shown(tmp_path):
    """A target is prescribed for one w and one k, so there is nothing to slide."""
    found = dmsgd.report.build(X, 10, LABELS, DesignOptions(target="uniform"))
    (tmp_path / "report.html").write_text(found.html())
    shown = "return ['w', 'k'].map((name) => document.getElementById(name).offsetParent !== null)"
    with browser(tmp_path / "profile") as other:
        other.get(f"file://{tmp_path / 'report.html'}")
        assert other.execute_script(shown) == [False, False]
        assert "w = 0 and k = 10" in text(other, "#summary")


def test_both_sliders_are_shown_where_there_is_something_to_slide(page):
    shown = "return ['w', 'k'].map((name) => document.getElementById(name).offsetParent !== null)"
    assert page.execute_script(shown) == [True, True]


def test_printed_page_is_light(page):
    document = page.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})
    assert base64.b64decode(document["data"]).startswith(b"%PDF")
    assert page.execute_script("return document.documentElement.className") == ""


@pytest.mark.parametrize("dark", [False, True])
def test_phone(html, tmp_path, dark):
    (tmp_path / "report.html").write_text(html)
    with browser(tmp_path / "profile", width=390, height=844, dark=dark) as page:
        page.get(f"file://{tmp_path / 'report.html'}")
        wide = "return document.documentElement.scrollWidth"
        assert page.execute_script(wide) <= 390
        colour = "return getComputedStyle(document.body).backgroundColor"
        red = int(re.search(r"\d+", page.execute_script(colour))[0])
        assert (red < 60) == dark
        assert page.get_log("browser") == []
