"""The spectrum of the kernel that `diversify` chose: exact, or of landmarks with a bound."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dmsgd.designs.options import DesignOptions
from dmsgd.errors import warn_kernel
from dmsgd.inputs.fingerprint import digest
from dmsgd.inputs.progress import plan_work
from dmsgd.kernels import Kernel, exact, nystrom, pivoted_cholesky
from dmsgd.kernels.landmarks import landmark_decay
from dmsgd.spectra import Spectrum
from dmsgd.spectra.decompose import eigenvalues
from dmsgd.spectra.rounding import Rounding
from dmsgd.spectra.spectrum import changed
from dmsgd.targets import named_target, prescribe
from dmsgd.targets.prescribe import scale_to_target

#: Up to this many items the spectrum of an RBF kernel is exact by default; default rank of an
#: approximate one (or 3 k if that is more).
EXACT_ITEMS, FACTOR_RANK = 5000, 1500
#: An approximation that changes at most this share of the items of a batch does not warn.
SMALL_ERROR = 0.01
#: For that the rank grows at most to so many times the default, to two thirds of the items, above
#: which all of them cost no more, and to so many numbers in eigenvectors (1 GB). A share above
#: HOPELESS does not become so small.
GROWTH, LARGEST, HOPELESS = 3, 2**27, 0.25
#: Up to this many items a warning names spectrum="exact", too.
EXACT_POSSIBLE = 20_000
#: A repulsion below this leaves a k-DPP within 5 % (total variation) of uniform batches.
NEARLY_UNIFORM = 0.05


def is_exact(options: DesignOptions, kernel: Kernel) -> bool:
    """Return whether the spectrum is exact."""
    by_size = options.kernel == "linear" or kernel.n <= EXACT_ITEMS
    return options.spectrum == "exact" or (options.spectrum == "auto" and by_size)


def spectrum_for(options: DesignOptions, kernel: Kernel, k: int) -> Spectrum:
    """Return the spectrum of the kernel, exact or not, as the options say."""
    if is_exact(options, kernel):
        return exact(kernel)
    rank = options.rank or min(max(FACTOR_RANK, 3 * k), kernel.n)
    if options.spectrum == "pivoted_cholesky":
        return pivoted_cholesky(kernel, rank)
    found = nystrom(kernel, rank, how="pivots")
    more = _landmarks_wanted(kernel, found, k, rank) if options.spectrum == "auto" else rank
    if more == rank:
        return found
    del found  # its eigenvectors
    return nystrom(kernel, more, how="pivots")


def _landmarks_wanted(kernel: Kernel, spectrum: Spectrum, k: int, rank: int) -> int:
    """Return how many landmarks make `batch_error` small, or `rank` if that is out of reach.

    They come in thirds of `rank`, so that rounding does not change their number, and the
    fingerprint with it.
    """
    if spectrum.rank < k or not SMALL_ERROR < (error := spectrum.batch_error(k)) < HOPELESS:
        return rank
    most = min(GROWTH * rank, 2 * kernel.n // 3, LARGEST // kernel.n)
    times = error / (1 - error) * (1 - SMALL_ERROR) / SMALL_ERROR
    power = landmark_decay(kernel, rank) if most > rank else 0.0
    if power * math.log(GROWTH) < math.log(times):
        return rank
    more = math.ceil(3 * times ** (1 / power)) * rank // 3
    return more if more <= most else rank


def eigenvalues_of(kernel: Kernel) -> Spectrum:
    """Return the exact spectrum without eigenvectors, which take most of the time."""
    if kernel.on_gpu():
        return exact(kernel)
    n, everything = kernel.n, np.arange(kernel.n)
    what = f"the eigenvalues of the full matrix of {kernel!r}"
    plan_work(n**3, 3 * n**2, what, "pass scale=, or spectrum='nystrom'")
    values = eigenvalues(kernel.block(everything, everything))[::-1]
    rounding = Rounding(1.0, n)
    rounding = Rounding(1.0, n, hidden=(n - values.size) * rounding.cutoff)
    parts = {"values": values, "vectors": np.empty((n, 0)), "rounding": rounding}
    return changed(None, **parts, trace_error=0.0, kernel=repr(kernel))


def prescribed_spectrum(
    origin: Kernel | Spectrum, k: int, target: Any, X: Any, labels: Any
) -> Spectrum:
    """Return the spectrum of the tilted kernel; one made from a factor keeps the factor's error.

    Its `kernel` is the one that was tilted, as for a design without a target.
    """
    named = isinstance(target, str)
    b = named_target(target, X, labels, origin.n, k) if named else target
    if named and target == "density":  # hashed by what it is a function of
        kernel = scale_to_target(origin, k, b, digest(target, X.fingerprint()))
    else:
        kernel = prescribe(origin, k, b)
    chosen = origin.kernel if isinstance(origin, Spectrum) else repr(origin)
    error = getattr(origin, "trace_error", 0.0)
    return changed(exact(kernel), trace_error=error, kernel=chosen)


def warn_unsuitable_scale(spectrum: Spectrum, k: int) -> None:
    """Warn of an RBF kernel that is too narrow, or approximated with too large an error."""
    if spectrum.trace_error and (error := spectrum.batch_error(k)) > SMALL_ERROR:
        possible = "spectrum='exact', " * (spectrum.n <= EXACT_POSSIBLE)
        problem = (
            f"{spectrum.rank:,} of the {spectrum.n:,} items stand for all, so the kernel is "
            f"approximate: up to {error:.1%} of the items of a batch are others than the exact "
            f"kernel would draw, and inclusion probabilities are off by as much in all; a larger "
            f"scale, {possible}or spectrum='nystrom' with a larger rank, makes it less"
        )
    elif k > 1 and spectrum.repulsion(k) < NEARLY_UNIFORM:
        problem = (
            "no two items look alike: batches are nearly uniform; choose a larger scale "
            "(dmsgd.designs.suggest_scale(X, k) finds one)"
        )
    else:
        return
    warn_kernel(f"{spectrum.kernel}: {problem}")
