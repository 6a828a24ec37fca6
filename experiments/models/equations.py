"""Networks as solutions of two differential equations, and by how much they miss them.

A jet is a value with its first and its unmixed second derivatives along both axes. Coordinates are
in the unit square.
"""

from __future__ import annotations

from functools import cache
from math import prod
from typing import Any

import numpy as np
import torch

EQUATIONS = ("Poisson", "Burgers")
WAVES = (3, 2)  # half periods of Poisson's solution, along both axes
NU = 0.01 / np.pi  # the viscosity of Burgers' equation
SCALE = 4.0  # a network sees coordinates from -2 to 2


def jet(network: Any, x: Any) -> tuple[Any, list[Any], list[Any]]:
    """Return u, its first and its unmixed second derivatives at x (jobs, points, 2).

    Layer by layer: t = tanh(z) has t' = (1 - t²) z' and t'' = (1 - t²)(z'' - 2 t z'²).
    """
    value, first = SCALE * (x - 0.5), [torch.zeros_like(x), torch.zeros_like(x)]
    for axis in (0, 1):
        first[axis][..., axis] = SCALE
    second = [torch.zeros_like(x)] * 2
    for layer in range(0, len(network), 2):
        weight, bias = network[layer : layer + 2]
        value = torch.baddbmm(bias, value, weight)
        first, second = [each @ weight for each in first], [each @ weight for each in second]
        if layer + 2 < len(network):
            value = value.tanh()
            slope = 1 - value.square()
            second = [
                slope * (b - 2 * value * a.square()) for a, b in zip(first, second, strict=True)
            ]
            first = [slope * each for each in first]
    return value, first, second


def product(f: Any, g: Any) -> Any:
    """Return the jet of f g; a jet is (value, first derivatives, second derivatives)."""
    value = f[0] * g[0]
    first = [f[1][i] * g[0] + f[0] * g[1][i] for i in (0, 1)]
    second = [f[2][i] * g[0] + 2 * f[1][i] * g[1][i] + f[0] * g[2][i] for i in (0, 1)]
    return value, first, second


def sine(x: Any, axis: int, rate: float) -> Any:
    """Return the jet of sin(rate x_axis)."""
    phase = rate * x[..., axis : axis + 1]
    first, second = ([phase * 0, phase * 0] for _ in range(2))
    first[axis], second[axis] = rate * phase.cos(), -(rate**2) * phase.sin()
    return phase.sin(), first, second


def solution(equation: str, network: Any, x: Any) -> Any:
    """Return the jet of what the network N says, with the right values on the boundary.

    Poisson: sin(πx) sin(πy) N on the unit square. Burgers: sin(2πy) + t sin(πy) N, where (t, y) is
    in the unit square and y stands for 2y - 1 in (-1, 1).
    """
    found = product(sine(x, 1, np.pi), jet(network, x))
    if equation == "Poisson":
        return product(sine(x, 0, np.pi), found)
    t, start = x[..., :1], sine(x, 1, 2 * np.pi)
    value, first, second = product((t, [t * 0 + 1, t * 0], [t * 0, t * 0]), found)
    both = (
        [a + b for a, b in zip(*each, strict=True)]
        for each in ((start[1], first), (start[2], second))
    )
    return start[0] + value, *both


def residual(equation: str, network: Any, x: Any) -> Any:
    """Return by how much the equation is missed at x."""
    value, first, second = solution(equation, network, x)
    if equation == "Poisson":
        waves = (sine(x, axis, np.pi * wave)[0] for axis, wave in enumerate(WAVES))
        return (second[0] + second[1]) / (np.pi**2 * np.dot(WAVES, WAVES)) + prod(waves)
    return first[0] + value * first[1] / 2 - NU * second[1] / 4  # y is half as long as 2y - 1


@cache
def exact(equation: str, side: int) -> tuple[np.ndarray, np.ndarray]:
    """Return points of a grid, (side², 2), and the solution there."""
    at = (np.arange(side) + 0.5) / side
    x = np.stack(np.meshgrid(at, at, indexing="ij"), axis=-1).reshape(-1, 2)
    if equation == "Poisson":
        return x, np.prod(np.sin(np.pi * np.array(WAVES) * x), axis=1)
    nodes, weights = np.polynomial.hermite.hermgauss(200)
    from_where = np.pi * (2 * x[:, 1:] - 1 - np.sqrt(4 * NU * x[:, :1]) * nodes)
    logs = -np.cos(from_where) / (2 * np.pi * NU)
    share = weights * np.exp(logs - logs.max(axis=1, keepdims=True))
    return x, -(np.sin(from_where) * share).sum(axis=1) / share.sum(axis=1)
