"""The items that are looked at, and the k-DPPs made of them: each kernel is decomposed once."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Any, final

from dmsgd.designs import KDPP
from dmsgd.designs.build import make_kdpp, rows_for
from dmsgd.designs.options import DesignOptions
from dmsgd.diagnostics.prospects import Classes, Prospect, prospect
from dmsgd.errors import KernelWarning, RankError
from dmsgd.features.interface import InMemory
from dmsgd.inputs.labels import as_classes
from dmsgd.kernels import Linear
from dmsgd.spectra import Spectrum, exact

#: Spectra with the seconds that each took.
Made = Mapping[DesignOptions, tuple[Spectrum, float]]


@final
class Bench:
    """Items in memory with their labels, batches of k, and the spectra known so far."""

    def __init__(self, X: InMemory, k: int, labels: Any, made: Made) -> None:
        self.X, self.k, self.labels, self._made = X, k, labels, dict(made)
        self.classes = None if labels is None else classes_of(labels)

    def unlabelled(self, settings: DesignOptions) -> Spectrum:
        """Return the spectrum of the kernel alone, which a linear one has for any k."""
        if settings not in self._made:
            began = time.perf_counter()
            if settings.kernel == "rbf":
                spectrum = make_kdpp(settings, self.X, self.k).spectrum
            else:
                spectrum = exact(Linear(rows_for(settings, self.X)))
            self._made[settings] = spectrum, time.perf_counter() - began
        return self._made[settings][0]

    def prospect(self, settings: DesignOptions, asked: bool, required: bool) -> Prospect | None:
        """Return what the k-DPP would do, None where its rank is below k.

        If there is nothing else to advise, the RankError of the one that was asked for is the
        answer.
        """
        with nullcontext() if asked else unasked():
            try:
                design, seconds = self._design(settings)
            except RankError:
                if asked and required:
                    raise
                return None
        return prospect(f"w = {settings.w:g}", settings, design, self.classes, seconds)

    def _used(self, settings: DesignOptions) -> Any:
        """Return labels for a design: numbers, or the given ones where a message may name them."""
        if self.classes is None or settings.target == "balanced":
            return self.labels
        return self.classes[1]

    def _design(self, settings: DesignOptions) -> tuple[KDPP, float]:
        if settings in self._made:
            spectrum, seconds = self._made[settings]
            return KDPP(spectrum, self.k), seconds
        began = time.perf_counter()
        design = make_kdpp(settings, self.X, self.k, self._used(settings))
        return design, time.perf_counter() - began


def classes_of(labels: Any) -> Classes:
    """Return the classes of these labels, which were checked."""
    names, codes = as_classes(labels)
    return names.tolist(), codes


@contextmanager
def unasked() -> Iterator[None]:
    """Keep designs silent that are shown beside the one that was asked for."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", KernelWarning)
        yield
