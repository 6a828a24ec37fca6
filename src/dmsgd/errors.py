"""Errors that users may want to catch by name; plain bad input raises ValueError or TypeError."""

from __future__ import annotations


class RankError(ValueError):
    """The kernel has too few independent directions for a batch of size k.

    A k-DPP needs k <= rank(L): every set of more items has determinant zero. `cut` says what was
    taken for zero, because a computed rank depends on that.
    """

    def __init__(self, k: int, rank: int, cut: str) -> None:
        super().__init__(
            f"k={k} exceeds the kernel's rank {rank} ({cut}); lower k to at most {rank}, add "
            f"features (with labels: w < 1, or a kernel of full rank such as kernel='rbf'), or use "
            f"dmsgd.Stratified for several items per class"
        )
        self.k = k
        self.rank = rank
        self.cut = cut

    def __reduce__(self) -> tuple[type[RankError], tuple[int, int, str]]:
        return RankError, (self.k, self.rank, self.cut)


class TargetError(ValueError):
    """No k-DPP over these features has the prescribed inclusion probabilities."""


class KernelWarning(UserWarning):
    """The kernel, or the factor that stands for it, is unlikely to be what was meant."""


class SamplingError(RuntimeError):
    """A draw could not be completed, as with a spectrum whose vectors are not orthonormal."""


class ClusterError(ConnectionError):
    """There is no Dask cluster at an address, or it was lost; draws on disk are kept."""


class DeviceError(RuntimeError):
    """A graphics card, or what it is reached by, is not there or did not do what it was asked."""
