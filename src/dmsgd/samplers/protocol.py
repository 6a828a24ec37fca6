"""The interface of samplers, and of the eigenvectors that they draw from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from inspect import signature
from typing import Any, NamedTuple, Protocol, final

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


class RowCallbacks(NamedTuple):
    """Addresses of the compiled functions that find rows of V, called by `compiled.kdpp.draw`.

    `begin_draw` is called at the start of a draw and `prefilter` late in it, unless they are 0.
    """

    locate: int
    gather: int
    begin_draw: int = 0
    prefilter: int = 0


class RowSource(ABC):
    """Finds rows of V in compiled loops."""

    @abstractmethod
    def callbacks(self) -> RowCallbacks:
        """Return the compiled functions."""

    @abstractmethod
    def arguments(self, k: int) -> tuple[IntArray, Any]:
        """Return their sizes and addresses for batches of k, and the buffers these point into."""


class BlockRows(Protocol):
    """Features that are read block by block.

    bounds: row numbers at which blocks begin and end, from 0 to n.
    """

    n: int
    bounds: IntArray

    def map_blocks(
        self,
        work: Callable[..., Any],
        name: str,
        arguments: Sequence[Any] | None = None,
    ) -> Iterator[Any]:
        """Yield work(rows, *arguments) for each block in order, None where its arguments are."""


class BlockEigenvectors(Protocol):
    """Eigenvectors V = F basis, computed block by block of the features F."""

    basis: FloatArray

    @property
    def features(self) -> BlockRows:
        """F."""

    def masses(self, pi: FloatArray) -> FloatArray:
        """Return Σ_{i in block} V_in², shape (blocks, rank)."""

    def knows(self, pi: FloatArray) -> bool:
        """Return whether Σ_n V_in² π_n is known."""

    def remember(self, pi: FloatArray, weighed: FloatArray) -> None:
        """Keep Σ_n V_in² π_n."""


class Eigenvectors(Protocol):
    """The eigenvectors of a spectrum."""

    def columns(self, J: Any) -> FloatArray:
        """Return V[:, J] in memory."""

    def sampler(self, values: FloatArray, k: int) -> PreparedSampler:
        """Return the default sampler of the k-DPP with these eigenvalues."""


class Eigenpairs(Protocol):
    """A spectrum."""

    @property
    def values(self) -> FloatArray:
        """Eigenvalues, largest first."""

    @property
    def eigenvectors(self) -> Eigenvectors:
        """Their eigenvectors."""


#: sampler(spectrum, k): does the set-up once.
Sampler = Callable[[Eigenpairs, int], PreparedSampler]


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
