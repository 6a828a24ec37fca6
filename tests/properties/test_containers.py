"""Equal input is the same design whatever it comes in: the same fingerprint, the same draws."""

import given as values
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_calls import SIZES

import dmsgd

#: Numbers that are not rounded on the way to float64.
EXACT_NUMBERS = [
    name for name in values.NUMBERS_GOOD if name not in ("integers", "float32", "tensor")
]


def is_same(design, expected):
    assert design.fingerprint() == expected.fingerprint()
    np.testing.assert_array_equal(design.sample(4, seed=0), expected.sample(4, seed=0))


@pytest.mark.parametrize(
    "makers", [values.FEATURES_GOOD, values.FEATURES_SPARSE], ids=["dense", "sparse"]
)
@given(data=st.data())
def test_features(makers, data):
    size, name = data.draw(SIZES), data.draw(st.sampled_from(list(makers)))
    expected = dmsgd.diversify(next(iter(makers.values()))(size), size.k)
    is_same(dmsgd.diversify(makers[name](size), size.k), expected)


@pytest.mark.parametrize("makers", [values.FEATURES_GOOD, values.FEATURES_SPARSE])
@given(data=st.data())
def test_maps(makers, data):
    """Powers and lengths are those of the numbers, also where an entry is stored in parts."""
    size, name = data.draw(SIZES), data.draw(st.sampled_from(list(makers)))
    for call in (lambda X: dmsgd.features.anneal(X, 2), dmsgd.features.normalize):
        found, expected = call(makers[name](size)), call(size.X)
        dense = found.toarray() if hasattr(found, "toarray") else found
        np.testing.assert_allclose(dense, expected, rtol=1e-14)


@given(data=st.data())
def test_labels(data):
    size, name = data.draw(SIZES), data.draw(st.sampled_from(list(values.LABELS_GOOD)))
    labels = values.LABELS_GOOD[name](size)
    is_same(dmsgd.Stratified(labels, size.k), dmsgd.Stratified(size.y, size.k))
    mixed = {"k": size.k, "w": 0.5}
    is_same(
        dmsgd.diversify(size.X, labels=labels, **mixed),
        dmsgd.diversify(size.X, labels=size.y, **mixed),
    )


@given(data=st.data())
def test_numbers(data):
    size, name = data.draw(SIZES), data.draw(st.sampled_from(EXACT_NUMBERS))
    weights, expected = values.NUMBERS_GOOD[name](size), values.NUMBERS_GOOD["array"](size)
    is_same(dmsgd.Weighted(weights=weights, k=size.k), dmsgd.Weighted(weights=expected, k=size.k))
    is_same(dmsgd.diversify(size.X, 1, target=weights), dmsgd.diversify(size.X, 1, target=expected))


@given(size=SIZES)
def test_nothing_given_is_changed(size):
    """Arrays, labels and sparse matrices are left as they were, also where they are tidied up."""
    X, y, damaged = size.X, size.y, values.unsorted(size)
    before = damaged.indices.copy(), damaged.data.copy()
    dmsgd.diversify(X, size.k, y, 0.5, normalize=True, target="uniform").sample(2, seed=0)
    dmsgd.features.anneal(damaged, 2)
    dmsgd.diversify(damaged, size.k, normalize=True).sample(2, seed=0)
    np.testing.assert_array_equal(X, size.X)
    np.testing.assert_array_equal(y, size.y)
    np.testing.assert_array_equal(damaged.indices, before[0])
    np.testing.assert_array_equal(damaged.data, before[1])
