"""Scripts and notebooks of the tutorials, made from their pages.

A tutorial is written once, as docs/tutorials/NAME.md. Its text and its blocks of Python become
NAME.py and NAME.ipynb beside the page of the site; tests/test_pages.py runs the blocks.
"""

from __future__ import annotations

import json
import re

BLOCK = re.compile(r"^```python\n(.*?)^```$", re.S | re.M)


def cells(markdown: str) -> list[tuple[str, str]]:
    """Return ("markdown" or "code", text) in the order of the page."""
    pieces = BLOCK.split(markdown)
    kinds = ("markdown", "code")
    found = [(kinds[at % 2], piece.strip("\n")) for at, piece in enumerate(pieces)]
    return [(kind, text) for kind, text in found if text]


def script(markdown: str) -> str:
    """Return the page as a Python script in which text is comments, in cells that editors know."""
    parts = []
    for kind, text in cells(markdown):
        if kind == "code":
            parts.append(f"# %%\n{text}\n")
        else:
            lines = (f"# {line}".rstrip() for line in text.splitlines())
            parts.append("# %% [markdown]\n" + "\n".join(lines) + "\n")
    return "\n".join(parts)


def notebook(markdown: str) -> str:
    """Return the page as a Jupyter notebook that has not been run."""
    made = []
    for at, (kind, text) in enumerate(cells(markdown)):
        cell = {"cell_type": kind, "id": f"cell-{at}", "metadata": {}, "source": text}
        if kind == "code":
            cell |= {"execution_count": None, "outputs": []}
        made.append(cell)
    python = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return json.dumps(
        {"cells": made, "metadata": {"kernelspec": python}, "nbformat": 4, "nbformat_minor": 5}
    )


def with_downloads(markdown: str, name: str) -> str:
    """Return the page with links to its script and notebook below the title."""
    title, _, rest = markdown.partition("\n")
    return f"{title}\n\n*[Script]({name}.py) · [notebook]({name}.ipynb)*\n{rest}"
