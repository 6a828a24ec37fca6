"""`build`: the page that shows a `Comparison`, with the items that it is about.

Every (w, k) of the page's sliders is computed beforehand, and goes into the page as JSON.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, final

import numpy as np

from dmsgd.designs import KDPP, DesignOptions, unbiased_weights
from dmsgd.designs.build import make_kdpp
from dmsgd.designs.options import TargetName, as_design_options
from dmsgd.designs.stream import fixed_seed
from dmsgd.diagnostics import compare, gradient_variance, near_duplicates, recommend
from dmsgd.diagnostics.compare import Comparison, DesignSummary, quiet_kernel_warnings
from dmsgd.diagnostics.data import take_rows
from dmsgd.diagnostics.duplicates import NearDuplicates
from dmsgd.diagnostics.gradients import GradientVariance
from dmsgd.features import Features, as_features
from dmsgd.features.convert import split_label_column
from dmsgd.inputs.arrays import FloatArray, IntArray, as_array
from dmsgd.inputs.labels import as_labels
from dmsgd.inputs.messages import cell, visible
from dmsgd.inputs.scalars import OF_A_FRACTION, Seed, as_batch_size, as_function, seed_key
from dmsgd.report.items import (
    NAME,
    checked_images,
    checked_texts,
    packed,
    small_images,
    snippet,
    thumbnails,
)
from dmsgd.report.maps import map_rows, positions
from dmsgd.report.page import render

#: Batch sizes on the slider, as multiples of the requested one.
SIZES = (0.25, 0.5, 1.0, 2.0)
TARGETS: tuple[TargetName | None, ...] = ("uniform", "balanced", "density", None)
#: Classes whose shares are listed; of more, the commonest and the rarest.
CLASSES = 200
#: Items in a list of the page, and of a group of near-duplicates.
LISTED, MEMBERS = 12, 8
#: Bytes of the page encode inclusion ratios from 2^-EXTENT to 2^EXTENT.
EXTENT = 20.0
#: Operations that an exact variance may take; beyond, it is estimated from so many draws.
OPERATIONS, DRAWS = 1e11, 2000
#: Characters of the reason why a target is not shown.
REASON = 200


@final
@dataclass(frozen=True, eq=False)
class Report:
    """What `build` returns: the figures, as a page and as a table of the items."""

    comparison: Comparison
    content: dict[str, Any] = field(repr=False)
    duplicates: NearDuplicates = field(repr=False)

    def html(self, title: str = "Diverse batches") -> str:
        """Return the page: one file that loads nothing.

        >>> page = build(np.random.default_rng(0).normal(size=(60, 12)), k=4).html("My data")
        >>> "<title>My data</title>" in page
        True
        """
        return render("report.html", title, self.content)

    def csv(self) -> str:
        """Return a table of the items that were compared.

        item, class (with labels), times_uniform: how often it is drawn, over uniform batches;
        near_duplicate_of: the first item of its group, if that is another.
        """
        found, first = self.comparison, self.duplicates.representative
        assert found.requested is not None
        file = io.StringIO()
        writer = csv.writer(file, lineterminator="\n")
        named = found.codes is not None
        writer.writerow(["item", *["class"] * named, "times_uniform", "near_duplicate_of"])
        names = [cell(name) for name in found.names]
        for i, (row, times) in enumerate(zip(found.rows, _ratio(found.requested), strict=True)):
            name = [] if found.codes is None else [names[found.codes[i]]]
            of = "" if first[i] == i else int(found.rows[first[i]])
            writer.writerow([int(row), *name, f"{times:.6g}", of])
        return file.getvalue()


def build(
    X: Any,
    k: int,
    labels: Any = None,
    options: DesignOptions | None = None,
    *,
    texts: Any = None,
    images: Any = None,
    gradients: Any = None,
    seed: Seed = 0,
    progress: Callable[[float], None] = lambda fraction: None,
) -> Report:
    """Return the report on features X and batches of k.

    X, labels: (n, d) features and (n,) classes, as `diversify` takes them.
    options:   of the k-DPP that the page begins with, by default those of `diversify`. Sliders show
               other w and k; with a target, none.
    texts, images, gradients: (n,), (n, height, width[, 3]) and (n, p), each optional.

    The figures are those of `compare`, and take as long.

    >>> report = build(np.random.default_rng(0).normal(size=(60, 12)), k=4)
    >>> report.content["ks"], report.content["kernel"]
    ([2, 4, 8], 'linear kernel, rows as they are')
    """
    X, labels = split_label_column(X, labels)
    X = as_features(X)
    n = X.n
    k = as_batch_size(k, n)
    if k < 2 or n < 4:
        raise ValueError(f"a report needs batches of 2 or more and 4 items, got k={k} of {n}")
    options = as_design_options(options)
    as_function(progress, "progress", OF_A_FRACTION)
    if options.w > 0 and labels is None:
        raise ValueError(f"w={options.w:g} mixes in labels, but there are none; pass labels")
    seed, y = fixed_seed(seed), None if labels is None else as_labels(labels, n)
    texts = None if texts is None else checked_texts(texts, n)
    images = None if images is None else checked_images(images, n)
    g = None if gradients is None else _as_gradients(gradients, n)
    ks = sorted({min(max(round(each * k), 2), max(n // 2, k)) for each in SIZES} | {k})
    found = compare(
        X,
        k,
        y,
        options,
        ks=() if options.target else tuple(ks),
        targets=tuple(each for each in TARGETS if each != options.target),
        seed=seed,
        progress=lambda fraction: progress(0.9 * fraction),
    )
    if found.requested is None:
        raise found.unavailable[options]
    duplicates = near_duplicates(found.spectrum, seed)
    content = _Content(found, duplicates, texts, images, seed).as_dict()
    variance = None
    if g is not None:
        assert found.design is not None
        sampled = as_array(take_rows(g, found.rows).matrix)
        content["variance"] = _variance_section(found.design, sampled, seed)
        variance = _of_candidate(found, X, sampled, seed)
    content["advice"] = _advice(found, variance)
    progress(1.0)
    return Report(found, content, duplicates)


def _as_gradients(gradients: Any, n: int) -> Features:
    if len(getattr(gradients, "shape", (n, 1))) != 2:
        raise ValueError("gradients must have two dimensions, (items, parameters)")
    g = as_features(gradients)
    if g.n != n:
        raise ValueError(f"gradients has {g.n} items, the features {n}")
    return g


def _ratio(summary: DesignSummary) -> FloatArray:
    """Return how often items are drawn, over uniform batches."""
    return np.asarray(summary.inclusion * summary.inclusion.size / summary.k)


@final
class _Content:
    """Turns a comparison into what the page's script reads."""

    def __init__(
        self, found: Comparison, duplicates: NearDuplicates, texts: Any, images: Any, seed: Seed
    ) -> None:
        self.found, self.duplicates, self.texts, self.images = found, duplicates, texts, images
        self.rng = np.random.default_rng(seed_key(seed))
        self.codes, self.names = None, []
        if found.codes is not None:  # the commonest class is number 0
            order = np.argsort(-np.bincount(found.codes), kind="stable")
            self.codes, self.names = np.argsort(order)[found.codes], [found.names[c] for c in order]
            if order.size > 2**16:
                raise ValueError(f"{order.size:,} classes are too many for a report")
        numbers = np.arange(len(self.names))
        many = numbers.size > CLASSES
        half = CLASSES // 2
        self.listed = np.concatenate([numbers[:half], numbers[-half:]]) if many else numbers

    def as_dict(self) -> dict[str, Any]:
        """Return all but what `build` adds."""
        found, n = self.found, self.found.rows.size
        ws, ks, choices = self._choices()
        curation = self._curation()
        uniform = [
            self._figures(self._only("uniform", k)) | self._curve(np.full(n, k / n), k) for k in ks
        ]
        lists = [each[name] for each in chain(*choices) for name in ("most", "least")]
        named = {row for each in (*lists, curation["outliers"]) for row, _ in each}
        named |= {row for group in curation["listed"] for row in group["rows"]}
        named |= {row for each in chain(*choices) for row in chain(*each["batches"])}
        listed = np.array(sorted(named), dtype=np.int64)
        shown = map_rows(n, listed, self.rng)
        plane = 65535 * positions(found.spectrum)[shown]
        named |= {row for each in uniform for row in chain(*each["batches"])}
        listed = np.array(sorted(named), dtype=np.int64)
        return {
            "n": found.data.n,
            "d": found.data.d,
            "sampled": n,
            "k": found.k,
            "w": found.options.w,
            "target": found.options.target,
            "ks": ks,
            "ws": ws,
            "kernel": found.options.describe(),
            "rank": found.rank,
            "effective_rank": found.effective_rank,
            "classes": self._classes(),
            "all_classes": len(found.data.classes),
            "listed": self.listed.tolist(),
            "choices": choices,
            "uniform": uniform,
            "strata": [self._figures(self._only("stratified", k)) for k in ks if self.names],
            "targets": list(self._targets()),
            "curation": curation,
            "points": {
                "row": packed(shown, "u4"),
                "x": packed(plane[:, 0], "u2"),
                "y": packed(plane[:, 1], "u2"),
            },
            "ids": None if n == found.data.n else packed(found.rows, "u4"),
            "codes": None if self.codes is None else packed(self.codes, "u2"),
            "texts": self._snippets(np.union1d(shown, listed)),
            "images": self._thumbnails(listed, shown),
            "variance": None,
        }

    def _snippets(self, places: IntArray) -> dict[str, Any] | None:
        if self.texts is None:
            return None
        texts = [snippet(text) for text in self.texts[self.found.rows[places]].tolist()]
        return {"of": packed(places, "u4"), "text": texts}

    def _thumbnails(self, listed: IntArray, shown: IntArray) -> dict[str, Any] | None:
        if self.images is None:
            return None
        return thumbnails(small_images(self.images, self.found.rows), listed, shown)

    def _only(self, batches: str, k: int) -> DesignSummary:
        return next(
            each for each in self.found.summaries if each.options.batches == batches and each.k == k
        )

    def _choices(self) -> tuple[list[float], list[int], list[list[dict[str, Any]]]]:
        """Return the w and k of the sliders, and for each w and k what is shown."""
        target = self.found.options.target
        by = {
            (each.options.w, each.k): each
            for each in self.found.summaries
            if each.options.batches == "k-DPP" and each.options.target == target
        }
        ws = sorted({w for w, _ in by})
        ks = [k for k in sorted({k for _, k in by}) if all((w, k) in by for w in ws)]
        return ws, ks, [[self._choice(by[w, k]) for k in ks] for w in ws]

    def _choice(self, summary: DesignSummary) -> dict[str, Any]:
        """Return what one (w, k) of the sliders shows.

        The ratios of all items are bytes of their logarithm: 0 is an item that is never drawn, 1 to
        255 span the other ratios.
        """
        ratio = _ratio(summary)
        order = np.argsort(summary.inclusion, kind="stable")
        listed = min(LISTED, ratio.size // 2)
        most, least = order[::-1][:listed].tolist(), order[:listed].tolist()
        logs = np.log2(np.clip(ratio, 2**-EXTENT, 2**EXTENT))
        low, high = float(logs.min()), float(logs.max())
        steps = np.rint(254 * (logs - low) / (high - low)) if high > low else np.zeros(logs.size)
        return (
            self._figures(summary)
            | self._curve(summary.inclusion, summary.k)
            | {
                "ratio": packed(np.where(ratio > 0, 1 + steps, 0), "u1"),
                "range": [low, high],
                "quantiles": np.quantile(ratio, np.linspace(0, 1, 51)).round(4).tolist(),
                "most": [[i, float(ratio[i])] for i in most],
                "least": [[i, float(ratio[i])] for i in least],
            }
        )

    def _figures(self, summary: DesignSummary) -> dict[str, Any]:
        """Return what tables show of any design, and example batches."""
        return {
            "name": summary.name,
            "shares": [round(summary.shares[self.names[c]], 6) for c in self.listed],
            "evenness": round(summary.evenness, 4) if self.names else None,
            "items": summary.effective_items,
            "seen": summary.coverage,
            "effective": round(summary.effective_batch, 2),
            "repulsion": {"value": summary.repulsion.value, "error": summary.repulsion.error},
            "seconds": summary.seconds_per_batch,
            "batches": summary.examples.tolist(),
        }

    def _curve(self, b: FloatArray, k: int) -> dict[str, Any]:
        """Return the expected share of the items seen, over five epochs."""
        steps = np.unique(np.linspace(0, 5 * b.size / k, 41).round().astype(np.int64)).tolist()
        seen = [round(float(1 - np.mean((1 - b) ** t)), 4) for t in steps]
        return {"steps": steps, "coverage": seen}

    def _targets(self) -> Iterator[dict[str, Any]]:
        """Yield the rows of targets beside the requested one, or why they are not there."""
        found = self.found
        for each in found.summaries:
            if each.options.batches == "k-DPP" and each.options.target != found.options.target:
                yield self._figures(each) | {"of": each.inclusion.size}
        for options, error in found.unavailable.items():
            if options.target != found.options.target:
                name = f"target {options.target}" if options.target else "no target"
                reason = visible(" ".join(str(error).split()), REASON)
                yield {"name": name, "of": found.rows.size, "reason": reason}

    def _classes(self) -> list[dict[str, Any]]:
        """Return name and number of items of each class, the commonest first."""
        if self.codes is None:
            return []
        counts = np.bincount(self.codes, minlength=len(self.names)).tolist()
        return [
            {"name": visible(name, NAME), "items": count}
            for name, count in zip(self.names, counts, strict=True)
        ]

    def _curation(self) -> dict[str, Any]:
        """Return groups of near-duplicates and the items least like others.

        The largest groups, those with several classes before others: one label may be wrong.
        """
        first, similarity, codes = (
            self.duplicates.representative,
            self.duplicates.similarity,
            self.codes,
        )
        others = np.flatnonzero(first != np.arange(first.size))
        leaders, sizes = np.unique(first[others], return_counts=True)
        mixed = np.zeros(first.size, dtype=bool)
        if codes is not None:
            mixed[first[codes != codes[first]]] = True
        groups = []
        for leader in leaders[np.lexsort([-sizes, ~mixed[leaders]])[:LISTED]]:
            rows = np.flatnonzero(first == leader)
            classes = 0 if codes is None else int(np.unique(codes[rows]).size)
            shown = rows[:MEMBERS].tolist()
            groups.append({"size": int(rows.size), "rows": shown, "classes": classes})
        outliers = np.argsort(similarity, kind="stable")[: min(LISTED, similarity.size // 2)]
        return {
            "searched": self.duplicates.searched,
            "duplicates": int(others.size),
            "groups": int(leaders.size),
            "listed": groups,
            "outliers": [[int(i), round(float(similarity[i]), 4)] for i in outliers],
            "middle": round(float(np.median(similarity)), 4),
        }


def _advice(found: Comparison, variance: GradientVariance | None) -> dict[str, Any]:
    """Return the recommendation of `dmsgd inspect`, which gradients may change."""
    advice = recommend(found, variance)
    return {
        "name": advice.name,
        "reason": advice.reason,
        "code": advice.code(found.k),
        "warnings": found.warnings(),
    }


def _of_candidate(
    found: Comparison, X: Features, gradients: FloatArray, seed: Seed
) -> GradientVariance | None:
    """Return the variance of the gradients in batches of the k-DPP that `recommend` judges."""
    if found.candidate is None:
        return None
    options, design = found.candidate.options, found.design
    if options != found.options:
        with quiet_kernel_warnings():
            design = make_kdpp(options, take_rows(X, found.rows), found.k)
    assert design is not None
    return _variance(design, gradients, None, seed)


def _variance(
    design: KDPP, gradients: FloatArray, coefficients: FloatArray | None, seed: Seed
) -> GradientVariance:
    """Return the variance, exact where that is quick."""
    n, p = gradients.shape
    exact = n * design.spectrum.rank**2 * min(n, p) <= OPERATIONS
    draws = None if exact else DRAWS
    return gradient_variance(design, gradients, coefficients, draws=draws, seed=seed)


def _variance_section(design: KDPP, gradients: FloatArray, seed: Seed) -> dict[str, Any]:
    """Return the variances of biased and unbiased training with this design."""
    coefficients: dict[str, Any] = {"biased": None}
    if (design.inclusion() > 0).all():
        coefficients["unbiased"] = unbiased_weights(design)
    names = (
        "uniform", "reweighted", "frequency_matched", "variance", "error", "independent",
        "correlation", "frequency_factor", "repulsion_factor", "equivalent_batch_size",
    )  # fmt: skip
    rows = []
    for name, a in coefficients.items():
        found = _variance(design, gradients, a, seed)
        rows.append({"name": name} | {each: getattr(found, each) for each in names})
    parameters = int(gradients.shape[1])
    return {"rows": rows, "draws": DRAWS, "k": design.k, "parameters": parameters}
