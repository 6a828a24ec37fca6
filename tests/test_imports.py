"""Imports point one way, the paper's experiments stand at their end, and nobody asks for kinds."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src"
Graph = dict[str, set[str]]


def modules() -> dict[str, Path]:
    """Return all modules of the package by name."""
    found = {}
    for path in sorted((SOURCE / "dmsgd").rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def statements(node: ast.AST, top: bool) -> Iterator[ast.stmt]:
    """Yield the imports under a node: those that run with the module, or with `not top` all."""
    for child in ast.iter_child_nodes(node):
        inside = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        typing = isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test)
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child
        elif not (top and (inside or typing)):
            yield from statements(child, top)


def imported(name: str, path: Path, known: set[str], top: bool) -> set[str]:
    """Return the modules of the package that a module imports, and their packages.

    Packages that the module itself lies in do not count: they are there before it is.
    """
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    found = set()
    for each in statements(ast.parse(path.read_text()), top):
        if isinstance(each, ast.Import):
            found |= {alias.name for alias in each.names}
            continue
        base = each.module or ""
        if each.level:
            parts = package.split(".")
            base = ".".join([*parts[: len(parts) - each.level + 1], *filter(None, [each.module])])
        found.add(base)
        found |= {f"{base}.{alias.name}" for alias in each.names}
    for module in tuple(found):
        parts = module.split(".")
        found |= {".".join(parts[:count]) for count in range(1, len(parts))}
    own = {name[:at] for at, letter in enumerate(name) if letter == "."} | {name}
    return (found & known) - own


def graph(top: bool) -> Graph:
    known = modules()
    return {name: imported(name, path, set(known), top) for name, path in known.items()}


def circles(edges: Graph) -> list[list[str]]:
    """Return the sets of modules that import each other (Tarjan's strong components)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(name: str) -> None:
        index[name] = low[name] = len(index)
        stack.append(name)
        for other in edges[name]:
            if other not in index:
                visit(other)
            if other in stack:
                low[name] = min(low[name], low[other])
        if low[name] == index[name]:
            at = stack.index(name)
            if len(stack) - at > 1:
                found.append(sorted(stack[at:]))
            del stack[at:]

    for name in edges:
        if name not in index:
            visit(name)
    return found


def within(edges: Graph, package: str) -> Graph:
    inside = {name for name in edges if f"{name}.".startswith(f"{package}.")}
    return {name: edges[name] & inside for name in inside}


def test_a_circle_is_found() -> None:
    edges = {"a": {"b"}, "b": {"c", "d"}, "c": {"a"}, "d": set(), "e": {"d"}}
    assert circles(edges) == [["a", "b", "c"]]
    assert circles({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []


@pytest.mark.parametrize("top", [True, False], ids=["on import", "ever"])
def test_imports_are_read(top: bool, tmp_path: Path) -> None:
    source = (
        "from typing import TYPE_CHECKING\nfrom . import two\nimport p.three.four\n"
        "if TYPE_CHECKING:\n    from p.five import x\n"
        "def f():\n    from p import six\n"
    )
    path = tmp_path / "one.py"
    path.write_text(source)
    known = {"p", "p.one", "p.two", "p.three", "p.three.four", "p.five", "p.six"}
    early = {"p.two", "p.three", "p.three.four"}
    assert imported("p.one", path, known, top) == (early if top else early | {"p.five", "p.six"})


@pytest.mark.parametrize("top", [True, False], ids=["on import", "ever"])
def test_no_part_of_the_paper_imports_what_imports_it(top: bool) -> None:
    of_paper = [each for each in circles(graph(top)) if any(".paper" in name for name in each)]
    assert of_paper == []


def test_only_commands_import_the_paper() -> None:
    allowed = ("dmsgd.paper", "dmsgd.commands.")
    users = {name for name, others in graph(top=False).items() if "dmsgd.paper" in others}
    assert {name for name in users if not name.startswith(allowed)} == set()


def test_claims_and_figures_know_the_result_and_not_what_made_it() -> None:
    edges, checked = graph(top=False), 0
    allowed = {"pictures", "intervals", "halves", "protocol"}
    for name, others in within(edges, "dmsgd.paper").items():
        folder, _, part = name.rpartition(".")
        if part in ("claims", "beyond", "figures"):
            used = {other.removeprefix("dmsgd.paper.") for other in others - {"dmsgd.paper"}}
            own = {f"{folder}.{each}".removeprefix("dmsgd.paper.") for each in ("result", "beyond")}
            assert used <= allowed | own, name
            checked += 1
    assert checked >= 20


@pytest.mark.parametrize("top", [True, False], ids=["on import", "ever"])
def test_there_is_no_circle(top: bool) -> None:
    assert circles(graph(top)) == []


#: Kinds of features and vectors, and the only folder that may ask for each.
KINDS = {
    "features": {
        "InMemory",
        "InPasses",
        "Resident",
        "Dense",
        "Sparse",
        "Blocks",
        "OnDevice",
        "FileStore",
        "DaskStore",
        "Store",
    },
    "spectra": {
        "Vectors",
        "ResidentVectors",
        "VectorsInBlocks",
        "VectorsOnDemand",
        "DeviceVectors",
    },
}


def asked_kinds(tree: ast.AST) -> set[str]:
    """Return the names in the second arguments of isinstance calls."""
    calls = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "isinstance"
    ]
    return {n.id for call in calls for n in ast.walk(call.args[1]) if isinstance(n, ast.Name)}


def test_nobody_asks_what_kind_features_or_vectors_are() -> None:
    for name, path in modules().items():
        for folder, kinds in KINDS.items():
            if not name.startswith(f"dmsgd.{folder}"):
                assert asked_kinds(ast.parse(path.read_text())) & kinds == set(), name


@cache
def defined(path: Path) -> set[str]:
    """Return the names that a module defines or imports."""
    found = set()
    for each in ast.walk(ast.parse(path.read_text())):
        if isinstance(each, ast.FunctionDef | ast.ClassDef):
            found.add(each.name)
        elif isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store):
            found.add(each.id)
        elif isinstance(each, ast.alias):
            found.add(each.asname or each.name)
    return found


@pytest.mark.parametrize("folder", ["benchmarks", "docs", "tests/fuzz", "tests/soak"])
def test_scripts_import_what_is_there(folder: str) -> None:
    """Also those that no test runs, because they take long."""
    known = modules()
    for path in sorted((SOURCE.parent / folder).rglob("*.py")):
        for each in statements(ast.parse(path.read_text()), top=False):
            base = getattr(each, "module", None) or ""
            if base.partition(".")[0] == "dmsgd":
                assert base in known, f"{path}: {base}"
                there = defined(known[base])
                names = {alias.name for alias in each.names}
                missing = {name for name in names - there if f"{base}.{name}" not in known}
                assert not missing, path
