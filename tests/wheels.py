"""Does every package that `make demo` and `make test` install have a wheel, wherever we say so?

    python tests/wheels.py [--python 3.11 3.13]

For each platform and Python, the packages that pyproject.toml asks for there, in the versions of
constraints.txt, are looked up in the package index. Nothing is downloaded but lists of files, so
that no machine of that kind is needed. Exits with 1 if a wheel is missing. Part of
`make release-check`.
"""

from __future__ import annotations

import argparse
import sys
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from html.parser import HTMLParser
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path
from urllib.parse import unquote

import tomllib
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.tags import Tag, compatible_tags, cpython_tags, mac_platforms
from packaging.utils import canonicalize_name, parse_wheel_filename

ROOT = Path(__file__).parent.parent
INDEX = "https://pypi.org/simple"

#: The newest glibc that a Linux machine needs: that of Ubuntu 22.04.
GLIBC = 35

#: What the markers of requirements see there, and the wheels that install there.
PLATFORMS = {
    "Linux x86_64": ("Linux", "linux", "x86_64", "posix"),
    "Linux aarch64": ("Linux", "linux", "aarch64", "posix"),
    "macOS arm64": ("Darwin", "darwin", "arm64", "posix"),
    "Windows": ("Windows", "win32", "AMD64", "nt"),
}

#: On 3.10 constraints.txt binds torch alone, as the newest versions of the others need 3.11; there
#: what pyproject.toml names is looked up, since other versions have other needs.
PYTHONS = ("3.10", "3.11", "3.12", "3.13")

#: What `make demo` and `make test` install.
EXTRAS = ("sklearn", "dev")


def environment(platform: str, python: str) -> dict[str, str]:
    """Return what markers see there."""
    system, short, machine, name = PLATFORMS[platform]
    return {
        "implementation_name": "cpython", "platform_python_implementation": "CPython",
        "os_name": name, "platform_machine": machine, "platform_system": system,
        "sys_platform": short, "python_version": python, "python_full_version": f"{python}.0",
        "platform_release": "", "platform_version": "", "implementation_version": f"{python}.0",
    }  # fmt: skip


def tags(platform: str, python: str) -> set[Tag]:
    """Return the tags of the wheels that install there."""
    machine = PLATFORMS[platform][2]
    version = tuple(map(int, python.split(".")))
    if platform == "Windows":
        names = ["win_amd64"]
    elif platform == "macOS arm64":
        names = list(mac_platforms((14, 0), "arm64"))
    else:
        names = [f"manylinux_2_{minor}_{machine}" for minor in range(GLIBC, 4, -1)]
        names += [f"{old}_{machine}" for old in ("manylinux2014", "manylinux2010", "manylinux1")]
    interpreter = f"cp{python.replace('.', '')}"
    return {
        *cpython_tags(version, platforms=names),
        *compatible_tags(version, interpreter, platforms=names),
    }


def packages(there: dict[str, str]) -> set[str]:
    """Return all packages that the extras bring, by the metadata of what is installed here."""
    found: set[tuple[str, str]] = set()
    open_ends = [("dmsgd", extra) for extra in ("", *EXTRAS)]
    while open_ends:
        name, extra = end = open_ends.pop()
        if end in found:
            continue
        found.add(end)
        if there["python_version"] == "3.10" and name != "dmsgd":
            continue
        for each in asked_by(name):
            if each.marker is None or each.marker.evaluate({**there, "extra": extra}):
                needed = canonicalize_name(each.name)
                open_ends += [(needed, more) for more in ("", *each.extras)]
    return {name for name, _ in found} - {"dmsgd"}


@cache
def asked_by(name: str) -> list[Requirement]:
    """Return the requirements of a package; of dmsgd as pyproject.toml has them now."""
    if name == "dmsgd":
        project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
        lines = list(project["dependencies"])
        for extra, wanted in project["optional-dependencies"].items():
            for line in wanted:
                text, _, marker = line.partition(";")
                mark = f'extra == "{extra}"' + (f" and ({marker.strip()})" if marker else "")
                lines.append(f"{text} ; {mark}")
        return [Requirement(line) for line in lines]
    try:
        return [Requirement(line) for line in requires(name) or ()]
    except PackageNotFoundError:  # of another platform only: its own needs are not known here
        return []


def locked() -> dict[str, str]:
    """Return the versions of constraints.txt."""
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pairs = (line.partition(";")[0].split("==") for line in lines if not line.startswith("#"))
    return {canonicalize_name(name): version for name, version in pairs}


class _Links(HTMLParser):
    """File name -> attributes of its link, of a page of the index."""

    def __init__(self) -> None:
        super().__init__()
        self.files: dict[str, dict[str, str | None]] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        about = dict(attrs)
        if tag == "a" and (link := about.get("href")):
            self.files[unquote(link.partition("#")[0].rpartition("/")[2])] = about


@cache
def files(name: str) -> dict[str, dict[str, str | None]]:
    """Return the files of a package that the index lists."""
    asked = urllib.request.Request(f"{INDEX}/{name}/", headers={"Accept": "text/html"})
    links = _Links()
    with urllib.request.urlopen(asked, timeout=60) as answer:
        links.feed(answer.read().decode())
    return links.files


def has_wheel(name: str, version: str | None, python: str, wanted: set[Tag]) -> bool:
    """Return whether a wheel of that version (of any, for None) installs there."""
    for file, about in files(name).items():
        if not file.endswith(".whl") or "data-yanked" in about:
            continue
        if version is not None and f"-{version}" not in file:  # before what takes longer
            continue
        try:
            _, found, _, its = parse_wheel_filename(file)
            runs = SpecifierSet(about.get("data-requires-python") or "").contains(f"{python}.0")
        except ValueError:  # old files with names and bounds that pip passes over too
            continue
        if version in (None, found.public) and runs and its & wanted:
            return True
    return False


def missing(platform: str, python: str) -> Iterator[str]:
    """Yield the packages without a wheel."""
    versions, wanted = locked(), tags(platform, python)
    if python == "3.10":
        versions = {"torch": versions["torch"]}
    for name in sorted(packages(environment(platform, python))):
        version = versions.get(name)
        if not has_wheel(name, version, python, wanted):
            yield f"{name} {version or '(any version)'}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--python", nargs="+", default=PYTHONS, choices=PYTHONS)
    asked = parser.parse_args()
    everything = set().union(
        *(packages(environment(each, python)) for each in PLATFORMS for python in asked.python)
    )
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(files, sorted(everything)))
    failed = 0
    for platform in PLATFORMS:
        for python in asked.python:
            lacking = list(missing(platform, python))
            failed += bool(lacking)
            count = len(packages(environment(platform, python)))
            told = f"no wheel of {', '.join(lacking)}" if lacking else "all have wheels"
            print(f"{platform}, Python {python}: {count} packages, {told}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
