"""Writes every public name into the pages of docs/reference, so that they can be read in a clone.

    python docs/site/reference.py             # after a change to a docstring
    python docs/site/reference.py --check     # exit 1 if a page is behind

A page names what it shows between two marks, `<!-- ::: dmsgd.select -->` and `<!-- end -->`. On the
site mkdocstrings shows the name instead (docs/site/pages.py).
"""

from __future__ import annotations

import inspect
import re
import sys
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import Any

import docstrings

FOLDER = Path(__file__).resolve().parents[1] / "reference"
MARK = re.compile(r"(<!-- ::: (\S+) -->\n)(.*?)(<!-- end -->)", re.S)


def places() -> dict[str, str]:
    """Return the page and place of every public name, by the last part of the name."""
    names = ((page.name, each[1]) for page in FOLDER.glob("*.md") for each in _marks(page))
    return {path.rpartition(".")[2]: f"{page}#{path}" for page, path in names}


def _marks(page: Path) -> list[tuple[str, ...]]:
    return MARK.findall(page.read_text(encoding="utf-8"))


def written(path: str) -> str:
    """Return the heading, the signature and the docstring of a public name, as Markdown."""
    home, _, name = path.rpartition(".")
    try:
        found = getattr(import_module(home), name)
    except ImportError:  # of an extra that is missing here
        return ""
    parts = [f'<a id="{path}"></a>', f"### {name}"]
    if not (inspect.isclass(found) and issubclass(found, Exception)):
        parts.append(f"```text\n{_signature(path, found)}\n```")
    text = docstrings.markdown(inspect.getdoc(found) or "")
    parts.append(docstrings.linked(text, {name: f"({at})" for name, at in places().items()}))
    parts.append("\n".join(_methods(found)) if inspect.isclass(found) else returned(found))
    return "\n\n".join(part for part in parts if part) + "\n\n"


def returned(function: Any) -> str:
    """Return the fields of what a function returns, where their class has no other place."""
    if not inspect.isfunction(function):
        return ""
    kind = function.__globals__.get(inspect.signature(function).return_annotation)
    own = inspect.isclass(kind) and kind.__module__.startswith("dmsgd.")
    if kind is None or not own or kind.__name__ in places():
        return ""
    text = docstrings.markdown(inspect.getdoc(kind) or "")
    parts = f"Returns `{kind.__name__}`: {text}", "\n".join(_methods(kind))
    return "\n\n".join(filter(None, parts))


def _signature(path: str, found: object) -> str:
    """Return the call with its defaults, one argument per line where it is long."""
    parameters = []
    signature = inspect.signature(found)  # type: ignore[arg-type]
    star = False
    for each in signature.parameters.values():
        if each.name.startswith("_"):
            continue
        if each.kind is each.KEYWORD_ONLY and not star:
            star = True
            parameters.append("*")
        star |= each.kind is each.VAR_POSITIONAL
        bare = each.replace(annotation=each.empty)
        parameters.append(re.sub(r" at 0x\w+", "", str(bare)))
    line = f"{path}({', '.join(parameters)})"
    if len(line) <= 100:
        return line
    return f"{path}(\n" + "".join(f"    {each},\n" for each in parameters) + ")"


def _methods(found: type) -> list[str]:
    lines, listed = [], places()
    bases = (each for each in found.__mro__[1:] if each.__module__.startswith("dmsgd."))
    shown = [found, *(each for each in bases if each.__name__ not in listed)]
    for name, each in chain.from_iterable(vars(kind).items() for kind in shown):
        if name.startswith("_") or not (callable(each) or isinstance(each, property | classmethod)):
            continue
        said = (inspect.getdoc(each) or "").partition("\n\n")[0].replace("\n", " ")
        if said and not isinstance(each, type):
            call = "" if isinstance(each, property) else "()"
            lines.append(f"- `.{name}{call}` – {said}")
    return lines


def main() -> int:
    """Write the pages anew; with --check write nothing."""
    behind = []
    for page in sorted(FOLDER.glob("*.md")):
        text = page.read_text(encoding="utf-8")
        new = MARK.sub(lambda at: f"{at[1]}{written(at[2]) or at[3]}{at[4]}", text)
        if new != text:
            behind.append(page.name)
            if "--check" not in sys.argv:
                page.write_text(new, encoding="utf-8")
    print(*behind, sep="\n")
    return 1 if behind and "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
