"""Writes docs/project/dependencies.md: what dmsgd is built on, under which licences.

    python docs/dependencies.py

What is installed says so itself, in its metadata; run it where all extras are (`make test` has such
an environment).
"""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import tomllib
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "project" / "dependencies.md"

#: What each direct dependency is for.
PURPOSE = {
    "numpy": "arrays",
    "scipy": "linear algebra, sparse matrices",
    "numba": "compiled samplers",
    "llvmlite": "instructions that numba has no name for, within them",
    "scikit-learn": "k-means, `dmsgd.sklearn`",
    "threadpoolctl": "one BLAS thread where more are slower or would differ",
    "click": "the command line",
    "jinja2": "the pages of `dmsgd inspect` and `dmsgd select`",
    "pyarrow": "Parquet files",
    "zarr": "Zarr arrays",
    "dask": "features on a cluster",
    "torch": "`dmsgd.torch`",
    "cuda-bindings": "draws on NVIDIA cards",
}

#: Extras that users install; the others are for work on dmsgd itself.
EXTRAS = ("sklearn", "parquet", "zarr", "dask", "torch", "cuda")

#: Licences whose names are too long, or say too little.
SHORT = {
    "Apache Software License": "Apache-2.0",
    "Apache 2.0": "Apache-2.0",
    "Apache License 2.0": "Apache-2.0",
    "Apache License, Version 2.0": "Apache-2.0",
    "Apache 2.0 License": "Apache-2.0",
    "BSD License": "BSD",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
    "GNU Lesser General Public License v2 or later (LGPLv2+)": "LGPL-2.1-or-later",
    "ISC License (ISCL)": "ISC",
}

#: Where the metadata names a file and no licence, what that file says.
READ = {"apricot-select": "MIT", "atheris": "Apache-2.0"}

HEAD = """# What dmsgd is built on

Made by `docs/dependencies.py` from the metadata of what is installed. `dmsgd` itself is MIT. Which
versions are tested: [compatibility](promises.md#compatibility). The development environment is in
`constraints.txt`.

`pip install .` brings what batches and the command line need. The command line is no extra:
`dmsgd inspect` is what a new user types first, and click and jinja2 with all they bring are
2 MB beside the 370 MB of NumPy, SciPy and numba with its LLVM. scikit-learn with all it brings is
an extra, as is everything for a framework or a kind of file. A part that needs an extra says so
before it begins, with the command that installs it (`inputs/messages.py`). `dmsgd[all]`
is all of them.
"""


def licence(name: str) -> str:
    """Return the licence that an installed package states."""
    if name in READ:
        return READ[name]
    metadata = distribution(name).metadata
    stated = metadata.get("License-Expression")
    if not stated:
        kinds = [
            each.rpartition(" :: ")[2]
            for each in metadata.get_all("Classifier") or []
            if each.startswith("License :: ") and not each.endswith("OSI Approved")
        ]
        stated = " or ".join(kinds) or (metadata.get("License") or "").partition("\n")[0]
    return SHORT.get(stated, stated) or "not stated"


def direct() -> dict[str, list[Requirement]]:
    """Return the requirements of dmsgd ("") and of each extra, without dmsgd's own extras."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    groups = {"": project["dependencies"], **project["optional-dependencies"]}
    return {
        extra: [each for each in map(Requirement, texts) if each.name != "dmsgd"]
        for extra, texts in groups.items()
    }


def indirect(requirements: list[Requirement]) -> dict[str, tuple[set[str], set[str]]]:
    """Return what these bring along: by name the ranges that are asked for, and by whom."""
    found: dict[str, tuple[set[str], set[str]]] = {}
    waiting = [(each, frozenset(each.extras)) for each in requirements]
    seen = set()
    while waiting:
        parent, extras = waiting.pop()
        name = canonicalize_name(parent.name)
        if (name, extras) in seen:
            continue
        seen.add((name, extras))
        for text in _requires(name):
            child = Requirement(text)
            contexts = [{"extra": each} for each in ("", *extras)]
            if child.marker and not any(child.marker.evaluate(each) for each in contexts):
                continue
            ranges, users = found.setdefault(canonicalize_name(child.name), (set(), set()))
            ranges |= {str(each) for each in child.specifier}
            users.add(name)
            waiting.append((child, frozenset(child.extras)))
    return found


def _requires(name: str) -> list[str]:
    try:
        return distribution(name).requires or []
    except PackageNotFoundError:
        raise SystemExit(f"{name} is not installed: run this where all extras are") from None


def row(name: str, ranges: str, last: str) -> str:
    """Return a line of a table."""
    return f"| {name} | {ranges.replace(',', ', ') or 'any'} | {licence(name)} | {last} |"


def page() -> str:
    """Return the page."""
    groups = direct()
    lines = [HEAD]
    known = set()
    for extra in ("", *EXTRAS):
        lines += ["", f"## {f'With `dmsgd[{extra}]`' if extra else 'Always'}", ""]
        lines += ["| package | versions | licence | for |", "|---|---|---|---|"]
        for each in groups[extra]:
            known.add(canonicalize_name(each.name))
            lines.append(row(each.name, str(each.specifier), PURPOSE[each.name]))
    rest = indirect([each for extra in ("", *EXTRAS) for each in groups[extra]])
    lines += ["", "## What these bring along", ""]
    lines += ["| package | versions | licence | through |", "|---|---|---|---|"]
    for name in sorted(set(rest) - known):
        ranges, users = rest[name]
        lines.append(row(name, ",".join(sorted(ranges)), ", ".join(sorted(users))))
    lines += ["", "## For work on dmsgd", "", "| package | versions | licence | extra |"]
    lines += ["|---|---|---|---|"]
    for extra in sorted(set(groups) - {"", *EXTRAS}):
        for each in groups[extra]:
            lines.append(row(each.name, str(each.specifier), extra))
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
