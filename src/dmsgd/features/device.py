"""Features on a graphics card: a CUDA tensor, which stays there.

Products are made on the card, in float64, a slice of rows at a time; what is small comes back as
NumPy arrays, as from all other features.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any, final

import numpy as np
import torch
from torch import Tensor

from dmsgd.features.device_maps import on_device, sent, similarity
from dmsgd.features.interface import Features, Map
from dmsgd.features.resident import Resident, held
from dmsgd.inputs.arrays import FloatArray, IntArray, Matrix, check_nonzero, check_vanishing
from dmsgd.inputs.fingerprint import digest, fingerprint_rows, hash_factors
from dmsgd.inputs.memory import reserve
from dmsgd.inputs.messages import counted

#: Numbers in a slice of rows: large enough for fast products, small beside a card's memory.
SLICE = 2**27
#: Numbers that a block of rows has when it is brought into memory.
BLOCK = 2**22


@final
class OnDevice(Features):
    """An (n, d) tensor on a card, of any real kind; its numbers are used as float64.

    origin: makes the fingerprint where a map has made the tensor from others.
    """

    resident = False

    def __init__(self, tensor: Tensor, origin: Callable[[], str] | None = None) -> None:
        self.tensor, self.origin = tensor, origin
        self.n, self.d = (int(size) for size in tensor.shape)
        self.kind = f"on {tensor.device}"

    def device(self) -> OnDevice:
        return self

    def slices(self) -> Iterator[tuple[int, Tensor]]:
        """Yield (number of the first row, rows as float64) on the card."""
        step = max(1, SLICE // self.d)
        for start in range(0, self.n, step):
            yield start, self.tensor[start : start + step].to(torch.float64)

    def there(self, array: Any) -> Tensor:
        """Return an array as a tensor on the card."""
        return sent(array, self.tensor)

    def take(self, items: IntArray) -> Matrix:
        return _here(self.tensor[self._chosen(items)].to(torch.float64))

    def blocks(self) -> Iterator[tuple[int, Matrix]]:
        step = max(1, BLOCK // self.d)
        for start in range(0, self.n, step):
            yield start, _here(self.tensor[start : start + step].to(torch.float64))

    def row_squares(self) -> FloatArray:
        return self._rows(lambda rows: (rows * rows).sum(dim=1))

    def squares_of(self, B: FloatArray) -> FloatArray:
        factor = self.there(B)
        return self._rows(lambda rows: (rows @ factor).square().sum(dim=1))

    def times(self, B: Matrix) -> FloatArray:
        factor = self.there(B)
        return self._rows(lambda rows: rows @ factor)

    def similarities(self, points: Matrix, scale: float) -> FloatArray:
        others = self.there(points)
        return self._rows(lambda rows: similarity(rows, others, scale))

    def similarities_there(self, scale: float, items: IntArray | None = None) -> Tensor:
        """Return exp(-|f_i - f_j|² / (2 scale²)) on the card, for all j or `items`; 1 if i = j."""
        rows, chosen = self.tensor.to(torch.float64), self._chosen(items)
        L = similarity(rows, rows[chosen], scale)
        L[chosen, torch.arange(L.shape[1], device=L.device)] = 1.0
        return L

    def inner_products(self, items: IntArray | None = None) -> Tensor:
        """Return f_i · f_j on the card, for all j or `items`."""
        rows = self.tensor.to(torch.float64)
        return rows @ rows[self._chosen(items)].T

    def _chosen(self, items: IntArray | None) -> Tensor:
        if items is None:
            return torch.arange(self.n, device=self.tensor.device)
        return torch.from_numpy(np.ascontiguousarray(items)).to(self.tensor.device)

    def products(self, other: OnDevice) -> OnDevice:
        """Return the features f_i ⊗ g_i."""
        one, two = self.tensor.to(torch.float64), other.tensor.to(torch.float64)
        made = (one[:, :, None] * two[:, None, :]).reshape(self.n, self.d * other.d)
        return OnDevice(made, lambda: digest("products", self.fingerprint(), other.fingerprint()))

    def _rows(self, work: Callable[[Tensor], Tensor]) -> FloatArray:
        return np.concatenate([_here(work(rows)) for _, rows in self.slices()])

    def gram(self, weights: FloatArray | None = None) -> FloatArray:
        return _here(self.gram_there(None if weights is None else self.there(weights)))

    def gram_there(self, weights: Tensor | None = None) -> Tensor:
        """Return Fᵀ diag(weights) F on the card."""
        total = self.tensor.new_zeros((self.d, self.d), dtype=torch.float64)
        for start, rows in self.slices():
            if weights is not None:
                rows = rows * weights[start : start + len(rows), None].sqrt()
            total.addmm_(rows.T, rows)
        return total

    def gram_of(self, S: FloatArray) -> FloatArray:
        return _here(self.gram_of_there(self.there(S)))

    def gram_of_there(self, S: Tensor) -> Tensor:
        """Return (F S)ᵀ(F S) on the card."""
        total = S.new_zeros((S.shape[1], S.shape[1]))
        for _, rows in self.slices():
            C = rows @ S
            total.addmm_(C.T, C)
        return total

    def normal(self, S: FloatArray) -> tuple[FloatArray, float]:
        squared, length = self.normal_there(self.there(S))
        return _here(squared), length

    def normal_there(self, S: Tensor) -> tuple[Tensor, float]:
        """Return FᵀF S on the card, and |F S|²."""
        total, length = torch.zeros_like(S), 0.0
        for _, rows in self.slices():
            C = rows @ S
            total.addmm_(rows.T, C)
            length += float(C.square().sum())
        return total, length

    def mapped(self, map: Map) -> Features:
        def origin() -> str:
            return digest(self.fingerprint(), map.fingerprint())

        return OnDevice(on_device(map, self.tensor.to(torch.float64)), origin)

    def whole(self) -> Resident:
        reserve(self.n * self.d, f"{self!r} in memory", "use a part of the data")
        return held(_here(self.tensor.to(torch.float64)), self.fingerprint())

    def owned(self) -> OnDevice:
        return OnDevice(self.tensor.clone(), self.origin)

    @cached_property
    def _fingerprint(self) -> str:
        if self.origin is not None:
            return self.origin()
        factors = torch.from_numpy(hash_factors(self.d).view(np.int64)).to(self.tensor.device)
        return fingerprint_rows(self.shape, (_hashes(rows, factors) for _, rows in self.slices()))

    def fingerprint(self) -> str:
        return self._fingerprint


def on_card(tensor: Any, name: str, allow_tiny: bool) -> OnDevice:
    """Return a CUDA tensor as features, looked over as arrays in memory are."""
    if tensor.layout != torch.strided:
        raise TypeError(f"{name} is a {tensor.layout} tensor; pass {name}.to_dense()")
    if tensor.is_complex():
        raise TypeError(f"{name} must hold real numbers, got dtype {tensor.dtype}")
    if tensor.ndim != 2:
        raise ValueError(
            f"{name} must have two dimensions (items, features), got shape {tuple(tensor.shape)}; "
            f"images become rows by X.flatten(1)"
        )
    if tensor.numel() == 0:
        raise ValueError(f"{name} is empty: shape {tuple(tensor.shape)}")
    features = OnDevice(tensor.detach().resolve_neg())
    squares = sum(float(rows.square().sum()) for _, rows in features.slices())
    if not np.isfinite(squares):
        bad = int((~torch.isfinite(tensor)).sum())
        if bad:
            raise ValueError(
                f"{name} has {counted(bad, 'NaN or infinite value')}; remove or impute them"
            )
        raise ValueError(f"{name} has values so large that their squares overflow; rescale it")
    if not allow_tiny:
        check_nonzero(bool(tensor.any()))
        check_vanishing(squares, name)
    return features


def _hashes(rows: Tensor, factors: Tensor) -> Any:
    """Return `row_hashes` of the rows: Σ_j a_j swap(bits of X_ij) mod 2^64."""
    swapped = rows.contiguous().view(torch.uint8).view(*rows.shape, 8).flip(-1).contiguous()
    return (swapped.view(torch.int64)[..., 0] * factors).sum(dim=1).cpu().numpy().view(np.uint64)


def _here(tensor: Tensor) -> FloatArray:
    return np.asarray(tensor.cpu().numpy())
