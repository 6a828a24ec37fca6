"""Write the table of docs/project/numerics.md: what rounding does to b, and the warnings about it.

    python docs/guarantees.py

30 items with 8 features whose singular values run from 1 to 1/condition; b against 70 digits.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import numpy as np

import dmsgd

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tests"))

import precise  # noqa: E402


def features(decades: int, rng: np.random.Generator) -> np.ndarray:
    """Return 30 items with 8 features of condition 10^decades."""
    left, right = (np.linalg.qr(rng.normal(size=(n, 8)))[0] for n in (30, 8))
    return (left * np.logspace(0, -decades, 8)) @ right.T


def cell(F: np.ndarray, k: int) -> str:
    """Return the error of b and the warning, for features F."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            b = dmsgd.diversify(F, k, kernel="linear", normalize=False).inclusion()
        except dmsgd.RankError:
            return "`RankError` | "
    error = np.abs(b - precise.inclusion(F, k)).max()
    said = str(caught[0].message).split(":")[0].split()[-1] if caught else ""
    return f"{error:.0e} | {said or 'none'}"


def table() -> str:
    """Return the table: a row for each condition, two columns for each batch size."""
    rng = np.random.default_rng(0)
    sizes = (4, 7, 8)
    head = "".join(f" error of b, k = {k} | warning |" for k in sizes)
    lines = [f"| condition |{head}", "|---" * (1 + 2 * len(sizes)) + "|"]
    for decades in range(16):
        F = features(decades, rng)
        lines.append(f"| 1e{decades} | {' | '.join(cell(F, k) for k in sizes)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    page = HERE / "project/numerics.md"
    before, _, rest = page.read_text().partition("<!-- table -->\n")
    after = rest.partition("<!-- end -->")[2]
    page.write_text(f"{before}<!-- table -->\n{table()}\n<!-- end -->{after}")
