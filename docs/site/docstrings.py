"""Docstrings as the reference shows them: the package's plain style turned into Markdown.

Arguments ("name: what it is", continued by an indent) become a list, indented lines a block of
code, and doctests code that can be copied, with what it prints as comments.
"""

from __future__ import annotations

import ast
import doctest
import inspect
import re
from collections.abc import Mapping
from functools import cache
from importlib import import_module

ARGUMENT = re.compile(r"^(\w+(?:, \w+)*):\s+(\S.*)$")
#: Sentences that name errors and what to read next.
LINKED = re.compile(r"(?:See also|Raises|warns with)\s(?:[^.`]|`[^`]*`)*")

#: The modules that users type, and thereby where each public name comes from; "" is dmsgd itself.
MODULES = (
    "", "designs", "kernels", "spectra", "features", "targets", "torch", "sgd", "lda", "sklearn",
    "diagnostics",
)  # fmt: skip

IMPORTS = {"np": "import numpy as np", "torch": "import torch", "dmsgd": "import dmsgd"}


def markdown(text: str) -> str:
    """Return the docstring `text`, dedented, as Markdown.

    >>> print(markdown("Return it.\\n\\nk: items\\n   in a batch"))
    Return it.
    <BLANKLINE>
    - **`k`** – items in a batch
    """
    blocks = re.split(r"\n\s*\n", text.strip()) if text.strip() else []
    return "\n\n".join(map(_block, blocks))


def linked(text: str, places: Mapping[str, str]) -> str:
    """Return `text` with links from names after "See also" and "Raises" to their places.

    >>> linked("See also `KDPP`, `dmsgd.select` or `x`.", {"KDPP": "(a.md)", "select": "[b]"})
    'See also [`KDPP`](a.md), [`dmsgd.select`][b] or `x`.'
    """

    def link(name: re.Match[str]) -> str:
        place = places.get(name[1].rpartition(".")[2])
        return f"[{name[0]}]{place}" if place else name[0]

    return LINKED.sub(lambda found: re.sub("`([^`]*)`", link, found[0]), text)


def _block(block: str) -> str:
    lines = block.splitlines()
    if lines[0].lstrip().startswith(">>>"):
        return _example(block)
    if all(line.startswith("    ") for line in lines):
        language = "python" if re.search(r"[=(]", block) and not re.search("[Σ←≤]", block) else ""
        return f"```{language}\n" + "\n".join(line[4:] for line in lines) + "\n```"
    if ARGUMENT.match(lines[0]) and (len(lines) == 1 or _is_list(lines)):
        return _arguments(lines)
    return block


def _is_list(lines: list[str]) -> bool:
    return all(line.startswith("  ") or ARGUMENT.match(line) for line in lines)


def _arguments(lines: list[str]) -> str:
    found: list[str] = []
    for line in lines:
        if not line.startswith("  ") and (match := ARGUMENT.match(line)):
            names = ", ".join(f"**`{name}`**" for name in match[1].split(", "))
            found.append(f"- {names} – {match[2]}")
        else:
            found[-1] += f" {line.strip()}"
    return "\n".join(found)


def _example(block: str) -> str:
    lines: list[str] = []
    for each in doctest.DocTestParser().get_examples(block):
        lines += each.source.rstrip("\n").splitlines()
        printed = each.want.rstrip("\n").splitlines()
        lines += [f"# {line}" for line in printed]
    return "```python\n" + "\n".join([*imports("\n".join(lines)), *lines]) + "\n```"


def imports(code: str) -> list[str]:
    """Return the imports that an example of a docstring leaves to its module."""
    made = _assigned(code)
    found = [line for name, line in IMPORTS.items() if name in _used(code) - made]
    for module in MODULES:
        if names := sorted(_used(code) & public(module) - made):
            home = f"dmsgd.{module}".rstrip(".")
            found.append(f"from {home} import {', '.join(names)}")
            made |= set(names)
    return found


def _used(code: str) -> set[str]:
    nodes = ast.walk(ast.parse(code))
    return {each.id for each in nodes if isinstance(each, ast.Name)}


def _assigned(code: str) -> set[str]:
    """Return the names that the code itself imports, defines or assigns."""
    found = set()
    for each in ast.walk(ast.parse(code)):
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store):
            found.add(each.id)
        elif isinstance(each, ast.alias):
            found.add((each.asname or each.name).partition(".")[0])
        elif isinstance(each, ast.FunctionDef | ast.ClassDef):
            found.add(each.name)
    return found


@cache
def public(module: str) -> frozenset[str]:
    """Return the names of one of the modules that users type."""
    found = import_module(f"dmsgd.{module}".rstrip("."))
    own = [name for name, each in vars(found).items() if inspect.getmodule(each) is found]
    return frozenset(getattr(found, "__all__", None) or (n for n in own if n[0] != "_"))
