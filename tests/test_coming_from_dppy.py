"""The thirteen tasks of docs/from-dppy.md equal enumeration on its six items."""

import re
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
import torch

from contracts import check_closed_forms, check_draws, kdpp_law

PAGE = Path(__file__).parent.parent / "docs/from-dppy.md"
N = 6


@pytest.fixture(scope="module")
def page():
    """The names that the page has made after each task, by its number; 0 is what comes before."""
    found, names = {}, {}
    for number, part in enumerate(re.split(r"^## \d+\. ", PAGE.read_text("utf-8"), flags=re.M)):
        code = "\n".join(re.findall(r"^```python\n(.*?)^```", part, re.M | re.S))
        lines = [line for line in code.splitlines() if line and not line.startswith("import")]
        assert number == 0 or 1 <= len(lines) <= 3, code
        exec(code, names)
        found[number] = dict(names)
    return found


def subsets(size=None):
    sizes = range(N + 1) if size is None else [size]
    return [Y for size in sizes for Y in combinations(range(N), size)]


def dpp_law(L):
    dets = np.array([np.linalg.det(L[np.ix_(Y, Y)]) if Y else 1.0 for Y in subsets()])
    return dict(zip(subsets(), dets / dets.sum(), strict=True))


def projection_law(V):
    dets = {Y: np.linalg.det(V[list(Y)]) ** 2 if len(Y) == V.shape[1] else 0.0 for Y in subsets()}
    assert sum(dets.values()) == pytest.approx(1)
    return dets


def conditioned(law, items=(0,)):
    """P(Y) of sets of the items 0 to 4, given that `items` are in and item 5 is not."""
    held = {Y: p * (set(items) <= set(Y)) for Y, p in law.items() if 5 not in Y}
    return {Y: p / sum(held.values()) for Y, p in held.items()}


def check_sets(sets, law):
    assert len(sets) == 1000
    assert all(law[tuple(sorted(map(int, Y)))] > 0 for Y in sets)


def test_there_are_thirteen_tasks(page):
    assert sorted(page) == list(range(14))


@pytest.mark.parametrize(("number", "name"), [(1, "dpp"), (2, "by_marginal"), (4, "kdpp")])
def test_draws_by_matrix(page, number, name):
    names = page[number]
    law = kdpp_law(names["L"], 3) if name == "kdpp" else dpp_law(names["L"])
    check_closed_forms(names[name], law)
    check_draws(names[name], law, size=2000)
    check_sets(names["sets"], law)


def test_a_projection(page):
    law = projection_law(page[3]["V"])
    check_closed_forms(page[3]["projection"], law)
    check_sets(page[3]["sets"], law)


def test_features(page):
    law = kdpp_law(page[5]["F"] @ page[5]["F"].T, 3)
    check_closed_forms(page[5]["from_features"], law)
    check_sets(page[5]["sets"], law)


def test_a_markov_chain(page):
    law = kdpp_law(page[6]["L"], 3)
    check_sets(page[6]["sets"], law)
    counts = dict.fromkeys(law, 0)
    for Y in page[6]["chain"].sample(3000, seed=1).tolist():
        counts[tuple(sorted(Y))] += 1
    assert sum(abs(counts[Y] / 3000 - p) for Y, p in law.items()) / 2 < 0.05


def test_marginals(page):
    names, law = page[7], dpp_law(page[7]["L"])
    np.testing.assert_allclose(names["marginal_kernel"], names["K"], atol=1e-12)
    b = [sum(p for Y, p in law.items() if i in Y) for i in range(N)]
    np.testing.assert_allclose(names["b"], b, atol=1e-12)
    law = kdpp_law(names["L"], 3)
    b = [sum(p for Y, p in law.items() if i in Y) for i in range(N)]
    np.testing.assert_allclose(names["b_of_kdpp"], b, atol=1e-12)
    assert names["pair"] == pytest.approx(sum(p for Y, p in law.items() if {0, 1} <= {*Y}))


def test_log_probabilities(page):
    names, law = page[8], dpp_law(page[8]["L"])
    p = [law[0, 2], law[1, 3, 4], law[()]]
    np.testing.assert_allclose(np.exp(names["log_p"]), p, atol=1e-12)
    law = kdpp_law(names["L"], 3)
    np.testing.assert_allclose(np.exp(names["log_p_of_kdpp"]), [law[0, 2, 5], law[1, 3, 4]])


def test_polynomials(page):
    L = page[9]["L"]
    minors = [sum(np.linalg.det(L[np.ix_(Y, Y)]) for Y in subsets(size)) for size in range(1, 4)]
    np.testing.assert_allclose(page[9]["E"], [1, *minors])


def test_three_items(page):
    kdpp, law = page[7]["kdpp"], kdpp_law(page[7]["L"], 3)
    three = kdpp.joint(0, 1) * kdpp.given([0, 1]).inclusion()[2]
    assert three == pytest.approx(law[0, 1, 2])


def test_learning(page):
    law, B = kdpp_law(page[13]["F"] @ page[13]["F"].T, 3), page[13]["B"]
    expected = -(np.log(law[0, 2, 5]) + np.log(law[1, 3, 4])) / 2
    assert page[13]["loss"].item() == pytest.approx(expected)
    assert B.grad.abs().sum() > 0
    assert torch.sum(B.grad * B).item() == pytest.approx(0, abs=1e-12)  # the scale is free


def test_conditions(page):
    names = page[10]
    check_closed_forms(names["conditioned"], conditioned(dpp_law(names["L"])))
    check_closed_forms(names["conditioned_kdpp"], conditioned(kdpp_law(names["L"], 3)))
    chained = names["conditioned_kdpp"].given([1])
    check_closed_forms(chained, conditioned(kdpp_law(names["L"], 3), (0, 1)))


def test_sizes(page):
    law = dpp_law(page[11]["L"])
    sizes = np.bincount([len(Y) for Y in law], weights=list(law.values()))
    np.testing.assert_allclose(page[11]["sizes"], sizes, atol=1e-12)
    assert page[11]["expected_size"] == pytest.approx(sizes @ np.arange(N + 1))


def test_a_likely_set(page):
    """Each item has the largest determinant with those before it; here the set is the best one."""
    names = page[12]
    q = np.array(names["quality"]) / max(names["quality"])
    L, chosen = q[:, None] * names["L"] * q, []
    for _ in range(3):
        more = [[*chosen, i] for i in range(N) if i not in chosen]
        chosen = max(more, key=lambda Y: np.linalg.det(L[np.ix_(Y, Y)]))
    assert names["likely"].tolist() == chosen
    law = kdpp_law(L, 3)
    assert tuple(sorted(chosen)) == max(law, key=law.get)
