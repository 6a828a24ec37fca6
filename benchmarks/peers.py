"""Other packages on one task each: time per batch, and whether they draw from the k-DPP.

    python benchmarks/peers.py                         # measures every package that is installed
    python benchmarks/peers.py --jaxdpp sampling.py    # jaxdpp is one file of a repository
    python benchmarks/peers.py --page                  # writes the table of docs/comparison.md
    python benchmarks/peers.py --check                 # fails if that is not what was measured

Results are merged into docs/results/peers.json, so that packages can be measured in environments of
their own. Run `--page` where dmsgd is.

A draw is 20 of 2,000 items with 100 features, CPU time of one thread after set-up; for k-DPPs the
kernel is linear. The distribution is tested on 3 of 8 items: χ² of 20,000 draws over all 56
subsets.
"""

from __future__ import annotations

import timing  # isort: skip  (sets the number of threads before NumPy is loaded)

import argparse
import importlib.util
import json
import sys
import warnings
from importlib.metadata import PackageNotFoundError, version
from itertools import combinations
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "docs/results/peers.json"
PAGE = ROOT / "docs/comparison.md"
N, D, K = 2_000, 100, 20
DRAWS = 20_000
FEW = 200  #: items for jaxdpp, which makes all eigenvectors orthogonal again after every item


def features(n=N, d=D):
    return np.random.default_rng(0).normal(size=(n, d)) * np.logspace(0, -1, d)


def small():
    """Eight items that are unlike enough for a wrong law to show."""
    return np.random.default_rng(1).normal(size=(8, 4)) * np.array([1.0, 0.8, 0.6, 0.5])


def p_value(batches):
    """Return the probability of a χ² as large, were the draws of the k-DPP of `small`."""
    from scipy.stats import chisquare

    F = small()
    subsets = list(combinations(range(8), 3))
    weight = np.array([np.linalg.det(F[list(each)] @ F[list(each)].T) for each in subsets])
    place = {each: number for number, each in enumerate(subsets)}
    seen = np.zeros(len(subsets))
    for batch in batches:
        found = tuple(sorted({int(item) for item in batch}))
        if len(found) != 3:
            return 0.0
        seen[place[found]] += 1
    expected = weight / weight.sum() * seen.sum()
    return float(chisquare(seen, expected).pvalue)


def dmsgd_peer():
    import dmsgd

    X = features()
    design = dmsgd.KDPP(dmsgd.kernels.Linear(X), K)
    return {
        "setup": timing.cpu_seconds(lambda: dmsgd.kernels.exact(dmsgd.kernels.Linear(X)), rounds=3),
        "draw": timing.cpu_seconds(lambda: design.sample(100, seed=0), rounds=5) / 100,
        "p": p_value(
            dmsgd.diversify(small(), 3, kernel="linear", normalize=False).sample(DRAWS, seed=0)
        ),
    }


def dppy_peer():
    from dppy.finite_dpps import FiniteDPP

    X, F = features(), small()

    def setup():
        values, vectors = np.linalg.eigh(X.T @ X)
        return values, X @ (vectors / np.sqrt(values))

    peer = FiniteDPP("likelihood", L_eig_dec=setup())
    peer.sample_exact_k_dpp(size=K, mode="GS_bis")
    eight = FiniteDPP("likelihood", L=F @ F.T)
    rng = np.random.RandomState(0)
    draws = [eight.sample_exact_k_dpp(size=3, random_state=rng) for _ in range(DRAWS)]
    draw = timing.cpu_seconds(lambda: peer.sample_exact_k_dpp(size=K, mode="GS_bis"), rounds=5)
    return {"setup": timing.cpu_seconds(setup, rounds=3), "draw": draw, "p": p_value(draws)}


def tfp_peer():
    import tensorflow as tf
    import tensorflow_probability as tfp

    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)

    def law(F, size):
        values, vectors = np.linalg.eigh(F @ F.T)
        values = np.maximum(values, 1e-12)
        low, high = 1e-9, 1e9  # scaled so that `size` items are expected: it has no k
        for _ in range(100):
            middle = np.sqrt(low * high)
            short = (middle * values / (1 + middle * values)).sum() < size
            low, high = (middle, high) if short else (low, middle)
        return tfp.distributions.DeterminantalPointProcess(values * low, vectors)

    X = features()
    large, eight = law(X, K), law(small(), 3)
    sets = eight.sample(4 * DRAWS, seed=0).numpy().astype(bool)
    sets = sets[sets.sum(axis=1) == 3][:DRAWS]
    return {
        "setup": timing.cpu_seconds(lambda: law(X, K), rounds=1, least=0.0),
        "draw": timing.cpu_seconds(lambda: large.sample(seed=1), rounds=2, least=0.0),
        "p": p_value([np.flatnonzero(each) for each in sets]),
    }


def jaxdpp_peer(path):
    import jax

    jax.config.update("jax_enable_x64", True)
    if not hasattr(jax.random, "PRNGKeyArray"):  # gone from jax; its annotations name it
        jax.random.PRNGKeyArray = jax.Array
    spec = importlib.util.spec_from_file_location("jaxdpp", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    F, X = small(), features(FEW)
    L = X @ X.T + 1e-9 * np.eye(FEW)
    eight = F @ F.T
    keys = jax.random.split(jax.random.PRNGKey(0), DRAWS)
    sets = np.asarray(jax.vmap(lambda key: module.kdpp(eight, 3, key))(keys)).astype(bool)
    once = timing.cpu_seconds(
        lambda: module.kdpp(L, K, keys[0]).block_until_ready(), rounds=1, least=0.0
    )
    law = p_value([np.flatnonzero(each) for each in sets])
    return {"setup": 0.0, "draw": once, "p": law, "items": FEW}


def apricot_peer():
    from apricot import FacilityLocationSelection

    X = features()
    L = np.maximum(X @ X.T, 0.0)

    def select():
        FacilityLocationSelection(K, metric="precomputed", optimizer="lazy").fit(L)

    select()
    return {"setup": 0.0, "draw": timing.cpu_seconds(select, rounds=2, least=0.0), "p": None}


def imblearn_peer():
    from imblearn.under_sampling import RandomUnderSampler

    X, y = features(), np.repeat(np.arange(2), [N - 10, 10])
    sampler = RandomUnderSampler(random_state=0)
    return {
        "setup": 0.0,
        "draw": timing.cpu_seconds(lambda: sampler.fit_resample(X, y), rounds=5),
        "p": None,
    }


def torch_peer():
    import torch
    from torch.utils.data import WeightedRandomSampler

    torch.set_num_threads(1)
    sampler = WeightedRandomSampler(torch.rand(N, dtype=torch.float64), K, replacement=False)
    return {
        "setup": 0.0,
        "draw": timing.cpu_seconds(lambda: list(sampler), rounds=5),
        "p": None,
    }


PEERS = {
    "dmsgd": dmsgd_peer,
    "dppy": dppy_peer,
    "tensorflow-probability": tfp_peer,
    "apricot-select": apricot_peer,
    "imbalanced-learn": imblearn_peer,
    "torch": torch_peer,
}


def measure(jaxdpp):
    """Return the results of what is installed here."""
    found = {}
    for name, peer in PEERS.items():
        try:
            number = version(name).partition("+")[0]
        except PackageNotFoundError:
            print(f"{name}: not installed")
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found[name] = {"version": number, **peer()}
        print(name, found[name])
    if jaxdpp:
        found["jaxdpp"] = {"version": "2ff1b28", **jaxdpp_peer(jaxdpp)}
        print("jaxdpp", found["jaxdpp"])
    return found


def cells(result):
    """Return set-up, draw and law, as the table shows them."""
    setup = timing.human(result["setup"]) if result["setup"] else "none"
    p = result["p"]
    law = "no k-DPP" if p is None else f"{'yes' if p > 1e-3 else '**no**'} (p = {p:.2g})"
    fewer = f" ({result['items']} items)" if "items" in result else ""
    return [setup, timing.human(result["draw"]) + fewer, law]


def heading(name, result):
    """Return a package and its version; the page is of dmsgd as it is beside it."""
    return name if name == "dmsgd" else f"{name} {result['version']}"


def table(results):
    """Return the measured rows, a column for each package."""
    order = [name for name in (*PEERS, "jaxdpp") if name in results]
    names = [heading(name, results[name]) for name in order]
    columns = [cells(results[name]) for name in order]
    rows = zip(*columns, strict=True)
    heads = ("set-up", "one batch of 20 out of 2,000", "distribution of the k-DPP")
    lines = ["| | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"]
    lines += [f"| {head} | {' | '.join(row)} |" for head, row in zip(heads, rows, strict=True)]
    return "\n".join(lines)


def filled(page, results):
    """Return the text of the page with the table of these results."""
    before, _, rest = page.partition("<!-- measured -->\n")
    _, end, after = rest.partition("<!-- end -->")
    if not end:
        sys.exit("docs/comparison.md has no place for the table")
    return f"{before}<!-- measured -->\n{table(results)}\n{end}{after}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jaxdpp", help="the file sampling.py of moskomule/jaxdpp")
    parser.add_argument("--page", action="store_true", help="write the page, measure nothing")
    parser.add_argument("--check", action="store_true", help="compare the page, write nothing")
    options = parser.parse_args()
    known = json.loads(RESULTS.read_text("utf-8")) if RESULTS.exists() else {}
    if not (options.page or options.check):
        known |= measure(options.jaxdpp)
        RESULTS.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        return
    page = filled(PAGE.read_text("utf-8"), known)
    if options.page:
        PAGE.write_text(page, encoding="utf-8")
    elif page != PAGE.read_text("utf-8"):
        sys.exit("docs/comparison.md is not what was measured; python benchmarks/peers.py --page")


if __name__ == "__main__":
    main()
