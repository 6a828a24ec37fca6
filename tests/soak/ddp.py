"""Two DDP ranks that are killed again and again: every step that counts is one draw, each once.

python tests/soak/ddp.py [--steps 100000] [--kills 50] [--seconds 0]

The ranks train a linear model with gloo, and save model, optimiser and loader together every
hundred steps, by one rename. Each rank notes the items of every step; what was noted after the last
save is dropped when training goes on, as the training itself is. What is left in the end is
compared with the draws of the design, row by row. With --seconds the run ends early, in good order.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import signal
import tempfile
import time
from datetime import timedelta
from pathlib import Path

import numpy as np
import torch
import torch._dynamo  # DDP would load it in every child
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import TensorDataset
from watch import Progress, announce, finish, options

import dmsgd
import dmsgd.torch

N, D, K, RANKS, EPOCH, SAVE = 400, 12, 8, 2, 500, 100
LEFT_ALONE = 3  # how a rank exits when the other one is gone
ROW = 8 * K // RANKS  # bytes that a rank notes for a step


def features():
    return np.random.default_rng(0).normal(size=(N, D))


def design():
    return dmsgd.diversify(features(), K, normalize=True, kernel="linear")


def child(*arguments):
    """Train; where the other rank was killed, leave quietly."""
    try:
        train(*arguments)
    except (RuntimeError, OSError) as error:
        gone = any(text in str(error) for text in ("Connection", "peer", "timed out", "gloo"))
        if not gone:
            print(error, flush=True)
        os._exit(LEFT_ALONE if gone else 1)


def train(rank, folder, steps):
    """One rank: from the last save, if there is one, to the end."""
    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo", f"file://{folder}/meeting", rank=rank, world_size=RANKS,
        timeout=timedelta(seconds=60),
    )  # fmt: skip
    torch.manual_seed(0)
    X = torch.from_numpy(features()).float()
    model = DistributedDataParallel(torch.nn.Linear(D, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loader = dmsgd.torch.loader(TensorDataset(X, torch.arange(N)), design(), steps=EPOCH, seed=0)
    save, step = folder / "save.pt", 0
    if save.exists():
        saved = torch.load(save)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        loader.load_state_dict(saved["loader"])
        step = saved["step"]
    with open(folder / f"rank{rank}", "ab") as notes:
        notes.truncate(step * ROW)
        while step < steps:
            for inputs, items in loader:
                optimizer.zero_grad()
                model(inputs).square().mean().backward()
                optimizer.step()
                notes.write(items.numpy().tobytes())
                step += 1
                if step % SAVE == 0 or step == steps:
                    notes.flush()
                    dist.barrier()  # both have noted
                    if rank == 0:
                        state = {
                            "model": model.state_dict(), "optimizer": optimizer.state_dict(),
                            "loader": loader.state_dict(), "step": step,
                        }  # fmt: skip
                        torch.save(state, folder / "save.new")
                        os.replace(folder / "save.new", save)
                        (folder / "step").write_text(json.dumps(step))
                    dist.barrier()  # it is saved
                if step == steps:
                    break
    while not (folder / "last").exists():  # all kills are made
        time.sleep(0.01)
    dist.destroy_process_group()
    os._exit(0)  # freeing the model, torch can wait for ever for a thread of its own


def started(context, folder, steps):
    (folder / "meeting").unlink(missing_ok=True)  # of those that were killed
    ranks = [context.Process(target=child, args=(r, folder, steps)) for r in range(RANKS)]
    for rank in ranks:
        rank.start()
    return ranks


def stop(ranks, victims):
    """Kill the victims, and after a moment whoever waits for them."""
    for victim in victims:
        os.kill(ranks[victim].pid, signal.SIGKILL)
    for rank in ranks:
        rank.join(1.0)
        if rank.is_alive():
            rank.kill()
            rank.join()


def saved_step(folder):
    try:
        return json.loads((folder / "step").read_text())
    except (OSError, ValueError):  # not yet, or in the middle of it
        return 0


def run(folder, steps, kills, seconds):
    """Train to the end with `kills` kills at random steps; return how many were made."""
    context = multiprocessing.get_context("fork")
    design().sample(1)  # loads what is compiled, here rather than in each child
    chance = random.Random(0)
    moments = sorted(chance.randrange(steps) for _ in range(kills))
    began, made, progress = time.monotonic(), 0, Progress(steps, "steps")
    ranks = started(context, folder, steps)
    while any(rank.is_alive() for rank in ranks):
        time.sleep(0.02)
        step = saved_step(folder)
        progress.show(step, f"{made} kills")
        if seconds and time.monotonic() - began > seconds:
            stop(ranks, range(RANKS))
            return made, saved_step(folder)
        if any(rank.exitcode == 1 for rank in ranks):
            raise RuntimeError("a rank failed by itself")
        if made == kills:
            (folder / "last").touch()
        due = made < kills and moments[made] <= step + SAVE
        if due or any(rank.exitcode for rank in ranks):
            time.sleep(chance.uniform(0, 0.3))  # anywhere in a step, a save or the start
            victims = chance.choice([[0], [1], [0, 1]])
            alive = [v for v in victims if ranks[v].is_alive()]
            stop(ranks, alive)
            made += bool(alive)
            if all(rank.exitcode == 0 for rank in ranks):
                break
            ranks = started(context, folder, steps)
    return made, steps


def wrong_steps(folder, steps):
    """The steps whose items over all ranks are not those of their draw, and what is missing."""
    parts = [np.fromfile(folder / f"rank{r}", dtype=np.int64) for r in range(RANKS)]
    parts = [part[: steps * K // RANKS] for part in parts]
    missing = [r for r, part in enumerate(parts) if part.size != steps * K // RANKS]
    if missing:
        return [f"rank {r} noted {parts[r].size * RANKS // K} of {steps} steps" for r in missing]
    rows = np.hstack([part.reshape(steps, -1) for part in parts])
    away = np.flatnonzero((rows != design().sample(steps, seed=0)).any(axis=1))
    return [f"{away.size} steps are not their draw, the first {away[0]}"] if away.size else []


def main(arguments=None):
    given = options(arguments, steps=100_000, kills=50, seconds=0.0)
    announce(f"{given.steps:,} steps of two ranks, {given.kills} kills", "5 to 15 minutes")
    with tempfile.TemporaryDirectory() as name:
        folder, began = Path(name), time.monotonic()
        made, steps = run(folder, given.steps, given.kills, given.seconds)
        failures = wrong_steps(folder, steps)
    if made < given.kills and steps == given.steps:
        failures.append(f"only {made} kills were made")
    spent = time.monotonic() - began
    finish("ddp", failures, f"{steps:,} steps of 2 ranks, {made} kills, {spent:.0f} s")


if __name__ == "__main__":
    main()
