"""Imports point one way, experiments stand apart and use public names, nobody asks for kinds."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

import dmsgd

SOURCE = Path(__file__).parent.parent / "src"
Graph = dict[str, set[str]]


def modules(root: Path = SOURCE / "dmsgd") -> dict[str, Path]:
    """Return all modules of a package by name."""
    found = {}
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root.parent).with_suffix("").parts
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


@cache
def imports_of(path: Path, top: bool) -> list[ast.stmt]:
    """Return the imports of a file, which several tests ask for."""
    return list(statements(ast.parse(path.read_text(encoding="utf-8")), top))


def imported(name: str, path: Path, known: set[str], top: bool) -> set[str]:
    """Return the modules of the package that a module imports, and their packages.

    Packages that the module itself lies in do not count: they are there before it is.
    """
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    found = set()
    for each in imports_of(path, top):
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


@cache
def package(top: bool) -> Graph:
    """Return the graph of dmsgd, read once per process."""
    return graph(top, modules())


def graph(top: bool, known: dict[str, Path]) -> Graph:
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
def test_there_is_no_circle(top: bool) -> None:
    assert circles(package(top)) == []


#: What these parts of the package import of it, at most.
ALLOWED = {
    "compiled": set(),
    "samplers": {"errors", "inputs", "runtime", "polynomials", "compiled"},
    "spectra": {"errors", "inputs", "runtime", "polynomials", "samplers"},
    "features": {"errors", "inputs", "runtime", "files", "samplers", "spectra", "compiled"},
    "kernels": {"errors", "inputs", "runtime", "polynomials", "spectra", "features"},
    "targets": {
        "errors",
        "inputs",
        "runtime",
        "polynomials",
        "samplers",
        "spectra",
        "features",
        "kernels",
    },
}


@pytest.mark.parametrize("part", sorted(ALLOWED))
def test_lower_parts_import_no_higher_ones(part: str) -> None:
    for name, others in package(top=False).items():
        if name.split(".")[1:2] == [part]:
            used = {other.split(".")[1] for other in others if "." in other} - {part}
            assert used <= ALLOWED[part], name


EXPERIMENTS = modules(SOURCE.parent / "experiments")


def names_used(tree: ast.AST) -> set[str]:
    """Return what a module uses of dmsgd: imported names, attributes such as dmsgd.lda.train."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Attribute):
            found.add(ast.unparse(node))
    return {name for name in found if re.fullmatch(r"dmsgd(\.\w+)*", name)}


def public(name: str) -> bool:
    """Return whether "dmsgd.NAME..." is a name that users type, or of a module that they type."""
    _, first, *rest = [*name.split("."), ""]
    if first not in (*dmsgd._MODULES, "samplers"):  # which KDPP takes as an argument
        return first in (*dmsgd.__all__, "__version__", "__file__", "")
    module = import_module(f"dmsgd.{first}")
    known = getattr(module, "__all__", None) or defined(Path(module.__file__))
    return not rest[0].startswith("_") and rest[0] in (*known, "")


def test_public_names_are_told_from_others() -> None:
    tree = ast.parse(
        "import dmsgd\nfrom dmsgd.lda import train\nfrom dmsgd.inputs.arrays import as_floats\n"
        "dmsgd.KDPP.given\ndmsgd.designs.build\ndmsgd.diagnostics.facts\ndmsgd.Uniform(4, 2).n"
    )
    hidden = {"dmsgd.inputs.arrays.as_floats", "dmsgd.designs.build",
              "dmsgd.diagnostics.facts"}  # fmt: skip
    assert {name for name in names_used(tree) if not public(name)} == hidden


def test_experiments_use_public_names_alone() -> None:
    for name, path in EXPERIMENTS.items():
        used = names_used(ast.parse(path.read_text(encoding="utf-8")))
        assert {each for each in used if not public(each)} == set(), name


def test_the_package_knows_no_experiment() -> None:
    for name, path in modules().items():
        for each in imports_of(path, top=False):
            named = [alias.name for alias in each.names] + [getattr(each, "module", None) or ""]
            assert not any(n.partition(".")[0] in ("experiments", "tests") for n in named), name


#: What the parts of experiments may import, besides themselves; others are experiments.
BELOW = {"datasets": set(), "models": {"datasets"}, "core": {"datasets", "models"}}


def test_imports_of_experiments_point_one_way() -> None:
    edges = graph(top=False, known=EXPERIMENTS)
    assert circles(edges) == []
    for name, others in edges.items():
        part = name.split(".")[1] if "." in name else ""
        used = {other.split(".")[1] for other in others if "." in other} - {part}
        assert "__main__" not in used
        if part in BELOW:
            assert used <= BELOW[part], name


#: Kinds of features and vectors, and the only folder that may ask for each.
KINDS = {
    "features": {
        "InMemory",
        "Blocks",
        "Cuda",
        "Reader",
    },
    "spectra": {"Eigenvectors", "Projected", "CudaVectors"},
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
        asked = asked_kinds(ast.parse(path.read_text()))
        for folder, kinds in KINDS.items():
            if not name.startswith(f"dmsgd.{folder}"):
                assert asked & kinds == set(), name


#: Questions that features do not answer any more: they act instead.
PROBES = (
    r"\.(device|passes|direct|sparse|dense|disjoint|on_device)\(\)|\.resident\b"
    r"|def (gram|of|similarities)\w*_there\b"
)


def test_features_are_not_asked_for_their_kind() -> None:
    for name, path in modules().items():
        found = re.search(PROBES, path.read_text(encoding="utf-8"))
        assert found is None, f"{name}: {found}"


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
    known = modules() | EXPERIMENTS
    for path in sorted((SOURCE.parent / folder).rglob("*.py")):
        for each in imports_of(path, top=False):
            base = getattr(each, "module", None) or ""
            if base.partition(".")[0] in ("dmsgd", "experiments"):
                assert base in known, f"{path}: {base}"
                there = defined(known[base])
                names = {alias.name for alias in each.names}
                missing = {name for name in names - there if f"{base}.{name}" not in known}
                assert not missing, path
