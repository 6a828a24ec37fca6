"""From a template and its content to one HTML file that loads nothing."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from dmsgd import __version__
from dmsgd.inputs.messages import visible

#: Characters of a title that are shown.
TITLE = 200


def render(template: str, title: str, content: dict[str, Any]) -> str:
    """Return the page that `templates/{template}` makes of `content`.

    Jinja2 escapes text in the markup, `tojson` in the data, and the page's script inserts text as
    text; text of users has been made `visible`. A Content-Security-Policy forbids every request.
    """
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    environment = Environment(
        loader=FunctionLoader(_read), autoescape=True, undefined=StrictUndefined
    )
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "allow_nan": False}
    environment.globals["static"] = _read
    page = environment.get_template(f"templates/{template}")
    return page.render(title=visible(title, TITLE), version=__version__, content=content)


def _read(name: str) -> str:
    """Return a file of this folder."""
    return files("dmsgd.report").joinpath(*name.split("/")).read_text(encoding="utf-8")
