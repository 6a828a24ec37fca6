"""What is said about a set beside random ones, on the terminal and on the page."""

import numpy as np
import pytest

import dmsgd
from dmsgd.features import as_features
from dmsgd.report import spread
from dmsgd.report.report import render
from dmsgd.report.selection import build_selection
from dmsgd.report.spread import APART, COVERED, compare_with_random, describe_covering
from test_select import RNG, X, Y


def spread_of(chosen, given=(), X=X, how="greedy"):
    chosen, given = (np.asarray(each, dtype=np.int64) for each in (chosen, given))
    free = np.setdiff1d(np.arange(len(X)), given)
    return compare_with_random(as_features(X), chosen, given, free, how)


def test_figures_are_distances():
    chosen, given = dmsgd.select(X, 8, given=[3, 7], seed=0), [3, 7]
    found = spread_of(chosen, given)
    distances = np.linalg.norm(X[:, None] - X[None], axis=2)
    unit = np.median(distances[np.triu_indices(300, 1)])
    everyone = [*given, *chosen]
    to_others = distances[np.ix_(chosen, everyone)]
    to_others[to_others == 0] = np.inf
    assert found.figures[APART][0] == pytest.approx(to_others.min(axis=1).mean() / unit)
    nearest = distances[:, everyone].min(axis=1) / unit
    assert found.figures[COVERED][0] == pytest.approx(nearest.mean())
    np.testing.assert_allclose(found.far, nearest, atol=1e-12)
    np.testing.assert_array_equal(found.nearest, distances[:, everyone].argmin(axis=1))


def test_words_tell_when_a_set_is_no_better_than_a_random_one():
    centres = 100 * RNG.normal(size=(10, 5))
    clusters = np.repeat(centres, 30, axis=0) + RNG.normal(size=(300, 5))
    one_of_each = np.arange(0, 300, 30)
    assert spread_of(one_of_each, X=clusters).words().startswith("better spread")
    assert spread_of(np.arange(10), X=clusters).words().startswith("no better spread")
    outliers = np.argsort(-np.linalg.norm(X, axis=1))[:8]
    assert "better spread" in spread_of(outliers).words()
    assert "outliers" in spread_of(outliers).words()
    assert "outliers" not in spread_of(one_of_each, X=clusters).words()
    assert "covers the others better" not in spread_of(outliers).words()
    assert "covers the others better" in spread_of(dmsgd.select(X, 8)).words()
    assert "one item" in spread_of([3]).words()
    assert spread_of([0, 1], X=np.ones((5, 2))).words().startswith("no better")
    like_random = np.random.default_rng(1).choice(300, 8, replace=False)
    assert "nearest chosen one" not in spread_of(like_random).words()
    assert "nearest chosen one" in spread_of(like_random, how="draw").words()  # of a draw both


def covering_spread(k, other="", **wishes):
    covering = dmsgd.select(X, k, details=True, **wishes)
    given = np.asarray(wishes.get("given", ()), dtype=np.int64)
    free = np.setdiff1d(np.arange(300), given)
    return describe_covering(as_features(X), covering, given, free, other), covering


def test_a_covering_set_is_described_by_what_it_covers():
    found, covering = covering_spread(8)
    size = covering.like_random
    assert size > 8
    assert found.words().startswith(f"8 items cover the pool as well as {size} random ones; ")
    assert f"{covering.coverage[-1]:.3g} similar" in found.words()
    distances = np.linalg.norm(X[covering.items][:, None] - X[covering.items], axis=2)
    np.fill_diagonal(distances, np.inf)
    pairs = np.linalg.norm(X[:, None] - X[None], axis=2)[np.triu_indices(300, 1)]
    apart = distances.min(axis=1).mean() / np.median(pairs)
    assert found.figures[APART][0] == pytest.approx(apart)
    assert f"{apart:.2f} of the median distance" in found.words()
    assert "beside 2 given cover" in covering_spread(8, given=[3, 7])[0].words()
    one = covering_spread(1, other="that.npy", cover=X[:9])[0].words()
    assert one.startswith("1 item covers that.npy as well as")
    assert "median distance" not in one


def test_the_page_of_a_covering_set_says_the_same_and_lists_similarities():
    found, covering = covering_spread(8, given=[3, 7])
    given, free = np.array([3, 7]), np.setdiff1d(np.arange(300), [3, 7])
    shown = build_selection(as_features(X), covering.items, given, free, found, {}, {})
    assert shown["words"] == found.words()
    assert shown["measured"] == 300
    counts = np.bincount(covering.nearest, minlength=10)[2:]
    assert [each["value"] for each in shown["set"]] == [f"{c / 300:.1%}" for c in counts]
    least = int(covering.similarity.argmin())
    first = shown["farthest"][0]
    assert (first["item"], first["value"]) == (least, f"{covering.similarity[least]:.2f}")
    page = render("selection.html", "chosen", shown)
    assert found.words() in page
    assert "similarity to the nearest chosen one" in page


def content(k=8, given=(), labels=Y):
    chosen = dmsgd.select(X, k, given=given, how="greedy")
    given = np.array(given, dtype=np.int64)
    free = np.setdiff1d(np.arange(300), given)
    about = {"label": labels, "id": np.array(["<b>id"] * 300)}
    facts = {"similarity": "<b>rbf"}
    F = as_features(X)
    found = compare_with_random(F, chosen, given, free, "greedy")
    return build_selection(F, chosen, given, free, found, about, facts), chosen


def test_the_page_lists_the_set_and_what_it_covers_least():
    found, chosen = content()
    squares = np.sum((X[:, None] - X[None, chosen]) ** 2, axis=2)
    assert [each["item"] for each in found["set"]] == chosen.tolist()
    shares = np.bincount(squares.argmin(axis=1), minlength=8) / 300
    assert [each["value"] for each in found["set"]] == [f"{share:.1%}" for share in shares]
    assert found["farthest"][0]["item"] == int(squares.min(axis=1).argmax())
    assert [each["chosen"] for each in found["classes"]] == [
        int(np.sum(Y[chosen] == name)) for name in ("a", "b", "<i>c")
    ]
    assert sum(each["random"] for each in found["classes"]) == pytest.approx(8)


def test_of_many_classes_the_two_ends_are_shown():
    found, _ = content(labels=np.array([f"class {i % 40:02}" for i in range(300)]))
    assert len(found["classes"]) == 30
    assert "the commonest and the rarest" in render("selection.html", "chosen", found)
    assert "the commonest and the rarest" not in render("selection.html", "chosen", content()[0])


def test_of_very_many_items_a_sample_is_measured(monkeypatch):
    monkeypatch.setattr(spread, "FEWEST", 50)
    monkeypatch.setattr(spread, "PRODUCTS", 1)
    found, _ = content()
    assert found["measured"] == 50
    assert "random sample of 50 items" in render("selection.html", "chosen", found)


def test_users_text_is_text_on_the_page():
    page = render("selection.html", "<script>", content(given=[2, 3])[0])
    assert "<i>c" not in page
    assert "<b>rbf" not in page
    assert "<b>id" not in page
    assert "<title>&lt;script&gt;</title>" in page
    assert "src=" not in page
