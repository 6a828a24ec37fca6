"""The spectrum of the kernel that `diversify` chose: exact, or of landmarks with a bound."""

from __future__ import annotations

from typing import Any

from dmsgd.designs.options import DesignOptions
from dmsgd.errors import warn_kernel
from dmsgd.kernels import Kernel, exact, nystrom, pivoted_cholesky
from dmsgd.kernels.landmarks import GrowingLandmarks
from dmsgd.runtime.progress import one_work
from dmsgd.spectra import Spectrum
from dmsgd.spectra.eigenvalues import Eigenvalues
from dmsgd.targets import as_target, prescribe

#: Up to this many items the spectrum of an RBF kernel is exact by default; default rank of an
#: approximate one (or 3 k if that is more).
EXACT_ITEMS, FACTOR_RANK = 5000, 1600
#: An approximation that changes at most this share of the items of a batch does not warn; the
#: estimated share is to be below AIM times as much.
SMALL_ERROR, AIM = 0.01, 0.9
#: To get there the rank may grow to GROWTH times the default, but not above two thirds of the
#: items, where all of them cost no more, nor to eigenvectors of more than LARGEST numbers (1 GB).
GROWTH, LARGEST = 3, 2**27
#: Multiplications n m² of m landmarks that are not worth saving.
QUICK = 2.0**33
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
    if options.spectrum == "nystrom":
        return nystrom(kernel, rank, how="pivots")
    with one_work():
        return _spectrum_of_few(kernel, k, rank)


def _spectrum_of_few(kernel: Kernel, k: int, usual: int) -> Spectrum:
    """Return the spectrum of as few landmarks as make `batch_error` small, or of `usual`.

    Of no fewer than take about a second, which makes the error smaller still.
    """
    most = max(usual, min(GROWTH * usual, 2 * kernel.n // 3, LARGEST // kernel.n))
    least = min(usual, int((QUICK / kernel.n) ** 0.5))
    # What identifies it is not the number of landmarks, which rounding may decide.
    method = f"landmarks(k={k}, least={least}, usual={usual}, most={most}, error={SMALL_ERROR})"
    landmarks, goal = GrowingLandmarks(kernel, least, usual, most), AIM * SMALL_ERROR
    while True:
        is_enough = landmarks.grow(k, goal)
        found = landmarks.spectrum().replaced(method=method)
        if not is_enough or landmarks.count == most or found.rank < k:
            return found
        if (error := found.batch_error(k)) <= SMALL_ERROR:
            return found
        del found  # its eigenvectors
        goal *= AIM * SMALL_ERROR / error  # the estimate was too low


def prescribed_spectrum(origin: Kernel | Spectrum, k: int, target: Any) -> Spectrum:
    """Return the spectrum of the tilted kernel; one made from a factor keeps the factor's error.

    Its `kernel` is the one that was tilted, as for a design without a target.
    """
    b = as_target(target, origin.n, k) if isinstance(target, str) else target
    kernel = prescribe(origin, k, b)
    chosen = origin.kernel if isinstance(origin, Spectrum) else repr(origin)
    error = getattr(origin, "trace_error", 0.0)
    return exact(kernel).replaced(trace_error=error, kernel=chosen)


def warn_unsuitable_scale(spectrum: Eigenvalues, k: int) -> None:
    """Warn of an RBF kernel that is too narrow, or approximated with too large an error."""
    if spectrum.trace_error and (error := spectrum.batch_error(k)) > SMALL_ERROR:
        possible = "spectrum='exact', " * (spectrum.n <= EXACT_POSSIBLE)
        problem = (
            f"{spectrum.rank:,} of the {spectrum.n:,} items stand for all, and more would hardly "
            f"help or take long, so the kernel is approximate: up to {error:.1%} of the items of a "
            f"batch are others than the exact kernel would draw, and inclusion probabilities are "
            f"off by as much in all; a larger scale, {possible}or spectrum='nystrom' with a larger "
            f"rank, makes it less"
        )
    elif k > 1 and spectrum.repulsion(k) < NEARLY_UNIFORM:
        problem = (
            "no two items look alike: batches are nearly uniform; choose a larger scale "
            "(dmsgd.designs.suggest_scale(X, k) finds one)"
        )
    else:
        return
    warn_kernel(f"{spectrum.kernel}: {problem}")
