"""HTML for notebooks: facts about a design or schedule, and a histogram of b."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

import numpy as np

from dmsgd.inputs.arrays import FloatArray

#: Bars of the histogram, and the powers of two they span on each side of 1.
BARS, OCTAVES = 33, 4.0
#: Characters shown of a fingerprint.
PREFIX = 12

#: Colours that are visible on light and dark notebooks.
BOX = (
    "display:inline-block;max-width:40rem;padding:.6rem .9rem;border-radius:.5rem;"
    "border:1px solid rgba(128,128,128,.4);background:rgba(128,128,128,.07);"
    "line-height:1.45;text-align:left"
)
GRID = "display:grid;grid-template-columns:max-content minmax(0,1fr);gap:.1rem 1rem;margin:.35rem 0"
SOFT, WRAPPED, ACCENT = "opacity:.7", "overflow-wrap:anywhere", "#3f8fd9"


def html_repr(title: str, facts: Mapping[str, str], inclusion: FloatArray | None = None) -> str:
    """Return HTML of a title and facts, all text escaped, as a grid: notebooks restyle tables.

    facts:     by name; the one named "design" stands below the others, as code.
    inclusion: b_i, shown as a range and a histogram relative to uniform batches.
    """
    shown = {name: escape(value) for name, value in facts.items() if name != "design"}
    if "data" in facts:
        data = escape(facts["data"])
        shown["data"] = f'<span title="{data}">{data[:PREFIX]}…</span>'
    picture = ""
    if inclusion is not None and inclusion.any():
        ratio = inclusion * (inclusion.size / inclusion.sum())
        shown["items are drawn"] = f"{ratio.min():.2g} to {ratio.max():.2g} times uniform"
        picture = f"<div>{_histogram(ratio, shown['items are drawn'])}</div>"
    cells = "".join(
        f'<span style="{SOFT}">{escape(name)}</span><span style="{WRAPPED}">{value}</span>'
        for name, value in shown.items()
    )
    code = escape(facts.get("design", ""))
    code = f'<code style="{SOFT};{WRAPPED};font-size:.85em">{code}</code>' if code else ""
    return (
        f'<div><div style="{BOX}"><strong>{escape(title)}</strong><div style="{GRID}">{cells}</div>'
        f"{picture}{code}</div></div>"
    )


def _histogram(ratio: FloatArray, label: str) -> str:
    logs = np.log2(np.clip(ratio, 2**-OCTAVES, 2**OCTAVES))
    counts, _ = np.histogram(logs, bins=BARS, range=(-OCTAVES, OCTAVES))
    heights = 40 * counts / counts.max()
    bars = "".join(
        f'<rect x="{6 * i}" y="{44 - height:.1f}" width="5" height="{height:.1f}"/>'
        for i, height in enumerate(heights)
        if height > 0
    )
    width = 6 * BARS
    marks = (
        f'<text x="0" y="58">1/16</text><text x="{width / 2}" y="58" text-anchor="middle">uniform'
        f'</text><text x="{width}" y="58" text-anchor="end">16 x</text>'
    )
    return (
        f'<svg role="img" aria-label="Histogram: items are drawn {label}" width="{width}" '
        f'height="62" fill="currentColor" font-size="10"><g fill="{ACCENT}">{bars}</g>'
        f'<rect x="0" y="45" width="{width}" height="1" opacity=".4"/>{marks}</svg>'
    )
