"""RBF kernels over features in blocks: Nyström features, made block by block like any other map."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import final

from dmsgd.inputs.arrays import FloatArray, IntArray
from dmsgd.kernels import RBF, similarity
from dmsgd.spectra.factor import marked
from dmsgd.spectra.spectrum import Spectrum
from dmsgd.spectra.streamed import of_rows
from dmsgd.streams.rows import Rows
from dmsgd.streams.transforms import EachBlock


@final
@dataclass(frozen=True, eq=False)
class LandmarkFeatures:
    """block -> C W^(-1/2): similarities to the landmarks, whitened."""

    landmarks: FloatArray
    scale: float
    whitening: FloatArray

    def __call__(self, block: FloatArray) -> FloatArray:
        """Return the features of a block, shape (rows, rank of W)."""
        return similarity(block, self.landmarks, self.scale) @ self.whitening


def of_landmarks(
    kernel: RBF, items: IntArray, whitening: FloatArray, route: str, method: str
) -> Spectrum:
    """Return the spectrum of C W⁺ Cᵀ, with its trace error. Two passes, one for the fingerprint."""
    rows = kernel.features
    assert isinstance(rows, Rows)
    features = LandmarkFeatures(rows.take(items), kernel.scale, whitening)
    spectrum = of_rows(rows.mapped(EachBlock(features, whitening.shape[1])))
    left = max(1 - float(spectrum.values.sum()) / kernel.n, 0.0)  # the trace of an RBF kernel is n
    return marked(replace(spectrum, route=route), kernel, method, left)
