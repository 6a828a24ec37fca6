"""A Series given for the rows of a frame is matched by its index, or refused."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import dmsgd
from dmsgd.inputs.alignment import aligned

RNG = np.random.default_rng(8)
X = RNG.normal(size=(40, 6))
NAMES = [f"item {i:02}" for i in range(40)]
FRAME = pd.DataFrame(X, index=NAMES)
Y = np.repeat(["a", "b"], [30, 10])
Q = RNG.uniform(1, 2, 40)
SHUFFLED = RNG.permutation(40)
GAPPED = 3 * np.arange(40)


def prints(design):
    return design.fingerprint(), design.sample(3, seed=0).tolist()


TAKERS = {
    "labels": (lambda X, y: prints(dmsgd.diversify(X, 4, y, 0.7)), Y),
    "labels, target": (lambda X, y: prints(dmsgd.diversify(X, 4, y, 0.7, target="uniform")), Y),
    "quality": (lambda X, q: prints(dmsgd.diversify(X, 4, quality=q)), Q),
    "target": (lambda X, q: prints(dmsgd.diversify(X, 4, target=q)), Q),
    "concat": (lambda X, y: dmsgd.features.concat(X, y, 0.5).tolist(), Y),
    "inspect": (lambda X, y: dmsgd.diagnostics.inspect(X, 4, y).csv(), Y),
    "texts": (lambda X, y: dmsgd.diagnostics.inspect(X, 4).html(texts=y), Y),
    "stratified": (
        lambda X, y: prints(
            dmsgd.designs.build.make_design(
                dmsgd.designs.DesignOptions(batches="stratified"), X, 4, y
            )
        ),
        Y,
    ),
}


@pytest.mark.parametrize("name", TAKERS)
def test_a_series_is_matched_with_a_frame_by_index(name):
    made, values = TAKERS[name]
    expected = made(X, values)
    series = pd.Series(values, index=NAMES)
    assert made(FRAME, series) == expected
    assert made(FRAME, series.iloc[SHUFFLED]) == expected
    assert made(FRAME, values) == expected
    assert made(pd.DataFrame(X), pd.Series(values).iloc[SHUFFLED]) == expected
    with pytest.raises(dmsgd.errors.InputError, match=r"row 0 is item 00 in X and 0 in .*to_numpy"):
        made(FRAME, pd.Series(values))


@pytest.mark.parametrize("name", TAKERS)
def test_without_an_index_of_x_only_numbers_in_another_order_are_refused(name):
    made, values = TAKERS[name]
    expected = made(X, values)
    assert made(X, pd.Series(values)) == expected
    assert made(X, pd.Series(values, index=GAPPED)) == expected  # rows that were kept, by position
    assert made(X, pd.Series(values, index=NAMES)) == expected
    assert made(pl.DataFrame(X), pl.Series(values)) == expected
    with pytest.raises(dmsgd.errors.InputError, match=r"sort_index\(\).*to_numpy\(\)"):
        made(X, pd.Series(values).iloc[SHUFFLED])


def test_without_x_a_series_is_taken_as_it_is():
    kept = pd.Series(Q, index=SHUFFLED)
    assert prints(dmsgd.Weighted(weights=kept, k=4)) == prints(dmsgd.Weighted(weights=Q, k=4))
    labels = pd.Series(Y, index=GAPPED)
    assert prints(dmsgd.Stratified(labels, 4)) == prints(dmsgd.Stratified(Y, 4))
    assert aligned(kept, None, "weights").tolist() == Q.tolist()


@pytest.mark.parametrize(
    ("index", "rows"),
    [
        (["a", "a", "b"], ["a", "b", "c"]),
        (["a", "b", "a"], ["a", "a", "b"]),
        ([1, 2, 3], ["1", "2", "3"]),
        (pd.interval_range(0, 3), [1, 2, 3]),
        (pd.MultiIndex.from_tuples([(0, 0), (0, 1), (1, 0)]), [0, 1, 2]),
        ([0, 1, None], [0, None, pd.NA]),
    ],
)
def test_labels_that_do_not_name_the_rows_are_refused(index, rows):
    with pytest.raises(dmsgd.errors.InputError, match="different indexes"):
        aligned(pd.Series(1.0, index=index), pd.DataFrame(np.eye(3), index=rows), "quality")


def test_an_index_with_repeated_labels_is_matched_if_it_is_the_same():
    twice = ["a", "a", "b"]
    frame, series = pd.DataFrame(np.eye(3), index=twice), pd.Series([1, 2, 3], index=twice)
    assert aligned(series, frame, "quality").tolist() == [1, 2, 3]
    assert aligned(aligned(series, frame, "quality"), frame, "quality").tolist() == [1, 2, 3]


def test_a_wrong_length_is_named_as_such():
    with pytest.raises(ValueError, match="39 entries for 40 items"):
        dmsgd.diversify(FRAME, 4, pd.Series(Y, index=NAMES)[:39], 0.5)


def test_the_quality_of_a_selector_is_matched_by_index():
    pytest.importorskip("sklearn")
    import dmsgd.sklearn

    def chosen(X, quality):
        selector = dmsgd.sklearn.DiverseSelector(5, how="greedy")
        return selector.fit(X, quality=quality).selected_idx_.tolist()

    series = pd.Series(Q**4, index=NAMES)
    assert chosen(FRAME, series.iloc[SHUFFLED]) == chosen(X, Q**4) != chosen(X, Q[SHUFFLED] ** 4)


def test_a_selector_takes_labels_of_the_index_as_select_does():
    pytest.importorskip("sklearn")
    import dmsgd.sklearn

    def chosen(X, groups, costs, **items):
        selector = dmsgd.sklearn.DiverseSelector(budget=4.0, at_most=2)
        return selector.fit(X, groups=groups, costs=costs, **items).selected_idx_.tolist()

    groups, costs = np.arange(len(X)) % 3, 1 + Q
    expected = chosen(X, groups, costs, given=[4], exclude=[0, 7])
    by_index = [pd.Series(each, index=NAMES).iloc[SHUFFLED] for each in (groups, costs)]
    names = {"given": [NAMES[4]], "exclude": {NAMES[0], NAMES[7]}}
    assert chosen(FRAME, *by_index, **names) == expected
    assert expected == dmsgd.select(
        FRAME, groups=by_index[0], costs=by_index[1], budget=4.0, at_most=2, **names
    ).tolist()  # fmt: skip
    with pytest.raises(ValueError, match="given names 1 label"):
        chosen(FRAME, *by_index, given=["nobody"])
