"""What notebooks show: small, escaped, for every design and for schedules."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest

import dmsgd

X = np.random.default_rng(0).normal(size=(60, 12))
Y = np.repeat(["a", "b"], 30)
DESIGNS = {
    "KDPP": dmsgd.diversify(X, 4),
    "Uniform": dmsgd.Uniform(60, 4),
    "Stratified": dmsgd.Stratified(Y, 4),
    "SwapChain": dmsgd.designs.SwapChain(dmsgd.kernels.RBF(X, 2.0), 4),
    "DPP": dmsgd.DPP(dmsgd.kernels.Linear(X)),
}


@pytest.mark.parametrize("name", DESIGNS)
def test_designs(name):
    html = DESIGNS[name]._repr_html_()
    tree = ElementTree.fromstring(html)  # raises unless every tag is closed and text escaped
    assert tree.find(".//strong").text == name
    assert "60" in html
    assert len(html) < 6000
    if name != "SwapChain":  # its probabilities are known from draws only
        assert re.search(r"[\d.]+ to [\d.]+ times uniform", html)
        assert tree.find(".//svg").get("aria-label").startswith("Histogram")


def test_the_options_of_diversify_are_shown():
    design = dmsgd.diversify(X, 4, Y, 0.7, normalize=True)
    html = design._repr_html_()
    assert "w=0.7" in html
    assert "normalize=True" in html
    assert design.provenance()["data"][:12] in html
    plain = dmsgd.diversify(X, 4)._repr_html_()
    assert "kernel=&#x27;linear&#x27;" in plain  # the one that was chosen
    made = dmsgd.KDPP(dmsgd.kernels.Linear(X), 4)._repr_html_()
    assert "diversify" not in made
    even = dmsgd.diversify(X, 4, standardize=True, target="uniform")._repr_html_()
    assert "target=&#x27;uniform&#x27;" in even
    assert "standardize=True" in even


def test_uniform_batches_have_one_bar():
    tree = ElementTree.fromstring(DESIGNS["Uniform"]._repr_html_())
    assert len([bar for bar in tree.iter("rect") if bar.get("width") == "5"]) == 1
    other = ElementTree.fromstring(DESIGNS["KDPP"]._repr_html_())
    assert len(list(other.iter("rect"))) > 3


def test_schedules_and_their_paths_are_escaped(tmp_path):
    folder = tmp_path / "<b>&"
    folder.mkdir()
    schedule = dmsgd.presample(DESIGNS["KDPP"], 10, path=folder / "s.npy")
    html = schedule._repr_html_()
    assert "&lt;b&gt;&amp;" in html
    assert "10 of 4 out of 60 items" in html
    assert ElementTree.fromstring(html).find(".//strong").text == "Schedule"
    assert "in memory" in dmsgd.presample(DESIGNS["KDPP"], 10)._repr_html_()
