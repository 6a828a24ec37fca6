"""The items of a report, packed for the page: where they lie on the map, what can be shown."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import linalg

from dmsgd.inputs.arrays import FloatArray, IntArray, as_floats, to_numpy
from dmsgd.inputs.messages import visible
from dmsgd.spectra import Spectrum

#: Points on the map; more are neither seen apart nor quick to draw.
MAP_POINTS = 20_000
#: Characters of a text that are shown.
SNIPPET = 120
#: Side of a thumbnail in pixels, at most, and bytes of all of them together.
THUMBNAIL = 32
THUMBNAIL_BYTES = 2_000_000


def packed(values: Any, dtype: str) -> str:
    """Return an array as little-endian bytes in base64: a third of its size as JSON numbers."""
    return base64.b64encode(np.asarray(values).astype(f"<{dtype}").tobytes()).decode()


def positions(spectrum: Spectrum) -> FloatArray:
    """Return the first two principal components of the kernel's features, scaled to 0..1.

    F = V Λ^(1/2) has the distances of the features, so its principal components are theirs; of FᵀF
    = Λ they need the mean μ alone, as Λ - n μ μᵀ. O(n r + r³).
    """
    V, roots = np.asarray(spectrum.vectors), np.sqrt(spectrum.values)
    mean, count = roots * V.mean(axis=0), min(2, spectrum.rank)
    scatter = np.diag(spectrum.values) - spectrum.n * np.outer(mean, mean)
    last = [spectrum.rank - count, spectrum.rank - 1]
    _, directions = linalg.eigh(scatter, subset_by_index=last, check_finite=False)
    plane = np.zeros((spectrum.n, 2))
    plane[:, :count] = V @ (roots[:, None] * directions[:, ::-1])
    low, high = plane.min(axis=0), plane.max(axis=0)
    return np.asarray((plane - low) / np.where(high > low, high - low, 1.0))


def map_rows(n: int, important: IntArray, rng: np.random.Generator) -> IntArray:
    """Return the items on the map, sorted: all, or the important ones and a random rest."""
    if n <= MAP_POINTS:
        return np.arange(n)
    others = np.setdiff1d(np.arange(n), important)
    rest = rng.choice(others, max(MAP_POINTS - important.size, 0), replace=False)
    return np.sort(np.concatenate([important, rest]))


def snippets(texts: Any, n: int) -> list[str] | None:
    """Return the beginning of each text, None without texts."""
    if texts is None:
        return None
    values = to_numpy(texts, "texts")
    if values.shape != (n,):
        raise ValueError(f"texts must be one per item ({n}), got shape {values.shape}")
    return [_snippet(str(text)) for text in values.tolist()]


def _snippet(text: str) -> str:
    """Return the beginning of a text, on one line; of a very long one no more is looked at."""
    return visible(" ".join(text[: 10 * SNIPPET].split()), SNIPPET)


def checked_images(images: Any, n: int, rows: IntArray) -> npt.NDArray[np.uint8] | None:
    """Return images of these rows as bytes, (rows, h, w, 1 or 3), of 32 pixels a side or less."""
    if images is None:
        return None
    values = to_numpy(images, "images")
    grey = values.ndim == 3
    if values.ndim not in (3, 4) or values.shape[0] != n or (not grey and values.shape[3] != 3):
        raise ValueError(
            f"images must have shape ({n}, height, width) or ({n}, height, width, 3), got "
            f"{values.shape}"
        )
    if 0 in values.shape:
        raise ValueError(f"images have no pixels: their shape is {values.shape}")
    if values.dtype.kind not in "buif":
        raise TypeError(f"images must be numbers, 0 to 255 or any others, got {values.dtype}")
    step = -(-max(values.shape[1:3]) // THUMBNAIL)
    values = values[rows, ::step, ::step]
    if values.dtype != np.uint8:
        values = _as_bytes(as_floats(values, "images"))
    return values[..., None] if grey else values


def _as_bytes(values: FloatArray) -> npt.NDArray[np.uint8]:
    """Return pixels from 0 to 255: the smallest value is black, the largest white."""
    missing = int((~np.isfinite(values)).sum())
    if missing:
        raise ValueError(
            f"images have {missing:,} pixels that are NaN or infinite; fill them, with "
            f"np.nan_to_num(images) for one, or leave the images out"
        )
    low, high = values.min() / 256, values.max() / 256  # a difference of the largest is a number
    span = high - low if high > low else 1.0
    return np.asarray(255 * ((values / 256 - low) / span)).astype(np.uint8)


def thumbnails(images: npt.NDArray[np.uint8], first: IntArray, rest: IntArray) -> dict[str, Any]:
    """Return the pixels of the items `first` and of as many others as there is room for."""
    size = int(np.prod(images.shape[1:]))
    others = np.setdiff1d(rest, first)
    room = max(THUMBNAIL_BYTES // size - first.size, 0)
    kept = others[:: max(1, -(-others.size // max(room, 1)))] if room else others[:0]
    rows = np.concatenate([first, kept])
    height, width, channels = images.shape[1:]
    return {
        "height": height,
        "width": width,
        "channels": channels,
        "of": rows.tolist(),
        "pixels": packed(images[rows], "u1"),
    }
