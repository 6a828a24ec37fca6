"""From content to one HTML file: nothing is loaded when it is opened."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from dmsgd import __version__
from dmsgd.inputs.messages import visible

#: Characters of a title that are shown.
TITLE = 200
#: What `build` returns, all of which the page shows.
NAMES = (
    "n", "d", "sampled", "k", "w", "target", "ks", "ws", "kernel", "classes", "all_classes",
    "listed", "choices", "uniform", "strata", "targets", "curation", "spectra", "advice", "points",
    "ids", "copies", "codes", "texts", "images", "variance",
)  # fmt: skip
#: The parts of the page's script, in this order.
SCRIPTS = ("base", "tips", "tables", "classes", "map", "items", "curves", "controls")


def render(content: dict[str, Any], title: str = "Diverse batches") -> str:
    """Return the page that shows `content`, made by `build`.

    All text is escaped: Jinja2 does so in the markup, `tojson` in the data, and the page's script
    writes text as text. A Content-Security-Policy forbids every request. The text of users has been
    made `visible`: no character of it can command the page.

    >>> import numpy as np
    >>> from dmsgd.report import build
    >>> page = render(build(np.random.default_rng(0).normal(size=(60, 12)), k=4), "My data")
    >>> "<title>My data</title>" in page
    True
    """
    given = content if isinstance(content, dict) else {}
    missing = next((name for name in NAMES if name not in given), None)
    if missing is not None:
        raise TypeError(
            f"content must be what dmsgd.report.build returns, got a {type(content).__name__} "
            f"without {missing!r}"
        )
    shown = {name: value for name, value in content.items() if name != "csv"}
    return filled(
        "template.html",
        title,
        shown,
        uplot_css=static("uplot.min.css"),
        uplot=static("uplot.min.js"),
        script="".join(static(f"{name}.js") for name in SCRIPTS),
    )


def filled(template: str, title: str, content: dict[str, Any], **parts: str) -> str:
    """Return this template of the folder with the content, the common style and other parts."""
    from jinja2 import Environment, StrictUndefined

    environment = Environment(autoescape=True, undefined=StrictUndefined)
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "allow_nan": False}
    source = files("dmsgd.report").joinpath(template).read_text("utf-8")
    return environment.from_string(source).render(
        title=visible(title, TITLE),
        version=__version__,
        content=content,
        css=static("report.css"),
        **parts,
    )


def static(name: str) -> str:
    """Return a file that goes into pages as it is."""
    return files("dmsgd.report").joinpath("static", name).read_text(encoding="utf-8")
