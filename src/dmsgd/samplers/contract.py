"""The interface of samplers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from inspect import signature
from typing import Any, NamedTuple, final

from dmsgd.inputs.arrays import FloatArray, IntArray


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
               in it), by name. They are compiled when their address is first needed; the last two
               may be missing or None.
    record:    what the callbacks take: sizes, and addresses of arrays.
    totals:    sums of squares of the columns of V.
    buffers:   what keeps the arrays of `record` alive.
    """

    callbacks: dict[str, Any]
    record: Any
    totals: FloatArray
    buffers: Any


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
