"""Lets mkdocstrings show the package's docstrings as docs/site/docstrings.py turns them."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import griffe

sys.path.append(str(Path(__file__).parent))
from docstrings import MODULES, linked, markdown
from reference import places, returned

#: Names as mkdocstrings links them, on whichever page they are.
PLACES = {name: f"[{place.partition('#')[2]}]" for name, place in places().items()}


class PlainDocstrings(griffe.Extension):
    """Rewrites every docstring of the package before mkdocstrings shows it."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rewrite the docstring of one module, class, function or attribute."""
        if obj.docstring:
            obj.docstring.value = linked(markdown(obj.docstring.value), PLACES)
            if obj.is_function and obj.name in PLACES and obj.parent and obj.parent.is_module:
                function = getattr(import_module(obj.parent.path), obj.name)
                obj.docstring.value += f"\n\n{returned(function)}"

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Let names mean what Python means by them: a function before a module of its name."""
        for module in (pkg, *(pkg[name] for name in MODULES if name)):
            for each in module.members.values():
                if each.is_alias and each.target_path.startswith("dmsgd."):
                    meant = pkg[each.target_path.removeprefix("dmsgd.")]
                    if meant.is_module and meant.name in meant.members:
                        each.target_path += f".{meant.name}"
