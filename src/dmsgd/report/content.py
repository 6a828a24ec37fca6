"""What the page's script reads: the figures of a `Comparison`, and the items that it names."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any, final

import numpy as np

from dmsgd.diagnostics.compare import Comparison, DesignSummary
from dmsgd.diagnostics.duplicates import NearDuplicates
from dmsgd.inputs.arrays import FloatArray, IntArray
from dmsgd.inputs.messages import visible
from dmsgd.inputs.scalars import Seed, seed_key
from dmsgd.report.items import NAME, packed, small_images, snippet, thumbnails
from dmsgd.report.maps import map_rows, positions

#: Classes whose shares are listed; of more, the commonest and the rarest.
CLASSES = 200
#: Items in a list of the page, and of a group of near-duplicates.
LISTED, MEMBERS = 12, 8
#: Bytes of the page encode inclusion ratios from 2^-EXTENT to 2^EXTENT.
EXTENT = 20.0
#: Characters of the reason why a target is not shown.
REASON = 200


def inclusion_ratio(summary: DesignSummary) -> FloatArray:
    """Return how often items are drawn, over uniform batches."""
    return np.asarray(summary.inclusion * summary.inclusion.size / summary.k)


@final
class PageContent:
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
            "stratified": [self._figures(self._only("stratified", k)) for k in ks if self.names],
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
        ratio = inclusion_ratio(summary)
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
