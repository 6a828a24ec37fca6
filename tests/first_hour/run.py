"""The first hour of a stranger, from `pip install` of the wheel into an empty environment.

    python tests/first_hour/run.py [--wheel FILE] [--python PYTHON] [--newest] [--transcript FILE]

Builds the wheel unless one is given, installs it without extras, and types `steps.py` on the files
of `files.py`, which the Python that runs this makes; then installs the extra for Parquet and goes
on. What was typed and what came back goes to --transcript. The first wrong answer ends it.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from files import write
from steps import ANY, BARE, PARQUET, STEPS, Step

ROOT = Path(__file__).parent.parent.parent


class Environment:
    """An empty environment in a folder, a folder to work in, and a record of what happened."""

    def __init__(self, folder: Path, python: str, newest: bool, transcript: Path | None) -> None:
        self.bin, self.work = folder / "venv" / "bin", folder / "work"
        self.constraints = [] if newest else ["--constraint", str(ROOT / "constraints.txt")]
        self.transcript = transcript
        self.work.mkdir()
        subprocess.run([python, "-m", "venv", folder / "venv"], check=True)
        if transcript is not None:
            transcript.write_text("")

    def install(self, what: str) -> None:
        """Install with pip."""
        self.told("pip install " + what.replace(str(ROOT), "."), "")
        subprocess.run(
            [self.bin / "pip", "install", "--quiet", *self.constraints, what], check=True
        )

    def take(self, step: Step) -> None:
        """Do what the step says, and end everything where the answer is wrong."""
        if step.is_python:
            command = [self.bin / "python", "-c", step.typed]
        else:
            command = [self.bin / "dmsgd", *step.typed.split()]
        done = subprocess.run(
            command, cwd=self.work, text=True, timeout=600,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        # The first draw says that it compiles, once; whatever step that is.
        printed = "".join(
            line for line in done.stdout.splitlines(True) if not line.startswith("dmsgd: compiling")
        )
        self.told(step.typed.strip() if step.is_python else f"dmsgd {step.typed}", done.stdout)
        if wrong := step.wrong(done.returncode, printed):
            sys.exit(f"{step.typed.strip()}\n{done.stdout}\nwrong: {wrong}")

    def told(self, typed: str, printed: str) -> None:
        """Add to the transcript."""
        if self.transcript is not None:
            with self.transcript.open("a", encoding="utf-8") as file:
                file.write("$ " + typed.replace("\n", "\n> ") + f"\n{printed}\n")


def built(folder: Path) -> Path:
    """Return the wheel, built from the tree."""
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", folder, ROOT],
        check=True,
    )
    (wheel,) = folder.glob("dmsgd-*.whl")
    return wheel


def main() -> None:
    """Run the hour."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--wheel", type=Path)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--newest", action="store_true", help="not within constraints.txt")
    parser.add_argument("--transcript", type=Path)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wheel = asked.wheel.resolve() if asked.wheel else built(folder)
        environment = Environment(folder, asked.python, asked.newest, asked.transcript)
        environment.install(str(wheel))
        write(environment.work)
        taken = 0
        for extra, kinds in (("", (ANY, BARE)), ("[parquet]", (PARQUET,))):
            if extra:
                environment.install(f"{wheel}{extra}")
            for step in STEPS:
                if step.where in kinds:
                    environment.take(step)
                    taken += 1
    print(f"the first hour: {taken} steps, all as expected")


if __name__ == "__main__":
    main()
