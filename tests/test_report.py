"""The report: its figures against the library's. Its page in a browser is test_report_page.py."""

import base64
import csv
import io
import json
import re
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

import dmsgd
from dmsgd.designs import DesignOptions
from dmsgd.designs.build import make_kdpp
from dmsgd.report.items import checked_images, map_rows, positions, small_images, thumbnails
from test_commands import fails, run

RNG = np.random.default_rng(5)
SIZES = (90, 40, 15, 5)
EVIL = "<script>alert(1)</script>"
LABELS = np.repeat(["common", "usual", "rare", EVIL], SIZES)
X = np.repeat(RNG.normal(size=(4, 30)), SIZES, axis=0) + RNG.normal(size=(150, 30))
TEXTS = [f'item "{i}" isn\'t <b>bold</b> & </script> ${{x}}' for i in range(150)]
ASKED = DesignOptions(w=0.7, normalize=True)
IMAGES = RNG.integers(0, 256, size=(150, 8, 8), dtype=np.uint8)


def unpack(text, dtype):
    return np.frombuffer(base64.b64decode(text), f"<{dtype}")


def build(*given, **more):
    """Return what the page of a report holds."""
    return dmsgd.report.build(*given, **more).content


@pytest.fixture(scope="module")
def made():
    return dmsgd.report.build(X, 10, LABELS, ASKED, texts=TEXTS, images=IMAGES, gradients=X[:, :5])


@pytest.fixture(scope="module")
def content(made):
    return made.content


@pytest.fixture(scope="module")
def html(made):
    return made.html(f"Data {EVIL}")


# The figures


def test_figures_are_those_of_the_designs(content):
    assert content["ws"] == [0.0, 0.3, 0.5, 0.7, 0.9]
    assert content["ks"] == [2, 5, 10, 20]
    assert [each["name"] for each in content["classes"]] == ["common", "usual", "rare", EVIL]
    codes = unpack(content["codes"], "u2")
    np.testing.assert_array_equal(codes, np.repeat(range(4), SIZES))
    for i, w in enumerate(content["ws"]):
        for j, k in enumerate(content["ks"]):
            design = make_kdpp(replace(ASKED, w=w), X, k, LABELS)
            found, b = content["choices"][i][j], design.inclusion()
            shares = dmsgd.diagnostics.class_shares(design, LABELS)
            expected = [shares[each["name"]] for each in content["classes"]]
            np.testing.assert_allclose(found["shares"], expected, atol=1e-6)
            steps = np.array(found["steps"])
            np.testing.assert_allclose(
                found["coverage"], dmsgd.diagnostics.coverage(design, steps), atol=1e-4
            )
            ratio = b * 150 / k
            low, high = found["range"]
            logs = low + (unpack(found["ratio"], "u1") - 1.0) / 254 * (high - low)
            np.testing.assert_allclose(2.0**logs, ratio, rtol=0.01)
            assert found["most"][0][1] == pytest.approx(ratio.max())
            assert found["least"][0][1] == pytest.approx(ratio.min())
            np.testing.assert_array_equal(found["batches"], design.sample(3, seed=0))
            assert found["effective"] == pytest.approx(
                dmsgd.diagnostics.effective_batch(design), abs=0.01
            )
            assert found["items"] == pytest.approx(
                dmsgd.diagnostics.effective_items(design) / 150, rel=1e-9
            )
            repulsion = dmsgd.diagnostics.estimate_repulsion(design, seed=0)
            assert found["repulsion"]["value"] == pytest.approx(repulsion.value, abs=1e-9)
    for j, k in enumerate(content["ks"]):
        expected = dmsgd.diagnostics.class_shares(dmsgd.Stratified(LABELS, k), LABELS)
        shares = [expected[each["name"]] for each in content["classes"]]
        np.testing.assert_allclose(content["stratified"][j]["shares"], shares, atol=1e-6)


def test_targets_stand_beside_the_others(content):
    rows = {each["name"]: each for each in content["targets"]}
    assert list(rows) == ["target uniform", "target balanced", "target density"]
    assert rows["target uniform"]["items"] == pytest.approx(1, abs=1e-6)
    assert rows["target balanced"]["evenness"] == pytest.approx(1, abs=1e-4)
    design = make_kdpp(replace(ASKED, target="density"), X, 10, LABELS)
    assert rows["target density"]["effective"] == pytest.approx(
        dmsgd.diagnostics.effective_batch(design), abs=0.01
    )
    begun = build(X, 10, LABELS, DesignOptions(target="balanced"))
    assert [each["name"] for each in begun["targets"]][-1] == "no target"
    many = {each["name"]: each for each in build(X, 24, LABELS)["targets"]}
    reason = many["target balanced"]["reason"]  # of five items six cannot be drawn
    assert "24 has 6 items of each of 4 classes" in reason
    assert f"class {EVIL} has 5" in reason


# Curation


def test_groups_with_several_classes_come_first():
    rng = np.random.default_rng(0)
    F = rng.normal(size=(80, 30))
    F[40:46], F[60] = F[0], F[1]
    labels = np.repeat(["a", "b"], [50, 30])
    found = dmsgd.report.build(F, 5, labels)
    groups = found.content["curation"]["listed"]
    assert [(each["rows"], each["size"], each["classes"]) for each in groups] == [
        ([1, 60], 2, 2),
        ([0, *range(40, 46)], 7, 1),
    ]
    rows = list(csv.DictReader(io.StringIO(found.csv())))
    assert {row["item"]: row["near_duplicate_of"] for row in rows if row["near_duplicate_of"]} == {
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
    found = dmsgd.report.build(X, 10, labels)
    rows = list(csv.DictReader(io.StringIO(found.csv())))
    assert [row["class"] for row in rows] == [FORMULAS[label] for label in labels]
    assert found.csv().encode().isascii()
    numbers = dmsgd.report.build(X, 10, np.where(np.arange(len(X)) % 2, -3.5, 2.0))
    rows = csv.DictReader(io.StringIO(numbers.csv()))
    assert {float(row["class"]) for row in rows} == {-3.5, 2.0}


def test_outliers_are_least_like_the_others(content):
    spectrum = make_kdpp(replace(ASKED, w=0.0), X, 10).spectrum
    F = np.asarray(spectrum.vectors) * np.sqrt(spectrum.values)
    U = F / np.linalg.norm(F, axis=1, keepdims=True)
    cosines = U @ U.T
    np.fill_diagonal(cosines, 0)
    alike = np.sqrt((cosines**2).sum(axis=1) / 149)
    found = content["curation"]
    assert [row for row, _ in found["outliers"]] == np.argsort(alike)[:12].tolist()
    assert found["outliers"][0][1] == pytest.approx(alike.min(), abs=1e-4)
    assert found["middle"] == pytest.approx(np.median(alike), abs=1e-4)


def test_variance_section_is_exact_or_says_that_it_is_not(content, monkeypatch):
    design = dmsgd.diversify(X, 10, LABELS, 0.7, normalize=True)
    exact = dmsgd.diagnostics.gradient_variance(design, X[:, :5])
    row = content["variance"]["rows"][0]
    assert row["error"] == 0
    assert row["variance"] == pytest.approx(exact.variance)
    assert row["equivalent_batch_size"] == pytest.approx(exact.equivalent_batch_size)
    assert row["frequency_matched"] == pytest.approx(exact.frequency_matched)
    assert row["repulsion_factor"] == pytest.approx(exact.repulsion_factor)
    assert [each["name"] for each in content["variance"]["rows"]] == ["biased", "unbiased"]
    monkeypatch.setattr("dmsgd.report.report.OPERATIONS", 1)
    estimated = build(X, 10, LABELS, ASKED, gradients=X[:, :5])["variance"]
    row = estimated["rows"][0]
    assert row["error"] > 0
    assert abs(row["variance"] - exact.variance) < 4 * row["error"]
    assert row["frequency_matched"] == pytest.approx(exact.frequency_matched)  # baselines are
    assert row["reweighted"] == pytest.approx(exact.reweighted)


def test_advice_is_that_of_inspect(content):
    for settings in (ASKED, None):
        advice = dmsgd.diagnostics.recommend(dmsgd.diagnostics.compare(X, 10, LABELS, settings))
        built = content if settings else build(X, 10, LABELS)
        assert built["advice"]["name"] == advice.name
        assert built["advice"]["code"] == advice.code(10)
        assert built["advice"]["reason"] == advice.reason


def test_gradients_decide_about_repulsion(monkeypatch):
    """Items of a place have one gradient, or each its own: the features cannot know."""
    rng = np.random.default_rng(2)
    places = np.kron(np.eye(8), np.ones((20, 1))) + 0.05 * rng.normal(size=(160, 8))
    own = rng.normal(size=(160, 40))
    assert "cells" in build(places, 6)["advice"]["reason"]
    assert "cells" in build(places, 6, gradients=places)["advice"]["reason"]
    for operations in (1e11, 1):
        monkeypatch.setattr("dmsgd.report.report.OPERATIONS", operations)
        advice = build(places, 6, gradients=own)["advice"]
        assert "cells" not in advice["reason"]
        assert "of the variance of these gradients" in advice["reason"]


def test_the_page_begins_with_the_defaults_of_diversify():
    built = build(X, 10, LABELS)
    assert (built["w"], built["kernel"]) == (0.0, "linear kernel, rows of length 1")
    shares = dmsgd.diagnostics.class_shares(dmsgd.diversify(X, 10), LABELS)
    found = built["choices"][0][built["ks"].index(10)]["shares"]
    expected = [shares[each["name"]] for each in built["classes"]]
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_map_keeps_what_two_components_can_show():
    plane = RNG.normal(size=(60, 2)) * [5, 1]
    F = np.hstack([plane, np.zeros((60, 3))]) @ np.linalg.qr(RNG.normal(size=(5, 5)))[0]
    place = positions(F + 3)
    assert place.min() == 0
    assert place.max() == 1
    centred = (F + 3) - (F + 3).mean(axis=0)
    first = centred @ np.linalg.svd(centred)[2][0]
    assert abs(np.corrcoef(first, place[:, 0])[0, 1]) == pytest.approx(1)


def test_large_data_is_thinned(monkeypatch):
    monkeypatch.setattr("dmsgd.report.items.MAP_POINTS", 100)
    rows = map_rows(5000, np.array([3, 4999]), RNG)
    assert rows.size == 100
    assert {3, 4999} <= set(rows.tolist())
    monkeypatch.setattr("dmsgd.diagnostics.data.OPERATIONS", 1)
    monkeypatch.setattr("dmsgd.diagnostics.data.SAMPLES", (120,))
    found = dmsgd.report.build(X, 10, LABELS, texts=TEXTS, images=IMAGES, gradients=X[:, :2])
    content = found.content
    assert (content["n"], content["sampled"]) == (150, 120)
    ids = unpack(content["ids"], "u4")
    assert len(set(ids.tolist())) == 120
    assert content["texts"]["text"][0].startswith(f'item "{ids[0]}"')
    page = found.html()
    assert "random sample of 120 items" in page


def test_rows_on_disk(tmp_path, content):
    for name, values in (("x.npy", X), ("g.npy", X[:, :5])):
        np.save(tmp_path / name, values)
    path, gradients = tmp_path / "x.npy", tmp_path / "g.npy"
    read = build(path, 10, LABELS, ASKED, gradients=gradients)
    assert read["choices"][3][2]["shares"] == content["choices"][3][2]["shares"]
    assert read["variance"]["rows"] == content["variance"]["rows"]
    assert read["advice"] == content["advice"]


def test_thumbnails_fit_their_budget(monkeypatch):
    assert small_images(np.zeros((3, 100, 60)), np.arange(2)).shape == (2, 25, 15, 1)
    coloured = checked_images(np.zeros((3, 10, 10, 3), np.uint8), 3)
    assert small_images(coloured, np.arange(3)).shape == (3, 10, 10, 3)
    floats = small_images(np.linspace(-1, 1, 12).reshape(3, 2, 2), np.arange(3))
    assert (floats.min(), floats.max()) == (0, 255)
    monkeypatch.setattr("dmsgd.report.items.THUMBNAIL_BYTES", 64 * 20)
    kept = thumbnails(small_images(IMAGES, np.arange(150)), np.array([7, 9]), np.arange(150))
    rows = unpack(kept["of"], "u4")
    assert rows[:2].tolist() == [7, 9]
    assert 2 < rows.size <= 20
    pixels = unpack(kept["pixels"], "u1").reshape(-1, 8, 8)
    np.testing.assert_array_equal(pixels, IMAGES[rows])


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
        ({"gradients": np.zeros((3, 2))}, "gradients has 3 items, the features 150"),
        ({"k": 1}, "batches of 2 or more"),
        ({"k": 40, "options": DesignOptions(kernel="linear")}, "batches of 40 need 40"),
        ({"options": DesignOptions(w=0.5)}, "mixes in labels"),
    ],
)
def test_bad_input_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        build(X, **{"k": 10, **arguments})


@pytest.mark.parametrize("dtype", ["U3", "S3", complex, object, "datetime64[s]"])
def test_images_that_are_no_numbers_are_refused(dtype):
    with pytest.raises(TypeError, match="images must be numbers"):
        build(X, 10, images=np.zeros((150, 2, 2)).astype(int).astype(dtype))


def test_images_of_every_range():
    for dtype, low, high in ((bool, 0, 1), (np.int8, -128, 127), (float, -1.7e308, 1.7e308)):
        pair = np.array([low, high], dtype).reshape(2, 1, 1)
        assert small_images(pair, np.arange(2)).ravel().tolist() == [0, 255]
    assert not small_images(np.ones((2, 3, 3)), np.arange(2)).any()


@pytest.mark.long
def test_data_of_every_kind():
    words = sparse.csr_array(np.maximum(X, 0))
    settings = DesignOptions(normalize=True, rho=0.1)
    content = build(words, 8, options=settings)
    assert content["classes"] == []
    assert content["kernel"] == "linear kernel, features to the power 0.1, rows of length 1"
    plane = build(X[:, :2], 8, options=DesignOptions(kernel="rbf", scale=1.0))
    assert "rbf kernel, scale 1" in plane["kernel"]
    only = build(X[:, :1], 3, LABELS, DesignOptions(w=0.9, normalize=True))
    assert 0.0 not in only["ws"]  # one column has no batch of three without the labels
    json.dumps(content, allow_nan=False)


# The page, as text


def test_page_is_one_file_and_text_cannot_break_out(html):
    assert EVIL not in html
    assert "Data &lt;script&gt;" in html
    assert html.count("</script>") == 3
    data = re.search(r'<script type="application/json" id="data">(.*?)</script>', html, re.S)[1]
    assert json.loads(data)["classes"][3]["name"] == EVIL
    assert "<" not in data
    assert not re.search(r"(?:src|href)=[\"'](?!data:)", html)
    assert "url(" not in html
    assert "@import" not in html


def test_size_with_all_that_can_be_shown():
    n = 21_000
    big = RNG.normal(size=(n, 8))
    found = dmsgd.report.build(
        big, 6, RNG.integers(0, 20, n), texts=["word " * 50] * n,
        images=np.zeros((n, 28, 28), np.uint8),
    )  # fmt: skip
    assert len(found.html()) < 8_000_000


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


@pytest.fixture(scope="module")
def hostile():
    """A page whose title, classes and texts are all of these."""
    labels = np.repeat(HOSTILE, range(24, 15, -1))
    texts = [HOSTILE[i % 9] for i in range(180)]
    found = dmsgd.report.build(RNG.normal(size=(180, 12)), 5, labels, texts=texts)
    return found.content, found.html("".join(HOSTILE[7::-1]))


def test_hostile_names_are_short_and_lose_what_is_not_text(hostile):
    content, html = hostile
    names = [each["name"] for each in content["classes"]]
    assert names[0] == "a" * 79 + "…"
    assert names[2] == r"\u202eright to left\u202c"
    assert names[3] == r"\x00\x1b[31m\x7f\n\u2028"
    assert names[4] == r"half a pair \ud800"
    assert names[6] == "שלום"
    assert max(map(len, content["texts"]["text"])) == 120
    assert len(html.encode()) < 300_000
    assert html.count("</script>") == 3
    assert not set("\x00\x1b\u202e\u2028") & set(html)


def test_policy_leaves_no_way_out(html):
    policy = re.search(r'Content-Security-Policy" content="(.*?)"', html)[1]
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    for name in ("default-src", "base-uri", "form-action"):
        assert rules[name] == "'none'"
    assert "http" not in policy


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
    result = run(f"report features.npy --labels y.npy -k 10 {extras} -o out.html")
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    assert re.search(r"written +out.html: \d\.\d MB in", result.stdout)
    page = (folder / "out.html").read_text()
    assert "<title>features.npy</title>" in page
    data = json.loads(re.search(r'id="data">(.*?)</script>', page, re.S)[1])
    assert data["texts"]["text"][:2] == ["", TEXTS[1]]
    same = build(X, 10, LABELS, texts=TEXTS, images=IMAGES, gradients=X[:, :3])
    assert data["choices"][3][2]["shares"] == same["choices"][3][2]["shares"]
    assert data["variance"]["rows"] == same["variance"]["rows"]
    fails("report features.npy -k 10 -o out.html", "out.html exists; use --force")
    assert (folder / "out.html").read_text() == page
    assert run("report features.npy -k 10 -o out.html --force").exit_code == 0
    assert (folder / "out.html").read_text() != page


def test_texts_may_be_a_column_which_is_then_no_feature(folder):
    rows = [f"text {i},{','.join(map(repr, row))}" for i, row in enumerate(X[:, :4].tolist())]
    (folder / "table.csv").write_text("\n".join(["words,a,b,c,d", *rows]))
    said = run("report table.csv --texts words -k 3 -o table.html").stdout
    assert "150 items x 4" in said
    page = (folder / "table.html").read_text()
    data = json.loads(re.search(r'id="data">(.*?)</script>', page, re.S)[1])
    assert data["texts"]["text"][:2] == ["text 0", "text 1"]


def test_command_writes_the_table_of_items(folder):
    command = "report features.npy --labels y.npy -w 0.7 -k 10 -o out.html"
    fails(f"{command} --csv items.txt", "must end in .csv")
    (folder / "y.csv").write_text("kept")
    fails(f"{command} --csv y.csv", "y.csv exists")
    fails(f"{command} --csv y.csv --force --texts y.csv:text", "y.csv is an input of this command")
    assert not (folder / "out.html").exists()
    result = run(f"{command} --csv items.csv")
    assert result.exit_code == 0, result.output
    assert "table     items.csv: 150 items" in result.stdout
    rows = list(csv.DictReader(io.StringIO((folder / "items.csv").read_text())))
    assert [row["class"] for row in rows] == LABELS.tolist()
    ratio = dmsgd.diversify(X, 10, LABELS, 0.7).inclusion() * 15
    found = [float(row["times_uniform"]) for row in rows]
    np.testing.assert_allclose(found, ratio, rtol=1e-5)


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("features.npy -k 10 -o out.txt", "must end in .html or .htm"),
        ("features.npy -k 10 -o features.html -w 0.5", "-w 0.5 needs labels"),
        ("features.npy -k 10 -o none/out.html", "there is no folder none"),
        ("none.npy -k 10 -o out.html", "there is no file none.npy"),
        ("features.npy -k 10 -o out.html --texts y.csv", "there is no file y.csv"),
        ("features.npy -k 10 -o out.html --images y.txt", "cannot read files ending in '.txt'"),
        ("features.npy -k 10 -o out.html --gradients short.npy", "gradients has 3 items"),
        ("features.npy -k 100 --kernel linear -o out.html", "batches of 100 need 100"),
    ],
)
def test_command_errors_are_one_line_and_no_file(folder, command, message):
    np.save("short.npy", X[:3])
    fails(f"report {command}", message)
    assert not list(folder.glob("*.html"))
