"""What is imported is declared, what is declared is listed with its licence, and all is locked."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

import pytest

from dmsgd.inputs.messages import EXTRAS as ASKED_FOR
from oldest import oldest
from test_imports import SOURCE, imports_of, modules

tomllib = pytest.importorskip("tomllib", reason="part of Python from 3.11 on")

ROOT = SOURCE.parent
OWN = {"dmsgd", "experiments"}
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]

#: Packages whose modules have another name.
PACKAGE = {
    "sklearn": "scikit-learn",
    "distributed": "dask",
    "cuda": "cuda-bindings",
    "cuda.bindings": "cuda-bindings",
}

#: Modules that belong to an extra: they may import it at their top, as nobody else imports them.
BELONGS = {
    "dmsgd.sklearn": ("sklearn",),
    "dmsgd.torch": ("torch",),
    "dmsgd.features.cuda": ("torch",),
    "dmsgd.spectra.cuda": ("torch",),
    "dmsgd.samplers.cuda": ("torch",),
    "dmsgd.selection.cuda": ("torch",),
}


def name_of(requirement: str) -> str:
    return re.match(r"[\w.-]+", requirement)[0].lower()


def declared(requirements: list[str]) -> set[str]:
    return {name_of(each) for each in requirements} - {"dmsgd"}


def foreign(path: Path, top: bool) -> set[str]:
    """Return the packages of others that a module imports, at its top or ever."""
    found: set[str] = set()
    for each in imports_of(path, top):
        if isinstance(each, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in each.names}
        elif not each.level:
            found.add(each.module.partition(".")[0])
    return {PACKAGE.get(name, name) for name in found - sys.stdlib_module_names - OWN}


def for_users() -> list[str]:
    """Return the extras that users install; the others are for work on dmsgd itself."""
    return re.fullmatch(r"dmsgd\[(.*)\]", EXTRAS["all"][0])[1].split(",")


def test_every_import_is_declared() -> None:
    core = declared(PROJECT["dependencies"])
    users = {extra: declared(EXTRAS[extra]) for extra in for_users()}
    anywhere = core.union(*users.values())
    for name, path in modules().items():
        assert foreign(path, top=False) <= anywhere, name
        own = [users[e] for part, es in BELONGS.items() if name.startswith(part) for e in es]
        assert foreign(path, top=True) <= core.union(*own), f"{name} needs an extra when imported"


def test_every_import_of_the_experiments_is_declared() -> None:
    core = declared(PROJECT["dependencies"])
    own = core.union(*(declared(EXTRAS[each]) for each in ("experiments", "sklearn")))
    for name, path in modules(ROOT / "experiments").items():
        assert foreign(path, top=True) <= own | {"torch"}, name  # of `dev`, for one model
        assert foreign(path, top=False) <= own | {"torch"}, name


def test_what_is_asked_for_is_what_the_extra_brings() -> None:
    for extra, asked in ASKED_FOR.items():
        own = re.findall(r"dmsgd\[(.*)\]", " ".join(EXTRAS[extra]))
        brought = declared([*EXTRAS[extra], *(each for inner in own for each in EXTRAS[inner])])
        assert {PACKAGE.get(name.partition(".")[0], name) for name in asked} == brought, extra
    assert set(ASKED_FOR) <= set(for_users())


def test_every_declared_package_is_imported_or_a_tool() -> None:
    """Nothing is asked of users that dmsgd does not use."""
    used = set().union(*(foreign(path, top=False) for path in modules().values()))
    assert declared(PROJECT["dependencies"]) <= used


def test_every_direct_dependency_is_listed_with_its_licence() -> None:
    page = (ROOT / "docs" / "project" / "dependencies.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| ([\w.-]+) \| (.*?) \|", page, re.M))
    for requirement in (*PROJECT["dependencies"], *(each for e in EXTRAS.values() for each in e)):
        name = name_of(requirement)
        if name != "dmsgd":
            bound = re.search(r">=[\d.]+", requirement)[0]
            line = rf"^\| {re.escape(name)} \| (<[\d.]+, )?{re.escape(bound)} \| [^|]+ \| [^|]+ \|$"
            assert re.search(line, page, re.M), f"{name}: run python docs/dependencies.py"
    assert "not stated" not in page
    assert len(rows) > 60


def test_the_lock_names_a_version_of_everything_declared() -> None:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [line.partition(";")[0] for line in lines if not line.startswith("#")]
    assert all(re.fullmatch(r"[\w.-]+==[\w.]+", pin) for pin in pins), "versions alone"
    locked = {pin.partition("==")[0].lower().replace("_", "-") for pin in pins}
    wanted = declared([*PROJECT["dependencies"], *(each for e in EXTRAS.values() for each in e)])
    assert wanted <= locked, "run make lock"
    assert "torch==2.13.0" in pins
    brought, waiting = set(), ["dev"]  # `make lock` would forget an extra that dev does not bring
    while waiting:
        own = re.findall(r"dmsgd\[(.*?)\]", " ".join(EXTRAS[waiting.pop()]))
        waiting += [new for each in own for new in each.split(",") if new not in brought]
        brought.update(waiting)
    assert set(for_users()) <= brought


def test_every_lower_bound_can_be_installed_alone() -> None:
    """`make test-oldest` pins each bound, so there must be one, and of one form."""
    everything = [*PROJECT["dependencies"], *(each for e in EXTRAS.values() for each in e)]
    named = {pin.partition("==")[0] for pin in oldest(everything)}
    assert named == declared(everything)
