"""The interface of samplers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from inspect import signature
from typing import Any, NamedTuple, Protocol, final

from dmsgd.inputs.arrays import IntArray


@final
@dataclass(frozen=True)
class PreparedSampler:
    """A sampler after its set-up, ready to draw.

    name:   of the sampler; schedules record it.
    sample: (key, start, size, workers) -> draws start to start + size, shape (size, k), distinct in
            each row; draw t depends on (key, t) alone.
    chunk:  `sample` is cheapest in multiples of this size.
    """

    name: str
    sample: Callable[[int, int, int, int], IntArray]
    chunk: int = 1


class RowArguments(NamedTuple):
    """What `compiled.kdpp.draw` needs to find rows of V.

    callbacks: locate, gather, begin_draw (called at the start of a draw) and prefilter (called late
               in it), compiled when their address is asked for; the last two may be None.
    numbers:   what the callbacks take: sizes, and addresses of arrays.
    buffers:   what holds these arrays, so that they live as long.
    """

    callbacks: tuple[Any, Any, Any, Any]
    numbers: IntArray
    buffers: Any


class RowSource(Protocol):
    """Finds rows of V in compiled loops."""

    def arguments(self, k: int) -> RowArguments:
        """Return the compiled functions and what they take, for batches of k."""


#: sampler(spectrum, k) does the set-up once, for a `dmsgd.spectra.Spectrum`.
Sampler = Callable[[Any, int], PreparedSampler]


def as_sampler(value: Any) -> Sampler:
    """Return `value` if it can be called with a spectrum and k."""
    try:
        signature(value).bind(None, 1)
    except TypeError:
        raise TypeError(
            f"sampler must be a function (spectrum, k) -> PreparedSampler, such as "
            f"dmsgd.samplers.rejection, got {value!r}"
        ) from None
    except ValueError:  # some built-in functions have no signature
        pass
    return value  # type: ignore[no-any-return]


def name_of(sampler: Callable[..., PreparedSampler]) -> str:
    """Return the name of a function, of an object's class, or of a partial with its settings.

    It is the same in every process, because schedules record it.
    """
    if isinstance(sampler, partial):
        named = (f"{name}={value!r}" for name, value in sorted(sampler.keywords.items()))
        return f"{name_of(sampler.func)}({', '.join([*map(repr, sampler.args), *named])})"
    return str(getattr(sampler, "__name__", type(sampler).__name__))
