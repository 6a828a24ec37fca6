"""The page of the report, in a real browser."""

import base64
import csv
import io
import json
import re
import time

import numpy as np
import pytest

import dmsgd
from browser import browser
from dmsgd.designs import DesignOptions
from dmsgd.designs.build import make_kdpp
from test_report import (  # noqa: F401 (fixtures)
    ASKED,
    EVIL,
    LABELS,
    RNG,
    TEXTS,
    X,
    content,
    hostile,
    html,
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
    parts = ("#map", "#inclusion canvas", "#coverage canvas", "#spectrum canvas")
    words = ("#summary", "#halves-text", "#halves", "#classes", "#most", "#diverse", "#map-text")
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


def test_hover_and_keys_show_an_item(page, content):
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

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
    canvas.send_keys(Keys.ARROW_RIGHT)
    assert re.match(r"item \d+", text(page, "#tip"))
    canvas.send_keys(Keys.ESCAPE)


def test_a_class_can_be_seen_alone(page):
    before = pixels(page, "#map")
    click = "document.querySelectorAll('#classes button')[3].click()"
    page.execute_script(click)
    assert pixels(page, "#map") != before
    assert (
        page.execute_script(
            "return document.querySelectorAll('#classes button')[3].getAttribute('aria-pressed')"
        )
        == "true"
    )
    page.execute_script(click)
    assert pixels(page, "#map") == before


def test_a_class_has_its_own_favourites(page, content):
    before = text(page, "#most")
    choose = (
        "const only = document.getElementById('only'); only.value = arguments[0];"
        "only.dispatchEvent(new Event('input', {bubbles: true}))"
    )
    page.execute_script(choose, "2")
    b = make_kdpp(ASKED, X, 10, LABELS).inclusion()
    rare = np.flatnonzero(LABELS == "rare")
    order = rare[np.argsort(b[rare])]
    for name, item in (("most", order[-1]), ("least", order[0])):
        first = text(page, f"#{name} li")
        assert first.startswith(f"item {item}, rare")
        assert f"{b[item] * 15:.1f}" in first
    assert text(page, "#save") == "Save these 15 items as CSV"
    page.execute_script(choose, "")
    assert text(page, "#most") == before
    assert text(page, "#save") == "Save all 150 items as CSV"


def saved_by(page, path):
    """Return the rows of the table of items that the page saves at `path`."""
    folder = {"behavior": "allow", "downloadPath": str(path.parent)}
    page.execute_cdp_cmd("Browser.setDownloadBehavior", folder)
    page.execute_script("document.getElementById('save').click()")
    end = time.monotonic() + 100
    while not path.exists() and time.monotonic() < end:
        time.sleep(0.02)
    return list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8"))))


def test_the_table_of_items_is_saved_by_the_page(page, content, tmp_path):
    saved = saved_by(page, tmp_path / "items-w0.7-k10.csv")
    exact = list(csv.DictReader(io.StringIO(content["csv"])))
    assert [row["class"] for row in saved] == LABELS.tolist()
    for one, other in zip(saved, exact, strict=True):
        same = ("item", "class", "near_copy_of")
        assert [one[name] for name in same] == [other[name] for name in same]
        assert float(one["times_uniform"]) == pytest.approx(float(other["times_uniform"]), rel=0.01)
    assert page.get_log("browser") == []


def test_the_address_restores_the_view(page):
    slide(page, "w", 1)
    slide(page, "k", 1)
    page.execute_script("document.querySelectorAll('#classes button')[2].click()")
    address = page.current_url
    assert address.endswith("#w=0.3&k=5&class=2")
    parts = ("#summary", "#most", "#classes", "#save")
    before = [text(page, each) for each in parts], pixels(page, "#map")
    page.get("about:blank")
    page.get(address)
    assert ([text(page, each) for each in parts], pixels(page, "#map")) == before
    base = address.split("#")[0]
    for nonsense in ("#w=7&k=x&class=99", "#%00", "#class=__proto__&k=", "#w"):
        page.get("about:blank")
        page.get(base + nonsense)
        assert "w = 0.7 and k = 10" in text(page, "#summary")
    assert page.get_log("browser") == []


def test_words_are_explained_by_pointer_key_and_touch(page):
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

    shown = "return document.getElementById('tip').style.display"
    for name in ("evenness", "effective size", "similarity"):
        word = page.find_element(By.CSS_SELECTOR, f"button[data-term='{name}']")
        page.execute_script("arguments[0].scrollIntoView({block: 'center'})", word)
        ActionChains(page, duration=0).move_to_element(word).perform()
        assert text(page, "#tip").startswith(f"{name}\n")
        ActionChains(page, duration=0).move_by_offset(0, 200).perform()
        assert page.execute_script(shown) == "none"
        word.send_keys(Keys.SHIFT)  # has the focus
        assert len(text(page, "#tip")) > 60
        assert word.get_attribute("aria-describedby") == "tip"
        ActionChains(page).send_keys(Keys.ESCAPE).perform()
        assert page.execute_script(shown) == "none"
        page.execute_script("document.activeElement.blur(); arguments[0].click()", word)
        assert page.execute_script(shown) == "block"
        page.execute_script("document.body.click()")
        assert page.execute_script(shown) == "none"


def test_sliders_name_their_stops_and_legends_have_no_blanks(page):
    assert text(page, "#w-stops").split() == ["0", "0.3", "0.5", "0.7", "0.9"]
    assert text(page, "#k-stops").split() == ["2", "5", "10", "20"]
    assert re.fullmatch(r"diverse\s*uniform", text(page, "#coverage .u-legend").strip())
    names = "return Array.from(document.querySelectorAll('#choices tbody th'), (e) => e.innerText)"
    targets = [f"target {name}" for name in ("uniform", "balanced", "density")]
    ws = [f"w = {w}" for w in (0, 0.3, 0.5, 0.7, 0.9)]
    assert page.execute_script(names) == ["uniform", "stratified", *ws, *targets]


def test_every_chart_has_words_and_figures(page):
    for name in ("inclusion", "coverage", "spectrum"):
        assert len(page.execute_script(f"return {name}.getAttribute('aria-label')")) > 40
        assert page.execute_script(f"return {name}.parentElement.querySelectorAll('td').length") > 9
    assert "most favoured item" in text(page, "#map-text")
    assert "Recommended: stratified" in text(page, "#advice")
    halves = text(page, "#halves-text")
    assert re.search(r"repulsion then removes \d+\s%.* of the noise", halves)
    assert re.search(r"without repulsion takes .*s a batch, with it .*s\.", halves)
    rows = "return document.querySelectorAll('#halves tbody tr').length"
    assert page.execute_script(rows) == 4  # uniform, stratified, same b, diverse
    assert page.execute_script("return map.getAttribute('aria-label')").startswith("Map of 150")
    assert "worth a uniform one of" in text(page, "#variance-text")
    assert re.search(r"who meets to \d+\s% of that", text(page, "#variance-text"))
    assert "same b, no repulsion" in text(page, "#variance")


def elements(page):
    return page.execute_script("return document.getElementsByTagName('*').length")


def test_hostile_names_show_as_text(hostile, tmp_path):
    (tmp_path / "report.html").write_text(hostile[1], encoding="utf-8")
    with browser(tmp_path / "profile") as other:
        other.get(f"file://{tmp_path / 'report.html'}")
        shown = text(other, "#classes").split("\n")
        for each in hostile[0]["classes"]:
            assert any(each["name"] in line for line in shown), each["name"]
        cells = {each.get("cell", each["name"]) for each in hostile[0]["classes"]}
        assert {row["class"] for row in saved_by(other, tmp_path / "items-w0-k5.csv")} == cells
        assert '\'=HYPERLINK("http://a.b", 1)' in cells
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
    content = dmsgd.report.build(
        RNG.normal(size=(20_000, 4)), 3, labels, DesignOptions(target="uniform")
    )
    assert len(content["classes"]) == 10_000
    assert content["listed"] == [*range(100), *range(9_900, 10_000)]
    assert len(content["choices"][0][0]["shares"]) == 200
    assert content["uniform"][0]["evenness"] == pytest.approx(1)
    (tmp_path / "report.html").write_text(dmsgd.report.render(content))
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
    content = dmsgd.report.build(X, 10, LABELS, DesignOptions(target="uniform"))
    (tmp_path / "report.html").write_text(dmsgd.report.render(content))
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
