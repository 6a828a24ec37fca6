"""CPU seconds of draws and of LDA updates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

import dmsgd
from dmsgd import datasets
from dmsgd.inputs.arrays import FloatArray
from dmsgd.paper.models.topics import Inference, topic_model
from dmsgd.paper.protocol import Progress
from dmsgd.paper.r8 import result as r8
from dmsgd.paper.r8.corpus import make_corpus
from dmsgd.paper.r8_cost.result import CONVERGED, DEFAULT, EARLY, Config, Result
from dmsgd.paper.timing import timed
from dmsgd.samplers import reference
from dmsgd.training.draws import CHUNK

#: Draws by one chain: all of them, so that burn-in is paid once.
ONE_CHAIN = 10**6


def load(config: Config, data_dir: str | None = None) -> datasets.R8:
    """Return the documents."""
    return datasets.r8(data_dir, r8.Config().variant).thinned(config.documents)


def run(config: Config, data: datasets.R8, progress: Progress | None = None) -> Result:
    """Return the times; everything runs on one thread."""
    from threadpoolctl import threadpool_limits

    settings = r8.Config()
    corpus = make_corpus(settings, data)
    kernel = dmsgd.Linear(dmsgd.anneal(corpus.tfidf, settings.rho))
    with threadpool_limits(1):
        spectrum, of_spectrum = timed(partial(dmsgd.exact, kernel))
        core, of_core = timed(partial(dmsgd.coreset, kernel, config.cores))
        builders: dict[str, tuple[float, Callable[[int], dmsgd.Design]]] = {
            "reference": (of_spectrum, lambda k: dmsgd.KDPP(spectrum, k, sampler=reference)),
            DEFAULT: (of_spectrum, lambda k: dmsgd.KDPP(spectrum, k)),
            f"coreset, {config.cores} cores": (of_core, lambda k: dmsgd.KDPP(core, k)),
            f"swap chain, {config.chain_steps} steps": (
                0.0,
                lambda k: dmsgd.SwapChain(
                    kernel, k, thin=config.chain_steps, chain_length=ONE_CHAIN
                ),
            ),
            "swap chain (default)": (
                0.0,
                lambda k: dmsgd.SwapChain(kernel, k, chain_length=ONE_CHAIN),
            ),
        }
        designs: dict[str, list[dmsgd.Design]] = {}
        setup: dict[str, FloatArray] = {}
        for name, (before, build) in builders.items():
            build(min(config.sizes)).sample(1, seed=0)  # compiles
            ready = [timed(partial(_ready, build, k)) for k in config.sizes]
            designs[name] = [design for design, _ in ready]
            setup[name] = before + np.array([seconds for _, seconds in ready])
        early = settings.inference
        local = {CONVERGED: replace(early, iterations=config.iterations), EARLY: early}
        rounds: list[tuple[dict[str, list[float]], dict[str, list[float]]]] = []
        for number in range(config.seeds):
            draws = {
                name: [_draw(config, design, number, name == "reference") for design in own]
                for name, own in designs.items()
            }
            updates = {
                name: [_update(config, corpus.counts, inference, k, number) for k in config.sizes]
                for name, inference in local.items()
            }
            rounds.append((draws, updates))
            if progress is not None:
                progress((number + 1) / config.seeds)
    return Result(
        config,
        {name: np.array([draws[name] for draws, _ in rounds]) for name in designs},
        setup,
        of_spectrum,
        {name: np.array([updates[name] for _, updates in rounds]) for name in local},
    )


def _ready(build: Callable[[int], dmsgd.Design], k: int) -> dmsgd.Design:
    """Return a design with its tables made and its chain burnt in."""
    design = build(k)
    design.sample(1, seed=0)
    return design


def _draw(config: Config, design: dmsgd.Design, number: int, slow: bool) -> float:
    """Return CPU seconds of one draw; a chain goes on from set-up or the round before."""
    size = config.slow_draws if slow else CHUNK
    _, seconds = timed(partial(design.sample, size, seed=0, start=1 + number * size))
    return seconds / size


def _update(config: Config, counts: Any, inference: Inference, k: int, seed: int) -> float:
    """Return the median CPU seconds of one LDA update with k documents, sampling left out."""
    design = dmsgd.Uniform(counts.shape[0], k)
    model = topic_model(design, r8.Config().topics, inference, seed)
    times = []
    for batch in design.sample(config.warm_up + config.updates, seed):
        times.append(timed(partial(model.partial_fit, counts[batch]))[1])
    return float(np.median(times[config.warm_up :]))
