"""Looks for files that a reader does not survive: `make fuzz`.

python tests/fuzz/run.py [--cases 10000] [--seed 0] [--only NAME]

With atheris (the extra `fuzz`: Linux on x86_64 alone) mutations follow the coverage of dmsgd's
readers; without it they are random, and the first line says so.
Each target runs in a process of its own, so that a crash of compiled code is told too. Whatever is
found is kept in build/fuzz.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

HERE = Path(__file__).parent
FOUND = HERE.parent.parent / "build" / "fuzz"
#: Seconds that one case may take.
SECONDS = 30
WITHOUT_ATHERIS = (
    "atheris is not installed: files are damaged at random, not guided by coverage. It comes with "
    "pip install -e '.[fuzz]', on Linux with an x86_64 processor; there is no wheel for ARM."
)


def main() -> int:
    """Run all targets; return 1 if anything was found."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="")
    parser.add_argument("--inside", default="", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        fuzz(options.inside, options.cases, options.seed)
        return 0
    import targets

    if not find_spec("atheris"):
        print(WITHOUT_ATHERIS, flush=True)
    names = [name for name in targets.MAKERS if options.only in name]
    share = -(-options.cases // len(names))
    failed = [name for name in names if not survives(name, share, options.seed)]
    print(f"{share * len(names):,} cases, findings in: {', '.join(failed) or 'none'}")
    return bool(failed)


def survives(name: str, cases: int, seed: int) -> bool:
    """Run one target in a process of its own."""
    command = [sys.executable, __file__, "--inside", name, "--cases", str(cases)]
    done = subprocess.run(
        [*command, "--seed", str(seed)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "DMSGD_MEMORY": "200MB"},
    )
    how = "coverage-guided" if find_spec("atheris") else "random"
    print(
        f"{name:20} {cases:7,} cases, {how}: {'found' if done.returncode else 'none'}", flush=True
    )
    if done.returncode:
        print(done.stdout[-2000:], done.stderr[-4000:])
    return done.returncode == 0


def fuzz(name: str, cases: int, seed: int) -> None:
    """Damage the file of one target again and again."""
    if not find_spec("atheris"):
        _at_random(name, cases, seed)
        return
    import atheris

    with atheris.instrument_imports(include=["dmsgd.files", "dmsgd.schedules", "dmsgd.features"]):
        import targets
    FOUND.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp())
    corpus, files = folder / "corpus", folder / "files"
    corpus.mkdir()
    files.mkdir()
    target = targets.made(name, files)
    (corpus / "real").write_bytes(target.content)
    settings = [
        f"-runs={cases}", f"-seed={seed + 1}", f"-max_len={4 * len(target.content)}",
        f"-timeout={SECONDS}", "-rss_limit_mb=4096",
        f"-artifact_prefix={FOUND}/{name.replace(' ', '-')}-",
    ]  # fmt: skip
    atheris.Setup([sys.argv[0], *settings, str(corpus)], target.try_out)
    with targets.quiet():
        atheris.Fuzz()


def _at_random(name: str, cases: int, seed: int) -> None:
    import targets
    from mutations import damaged

    FOUND.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, targets.quiet():
        target = targets.made(name, Path(folder))
        for content in damaged(target.content, cases, seed):
            (FOUND / name.replace(" ", "-")).write_bytes(content)  # kept if this is the last
            target.try_out(content)
        (FOUND / name.replace(" ", "-")).unlink()


if __name__ == "__main__":
    sys.exit(main())
