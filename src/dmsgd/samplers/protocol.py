"""What a sampler is: *how* a k-DPP is drawn, apart from *what* is drawn (the design)."""

from __future__ import annotations

from collections.abc import Callable

from dmsgd.inputs.arrays import IntArray
from dmsgd.spectra.spectrum import Spectrum

#: draw(key, start, size, workers): draws start..start+size, shape (size, k), distinct in a row.
Draw = Callable[[int, int, int, int], IntArray]

#: sampler(spectrum, k): pays the set-up once and returns the function that draws.
Sampler = Callable[[Spectrum, int], Draw]
