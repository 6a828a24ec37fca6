"""Makes hostile calls of all public names and counts those that are badly answered: `make fuzz`.

python tests/properties/hostile.py [--calls 100000] [--seed 0] [--only NAME]

A call has one or two arguments that it must refuse, or may. It is badly answered if it ends in
anything but a result that holds or one clear error (`outcomes.py`, `test_calls.py: judge`). Each
kind of bad answer is printed once, with what was given.
"""

from __future__ import annotations

import argparse
import faulthandler
import logging
import sys
import time
from collections import Counter

import numpy as np
from given import Size
from test_calls import ALL, judge

#: Of so many calls, at most so many may be badly answered.
ALLOWED = 20 / 100_000


def hostile_call(rng, names):
    """Return (name, size, arguments, verdict, words) of a call with spoiled arguments."""
    name = names[rng.integers(len(names))]
    size = Size(
        n=int(rng.integers(5, 9)), d=int(rng.integers(3, 5)), k=int(rng.integers(2, 4)),
        seed=int(rng.integers(2**32)),
    )  # fmt: skip
    kinds = ALL[name].arguments
    spoilable = [each for each, kind in kinds.items() if kind.bad or kind.odd]
    spoiled = rng.permutation(spoilable)[: 1 + (rng.random() < 0.2)].tolist()
    arguments, given, bad = {}, [], 0
    for argument, kind in kinds.items():
        parts = ("bad", "odd") if argument in spoiled else ("good",)
        choices = [(part, value) for part in parts for value in getattr(kind, part)]
        part, value = choices[rng.integers(len(choices))]
        arguments[argument] = getattr(kind, part)[value](size)
        if argument in spoiled:
            given.append(f"{argument}: {value}")
            bad += part == "bad"
    # Two may fit each other, as weights of n + 1 items and k = n + 1 do, or long sets and no k.
    return name, size, arguments, "bad" if bad == len(given) == 1 else "odd", ", ".join(given)


def badly_answered(calls, seed, names):
    """Return how often each kind of bad answer was given in so many calls."""
    rng, found = np.random.default_rng(seed), Counter()
    for _ in range(calls):
        name, size, arguments, verdict, given = hostile_call(rng, names)
        try:
            judge(ALL[name], size, arguments, verdict)
        except Exception as error:
            kind = f"{name} ({given})"
            if kind not in found:
                told = " ".join(f"{type(error).__name__}: {error}".split())[:300]
                print(f"{kind}, {size}: {told}", flush=True)
            found[kind] += 1
    return found


def main(arguments=None):
    """Make the calls; return 1 if too many were badly answered."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--calls", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="")
    options = parser.parse_args(arguments)
    names = [name for name in ALL if options.only in name]
    began = time.monotonic()
    bad = sum(badly_answered(options.calls, options.seed, names).values())
    seconds = time.monotonic() - began
    print(f"{options.calls:,} calls, {bad:,} badly answered; {seconds:.0f} s")
    return int(bad > ALLOWED * options.calls)


if __name__ == "__main__":
    faulthandler.enable()
    logging.getLogger("dmsgd").disabled = True
    sys.exit(main())
