"""The page and the table of an inspection. In a browser: test_pages_in_a_browser.py."""

import base64
import csv
import io
import re
import struct
import tracemalloc
import zlib

import numpy as np
import pytest
from scipy import sparse

import dmsgd
from dmsgd.designs import DesignOptions
from dmsgd.diagnostics import inspect
from dmsgd.features import as_features
from dmsgd.report.page import SmallImages, map_places, png
from test_commands import fails, run

RNG = np.random.default_rng(5)
SIZES = (90, 40, 15, 5)
EVIL = "<script>alert(1)</script>"
LABELS = np.repeat(["common", "usual", "rare", EVIL], SIZES)
X = np.repeat(RNG.normal(size=(4, 30)), SIZES, axis=0) + RNG.normal(size=(150, 30))
TEXTS = [f'item "{i}" isn\'t <b>bold</b> & </script> ${{x}}' for i in range(150)]
ASKED = DesignOptions(w=0.7, normalize=True)
IMAGES = RNG.integers(0, 256, size=(150, 8, 8), dtype=np.uint8)


def make_page():
    found = inspect(X, 10, LABELS, ASKED, gradients=X[:, :5])
    return found.html(f"Data {EVIL}", texts=TEXTS, images=IMAGES)


@pytest.fixture(scope="module")
def html():
    return make_page()


def words(page):
    """Return the text of a page, without marks."""
    body = re.sub(r"<style>.*?</style>|<title>.*?</title>", "", page, flags=re.S)
    return " ".join(re.sub(r"<[^>]*>", " ", body).split())


# The table of items


def rows_of(found):
    return list(csv.DictReader(io.StringIO(found.csv())))


def test_groups_with_several_classes_come_first():
    rng = np.random.default_rng(0)
    F = rng.normal(size=(80, 30))
    F[40:46], F[60] = F[0], F[1]
    found = inspect(F, 5, np.repeat(["a", "b"], [50, 30]))
    shown = words(found.html())
    first = shown.index("2 items of 2 classes item 1, class a item 60, class b")
    assert first < shown.index("7 items item 0, class a item 40, class a")
    duplicates = {row["item"]: row["near_duplicate_of"] for row in rows_of(found)}
    assert {item: other for item, other in duplicates.items() if other} == {
        **{str(i): "0" for i in range(40, 46)},
        "60": "1",
    }


#: Names of classes that a spreadsheet would run and a terminal obey, and what is written for them.
FORMULAS = {
    "=cmd|' /C calc'!A0": "'=cmd|' /C calc'!A0",
    "+1+1": "'+1+1",
    "@SUM(A1)": "'@SUM(A1)",
    "-3.5": "-3.5",
    '-"a",b': '\'-"a",b',
    "red\x1b[31m": r"red\x1b[31m",
    "\ud800": r"\ud800",
}


def test_no_class_is_a_formula_in_the_table_of_items():
    labels = np.array(list(FORMULAS))[np.arange(len(X)) % len(FORMULAS)]
    found = inspect(X, 10, labels)
    assert [row["class"] for row in rows_of(found)] == [FORMULAS[label] for label in labels]
    assert found.csv().encode().isascii()
    numbers = inspect(X, 10, np.where(np.arange(len(X)) % 2, -3.5, 2.0))
    assert {float(row["class"]) for row in rows_of(numbers)} == {-3.5, 2.0}


def test_the_table_has_the_frequencies_of_what_is_recommended():
    ratio = dmsgd.Stratified(LABELS, 10).inclusion() * 15
    found = [float(row["times_uniform"]) for row in rows_of(inspect(X, 10, LABELS))]
    np.testing.assert_allclose(found, ratio, rtol=1e-5)


# What the page shows


def test_the_page_says_what_the_screen_says(html):
    found, shown = inspect(X, 10, LABELS, ASKED, gradients=X[:, :5]), words(html)
    assert "Use Stratified batches" in shown
    for text in (found.advice.reason[1:], found.advice.code, f"The price: {found.advice.price}"):
        assert re.escape(text.replace(EVIL, "&lt;script&gt;alert(1)&lt;/script&gt;")) in re.escape(
            shown
        ).replace(r"&\#34;", '"')
    for name, fact in found.facts().items():
        if name in ("classes", "duplicates", "columns", "dimension"):
            assert fact.figure in shown
            assert fact.text.strip(", ") in shown
    for each in found.batches:
        assert " ".join((each.name, *each.texts())) in shown
    rare = [f"{each.items['rare']:.2g}" for each in found.batches]
    missed = "34%"  # of batches of 10 out of 150 hold none of 15
    seen = [f"{each.per_epoch['rare']:.2g} ×" for each in found.batches[1:]]
    assert " ".join(["rare (15)", *rare, missed, *seen]) in shown


def test_one_batch_of_each_is_a_batch_of_each():
    shown = inspect(X, 10, LABELS).html(images=IMAGES)
    parts = shown.split("One batch of each")[1].split("How steady")[0].split('<p class="soft">')
    for design, part in zip(
        (dmsgd.Uniform(150, 10), dmsgd.Stratified(LABELS, 10)), parts[1:], strict=True
    ):
        drawn = design.sample(1, seed=0)[0]
        assert set(re.findall(r'title="item (\d+),', part)) == set(map(str, drawn))
        assert f"{np.unique(LABELS[drawn]).size} of 4 classes" in part


def test_outliers_are_far_from_all_others():
    F = np.array(X)
    F[7] += 100.0
    shown = words(inspect(F, 10).html()).split("Least like the others")[1]
    assert re.search(r"item \d+", shown)[0] == "item 7"


def test_a_map_has_the_same_axes_whatever_is_shown():
    F = as_features(X)
    everyone = map_places(F, np.arange(150))
    assert map_places(F, np.array([3, 99])) == [everyone[3], everyone[99]]
    plane = RNG.normal(size=(60, 2)) * [5, 1]
    A = np.hstack([plane, np.zeros((60, 3))]) @ np.linalg.qr(RNG.normal(size=(5, 5)))[0] + 3
    centred = A - A.mean(axis=0)
    first = centred @ np.linalg.svd(centred)[2][0]
    for given in (A, sparse.csr_array(A)):
        x, _ = np.array(map_places(as_features(given), np.arange(60))).T
        assert abs(np.corrcoef(first, x)[0, 1]) > 0.9999
        assert (x.min() > 15, x.max() < 945) == (True, True)
    assert len(set(map_places(as_features(np.ones((4, 1))), np.arange(4)))) == 1


def test_a_picture_is_a_png():
    for pixels in (IMAGES[0][..., None], RNG.integers(0, 256, (5, 3, 3), dtype=np.uint8)):
        data = base64.b64decode(png(pixels).removeprefix("data:image/png;base64,"))
        height, width, _channels = pixels.shape
        assert data[:8] == b"\x89PNG\r\n\x1a\n"
        assert struct.unpack(">II", data[16:24]) == (width, height)
        size = struct.unpack(">I", data[33:37])[0]
        assert data[37:41] == b"IDAT"
        rows = zlib.decompress(data[41 : 41 + size])
        assert rows == b"".join(b"\0" + row.tobytes() for row in pixels)
        assert struct.unpack(">I", data[41 + size : 45 + size])[0] == zlib.crc32(
            data[37 : 41 + size]
        )


def test_images_are_small_and_of_every_range():
    assert SmallImages(np.zeros((3, 100, 60)), 3).shape == (3, 25, 15, 1)
    coloured = np.zeros((3, 40, 40, 3), np.uint8)
    assert np.prod(SmallImages(coloured, 3).shape[1:]) <= 1024
    floats = SmallImages(np.linspace(-1, 1, 12).reshape(3, 2, 2), 3)
    assert (floats[0].min(), floats[2].max()) == (0, 255)
    for dtype, low, high in ((bool, 0, 1), (np.int8, -128, 127), (float, -1.7e308, 1.7e308)):
        pair = np.array([low, high], dtype).reshape(2, 1, 1)
        assert [SmallImages(pair, 2)[item].item() for item in (0, 1)] == [0, 255]
    assert not SmallImages(np.ones((2, 3, 3)), 2)[1].any()


def test_images_that_are_not_shown_are_not_converted(monkeypatch):
    monkeypatch.setattr("dmsgd.report.page.PIXELS", 2**14)
    images = np.linspace(-1, 1, 2000 * 28 * 28, dtype=np.float32).reshape(2000, 28, 28)
    tracemalloc.start()
    shown = SmallImages(images, 2000)[1999]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (shown.shape, shown.max()) == ((28, 28, 1), 255)
    assert peak < images.nbytes / 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"texts": ["one"]}, r"texts must be one per item \(150\)"),
        ({"images": np.zeros((150, 8))}, r"images must have shape \(150, height, width\)"),
        ({"images": np.zeros((150, 8, 8, 4))}, "images must have shape"),
        ({"images": np.zeros((150, 0, 8))}, r"images must have shape .* \(150, 0, 8\)"),
        ({"images": np.full((150, 2, 2), np.nan)}, "images have 600 pixels that are NaN or inf"),
        ({"images": np.full((150, 2, 2), -np.inf)}, "images have 600 pixels that are NaN or inf"),
        ({"images": np.full((150, 2, 2), np.longdouble("1e400"))}, "images have 600 pixels"),
    ],
)
def test_bad_texts_and_images_are_refused(arguments, message):
    found = inspect(X, 10)
    with pytest.raises(ValueError, match=message):
        found.html(**arguments)


@pytest.mark.parametrize("dtype", ["U3", "S3", complex, object, "datetime64[s]"])
def test_images_that_are_no_numbers_are_refused(dtype):
    with pytest.raises(TypeError, match="images must be numbers"):
        inspect(X, 10).html(images=np.zeros((150, 2, 2)).astype(int).astype(dtype))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"gradients": np.zeros((3, 2))}, "gradients has 3 items, the features 150"),
        ({"options": DesignOptions(w=0.5)}, "mixes in labels"),
        ({"k": 151}, "exceeds the number of items"),
    ],
)
def test_bad_input_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        inspect(X, **{"k": 10, **arguments})


@pytest.mark.long
def test_data_of_every_kind():
    for F in (sparse.csr_array(np.maximum(X, 0)), X[:, :2], X[:, :1], X.astype(np.float32)):
        for y in (None, LABELS):
            assert inspect(F, 4, y, gradients=X[:, :3]).html().endswith("</html>")


# The page, as text


def test_page_is_one_file_and_text_cannot_break_out(html):
    assert EVIL not in html
    assert "Data &lt;script&gt;" in html
    assert "<script" not in html
    assert "javascript:" not in html
    assert "&lt;b&gt;bold" in html
    assert not re.search(r"(?:src|href)=[\"'](?!data:)", html)
    assert "url(" not in html
    assert "@import" not in html


def test_policy_leaves_no_way_out(html):
    policy = re.search(r'Content-Security-Policy" content="(.*?)"', html)[1]
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    for name in ("default-src", "base-uri", "form-action"):
        assert rules[name] == "'none'"
    assert "script-src" not in rules
    assert "http" not in policy


def test_size_with_all_that_can_be_shown():
    n = 3000
    big = RNG.normal(size=(n, 8))
    big[:200] = big[200:400]  # groups of near-duplicates
    found = inspect(big, 100, RNG.integers(0, 40, n), gradients=big)
    for shape in ((28, 28), (64, 64, 3)):
        noise = RNG.integers(0, 256, (n, *shape), dtype=np.uint8)  # which cannot be compressed
        assert len(found.html(texts=["word " * 50] * n, images=noise)) < 700_000
        smooth = np.broadcast_to(np.zeros(shape, np.uint8), (n, *shape))
        assert len(found.html(images=smooth)) < 300_000


HOSTILE = (
    "a" * 50_000,
    EVIL,
    "\u202eright to left\u202c",
    "\x00\x1b[31m\x7f\n\u2028",
    "half a pair \ud800",
    "{{ 7 * 7 }} ${7 * 7} %3Cb%3E &lt;b&gt; javascript:alert(1)",
    "שלום",
    '" onload="alert(1)',
    '=HYPERLINK("http://a.b", 1)',
)
#: What is shown of them.
SHOWN = (
    "a" * 79 + "…", EVIL, r"\u202eright to left\u202c", r"\x00\x1b[31m\x7f\n\u2028",
    r"half a pair \ud800", HOSTILE[5], HOSTILE[6], HOSTILE[7], HOSTILE[8],
)  # fmt: skip


def hostile_page():
    """Return a page whose title, classes and texts are all of these."""
    labels = np.repeat(HOSTILE, range(24, 15, -1))
    texts = [HOSTILE[i % 9] for i in range(180)]
    found = inspect(RNG.normal(size=(180, 12)), 5, labels)
    return found.html("".join(HOSTILE[7::-1]), texts=texts)


def test_hostile_names_are_short_and_lose_what_is_not_text():
    html = hostile_page()
    assert len(html.encode()) < 300_000
    assert "<script" not in html
    assert '" onload' not in html
    assert not set("\x00\x1b\u202e\u2028") & set(html)
    assert max(map(len, re.findall(r"<bdi[^>]*>([^<]*)", html))) < 400  # with escapes


# The command


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("features.npy", X)
    np.save("y.npy", LABELS)
    with open("images.NPY", "wb") as file:
        np.save(file, IMAGES)
    np.save("g.npy", X[:, :3])
    (tmp_path / "texts.txt").write_text("\n".join(["", *TEXTS[1:]]) + "\n")
    return tmp_path


def test_command_writes_the_page_of_the_library(folder):
    extras = "--texts texts.txt --images images.NPY --gradients g.npy"
    result = run(f"inspect features.npy --labels y.npy -k 10 {extras} --page out.html")
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    assert re.search(r"written +out.html$", result.stdout, re.M)
    page = (folder / "out.html").read_text()
    assert "<title>features.npy</title>" in page
    same = inspect(X, 10, LABELS, gradients=X[:, :3])
    assert page == same.html("features.npy", texts=["", *TEXTS[1:]], images=IMAGES)
    fails("inspect features.npy -k 10 --page out.html", "out.html exists; use --force")
    assert (folder / "out.html").read_text() == page
    assert run("inspect features.npy -k 10 --page out.html --force").exit_code == 0
    assert (folder / "out.html").read_text() == inspect(X, 10).html("features.npy")


def test_texts_may_be_a_column_which_is_then_no_feature(folder):
    rows = [f"text {i},{','.join(map(repr, row))}" for i, row in enumerate(X[:, :4].tolist())]
    (folder / "table.csv").write_text("\n".join(["words,a,b,c,d", *rows]))
    said = run("inspect table.csv --texts words -k 3 --page table.html").stdout
    assert "150 items x 4" in said
    assert re.search(r"text \d+<", (folder / "table.html").read_text())


def test_command_writes_the_table_of_items(folder):
    command = "inspect features.npy --labels y.npy -w 0.7 -k 10 --page out.html"
    fails(f"{command} --csv items.txt", "must end in .csv")
    (folder / "y.csv").write_text("kept")
    fails(f"{command} --csv y.csv", "y.csv exists")
    fails(f"{command} --csv y.csv --force --texts y.csv:text", "y.csv is an input of this command")
    assert not (folder / "out.html").exists()
    result = run(f"{command} --csv items.csv")
    assert result.exit_code == 0, result.output
    assert re.search("written +out.html and items.csv", result.stdout)
    rows = list(csv.DictReader(io.StringIO((folder / "items.csv").read_text())))
    assert [row["class"] for row in rows] == LABELS.tolist()
    ratio = dmsgd.diversify(X, 10, LABELS, 0.7).inclusion() * 15
    found = [float(row["times_uniform"]) for row in rows]
    np.testing.assert_allclose(found, ratio, rtol=1e-5)


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("features.npy -k 10 --page out.txt", "must end in .html or .htm"),
        ("features.npy -k 10 --page features.html -w 0.5", "-w 0.5 needs labels"),
        ("features.npy -k 10 --page none/out.html", "there is no folder none"),
        ("none.npy -k 10 --page out.html", "there is no file none.npy"),
        ("features.npy -k 10 --page out.html --texts y.csv", "there is no file y.csv"),
        ("features.npy -k 10 --page out.html --images y.txt", "cannot read files ending in '.txt'"),
        ("features.npy -k 10 --page out.html --gradients short.npy", "gradients has 3 items"),
        ("features.npy -k 10 --page out.html --images short.npy", "images must have shape"),
    ],
)
def test_command_errors_are_one_line_and_no_file(folder, command, message):
    np.save("short.npy", X[:3])
    fails(f"inspect {command}", message)
    assert not list(folder.glob("*.html"))
