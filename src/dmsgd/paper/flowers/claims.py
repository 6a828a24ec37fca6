"""What the paper says about Oxford-102 beside what the flowers experiment found."""

from __future__ import annotations

import numpy as np

from dmsgd.inputs.arrays import FloatArray
from dmsgd.paper.flowers.beyond import balanced_classes, baselines, times
from dmsgd.paper.flowers.result import Result, imbalance, is_kernel, kernel_methods
from dmsgd.paper.halves import SAME_B, UNIFORM_B, Halves, halved
from dmsgd.paper.intervals import NORMAL, holds, paired, show, shown
from dmsgd.paper.protocol import Claim

#: The paper's Figure 8 by batch size: best DM-SGD, random, the three best w.
PAPER = {
    50: ("86.7", "84.7", "0.9, 0.7, 1"),
    80: ("86.7", "81.8", "0.9, 0.7, 1"),
    102: ("86.5", "84.5", "1, 0.9, 0.7"),
    150: ("85.5", "83.1", "0.7, 0.5, 0.9"),
}

#: Epochs at which the halves are told apart, besides the last.
EARLY = (0.3, 1.0)

#: Inclusion probabilities that differ by less are equal but for rounding.
EQUAL = 1e-8


def claims(result: Result) -> list[Claim]:
    """Return all claims, those of the paper first."""
    found = _balance(result)
    for k in result.config.ks:
        found += _accuracy(result, k)
    found += _small_batches(result)
    found += [
        Claim(
            "Fig. 11",
            "w = 1 and k = number of classes is stratified sampling",
            "equal",
            f"inclusion probabilities differ by {result.strata_gap:.0e} at most",
            holds(EQUAL - result.strata_gap),
            f"equal is a difference below {EQUAL:.0e}",
        )
    ]
    for pair, reason in result.refused.items():
        note = "the method 'stratified' stands in: k items spread over the classes evenly"
        found.append(Claim("Fig. 8", f"there is a k-DPP for {pair}", "", reason, False, note))
    return [
        *found,
        *halved(halves(result)),
        *baselines(result),
        *times(result),
        *_noise(result),
        *balanced_classes(result),
    ]


def halves(result: Result) -> list[Halves]:
    """Return who is seen and who meets, early, after an epoch and at the end."""
    found = []
    for k, w in result.config.halves:
        names = ("random", f"w={w:g} {SAME_B}", f"w={w:g}", f"w={w:g} {UNIFORM_B}")
        for epoch in (*EARLY, None):
            scores = (100 * result.accuracy(k, name, epoch) for name in names)
            when = "at the end" if epoch is None else f"after {_steps(result, k, epoch)} steps"
            found.append(Halves("Fig. 8", f"accuracy {when}, k = {k}, w = {w:g}, points", *scores))
    return found


def _steps(result: Result, k: int, epoch: float) -> int:
    """Return the step of the checkpoint nearest to an epoch."""
    at = result.config.at()
    return round(float(at[np.argmin(np.abs(at - epoch))] * result.sizes.sum() / k))


def _balance(result: Result) -> list[Claim]:
    found = []
    for k in sorted({int(name.split()[0][2:]) for name in result.shares}):
        at_k = {
            name.split()[1]: s for name, s in result.shares.items() if name.startswith(f"k={k} ")
        }
        distances = [imbalance(result.sizes.astype(float)), *map(imbalance, at_k.values())]
        text = ", ".join(
            f"{name} {distance:.3f}"
            for name, distance in zip(["data", *at_k], distances, strict=True)
        )
        found.append(
            Claim(
                "Fig. 7" if k == 50 else "Fig. 11",
                f"larger w balances the classes more, k = {k}",
                "yes",
                text,
                holds(-float(np.diff(distances).max())),
                "share of a batch in the wrong class (total variation), 0 is balanced",
            )
        )
    return found


def _accuracy(result: Result, k: int) -> list[Claim]:
    """Return the lead of the k-DPP over random batches at the end, and after one epoch."""
    best, baseline, top = PAPER.get(k, ("", "", ""))
    ranked = sorted(kernel_methods(result, k), key=lambda name: -result.accuracy(k, name).mean())
    note = (
        f"best on the test set: {ranked[0]} with {show(result.accuracy(k, ranked[0]))}; best three "
        f"w: {', '.join(name[2:] for name in ranked[:3])} (paper {top})"
    )
    usual = _usual(result, k)
    return [
        _lead(result, k, f"final accuracy at k = {k}: {usual} against random",
              f"{best} (best w) / {baseline}", None, note),
        _lead(result, k, f"faster learning at k = {k}: {usual} against random after one epoch",
              "faster", 1),
    ]  # fmt: skip


def _usual(result: Result, k: int) -> str:
    """Return the k-DPP that claims are about, chosen without a look at the results."""
    names = kernel_methods(result, k)
    return "w=0.9" if "w=0.9" in names else names[-1]


def _lead(
    result: Result, k: int, statement: str, paper: str, epoch: float | None, note: str = ""
) -> Claim:
    ours, random = (result.accuracy(k, name, epoch) for name in (_usual(result, k), "random"))
    lead = paired(100 * ours, 100 * random)
    text = f"{shown(*lead, sign=True)} ({show(ours)} against {show(random)})"
    return Claim("Fig. 8", statement, paper, text, holds(*lead, ours.size), note)


def _small_batches(result: Result) -> list[Claim]:
    """Return whether the smallest batches gain more than the largest."""
    ks = sorted(result.config.ks)
    if len(ks) < 2:
        return []
    gains = [
        100 * (result.accuracy(k, _usual(result, k)) - result.accuracy(k, "random")) for k in ks
    ]
    more = paired(gains[0], gains[-1])
    each = ", ".join(f"k = {k}: {gain.mean():+.1f}" for k, gain in zip(ks, gains, strict=True))
    return [
        Claim(
            "Fig. 8",
            f"the gain in final accuracy is larger for small batches: k = {ks[0]} minus {ks[-1]}",
            "+2.0, +4.9, +2.0, +2.4" if ks == sorted(PAPER) else "",
            f"{shown(*more, sign=True)} ({each})",
            holds(*more, result.config.seeds),
        )
    ]


def _noise(result: Result) -> list[Claim]:
    """Return the variance of gradients against both baselines, at each point of training."""
    found = []
    epochs = ", ".join(f"{epoch:g}" for epoch in result.config.noise_epochs)
    worst = max((float((each.error / each.variance).max()) for each in result.noise), default=0)
    note = (
        f"at epochs {epochs} of training with random batches, to be below 1 at all of them; "
        f"intervals of ± {100 * NORMAL * worst:.0f} % of the ratio at most"
    )
    for noise in result.noise:
        ratio, margins = (
            values / noise.independent for values in (noise.variance, NORMAL * noise.error)
        )
        draws = result.config.noise_draws
        reduced = all(holds(1 - r, half, draws) for r, half in zip(ratio, margins, strict=True))
        stated = is_kernel(noise.method)
        found.append(
            Claim(
                "Theorem 1" if stated else "beyond",
                f"gradient variance of {noise.method}, k = {noise.k}, over that of independent "
                f"inclusion with the same b_i{' is below 1' if stated else ''}; and over that of "
                f"random batches",
                "variance reduced" if stated else "",
                f"{_list(ratio)}; {_list(noise.variance / noise.uniform)}",
                reduced if stated else None,
                note,
            )
        )
    return found


def _list(ratios: FloatArray) -> str:
    return ", ".join(f"{ratio:.2f}" for ratio in ratios)
