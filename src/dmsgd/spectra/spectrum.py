"""What all factorisations return, and the one place where small eigenvalues are cut off."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, final

import numpy as np

from dmsgd.errors import RankError
from dmsgd.inputs.arrays import TINY, FloatArray, as_array, as_matrix, as_numbers, check_vanishing
from dmsgd.inputs.fingerprint import digest
from dmsgd.inputs.fingerprint import fingerprint as fingerprint_of
from dmsgd.inputs.scalars import as_count, as_share, as_text
from dmsgd.spectra.vectors import Vectors, as_vectors

#: The route of a spectrum that the user made.
GIVEN = "given"

#: How far VᵀV of a spectrum that the user made may be from the identity.
ORTHONORMAL = 1e-8


@final
@dataclass(frozen=True)
class Rounding:
    """What rounding may have done to a spectrum.

    power:  the relative error of λ_n is about eps (λ_1 / λ_n)^power: 1/2 where it disturbs singular
            values (kernels given by features), 1 where eigenvalues (by entries), 0 where none.
    hidden: how many eigenvalues it may have hidden, because they are not above ...
    least:  ... this share of the largest.
    beside: how many times the largest the eigenvalue is that errors are relative to: above 1 where
            the spectrum is what is left of a larger one (`dmsgd.spectra.conditional`).
    """

    power: float = 0.0
    hidden: int = 0
    least: float = 0.0
    beside: float = 1.0


@final
@dataclass(frozen=True, eq=False, repr=False)
class Spectrum:
    """The non-zero part of L = V diag(λ) Vᵀ.

    values:  λ, shape (rank,), positive, largest first.
    vectors: V, shape (n, rank), row-major, orthonormal columns: an array, or for features that are
             read in blocks `Vectors` that make rows when asked for them (np.asarray makes all).
    route:   how it was computed (see `dmsgd.exact`).
    tol:     eigenvalues up to tol times the largest were left out on demand.
    trace_error: how far L is from the kernel it stands for, as a share of that kernel's trace; 0
             for `dmsgd.exact` without a tol.
    rounding: what numbers of 53 bits do to it; `dmsgd.KDPP` warns where that can be seen.
    kernel, data: the kernel it stands for, in words and as a hash ("" if made by hand).
    method:  the function of that kernel that it is, with all its arguments ("" if made by hand).

    Spectrum(values, vectors) is yours to make; all arguments are then checked.

    >>> Spectrum([2.0, 1.0], np.eye(3)[:, :2])
    Spectrum(3 items, rank 2, route='given')
    """

    values: FloatArray
    vectors: Any
    route: str = field(default=GIVEN, kw_only=True)
    tol: float = field(default=0.0, kw_only=True)
    trace_error: float = field(default=0.0, kw_only=True)
    rounding: Rounding = field(default=Rounding(), kw_only=True)
    kernel: str = field(default="", kw_only=True)
    data: str = field(default="", kw_only=True)
    method: str = field(default="", kw_only=True)

    def __post_init__(self) -> None:
        for name in ("route", "kernel", "data", "method"):
            as_text(getattr(self, name), name)
        if not isinstance(self.rounding, Rounding):
            raise TypeError(f"rounding must be that of another Spectrum, got {self.rounding!r}")
        values = _checked_values(self.values)
        for name, checked in (
            ("tol", as_share(self.tol, "tol")),
            ("trace_error", as_share(self.trace_error, "trace_error")),
            ("values", values),
            ("vectors", _checked_vectors(self.vectors, values.size)),
        ):
            object.__setattr__(self, name, checked)

    @cached_property
    def held(self) -> Vectors:
        """The vectors, as everyone else asks for them."""
        return as_vectors(self.vectors)

    @property
    def n(self) -> int:
        """Number of items."""
        return int(self.vectors.shape[0])

    @property
    def rank(self) -> int:
        """Number of eigenvalues above the tolerance: the largest possible batch size."""
        return int(self.values.size)

    def refuse_beyond_rank(self, k: int) -> None:
        """Raise RankError if there is no batch of size k, and say what counts as zero."""
        if as_count(k, "k") <= self.rank:
            return
        if self.tol > self.rounding.least:
            cut = (
                f"eigenvalues up to tol={self.tol:.1g} of the largest were left out; a smaller tol "
                f"keeps more"
            )
        elif self.rounding.hidden:
            cut = (
                f"all others are below {self.rounding.least:.0e} of the largest, where rounding "
                f"cannot tell them from zero"
            )
        else:
            cut = "a batch of more items has determinant zero"
        raise RankError(k, self.rank, cut)

    def fingerprint(self) -> str:
        """Return a hash of what draws depend on; another spectrum has another.

        That is the kernel and what was done to it, the same on every machine; of a spectrum made
        by hand, its numbers.
        """
        if self.data:
            return digest(self.data, self.method)
        return digest(self.values, fingerprint_of(self.vectors))

    def __repr__(self) -> str:
        tol = f", tol={self.tol:.0e}" if self.tol else ""
        error = f", trace error {self.trace_error:.2%}" if self.trace_error else ""
        return f"Spectrum({self.n} items, rank {self.rank}, route={self.route!r}{tol}{error})"


def truncated(
    values: FloatArray, vectors: Any, route: str, rounding: Rounding, tol: float = 0.0
) -> Spectrum:
    """Return the spectrum of the eigenpairs above `tol` and `rounding.least` times the largest.

    `trace_error` is what tol leaves out; what rounding does is no choice. Nobody checks the values
    and vectors: they are an eigendecomposition.
    """
    order = np.argsort(-values, kind="stable")
    if values[order[0]] < TINY:
        check_vanishing(float(values[order[0]]), "the kernel")
    lost = (values > rounding.least * values[order[0]]) & (values < TINY)
    if lost.any():
        hidden = rounding.hidden + int(np.count_nonzero(lost))
        rounding = replace(rounding, hidden=hidden, least=TINY / values[order[0]])
    above = values[order] > max(tol, rounding.least) * values[order[0]]
    cut = values[order[~above & (values[order] > rounding.least * values[order[0]])]]
    order = order[above]
    share = float(cut.sum() / (cut.sum() + values[order].sum()))
    return _unchecked(
        values=np.ascontiguousarray(values[order]), vectors=as_vectors(vectors).chosen(order),
        route=route, tol=tol, trace_error=share, rounding=rounding,
    )  # fmt: skip


def changed(spectrum: Spectrum, **parts: Any) -> Spectrum:
    """Return the spectrum with these parts instead of its own, which nobody checks."""
    own = {each.name: getattr(spectrum, each.name) for each in fields(spectrum)}
    return _unchecked(**(own | parts))


def _unchecked(**parts: Any) -> Spectrum:
    made = object.__new__(Spectrum)  # the constructor is the user's, and checks
    for name, part in parts.items():
        object.__setattr__(made, name, part)
    return made


def _checked_values(given: Any) -> FloatArray:
    values = as_numbers(given, "values", of="eigenvector")
    if not (values > 0).all():
        raise ValueError(
            f"values must be positive and finite, got {values.min()} to {values.max()}; leave out "
            f"what is zero, with its vectors"
        )
    if values.min() < TINY:
        raise ValueError(
            f"values must be at least {TINY:g}, below which numbers lose digits, got "
            f"{values.min():g}; multiply all by a constant (a k-DPP stays the same), or leave out "
            f"the small ones, with their vectors"
        )
    with np.errstate(over="ignore"):
        if not np.isfinite(values.sum()):
            raise ValueError("values are so large that their sum overflows; rescale them")
    if (np.diff(values) > 0).any():
        raise ValueError("values must be sorted, largest first, and the vectors with them")
    return values


def _checked_vectors(given: Any, rank: int) -> FloatArray:
    V = np.array(as_array(as_matrix(given, "vectors", allow_tiny=True)), order="C")  # its own
    if V.shape[1] != rank or V.shape[0] < rank:
        raise ValueError(
            f"vectors must have one column for each of the {rank} values and at least as many "
            f"rows, got shape {V.shape}"
        )
    gap = float(np.abs(V.T @ V - np.eye(rank)).max())
    if not gap <= ORTHONORMAL:
        raise ValueError(
            f"the columns of vectors must be orthonormal, but VᵀV is off by {gap:.2g}; take them "
            f"from an eigendecomposition (exact does) or from np.linalg.qr"
        )
    return V
