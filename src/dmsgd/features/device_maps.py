"""What feature maps do to rows on a graphics card; those that have no version here go by memory."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import numpy as np
import torch
from torch import Tensor

from dmsgd.features import mapped_rows as maps
from dmsgd.features.interface import Map
from dmsgd.inputs.arrays import as_array

#: Similarities that are formed at a time.
SLICE = 2**27


def sent(array: Any, like: Tensor) -> Tensor:
    """Return an array as a float64 tensor on the card of `like`."""
    made = torch.from_numpy(np.ascontiguousarray(as_array(array), dtype=np.float64))
    return made.to(like.device)


@singledispatch
def on_device(map: Map, rows: Tensor) -> Tensor:
    """Return what `map` makes of all rows, which are float64, on their card."""
    return sent(map.part(0, len(rows))(rows.cpu().numpy()), rows)


@on_device.register
def _(map: maps.UnitRows, rows: Tensor) -> Tensor:
    lengths = torch.linalg.vector_norm(rows, dim=1, keepdim=True)
    tiny = lengths < maps.SHORT
    if bool(tiny.any()):  # squares of small numbers vanish
        rows = torch.where(tiny, rows * maps.STRETCH, rows)
        lengths = torch.linalg.vector_norm(rows, dim=1, keepdim=True)
    return rows / torch.where(lengths == 0, 1.0, lengths)


@on_device.register
def _(map: maps.UnitColumns, rows: Tensor) -> Tensor:
    shifted = (rows - sent(map.origin, rows)).sub_(sent(map.means, rows))
    return shifted.div_(sent(map.deviations, rows))


@on_device.register
def _(map: maps.WithLabels, rows: Tensor) -> Tensor:
    codes = torch.from_numpy(map.codes).to(rows.device)
    H = torch.nn.functional.one_hot(codes, map.classes).to(torch.float64) * map.w
    return H if map.w == 1 else torch.cat(((1 - map.w) * rows, H), dim=1)


@on_device.register
def _(map: maps.RowFactors, rows: Tensor) -> Tensor:
    return rows * sent(map.factors, rows)[:, None]


@on_device.register
def _(map: maps.LandmarkFeatures, rows: Tensor) -> Tensor:
    points, whitening = sent(map.landmarks, rows), sent(map.whitening, rows)
    step = max(1, SLICE // len(points))
    parts = (rows[first : first + step] for first in range(0, len(rows), step))
    return torch.cat([similarity(part, points, map.scale) @ whitening for part in parts])


def similarity(A: Tensor, B: Tensor, scale: float) -> Tensor:
    """Return exp(-|a - b|² / (2 scale²)) for the rows a of A and b of B."""
    centre = B.mean(dim=0)  # distances are the same, and less is lost to rounding
    A, B = A - centre, B - centre
    L = torch.addmm(A.square().sum(dim=1, keepdim=True), A, B.T, alpha=-2.0)
    L += B.square().sum(dim=1)
    return L.clamp_(min=0.0).mul_(-0.5 / scale**2).exp_()
