"""`select` of features on a GPU: the sets of the processor, up to ties."""

import numpy as np
import pytest

import dmsgd
from dmsgd.selection import coverage

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def options(rng, n):
    """What may be asked of a set, by name."""
    other = rng.normal(size=(300, 12))
    return {
        "plain": {"k": 40},
        "quality": {"k": 40, "quality": rng.uniform(size=n)},
        "given": {"k": 20, "given": [1, 5, 90], "exclude": np.arange(200, 300)},
        "groups": {"k": 30, "groups": np.arange(n) % 5, "at_most": 7, "at_least": {2: 6}},
        "budget": {"costs": rng.uniform(1, 3, size=n), "budget": 30.0},
        "until": {"until": 0.6},
        "duplicates": {"k": 20, "duplicates": 0.9},
        "cosine": {"k": 30, "metric": "cosine"},
        "another set": {"k": 25, "cover": (other, rng.uniform(size=300))},
        "places and a budget": {"k": 20, "costs": np.exp(rng.normal(size=n)), "budget": 12.0},
    }


NAMES = list(options(np.random.default_rng(0), 500))


@pytest.mark.parametrize("sampled", [False, True])
@pytest.mark.parametrize("kind", ["float32", "float64"])
@pytest.mark.parametrize("name", NAMES)
def test_sets_are_those_of_the_processor(rng, monkeypatch, name, kind, sampled):
    n = 2000
    X = rng.normal(size=(80, 12))[rng.integers(80, size=n)] + 0.4 * rng.normal(size=(n, 12))
    X = X.astype(kind)
    if sampled:
        monkeypatch.setattr(coverage, "WHOLE", 100)
        monkeypatch.setattr(coverage, "START", 512)
        monkeypatch.setattr("dmsgd.selection.pool.KEPT", 0)
    wish = options(rng, n)[name]
    expected = dmsgd.select(X, details=True, **wish)
    if "cover" in wish:
        rows, weights = wish["cover"]
        wish["cover"] = torch.as_tensor(rows, device="cuda"), weights
    found = dmsgd.select(torch.as_tensor(X, device="cuda"), details=True, **wish)
    same = np.mean(np.isin(found.items, expected.items))
    assert found.coverage[-1] == pytest.approx(expected.coverage[-1], rel=2e-3 if sampled else 1e-5)
    assert same > (0.5 if sampled else 0.9)
    assert found.m == pytest.approx(expected.m)
    if found.items.tolist() == expected.items.tolist():
        assert found.coverage == pytest.approx(expected.coverage, rel=1e-6)
        assert found.stands_for == pytest.approx(expected.stands_for, rel=1e-6)


@pytest.mark.parametrize("how", ["cover", "medoids"])
def test_products_are_not_rougher_where_training_asks_for_it(rng, how):
    X = torch.as_tensor(rng.normal(size=(600, 64)) + 5, device="cuda")
    usual = dmsgd.select(X, 50, how=how)
    matmul = torch.backends.cuda.matmul
    before, matmul.allow_tf32 = matmul.allow_tf32, True
    try:
        with torch.autocast("cuda", dtype=torch.bfloat16):
            found = dmsgd.select(X, 50, how=how)
        assert matmul.allow_tf32
    finally:
        matmul.allow_tf32 = before
    assert found.tolist() == usual.tolist()


def test_copies_come_last(rng):
    X = torch.as_tensor(np.repeat(rng.normal(size=(30, 4)), 5, axis=0), device="cuda")
    with pytest.warns(dmsgd.KernelWarning, match="only 30 of 40"):
        items = dmsgd.select(X, 40)
    assert len(set(items[:30] // 5)) == 30


def test_medoids_are_those_of_the_processor(rng):
    X = rng.normal(size=(80, 12))[rng.integers(80, size=900)] + 0.4 * rng.normal(size=(900, 12))
    found = dmsgd.select(torch.as_tensor(X, device="cuda"), 30, how="medoids", details=True)
    assert found.items.tolist() == dmsgd.select(X, 30, how="medoids").tolist()
