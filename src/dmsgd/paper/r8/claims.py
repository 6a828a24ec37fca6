"""The paper's statements on R8 beside what the experiment found."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dmsgd.inputs.arrays import FloatArray
from dmsgd.paper.halves import SAME_B, UNIFORM_B, Halves, halved
from dmsgd.paper.intervals import holds, margin, paired, show, shown
from dmsgd.paper.protocol import Claim
from dmsgd.paper.r8.result import COMPARED, Result


def claims(result: Result) -> list[Claim]:
    """Return the paper's numbers on R8 beside ours."""
    svi, ours = result.outcomes["SVI"], result.outcomes["DM-SVI"]
    note = "vocabulary, priors, rates and SVM are not in the paper; ours are cross-validated"
    return [
        Claim("Fig. 5", "average accuracy, SVI", "82.11", show(svi.average), None, note),
        Claim("Fig. 5", "average accuracy, DM-SVI", "87.24", show(ours.average), None, note),
        _gain(
            "average accuracy, DM-SVI minus SVI",
            "+5.13",
            ours.average - svi.average,
            "points, paired by seed; the paper has one run; settings that help SVI shrink it",
        ),
        Claim("Fig. 5", "total accuracy, SVI", "94.11", show(svi.total), None, note),
        Claim("Fig. 5", "total accuracy, DM-SVI", "94.70", show(ours.total), None, note),
        _gain("total accuracy, DM-SVI minus SVI", "+0.59", ours.total - svi.total),
        *_with_defaults(result),
        *_small_classes(result),
        Claim(
            "Fig. 4",
            "classes are more balanced in batches: share of the two largest, data and k-DPP",
            "more balanced",
            f"{100 * _largest(svi.expected):.1f} % and {100 * _largest(ours.expected):.1f} %",
            holds(_largest(svi.expected) - _largest(ours.expected)),
            "in closed form",
        ),
        _redundancy(svi.redundancy, ours.redundancy),
        *halved(halves(result)),
        *_others(result),
    ]


def halves(result: Result) -> list[Halves]:
    """Return who is seen and who meets, in accuracies and in how unlike topics are."""
    names = [name for name in ("SVI", SAME_B, "DM-SVI", UNIFORM_B) if name in result.outcomes]
    if SAME_B not in names:
        return []
    outcomes = [result.outcomes[name] for name in names]
    small = np.argsort(result.sizes)[:2]
    defaults = [100 * result.defaults[name] for name in names]
    default = "with scikit-learn's default inference, points"
    return [
        Halves("Fig. 5", "average accuracy, points", *(100 * o.average for o in outcomes)),
        Halves("Fig. 5", f"average accuracy {default}", *(both[:, 0] for both in defaults)),
        Halves("Fig. 5", "total accuracy, points", *(100 * o.total for o in outcomes), digits=2),
        Halves("Fig. 5", f"total accuracy {default}", *(both[:, 1] for both in defaults), digits=2),
        Halves(
            "Fig. 5",
            "accuracy of the two smallest classes, points",
            *(100 * o.accuracy[:, small].mean(axis=1) for o in outcomes),
        ),
        Halves(
            "Fig. 6",
            "topics less alike, mean cosine",
            *(-o.redundancy for o in outcomes),
            digits=3,
        ),
    ]


def _gain(
    statement: str, paper: str, gain: FloatArray, note: str = "points, paired by seed"
) -> Claim:
    """Return the claim that a gain, one value per seed, is above 0."""
    found = float(100 * gain.mean()), 100 * margin(gain)
    verdict = holds(*found, gain.size)
    return Claim("Fig. 5", statement, paper, shown(*found, 2, sign=True), verdict, note)


def _with_defaults(result: Result) -> list[Claim]:
    plain, ours = (result.defaults[method] for method in COMPARED)
    return [
        _gain(
            f"{kind} accuracy, DM-SVI minus SVI, with scikit-learn's default inference",
            paper,
            ours[:, column] - plain[:, column],
            f"points, paired by seed; SVI {show(plain[:, column])}, DM-SVI "
            f"{show(ours[:, column])}; priors, rates and local iterations are the defaults",
        )
        for column, (kind, paper) in enumerate((("average", "+5.13"), ("total", "+0.59")))
    ]


def _small_classes(result: Result) -> list[Claim]:
    """Return whether the two smallest classes gain, and whether more than the others."""
    gain = result.outcomes["DM-SVI"].accuracy - result.outcomes["SVI"].accuracy
    by_size = np.argsort(result.sizes)
    small, others = gain[:, by_size[:2]].mean(axis=1), gain[:, by_size[2:]].mean(axis=1)
    names = ", ".join(result.names[c] for c in by_size[:2])
    return [
        _gain(f"the smallest classes ({names}) gain", "significantly", small),
        _gain(f"the smallest classes ({names}) gain more than the others", "yes", small - others),
    ]


def _redundancy(svi: FloatArray, ours: FloatArray) -> Claim:
    less = paired(svi, ours)
    return Claim(
        "Fig. 6",
        "topics are less redundant: mean cosine, SVI minus DM-SVI",
        "more spread out",
        f"{shown(*less, 3, sign=True)} ({show(svi, 3, 1.0)} and {show(ours, 3, 1.0)})",
        holds(*less, ours.size),
        "paired by seed",
    )


def _others(result: Result) -> list[Claim]:
    """Return the accuracies of the other methods, and their distance from SVI and DM-SVI."""
    found, svi, ours = [], result.outcomes["SVI"], result.outcomes["DM-SVI"]
    for method, outcome in result.outcomes.items():
        if method in COMPARED:
            continue
        note = "uses the labels that the paper withholds" if "class" in method else ""
        text = f"{show(outcome.average)} and {show(outcome.total)}"
        statement = f"average and total accuracy, {method}"
        found.append(Claim("beyond", statement, "", text, None, note))
        for statement, lead in (
            (f"average accuracy, DM-SVI minus {method}", ours.average - outcome.average),
            (f"average accuracy, {method} minus SVI", outcome.average - svi.average),
        ):
            found.append(replace(_gain(statement, "", lead), where="beyond"))
        if method in result.defaults:
            default = [result.defaults[name][:, 0] for name in (method, "SVI")]
            statement = (
                f"average accuracy, {method} minus SVI, with scikit-learn's default inference"
            )
            found.append(replace(_gain(statement, "", default[0] - default[1]), where="beyond"))
    return found


def _largest(shares: FloatArray) -> float:
    """Return the share of the two largest classes."""
    return float(np.sort(shares)[-2:].sum())
