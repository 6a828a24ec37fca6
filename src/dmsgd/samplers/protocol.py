"""What a sampler is: *how* a k-DPP is drawn, apart from *what* is drawn (the design)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from inspect import signature
from typing import Any, NamedTuple, Protocol, final

from dmsgd.inputs.arrays import FloatArray, IntArray


@final
@dataclass(frozen=True)
class Draw:
    """What a sampler returns once its set-up is paid.

    name:  of the sampler; schedules are told apart by it.
    rows:  (key, start, size, workers) -> draws start..start+size, shape (size, k), distinct in a
           row; draw t is a function of (key, t) alone.
    chunk: number of draws that `rows` makes for the price of one; 1 if each has its own.
    """

    name: str
    rows: Callable[[int, int, int, int], IntArray]
    chunk: int = 1

    def __call__(self, key: int, start: int, size: int, workers: int) -> IntArray:
        """Return draws start..start+size of the random stream `key`."""
        return self.rows(key, start, size, workers)


class Functions(NamedTuple):
    """Addresses of the compiled functions that know V, for `dmsgd.samplers.compiled.kdpp.draw`.

    `ready` is called when a draw begins, and `sift` late in it, where they are not 0.
    """

    locate: int
    gather: int
    ready: int = 0
    sift: int = 0


class Tables(Protocol):
    """What V is found by in compiled loops."""

    def functions(self) -> Functions:
        """Return the functions that know V."""

    def plan(self, k: int) -> tuple[IntArray, Any]:
        """Return what they are given for batches of k, and what must be kept with it."""


class Eigenvectors(Protocol):
    """What samplers ask of eigenvectors; see `dmsgd.spectra.vectors`."""

    def columns(self, J: Any) -> FloatArray:
        """Return V[:, J] in memory."""

    def rejection(self, values: FloatArray, k: int) -> Draw:
        """Return what draws by the default sampler."""


class Eigenpairs(Protocol):
    """What samplers ask of a spectrum; see `dmsgd.spectra.spectrum`."""

    @property
    def values(self) -> FloatArray:
        """Eigenvalues, largest first."""

    @property
    def held(self) -> Eigenvectors:
        """Their eigenvectors."""


#: sampler(spectrum, k): pays the set-up once and returns what draws.
Sampler = Callable[[Eigenpairs, int], Draw]


def as_sampler(value: Any) -> Sampler:
    """Return `value`, which can be called with a spectrum and k."""
    try:
        signature(value).bind(None, 1)
    except TypeError:
        raise TypeError(
            f"sampler must be a function (spectrum, k) -> Draw, such as dmsgd.samplers.rejection, "
            f"got {value!r}"
        ) from None
    except ValueError:  # compiled functions need not say what they take
        pass
    return value  # type: ignore[no-any-return]


def name_of(sampler: Callable[..., Draw]) -> str:
    """Return a sampler's name: of a function, of an object's class, of a partial with its settings.

    It is the same in every process, because schedules are told apart by it.
    """
    if isinstance(sampler, partial):
        named = (f"{name}={value!r}" for name, value in sorted(sampler.keywords.items()))
        return f"{name_of(sampler.func)}({', '.join([*map(repr, sampler.args), *named])})"
    return str(getattr(sampler, "__name__", type(sampler).__name__))
