"""Makes docs/images/page.png from the page of `inspect`: its beginning, light, and its end, dark.

python docs/page_picture.py    # with Chromium and its driver, as the tests of the page
"""

from __future__ import annotations

import base64
import io
import sys
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image
from sklearn.datasets import load_digits

import dmsgd

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tests"))
from browser import browser  # noqa: E402

WIDTH, HEIGHT = 800, 1380
#: Items of the commonest digit, and of each next one by this factor.
FIRST, FACTOR = 120, 0.7


def page() -> str:
    """Return the page about long-tailed digits, a few of which were copied, one mislabelled."""
    X, y = load_digits(return_X_y=True)
    kept = [np.flatnonzero(y == c)[: max(5, round(FIRST * FACTOR**c))] for c in range(10)]
    rows = np.concatenate([*kept, kept[0][:3], kept[1][:1], kept[1][:1]])
    labels = [f"digit {c}" for c in y[rows]]
    labels[-4] = "digit 6"
    found = dmsgd.diagnostics.inspect(X[rows], 20, labels)
    return found.html("Long-tailed digits", images=X[rows].reshape(-1, 8, 8))


def seen(path: Path, dark: bool, top: str) -> Image.Image:
    """Return what a window shows, with the element `top` at its upper edge."""
    with (
        tempfile.TemporaryDirectory() as profile,
        browser(profile, WIDTH, HEIGHT, dark) as driver,
    ):
        driver.execute_cdp_cmd("Emulation.setScrollbarsHidden", {"hidden": True})
        driver.get(f"file://{path}")
        driver.execute_script("document.querySelector(arguments[0]).scrollIntoView()", top)
        shot = driver.execute_cdp_cmd("Page.captureScreenshot", {"format": "png"})
    return Image.open(io.BytesIO(base64.b64decode(shot["data"]))).convert("RGB")


def main() -> None:
    """Write the picture."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "page.html"
        path.write_text(page(), encoding="utf-8")
        halves = [seen(path, False, "header"), seen(path, True, "#h-noise")]
    both = Image.new("RGB", (2 * WIDTH, HEIGHT))
    for i, half in enumerate(halves):
        both.paste(half, (i * WIDTH, 0))
    both.quantize(256).save(HERE / "images" / "page.png", optimize=True)


if __name__ == "__main__":
    main()
