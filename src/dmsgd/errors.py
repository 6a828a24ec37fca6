"""Errors that users may want to catch by name; plain bad input raises ValueError or TypeError."""

from __future__ import annotations


class RankError(ValueError):
    """The kernel has too few independent directions for a batch of size k.

    A k-DPP needs k <= rank(L): every set of more items has determinant zero. `cut` says what was
    taken for zero, because a computed rank depends on that.

    >>> import dmsgd
    >>> try:
    ...     dmsgd.diversify([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], k=3)
    ... except dmsgd.RankError as error:
    ...     print(error.k, error.rank)
    3 2
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
    """No k-DPP over these features has the prescribed inclusion probabilities.

    >>> import dmsgd
    >>> try:
    ...     dmsgd.diversify([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0]], k=2, target="uniform")
    ... except dmsgd.TargetError:
    ...     print("items 0 and 1 never meet, so that item 2 is in every batch")
    items 0 and 1 never meet, so that item 2 is in every batch
    """


class KernelWarning(UserWarning):
    """The kernel, or the factor that stands for it, is unlikely to be what was meant.

    >>> import dmsgd, warnings
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     _ = dmsgd.diversify([[1000.0, 0.1], [2000.0, 0.3], [3000.0, 0.2]], k=2)
    >>> issubclass(caught[0].category, dmsgd.KernelWarning), "standardize" in str(caught[0].message)
    (True, True)
    """


class SamplingError(RuntimeError):
    """A draw could not be completed, or no weights give the inclusion probabilities asked for.

    Rounding can do that where the eigenvalues of a kernel span too much for `KDPP.given`.

    >>> import dmsgd
    >>> try:
    ...     batch = dmsgd.Uniform(9, 3).sample(1, seed=0)
    ... except dmsgd.SamplingError as error:
    ...     print(error)  # which draw, and why
    """


class ClusterError(ConnectionError):
    """There is no Dask cluster at an address, or it was lost; draws on disk are kept."""


class DeviceError(RuntimeError):
    """A graphics card, or what it is reached by, is not there or did not do what it was asked."""
