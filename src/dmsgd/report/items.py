"""What pages show of items: text, picture, place on the map, how often they are drawn."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
import numpy.typing as npt

from dmsgd.diagnostics.comparison import DesignSummary
from dmsgd.inputs.arrays import FloatArray, IntArray, as_floats, to_numpy
from dmsgd.inputs.messages import visible
from dmsgd.spectra.decompose import principal

#: Characters that are shown of a text and of the name of a class.
SNIPPET, NAME = 120, 80
#: Side of a thumbnail in pixels, at most, and bytes of all of them together.
THUMBNAIL, THUMBNAIL_BYTES = 32, 2_000_000
#: Points on a map; more are neither seen apart nor quick to draw.
MAP_POINTS = 20_000


def inclusion_ratio(summary: DesignSummary) -> FloatArray:
    """Return how often items are drawn, over uniform batches."""
    return np.asarray(summary.inclusion * summary.inclusion.size / summary.k)


def positions(A: FloatArray) -> FloatArray:
    """Return the rows of A on their first two principal components, scaled to 0..1."""
    A = A - A.mean(axis=0)
    return to_unit_square(A @ principal(A, min(2, *A.shape)))


def to_unit_square(places: FloatArray) -> FloatArray:
    """Return places in one or two columns as two, each scaled to 0..1."""
    plane = np.zeros((len(places), 2))
    plane[:, : places.shape[1]] = places
    low, high = plane.min(axis=0), plane.max(axis=0)
    return np.asarray((plane - low) / np.where(high > low, high - low, 1.0))


def map_rows(n: int, important: IntArray, rng: np.random.Generator) -> IntArray:
    """Return the items on the map, sorted: all, or the important ones and a random rest."""
    if n <= MAP_POINTS:
        return np.arange(n)
    others = np.setdiff1d(np.arange(n), important)
    rest = rng.choice(others, max(MAP_POINTS - important.size, 0), replace=False)
    return np.sort(np.concatenate([important, rest]))


def packed(values: Any, dtype: str) -> str:
    """Return an array as little-endian bytes in base64: a third of its size as JSON numbers."""
    return base64.b64encode(np.asarray(values).astype(f"<{dtype}").tobytes()).decode()


def snippet(text: object) -> str:
    """Return the beginning of a text, on one line; of a very long one no more is looked at."""
    return visible(" ".join(str(text)[: 10 * SNIPPET].split()), SNIPPET)


def checked_images(images: Any, n: int) -> npt.NDArray[Any]:
    """Return one picture per item, shape (n, height, width[, 3])."""
    values = to_numpy(images, "images")
    colour = values.ndim == 4 and values.shape[3] == 3
    if values.shape[:1] != (n,) or not (values.ndim == 3 or colour) or 0 in values.shape:
        raise ValueError(
            f"images must have shape ({n}, height, width) or ({n}, height, width, 3), got "
            f"{values.shape}"
        )
    if values.dtype.kind not in "buif":
        raise TypeError(f"images must be numbers, 0 to 255 or any others, got {values.dtype}")
    return values


def small_images(images: npt.NDArray[Any], rows: IntArray) -> npt.NDArray[np.uint8]:
    """Return images of these items as bytes, (rows, h, w, 1 or 3), of at most 32 pixels a side.

    Unless they are bytes already, the smallest value is black and the largest white.
    """
    step = -(-max(images.shape[1:3]) // THUMBNAIL)
    values = images[rows, ::step, ::step]
    if values.dtype != np.uint8:
        values = as_floats(values, "images")
        missing = int((~np.isfinite(values)).sum())
        if missing:
            raise ValueError(f"images have {missing:,} pixels that are NaN or infinite; fill them")
        low, high = values.min() / 256, values.max() / 256  # differences of the largest overflow
        span = high - low if high > low else 1.0
        values = (255 * ((values / 256 - low) / span)).astype(np.uint8)
    return values[..., None] if values.ndim == 3 else values


def thumbnails(images: npt.NDArray[np.uint8], first: IntArray, rest: IntArray) -> dict[str, Any]:
    """Return the pixels of the items `first` and of as many others as there is room for."""
    height, width, channels = images.shape[1:]
    others = np.setdiff1d(rest, first)
    room = max(THUMBNAIL_BYTES // (height * width * channels) - first.size, 0)
    kept = others[:: max(1, -(-others.size // max(room, 1)))] if room else others[:0]
    rows = np.concatenate([first, kept])
    return {
        "height": height,
        "width": width,
        "channels": channels,
        "of": packed(rows, "u4"),
        "pixels": packed(images[rows], "u1"),
    }
