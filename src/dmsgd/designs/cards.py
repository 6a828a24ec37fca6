"""What notebooks show of designs and schedules: a small table and how evenly items are drawn."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

import numpy as np

from dmsgd.inputs.arrays import FloatArray

#: Bars of the histogram, and the powers of two they span on each side of 1.
BARS, OCTAVES = 33, 4.0


def card(title: str, rows: Mapping[str, str], inclusion: FloatArray | None = None) -> str:
    """Return HTML of a title and a table; all text is escaped, colours are the notebook's.

    inclusion: b_i, shown as a histogram of how often items are drawn against uniform batches.
    """
    cells = "".join(
        f'<tr><th style="text-align:left;font-weight:normal;opacity:.7">{escape(name)}</th>'
        f'<td style="text-align:left">{escape(value)}</td></tr>'
        for name, value in rows.items()
    )
    picture = "" if inclusion is None else _histogram(inclusion)
    return f"<div><strong>{escape(title)}</strong><table>{cells}</table>{picture}</div>"


def how_often(inclusion: FloatArray) -> str:
    """Return in words how far inclusion probabilities are from equal."""
    ratio = inclusion * (inclusion.size / inclusion.sum())
    return f"{ratio.min():.2g} to {ratio.max():.2g} times uniform"


def _histogram(inclusion: FloatArray) -> str:
    ratio = inclusion * (inclusion.size / inclusion.sum())
    logs = np.log2(np.clip(ratio, 2**-OCTAVES, 2**OCTAVES))
    counts, _ = np.histogram(logs, bins=BARS, range=(-OCTAVES, OCTAVES))
    heights = 40 * counts / counts.max()
    bars = "".join(
        f'<rect x="{6 * i}" y="{44 - height:.1f}" width="5" height="{height:.1f}"/>'
        for i, height in enumerate(heights)
        if height > 0
    )
    width, middle = 6 * BARS, 3 * BARS
    label = f"Histogram: items are drawn {how_often(inclusion)}"
    marks = "".join(
        f'<text x="{x}" y="58" text-anchor="{anchor}">{text}</text>'
        for x, anchor, text in (
            (0, "start", "1/16"), (middle, "middle", "uniform"), (width, "end", "16 x")
        )
    )  # fmt: skip
    return (
        f'<svg role="img" aria-label="{escape(label)}" width="{width}" height="62" '
        f'fill="currentColor" font-size="10">{bars}'
        f'<rect x="0" y="45" width="{width}" height="1" opacity=".4"/>{marks}</svg>'
    )
