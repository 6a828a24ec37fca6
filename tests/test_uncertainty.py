"""`uncertainty` is what its name says, for probabilities and logits of any kind."""

import numpy as np
import pytest

import dmsgd

P = np.array([[0.5, 0.5, 0.0], [0.7, 0.1, 0.2], [1.0, 0.0, 0.0], [1 / 3, 1 / 3, 1 / 3]])


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ("margin", [1, 0.5, 0, 1]),
        ("entropy", [np.log(2) / np.log(3), 0.72981, 0, 1]),
        ("least confidence", [0.75, 0.45, 0, 1]),
    ],
)
def test_uncertainty_is_what_its_name_says(how, expected):
    assert dmsgd.uncertainty(P, how) == pytest.approx(expected, abs=1e-4)
    with np.errstate(divide="ignore"):
        logits = np.log(P) + np.array([[3.0], [-1.0], [0.0], [50.0]])
    logits = np.maximum(logits, -1e4)
    assert dmsgd.uncertainty(logits, how, logits=True) == pytest.approx(expected, abs=1e-4)


def test_uncertainty_of_tensors():
    torch = pytest.importorskip("torch")
    logits = torch.randn(20, 5, requires_grad=True)
    expected = dmsgd.uncertainty(torch.softmax(logits.detach().double(), 1).numpy())
    assert dmsgd.uncertainty(logits, logits=True) == pytest.approx(expected, abs=1e-6)
    assert dmsgd.uncertainty(torch.softmax(logits, 1).half()) == pytest.approx(expected, abs=1e-2)


@pytest.mark.parametrize("how", ["margin", "entropy", "least confidence"])
def test_probabilities_that_rounding_made_negative_are_zero(how):
    found = dmsgd.uncertainty([[0.5, 0.505, -0.005], [0.5, 0.5, 0.0]], how)
    assert found[0] == pytest.approx(found[1], abs=0.01)


def test_what_is_no_probability_raises():
    for wrong in (P * 2, P - 0.1, P * [[1], [1], [-1], [1]]):
        with pytest.raises(ValueError, match="logits=True"):
            dmsgd.uncertainty(wrong)
    with pytest.raises(ValueError, match="two classes"):
        dmsgd.uncertainty(np.ones((4, 1)))
    with pytest.raises(ValueError, match="how"):
        dmsgd.uncertainty(P, "variance")
