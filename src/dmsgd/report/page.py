"""What pages share: templates, text and pictures of items, places on a map.

Jinja2 escapes all text, which has been made `visible`; a Content-Security-Policy forbids requests.
"""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Mapping, Sequence
from typing import Any, final

import numpy as np
import numpy.typing as npt

from dmsgd import __version__
from dmsgd.features import Features
from dmsgd.features.products import product
from dmsgd.inputs.arrays import IntArray, as_floats, evenly_spaced, to_numpy
from dmsgd.inputs.messages import number, visible
from dmsgd.spectra.decompose import leading

#: Characters that are shown of a text, of the name of a class, and of a title.
SNIPPET, NAME, TITLE = 120, 80, 200
#: Limits of the picture of an item: its numbers, and the pixels along a side.
PICTURE, SIDE = 1024, 32
#: Pixels that are read at a time.
PIXELS = 2**20
#: Items that decide the axes and the scale of a map; its width and height.
AXES, SCALE, WIDTH, HEIGHT = 500, 2000, 960, 470


def render(template: str, title: str, content: dict[str, Any]) -> str:
    """Return the page that `templates/{template}` makes of `content`."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("dmsgd.report"), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    named = {"title": visible(title, TITLE), "version": __version__}
    return environment.get_template(template).render(**named, **content)


@final
class Items:
    """What pages show of items; about: by name, "id", "label", "quality" and "text" of all n items.

    Each may be missing or None, as may images.
    """

    def __init__(self, about: Mapping[str, Any], images: Any, n: int) -> None:
        self.about, self.images = about, None if images is None else SmallImages(images, n)

    def entry(self, item: int, value: str = "") -> dict[str, Any]:
        """Return one item of a list: a value, a picture, the beginning of what is known of it."""
        image = "" if self.images is None else png(self.images[item])
        found: dict[str, Any] = {"item": item, "value": value, "image": image}
        for name in ("id", "label", "quality", "text"):
            column = self.about.get(name)
            words = "" if column is None else str(column[item])[: 10 * SNIPPET]  # no more is read
            found[name] = visible(" ".join(words.split()), SNIPPET)
        if found["quality"]:
            found["quality"] = number(self.about["quality"][item], 3)
        return found


@final
class SmallImages:
    """One picture per item, small enough for a hundred of them: images[item], as bytes.

    Unless `images` are bytes, the smallest value of all is black and the largest white.

    shape: (n, height, width, 1 or 3).
    """

    def __init__(self, images: Any, n: int) -> None:
        values = to_numpy(images, "images")
        values = values[..., None] if values.ndim == 3 else values
        shape = values.shape
        if len(shape) != 4 or shape[0] != n or shape[3] not in (1, 3) or 0 in shape:
            size = f"({n}, height, width"
            got = np.shape(images)
            raise ValueError(f"images must have shape {size}) or {size}, 3), got {got}")
        if values.dtype.kind not in "buif":
            raise TypeError(f"images must be numbers, 0 to 255 or any others, got {values.dtype}")
        step = int(np.ceil(max(max(shape[1:3]) / SIDE, (np.prod(shape[1:]) / PICTURE) ** 0.5)))
        self._values = values[:, ::step, ::step]
        self.shape = self._values.shape
        if values.dtype != np.uint8:
            self._find_range()

    def _find_range(self) -> None:
        """Find the smallest and the largest value, some images at a time."""
        missing, low, high = 0, np.inf, -np.inf
        step = max(1, PIXELS // int(np.prod(self.shape[1:])))
        for first in range(0, self.shape[0], step):
            some = as_floats(self._values[first : first + step], "images")
            missing += int((~np.isfinite(some)).sum())
            low, high = min(low, float(some.min())), max(high, float(some.max()))
        if missing:
            raise ValueError(f"images have {missing:,} pixels that are NaN or infinite; fill them")
        self._low, high = low / 256, high / 256  # differences of the largest overflow
        self._span = high - self._low if high > self._low else 1.0

    def __getitem__(self, item: int) -> npt.NDArray[np.uint8]:
        pixels = self._values[item]
        if pixels.dtype != np.uint8:
            shares = (as_floats(pixels, "images") / 256 - self._low) / self._span
            pixels = (255 * shares).astype(np.uint8)
        return np.asarray(pixels)


def png(pixels: npt.NDArray[np.uint8]) -> str:
    """Return a picture, shape (height, width, 1 or 3), as the address of a PNG in the page."""
    height, width, channels = pixels.shape

    def chunk(kind: bytes, data: bytes) -> bytes:
        check = struct.pack(">I", zlib.crc32(kind + data))
        return struct.pack(">I", len(data)) + kind + data + check

    head = struct.pack(">IIBBBBB", width, height, 8, 0 if channels == 1 else 2, 0, 0, 0)
    rows = zlib.compress(b"".join(b"\0" + row.tobytes() for row in pixels), 9)
    parts = chunk(b"IHDR", head), chunk(b"IDAT", rows), chunk(b"IEND", b"")
    data = base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"".join(parts)).decode()
    return f"data:image/png;base64,{data}"


def map_dots(F: Features, groups: Sequence[tuple[str, IntArray, str]]) -> list[dict[str, Any]]:
    """Return the dots of items on a map; groups: a name, the items, and what is said of each."""
    places = iter(map_places(F, np.concatenate([items for _, items, _ in groups])))
    return [
        {"name": name, "places": [(*next(places), f"item {item}{words}") for item in items]}
        for name, items, words in groups
    ]


def map_places(F: Features, items: IntArray) -> list[tuple[int, int]]:
    """Return places of items on the first two principal components of the features.

    Axes, their signs and the scale follow from evenly spaced items of F alone, so that a map of the
    same pool looks the same whatever was chosen from it. Items beyond are drawn at the edge.
    """
    rows = F.take(evenly_spaced(F.n, AXES))
    products = product(rows, rows.T)
    products = products - products.mean(axis=0)
    products = products - products.mean(axis=1)[:, None]
    plane = product(rows.T, leading(products, min(2, len(products))))
    plane = plane * np.sign(plane[np.abs(plane).argmax(axis=0), np.arange(plane.shape[1])])
    plane = np.pad(plane, ((0, 0), (0, 2 - plane.shape[1])))
    some, found = (product(F.take(each), plane) for each in (evenly_spaced(F.n, SCALE), items))
    span = 1.04 * np.ptp(some, axis=0)  # a margin for items beyond those
    low = some.min(axis=0) - 0.02 * span
    share = np.clip((found - low) / np.where(span > 0, span, 1.0), 0.0, 1.0)
    x, y = (15 + share * [WIDTH - 30, HEIGHT - 30]).round().astype(int).T
    return list(zip(x.tolist(), y.tolist(), strict=True))
