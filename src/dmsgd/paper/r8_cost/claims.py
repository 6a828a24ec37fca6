"""The paper's costs beside ours."""

from __future__ import annotations

import numpy as np

from dmsgd.inputs.arrays import FloatArray
from dmsgd.paper.intervals import holds, margin, show
from dmsgd.paper.protocol import CHEAP, Claim
from dmsgd.paper.r8_cost.result import CONVERGED, DEFAULT, EARLY, PAPER, PAPER_SIZES, Result

PAPER_SHARE = (0.114, 1.097, 3.191, 8.971)


def claims(result: Result) -> list[Claim]:
    """Return the paper's costs beside ours."""
    known = [k for k in result.config.sizes if k in PAPER_SIZES]
    found = [_share(result, k, local) for local in result.update for k in known]
    coreset = next(name for name in result.sampling if "core" in name)
    chain = next(name for name in result.sampling if "steps" in name)
    rows = {
        "exact k-DPP": ("k-DPP", DEFAULT),
        "the supplement's algorithm": ("k-DPP", "reference"),
        "fast k-DPP as coreset": ("fast k-DPP", coreset),
        "fast k-DPP as swap chain": ("fast k-DPP", chain),
    }
    for label, (paper, sampler) in rows.items():
        found.append(_times(result, known, label, PAPER[paper], result.sampling[sampler]))
    for name, seconds in result.update.items():
        label = f"LDA update, local inference {name}"
        found.append(_times(result, known, label, PAPER["LDA update"], seconds))
    sizes = [list(result.config.sizes).index(k) for k in known]
    exact, slow = (np.median(result.sampling[n], axis=0)[sizes] for n in (DEFAULT, "reference"))
    found.append(
        Claim(
            "beyond",
            f"the default sampler against the supplement's algorithm, k = {_listed(known)}",
            "",
            " ".join(f"{ratio:.0f}x" for ratio in slow / exact),
            None,
            f"set-up once: {result.spectrum:.0f} s of CPU",
        )
    )
    return found


def _share(result: Result, k: int, local: str) -> Claim:
    """Return whether a batch is cheap beside an update; the interval is over rounds."""
    share = result.share(DEFAULT, local)[:, result.config.sizes.index(k)]
    where = {CONVERGED: "scikit-learn's default", EARLY: "as in the experiment `r8`"}[local]
    return Claim(
        "Table 1",
        f"a batch costs less than {CHEAP:g} % of an LDA update, local inference {local}, k = {k}",
        f"{PAPER_SHARE[PAPER_SIZES.index(k)]:g}",
        show(share, 2, 1.0),
        holds(CHEAP - float(share.mean()), margin(share), share.size),
        f"local inference {local}: {where}; ours is exact and of the update alone, the paper's "
        f"approximate and of draw and update together; the bound is ours",
    )


def _times(
    result: Result, known: list[int], label: str, paper: tuple[float, ...], ours: FloatArray
) -> Claim:
    at = [list(result.config.sizes).index(k) for k in known]
    seconds = np.median(ours, axis=0)[at]
    theirs = [paper[PAPER_SIZES.index(k)] for k in known]
    return Claim(
        "Table 4",
        f"{label}, milliseconds for k = {_listed(known)}",
        " ".join(f"{1000 * t:g}" for t in theirs),
        " ".join(f"{float(f'{1000 * t:.3g}'):g}" for t in seconds),
        None,
        "other machines and years; compare the ratios",
    )


def _listed(sizes: list[int]) -> str:
    return ", ".join(map(str, sizes))
