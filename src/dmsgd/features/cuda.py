"""`Cuda`: features in a CUDA tensor, which stays on its GPU.

Products are computed there in float64, a slice of rows at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import Any, final

import numpy as np
import torch
from torch import Tensor

from dmsgd.features.array import InMemory
from dmsgd.features.contract import Features, RowMap
from dmsgd.inputs.arrays import (
    OVERFLOWING,
    FloatArray,
    IntArray,
    Matrix,
    as_array,
    as_matrix,
    check_nonzero,
    check_shape,
    check_vanishing,
    on_host,
)
from dmsgd.inputs.fingerprint import digest, fingerprint_rows, hash_factors
from dmsgd.runtime.memory import reserve
from dmsgd.spectra.cuda import reserve_on
from dmsgd.spectra.decompose import correct_left_vectors, like

#: Numbers in a slice of rows: large enough for fast products, small beside the memory of a GPU.
SLICE = 2**27
#: Numbers in a block of rows that is copied to the host.
BLOCK = 2**22


@final
class Cuda(Features):
    """An (n, d) tensor of any real dtype; its numbers are used as float64.

    origin: returns the fingerprint where a map has made the tensor from others.
    """

    def __init__(self, tensor: Tensor, origin: Callable[[], str] | None = None) -> None:
        self.tensor, self.origin = tensor, origin
        self.n, self.d = (int(size) for size in tensor.shape)
        self.kind = f"on {tensor.device}"

    def slices(self, numbers: int = SLICE) -> Iterator[tuple[int, Tensor]]:
        """Yield (number of the first row, rows as float64) on the GPU."""
        step = max(1, numbers // self.d)
        for start in range(0, self.n, step):
            yield start, self.tensor[start : start + step].to(torch.float64)

    def take(self, items: IntArray) -> Matrix:
        return on_host(self.tensor[like(self.tensor, items)].to(torch.float64))

    def blocks(self) -> Iterator[Matrix]:
        return (on_host(part) for _, part in self.slices(BLOCK))

    def _each(self, function: Callable[..., Any], name: str, **arguments: Any) -> Iterator[Any]:
        there = {
            key: given if isinstance(given, float | Tensor) else like(self.tensor, as_array(given))
            for key, given in arguments.items()
        }
        return (function(part, **there) for _, part in self.slices())

    def _join(self, parts: Iterable[Tensor], columns: int = 1) -> Tensor:
        start, joined = 0, None
        for part in parts:
            if len(part) == self.n:
                return part
            if joined is None:  # filled part by part: torch.cat would need twice the memory
                joined = part.new_empty((self.n, *part.shape[1:]))
            joined[start : start + len(part)] = part
            start += len(part)
        assert joined is not None  # there are items
        return joined

    def gram(self) -> Tensor:
        total = self.tensor.new_zeros((self.d, self.d), dtype=torch.float64)
        for _, part in self.slices():
            total.addmm_(part.T, part)
        check_nonzero(bool(total.any()))
        return total

    def mapped(self, map: RowMap) -> Cuda:
        parts = (map.part(start, start + len(part))(part) for start, part in self.slices())
        return Cuda(self._join(parts), lambda: digest(self.fingerprint(), map.fingerprint()))

    def plan_spectrum(self, advice: str) -> None:
        size = 3 * self.n**2 if self.d >= self.n else self.n * self.d + 4 * self.d**2
        reserve_on(self.tensor.device, size, f"the eigenvectors of {self.n:,} items")

    def eigenpairs(
        self, values: FloatArray, U: Tensor, overwrite: bool
    ) -> tuple[FloatArray, Tensor]:
        V = self.times(U / like(U, np.sqrt(values)))
        return correct_left_vectors(V, values), V

    def transposed(self) -> Cuda:
        return Cuda(self.tensor.T.contiguous())

    def to_memory(self) -> InMemory:
        reserve(self.n * self.d, f"{self!r} in memory", "use a part of the data")
        return InMemory(on_host(self.tensor.to(torch.float64)), self.fingerprint())

    def copied(self) -> Cuda:
        return Cuda(self.tensor.clone(), self.origin)

    def unwrap(self) -> Tensor:
        return self.tensor

    @cached_property
    def _fingerprint(self) -> str:
        if self.origin is not None:
            return self.origin()
        factors = like(self.tensor, hash_factors(self.d).view(np.int64))
        return fingerprint_rows(self.shape, (_hashes(part, factors) for _, part in self.slices()))


def cuda_features(tensor: Any, name: str, allow_tiny: bool) -> Cuda:
    """Return a CUDA tensor as features, after the checks that arrays in memory get."""
    if tensor.layout != torch.strided:
        raise TypeError(f"{name} is a {tensor.layout} tensor; pass {name}.to_dense()")
    if tensor.is_complex():
        raise TypeError(f"{name} must hold real numbers, got dtype {tensor.dtype}")
    check_shape(tuple(tensor.shape), name)
    features = Cuda(tensor.detach().resolve_neg())
    squares = sum(float(part.square().sum()) for _, part in features.slices())
    if not squares <= OVERFLOWING:
        as_matrix(features.take(np.arange(features.n)), name)  # raises, and says where
    if not allow_tiny:
        check_nonzero(bool(tensor.any()))
        check_vanishing(squares, name)
    return features


def _hashes(part: Tensor, factors: Tensor) -> Any:
    """Return `row_hashes` of the rows: Σ_j a_j swap(bits of X_ij) mod 2^64, -0.0 being 0.0."""
    swapped = (part + 0.0).contiguous().view(torch.uint8).view(*part.shape, 8).flip(-1).contiguous()
    return (swapped.view(torch.int64)[..., 0] * factors).sum(dim=1).cpu().numpy().view(np.uint64)
