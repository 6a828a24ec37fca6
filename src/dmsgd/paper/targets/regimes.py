"""Three ways to use one k-DPP: as the kernel gives it, prescribed, re-weighted."""

from __future__ import annotations

import numpy as np

import dmsgd
from dmsgd.diagnostics import gradient_variance
from dmsgd.inputs.arrays import FloatArray
from dmsgd.paper.flowers.training import Task, start, steps_at
from dmsgd.paper.models import softmax
from dmsgd.paper.models.softmax import softmax_gradients
from dmsgd.paper.targets.result import Config, Regime


def regimes_of(config: Config, task: Task) -> tuple[Regime, ...]:
    """Return the regimes of a k-DPP on the features alone."""
    k, n = config.digits_k, task.y.size
    X, targets = task.inputs.astype(np.float64), task.targets.astype(np.float64)
    begun = start(task, 0).astype(np.float64)
    steps = int(steps_at(config.digits_epochs, task, k)[-1])
    batches = dmsgd.Uniform(n, k).sample(steps, 0)
    ended = softmax.train(begun, X, targets, batches, config.digits_rate)
    gradients = [
        softmax_gradients(X, softmax.probabilities(weights, X) - targets)
        for weights in (begun, ended)
    ]
    given = dmsgd.diversify(task.X, k)
    plain = np.full(n, 1 / k)
    ways: list[tuple[str, dmsgd.KDPP, FloatArray]] = [
        ("as the kernel gives it", given, plain),
        ("prescribed: uniform", dmsgd.diversify(task.X, k, target="uniform"), plain),
        (
            "prescribed: balanced",
            dmsgd.diversify(task.X, k, labels=task.y, target="balanced"),
            plain,
        ),
        ("re-weighted by 1/(N b)", given, dmsgd.unbiased_weights(given)),
    ]
    found = []
    for name, design, a in ways:
        b = design.inclusion()
        measured = [gradient_variance(design, g, a) for g in gradients]
        noise = np.array([each.variance / each.reweighted for each in measured])
        found.append(Regime(name, n * b / k, n * b * a, noise))
    return tuple(found)
