"""What is said about a set beside random ones, on the terminal and on the page."""

import re

import numpy as np
import pytest

import dmsgd
from dmsgd.features import as_features
from dmsgd.report.selection import SetFigures, selection_page
from dmsgd.selection.result import selection_of
from test_inspect_page import words
from test_select import RNG, X, Y

F = as_features(X)


def said(*given, **more):
    """Return what the terminal says about a set."""
    return "; ".join(described(*given, **more).sentences())


def described(chosen, given=(), X=X, greedy=True, other=""):
    """Return the figures of a set, and the items that could be chosen."""
    given = np.asarray(given, dtype=np.int64)
    free = np.setdiff1d(np.arange(len(X)), given)
    if isinstance(chosen, dmsgd.Selection):
        return SetFigures(chosen, given, free, greedy, other)
    items = np.asarray(chosen, dtype=np.int64)
    found = selection_of(as_features(X), items, given, free)
    return SetFigures(found, given, free, greedy, "")


def covered(k, **wishes):
    chosen = dmsgd.select(X, k, details=True, **wishes)
    return described(chosen, wishes.get("given", ()), greedy=False), chosen


def page(figures, about=None, facts=None, **more):
    facts = {"chosen": "greedily", **(facts or {})}
    return selection_page(F, figures, about or {}, facts, "<script>", **more)


def test_figures_are_distances():
    given = [3, 7]
    chosen = dmsgd.select(X, 8, given=given)
    found = described(chosen, given)
    distances = np.linalg.norm(X[:, None] - X[None], axis=2)
    everyone = [*given, *chosen]
    np.testing.assert_array_equal(found.chosen.nearest, distances[:, everyone].argmin(axis=1))
    same = dmsgd.select(X, 8, given=given, details=True)
    np.testing.assert_allclose(found.chosen.similarity, same.similarity)
    np.testing.assert_allclose(found.chosen.coverage, same.coverage)


def test_words_say_that_a_greedy_set_prefers_outliers_where_it_covers_less_than_random_ones():
    centres = 100 * RNG.normal(size=(10, 5))
    clusters = np.repeat(centres, 30, axis=0) + RNG.normal(size=(300, 5))
    one_of_each = np.arange(0, 300, 30)
    outliers = np.argsort(-np.linalg.norm(X, axis=1))[:8]
    assert "prefers outliers" in said(outliers)
    assert "outliers" not in said(one_of_each, X=clusters)
    assert "outliers" not in said(dmsgd.select(X, 8))
    like_random = np.random.default_rng(1).choice(300, 8, replace=False)
    assert said(like_random).startswith("8 items cover the pool as well as")


def test_a_covering_set_is_described_by_what_it_covers():
    found, chosen = covered(8)
    size = chosen.like_random
    assert size > 8
    assert "; ".join(found.sentences()).startswith(
        f"8 items cover the pool as well as {size} random ones; "
    )
    assert f"{chosen.coverage[-1]:.3g} similar" in "; ".join(found.sentences())
    assert "spread" not in "; ".join(found.sentences())
    more, second = covered(8, given=[3, 7])
    assert "; ".join(more.sentences()).startswith("beside 2 given, 8 items cover the pool")
    assert f"before them {second.coverage[0]:.3g}" in "; ".join(more.sentences())
    one = dmsgd.select(X, 1, details=True, cover=X[:9])
    there = said(one, greedy=False, other="that.npy")
    assert there.startswith("1 item covers that.npy as well as")


def test_random_curves_are_what_random_sets_cover():
    for given in ([], [3, 7]):
        chosen = dmsgd.select(X, 8, given=given, details=True)
        curves, size = chosen.random_curves, chosen.like_random
        assert curves.shape[1] >= max(8, size)
        mean = curves.mean(axis=0)
        assert mean[size - 1] >= chosen.coverage[-1] - 1e-9 > mean[size - 2] - 2e-9
        assert (np.diff(curves) >= -1e-12).all()
        order = np.random.default_rng(0).permutation(np.setdiff1d(np.arange(300), given))
        squares = np.sum((X[:, None] - X[[*given, *order[:20]]]) ** 2, axis=2)
        whole = np.exp(-squares.min(axis=1) / chosen.m).mean()
        assert curves[0, 19] == pytest.approx(whole)
    many = np.repeat(X, 10, axis=0) + 0.01 * RNG.normal(size=(3000, X.shape[1]))
    chosen = dmsgd.select(many, 20, given=[5], details=True)  # measured on a sample
    assert chosen.random_curves[:, 0] == pytest.approx(chosen.coverage[0], abs=0.1)
    mean = chosen.random_curves.mean(axis=0)[chosen.like_random - 1]
    assert chosen.coverage[-1] - 1e-9 <= mean < chosen.coverage[-1] + 0.02


def test_the_page_says_what_the_terminal_says():
    found, chosen = covered(8, given=[3, 7])
    shown = words(page(found, facts={"similarity": "<b>rbf"}))
    for sentence in found.sentences():
        assert sentence[1:] in shown
    assert "8 of 300 items, beside 2 that were given" in shown
    counts = np.bincount(chosen.nearest, minlength=10)[2:]
    listed = shown.split("The chosen items")[1]
    shares = re.findall(r"item (\d+) ([\d.]+)%", listed)
    assert shares == [
        (str(item), f"{100 * c / 300:.1f}") for item, c in zip(chosen.items, counts, strict=True)
    ]
    least = int(chosen.similarity.argmin())
    assert f"item {least} {chosen.similarity[least]:.2f}" in listed.split("Least covered")[1][:150]


def dots(html, name):
    group = re.search(rf'<g class="{name}">(.*?)</g>', html, re.S)[1]
    return re.findall(r'cx="(\d+)" cy="(\d+)" r="\d"><title>item (\d+)<', group)


def test_the_map_is_shaded_by_coverage_and_the_same_in_every_round():
    first, chosen = covered(8)
    second, _ = covered(8, given=np.sort(chosen.items))
    one, two = page(first), page(second)
    places = [
        {item: (x, y) for name in ("near", "far", "farthest") for x, y, item in dots(html, name)}
        for html in (one, two)
    ]
    assert places[0] == places[1]
    assert len(places[0]) == 300
    farthest = {int(item) for *_, item in dots(one, "farthest")}
    assert farthest == set(np.argsort(chosen.similarity)[:15].tolist())
    assert {int(item) for *_, item in dots(two, "given")} == set(chosen.items.tolist())
    for x, y, item in dots(one, "chosen"):
        assert places[0][item] == (x, y)


def test_classes_or_groups_of_the_set():
    found, chosen = covered(8)
    for name, title in (("label", "Classes of"), ("group", "Groups of")):
        shown = words(page(found, about={name: Y}))
        for label in ("a", "b"):
            size, drawn = np.sum(label == Y), np.sum(Y[chosen.items] == label)
            assert f"{label} ({size}) {drawn} {8 * size / 300:.1f}" in shown
        assert title in shown
    many = np.array([f"class {i % 40:02}" for i in range(300)])
    assert len(re.findall(r'<th scope="row">', page(found, about={"label": many}))) == 24
    assert "the commonest and the rarest" in page(found, about={"label": many})
    assert "the commonest and the rarest" not in page(found, about={"label": Y})


def test_users_text_is_text_on_the_page():
    about = {"label": Y, "id": np.array(["<b>id"] * 300), "text": np.array(["<i>c"] * 300)}
    html = page(covered(8)[0], about=about, facts={"similarity": "<b>rbf"})
    for text in ("<i>c", "<b>rbf", "<b>id", "<script"):
        assert text not in html
    assert "<title>&lt;script&gt;</title>" in html
    assert "src=" not in html
    pictures = page(covered(8)[0], about=about, images=np.zeros((300, 3, 3)))
    assert not re.search(r"(?:src|href)=[\"'](?!data:)", pictures)


@pytest.mark.parametrize("k", [1, 2, 299, 300])
def test_sets_of_every_size_have_a_page(k):
    chosen = dmsgd.select(X, k, details=True)
    assert page(described(chosen, greedy=False)).endswith("</html>")
    assert page(described(chosen.items)).endswith("</html>")


def test_a_set_that_is_empty_has_a_page():
    chosen = dmsgd.select(X, until=0.01, given=np.arange(200), details=True)
    assert len(chosen) == 0
    shown = words(page(described(chosen, np.arange(200), greedy=False)))
    assert "Nothing is chosen" in shown
