"""What the page's script reads: the figures of a `Comparison`, and the items that it names."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any, final

import numpy as np

from dmsgd.diagnostics.comparison import Comparison, DesignSummary
from dmsgd.diagnostics.data import commonest_and_rarest
from dmsgd.diagnostics.similarity import kernel_features, typical_cosines
from dmsgd.inputs.arrays import FloatArray
from dmsgd.inputs.messages import visible
from dmsgd.inputs.scalars import Seed, seed_key
from dmsgd.report.items import (
    NAME,
    inclusion_ratio,
    map_rows,
    packed,
    positions,
    small_images,
    snippet,
    thumbnails,
)
from dmsgd.selection.duplicates import NearDuplicates

#: Classes whose shares are listed; of more, the commonest and the rarest.
CLASSES = 200
#: Items in a list of the page, and of a group of near-duplicates.
LISTED, MEMBERS = 12, 8
#: Bytes of the page encode inclusion ratios from 2^-EXTENT to 2^EXTENT.
EXTENT = 20.0
#: Characters of the reason why a target is not shown.
REASON = 200


@final
class PageContent:
    """Turns a comparison into what the page's script reads."""

    def __init__(
        self, found: Comparison, duplicates: NearDuplicates, texts: Any, images: Any, seed: Seed
    ) -> None:
        self.found, self.duplicates, self.texts, self.images = found, duplicates, texts, images
        self.rng = np.random.default_rng(seed_key(seed))
        self.codes, self.names, self.sizes = None, [], np.array([], dtype=np.int64)
        if found.codes is not None:  # the commonest class is number 0
            sizes = np.bincount(found.codes)
            order = np.argsort(-sizes, kind="stable")
            self.codes, self.sizes = np.argsort(order)[found.codes], sizes[order]
            self.names = [found.names[c] for c in order]
            if order.size > 2**16:
                raise ValueError(f"{order.size:,} classes are too many for a report")
        self.listed = commonest_and_rarest(self.sizes, CLASSES)

    def as_dict(self) -> dict[str, Any]:
        """Return all but what `build` adds."""
        found, n = self.found, self.found.rows.size
        baselines = {(each.options.batches, each.k): each for each in found.summaries}
        ws, ks, choices = self._choices()
        F = kernel_features(found.spectrum, np.arange(n))
        curation = self._curation(typical_cosines(F))
        plain = [baselines["uniform", k] for k in ks]
        uniform = [self._figures(each) | self._curve(each) for each in plain]
        named = {row for row, _ in curation["outliers"]}
        named |= {row for group in curation["listed"] for row in group["rows"]}
        for each in chain(*choices):
            named |= {row for row, _ in (*each["most"], *each["least"])}
            named |= set(chain(*each["batches"]))
        shown = map_rows(n, np.array(sorted(named), dtype=np.int64), self.rng)
        plane = 65535 * positions(F)[shown]
        named |= {row for each in uniform for row in chain(*each["batches"])}
        listed = np.array(sorted(named), dtype=np.int64)
        texts = images = None
        if self.texts is not None:
            places = np.union1d(shown, listed)
            several = [snippet(text) for text in self.texts[found.rows[places]].tolist()]
            texts = {"of": packed(places, "u4"), "text": several}
        if self.images is not None:
            images = thumbnails(small_images(self.images, found.rows), listed, shown)
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
            "classes": [
                {"name": visible(name, NAME), "items": size}
                for name, size in zip(self.names, self.sizes.tolist(), strict=True)
            ],
            "all_classes": len(found.data.classes),
            "listed": self.listed.tolist(),
            "choices": choices,
            "uniform": uniform,
            "stratified": [
                self._figures(baselines["stratified", k]) for k in ks if self.codes is not None
            ],
            "targets": list(self._targets()),
            "curation": curation,
            "points": {
                "row": packed(shown, "u4"),
                "x": packed(plane[:, 0], "u2"),
                "y": packed(plane[:, 1], "u2"),
            },
            "ids": None if n == found.data.n else packed(found.rows, "u4"),
            "codes": None if self.codes is None else packed(self.codes, "u2"),
            "texts": texts,
            "images": images,
            "variance": None,
        }

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
        ratio = inclusion_ratio(summary)
        order = np.argsort(summary.inclusion, kind="stable")
        listed = min(LISTED, ratio.size // 2)
        most, least = order[::-1][:listed].tolist(), order[:listed].tolist()
        logs = np.log2(np.clip(ratio, 2**-EXTENT, 2**EXTENT))
        low, high = float(logs.min()), float(logs.max())
        steps = np.rint(254 * (logs - low) / (high - low)) if high > low else np.zeros(logs.size)
        return {
            **self._figures(summary),
            **self._curve(summary),
            "ratio": packed(np.where(ratio > 0, 1 + steps, 0), "u1"),
            "range": [low, high],
            "quantiles": np.quantile(ratio, np.linspace(0, 1, 51)).round(4).tolist(),
            "most": [[i, float(ratio[i])] for i in most],
            "least": [[i, float(ratio[i])] for i in least],
        }

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

    def _curve(self, summary: DesignSummary) -> dict[str, Any]:
        """Return the expected share of the items seen, over five epochs."""
        b = summary.inclusion
        steps = np.unique(np.linspace(0, 5 * b.size / summary.k, 41).round().astype(int)).tolist()
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

    def _curation(self, similarity: FloatArray) -> dict[str, Any]:
        """Return groups of near-duplicates and the items least like others.

        The largest groups, those with several classes before others: one label may be wrong.
        """
        first = self.duplicates.representative
        codes = np.zeros(first.size, dtype=np.int64) if self.codes is None else self.codes
        others = np.flatnonzero(first != np.arange(first.size))
        leaders, sizes = np.unique(first[others], return_counts=True)
        mixed = np.isin(leaders, first[codes != codes[first]])
        groups = []
        for leader in leaders[np.lexsort([-sizes, ~mixed])[:LISTED]]:
            rows = np.flatnonzero(first == leader)
            classes = int(np.unique(codes[rows]).size)
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
