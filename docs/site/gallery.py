"""Runs every example and keeps what it printed, for the pages of the gallery.

    python docs/site/gallery.py              # all of examples/, into build/gallery
    python docs/site/gallery.py pytorch      # some of them

An example that fails, or says something on standard error that is an error of Python's, ends it:
the site shows what ran.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
RESULTS = ROOT / "build" / "gallery"

#: How an example is started, where `python` alone would not show what it is for.
TORCHRUN = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2"]
ACCELERATE = ["-m", "accelerate.commands.launch", "--cpu", "--num_processes=2"]
START = {"pytorch_ddp": TORCHRUN, "accelerate_run": [*ACCELERATE, "--num_machines=1"]}
ARGUMENTS = {"lightning_ddp": ["2"]}
SHOWN = {
    "pytorch_ddp": "torchrun --standalone --nproc_per_node 2 examples/pytorch_ddp.py",
    "accelerate_run": "accelerate launch --cpu --num_processes 2 examples/accelerate_run.py",
}

#: Numbers that examples print, by what they are, with the pattern of a name and its value.
FIGURES = {
    "balanced test accuracy": r"^(?P<name>.+?): balanced test accuracy (?P<value>[\d.]+)",
    "how well rare topics are found (cosine)": (
        r"^(?P<name>\w+): .*rare topics to (?P<value>[\d.]+)"
    ),
    "batches in which near-duplicates meet, in %": (
        r"^(?P<name>\w+): near-duplicates meet in (?P<value>[\d.]+) %"
    ),
    "variance of the gradient": (
        r"(?P<name>plain SGD|frequency-matched|with repulsion) (?P<value>[\d.]+)"
    ),
    "slates, -log P of held-out sets": r"-(?P<value>[\d.]+) (?P<name>at the start|learned|true)",
}


def names() -> list[str]:
    """Return the examples in the order of examples/README.md."""
    listed = re.findall(r"^\| \[(\w+)\.py\]", (EXAMPLES / "README.md").read_text("utf-8"), re.M)
    there = {path.stem for path in EXAMPLES.glob("*.py")} - {"data"}
    if set(listed) != there:
        raise SystemExit(f"examples/README.md and the files differ: {set(listed) ^ there}")
    return listed


def run(name: str) -> dict[str, str]:
    """Return what an example prints, and the command; a report that it writes is kept beside."""
    script = f"examples/{name}.py"
    command = [sys.executable, *START.get(name, []), script, *ARGUMENTS.get(name, [])]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "MPLBACKEND": "agg"}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300
    )
    if done.returncode or not done.stdout.strip():
        raise SystemExit(f"{script} failed:\n{done.stdout[-2000:]}{done.stderr[-4000:]}")
    output = done.stdout
    if page := re.search(r"^open (\S+\.html)$", output, re.M):
        shutil.copyfile(page[1], RESULTS / f"{name}-report.html")
        output = output.replace(page[1], "report.html")
    started = SHOWN.get(name, " ".join(["python", script, *ARGUMENTS.get(name, [])]))
    return {"command": started, "output": output.strip()}


def draw(name: str, output: str) -> None:
    """Write the picture of the numbers that an example printed, also its thumbnail."""
    for title, pattern in FIGURES.items():
        matches = re.finditer(pattern, output, re.M)
        if len(found := {each["name"]: float(each["value"]) for each in matches}) > 1:
            _bars(RESULTS / f"{name}.svg", title, found)
            return
    raise SystemExit(f"examples/{name}.py printed no two numbers that FIGURES compares")


def _bars(path: Path, title: str, values: dict[str, float]) -> None:
    import matplotlib.pyplot as plt

    plt.rcParams |= {"svg.hashsalt": "dmsgd", "font.size": 11}
    figure, axes = plt.subplots(figsize=(6, 0.7 + 0.38 * len(values)), layout="constrained")
    colours = ["#9aa5ae" if "uniform" in each or "random" in each else "#00897b" for each in values]
    bars = axes.barh(list(values), list(values.values()), color=colours, height=0.65)
    axes.bar_label(bars, fmt="%.3g", padding=4)
    axes.invert_yaxis()
    axes.set_xlim(0, max(values.values()) * 1.15)
    axes.set_title(title, fontsize=11, loc="left")
    axes.xaxis.set_visible(False)
    axes.tick_params(length=0)
    for side in axes.spines.values():
        side.set_visible(False)
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def main() -> None:
    """Run the examples that are named, or all."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    for name in sys.argv[1:] or names():
        print(f"examples/{name}.py", flush=True)
        result = run(name)
        (RESULTS / f"{name}.json").write_text(json.dumps(result), encoding="utf-8")
        draw(name, result["output"])


if __name__ == "__main__":
    main()
