"""`make release-check`: builds what would be published and uses it as strangers would.

    python tests/release_check.py [--python 3.10 3.13]

The wheel and the sdist are built, checked, and compared with what they must hold. Then, on every
Python from 3.10 to 3.13 that is found (python3.X on the PATH, or pyenv's), the wheel is installed
without extras into an empty environment: batches and commands must work there, every part that
needs an extra must name it, and the command that such a message gives must bring it. The first hour
of a stranger (tests/first_hour) follows.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

from test_extras import CORE, EXPECTED, MESSAGES

ROOT = Path(__file__).parent.parent
PYTHONS = ("3.10", "3.11", "3.12", "3.13")


def run(*command: object, folder: Path = ROOT, **more: object) -> str:
    """Run a command; return what it prints, and end with all of that where it fails."""
    done = subprocess.run(
        [str(part) for part in command], cwd=folder, capture_output=True, text=True, **more
    )
    if done.returncode:
        sys.exit(f"failed: {' '.join(map(str, command))[:300]}\n{done.stdout}{done.stderr}")
    return done.stdout


def built(folder: Path) -> tuple[Path, Path]:
    """Build both into a folder, from what git knows; return the wheel and the sdist."""
    run(sys.executable, "-m", "build", "--outdir", folder, ROOT)
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    run(sys.executable, "-m", "twine", "check", "--strict", wheel, sdist)
    return wheel, sdist


def check_contents(wheel: Path, sdist: Path) -> None:
    """Compare both with what git knows: all of the package, and all of the repository."""
    tracked = {name for name in run("git", "ls-files").split() if not name.startswith(".ci/")}
    with tarfile.open(sdist) as archive:
        held = {name.partition("/")[2] for name in archive.getnames()}
    check(tracked <= held, f"the sdist lacks {sorted(tracked - held)}")
    stray = [name for name in held if re.search(r"__pycache__|\.nb[ic]$|\.venv", name)]
    check(not stray, f"the sdist holds {stray[:3]}")
    package = {name.removeprefix("src/") for name in tracked if name.startswith("src/dmsgd/")}
    with zipfile.ZipFile(wheel) as archive:
        held = set(archive.namelist())
        (metadata,) = (name for name in held if name.endswith(".dist-info/METADATA"))
        text = archive.read(metadata).decode()
    check(package <= held, f"the wheel lacks {sorted(package - held)}")
    stray = [name for name in held if not name.startswith(("dmsgd/", "dmsgd-"))]
    check(not stray, f"the wheel holds {stray[:3]}")
    relative = re.findall(r"\]\((?!https?:|#)[^)]+\)", text)
    check(not relative, f"the long description has relative links: {relative[:3]}")


def check(holds: bool, message: str) -> None:
    if not holds:
        sys.exit(f"failed: {message}")


def found(version: str) -> str | None:
    """Return the command of a Python version that can be run here."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"), "versions")
    candidates = [shutil.which(f"python{version}"), *pyenv.glob(f"{version}.*/bin/python")]
    for each in filter(None, candidates):
        done = subprocess.run([each, "-c", "import venv, ensurepip"], capture_output=True)
        if done.returncode == 0:
            return str(each)
    return None


def use(wheel: Path, python: str, folder: Path) -> str:
    """Install the wheel into an empty environment and use it; return what was installed."""
    run(python, "-m", "venv", folder / "venv")
    here, work = folder / "venv" / "bin" / "python", folder / "work"
    work.mkdir()
    run(here, "-m", "pip", "install", "--quiet", wheel)
    run(here, "-W", "error", "-c", "import sys\n" + CORE, folder=work)
    told = run(here, "-W", "error", "-c", "import json\n" + MESSAGES, folder=work)
    check(json.loads(told) == EXPECTED, told)
    listed = run(here, "-m", "pip", "list", "--format=freeze").split()
    extra = "dmsgd[sklearn]"  # as the message says
    run(here, "-m", "pip", "install", "--quiet", extra)
    draw = (
        "import dmsgd; dmsgd.designs.clustered([[0.0], [0.1], [5.0], [5.1]], k=2).sample(1, seed=0)"
    )
    run(here, "-W", "error", "-c", draw, folder=work)
    return f"{len(listed)} packages: {' '.join(sorted(listed))}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--python", nargs="+", default=PYTHONS, choices=PYTHONS)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        wheel, sdist = built(Path(folder, "dist"))
        check_contents(wheel, sdist)
        for each in (wheel, sdist):
            print(f"{each.name}, {each.stat().st_size / 1e6:.1f} MB: complete", flush=True)
        pythons = {version: found(version) for version in asked.python}
        for version, python in pythons.items():
            if python is None:
                print(f"Python {version}: none found", flush=True)
                continue
            place = Path(folder, version)
            place.mkdir()
            print(f"Python {version}: works with {use(wheel, python, place)}", flush=True)
            hour = [ROOT / "tests/first_hour/run.py", "--wheel", wheel, "--python", python]
            print(" ", run(sys.executable, *hour, "--newest").strip(), flush=True)
            shutil.rmtree(place)
        check(any(pythons.values()), "no Python was found")


if __name__ == "__main__":
    main()
