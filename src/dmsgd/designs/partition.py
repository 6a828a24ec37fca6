"""`Partition`: every item once per epoch, in diverse batches; `OnePerGroup`: groups kept apart."""

from __future__ import annotations

from functools import cached_property
from typing import Any, final

import numpy as np

from dmsgd.designs.contract import Design
from dmsgd.designs.kdpp import KDPP
from dmsgd.designs.stratified import Stratified, Uniform
from dmsgd.inputs.arrays import FloatArray, IntArray
from dmsgd.inputs.fingerprint import digest
from dmsgd.inputs.labels import as_classes
from dmsgd.inputs.messages import counted, visible
from dmsgd.inputs.scalars import as_batch_size, as_count, as_positive
from dmsgd.runtime.memory import reserve
from dmsgd.samplers.partition import RandomStream, deal, exchange_items
from dmsgd.spectra.eigenpairs import Spectrum

#: Name of the sampler in the record of a schedule.
EXCHANGE = "exchange"


class Partition(Design):
    """Epochs of n // k batches in which every item comes once, as diverse as those of a design.

    design: the design to follow. A k-DPP: the partition into batches B has probability
            proportional to Π_B det(L_B + ridge), L being its kernel with rows of length 1: every
            item comes once, so that lengths, and with them a target, cancel. `Stratified`: each
            class is spread evenly over batches, in proportion to its size. Batches are not
            balanced, as those of `Stratified` are: a rare class stays rare. `Uniform`: shuffled
            epochs. Or a `Spectrum` and k, for a k that exceeds its rank.
    labels: with a k-DPP, also spread each class evenly: only items of one class are exchanged.
    rounds: rounds of exchange, from batches dealt at random; in each, batches are paired and every
            pair proposes k exchanges. The distribution above is the limit of many rounds, so that
            of a k-DPP's partition is approximate; after six, batches are nearly as diverse as
            independent ones.
    ridge:  admits batches that the kernel rules out: duplicates, more items than its rank.

    Batch t is batch t % (n // k) of epoch t // (n // k). The n % k leftover items are another
    random sample in every epoch: every item has b = k/n, so plain averages are unbiased, and over
    an epoch without leftovers they are exact. Raises TypeError for other designs.
    See also `OnePerGroup`, `KDPP` for independent batches.

    >>> import dmsgd
    >>> X = np.random.default_rng(0).normal(size=(12, 5))
    >>> epoch = Partition(dmsgd.diversify(X, k=3)).sample(4, seed=0)
    >>> sorted(epoch.ravel().tolist()) == list(range(12))
    True
    """

    #: Key, number and batches of the latest epoch.
    _latest: tuple[int, int, IntArray] | None = None

    def __init__(
        self,
        design: KDPP | Stratified | Uniform | Spectrum,
        labels: Any = None,
        *,
        k: int | None = None,
        rounds: int = 6,
        ridge: float = 1e-3,
    ) -> None:
        if not isinstance(design, KDPP | Stratified | Uniform | Spectrum):
            kind = type(design).__name__
            raise TypeError(f"design must be KDPP, Stratified, Uniform or a Spectrum, got {kind}")
        if (k is None) == isinstance(design, Spectrum):
            raise TypeError("Partition needs k for a Spectrum, and for nothing else")
        if labels is not None and isinstance(design, Stratified | Uniform):
            raise ValueError(f"labels go with a k-DPP, and {design!r} is none; leave them out")
        self.design = design
        self.n = design.n
        self.k = as_batch_size(k, self.n) if isinstance(design, Spectrum) else design.k
        #: Batches of an epoch.
        self.batches = self.n // self.k
        self.rounds = as_count(rounds, "rounds", least=0)
        self.ridge = as_positive(ridge, "ridge")
        self._kinds = design.stratum if isinstance(design, Stratified) else None
        if labels is not None:
            self._kinds = as_classes(labels, self.n)[1]

    @property
    def chunk(self) -> int:
        return self.batches  # an epoch is made as a whole

    @cached_property
    def _rows(self) -> FloatArray | None:
        """Rows of a factor of the kernel, scaled to length 1; None without a kernel."""
        if isinstance(self.design, Stratified | Uniform):
            return None
        spectrum = self.design if isinstance(self.design, Spectrum) else self.design.spectrum
        size, what = spectrum.n * spectrum.rank, f"the rows of {spectrum.n} items"
        reserve(size, what, "use a kernel of lower rank")
        rows = np.asarray(spectrum.vectors) * np.sqrt(spectrum.values)
        lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))
        rows /= np.where(lengths > 0, lengths, 1.0)[:, None]
        return np.ascontiguousarray(rows)

    def _draw(self, key: int, start: int, size: int, workers: int) -> IntArray:
        out = np.empty((size, self.k), dtype=np.int64)
        done = 0
        while done < size:
            epoch, first = divmod(start + done, self.batches)
            part = self._epoch(key, epoch, workers)[first : first + size - done]
            out[done : done + len(part)] = part
            done += len(part)
        return out

    def _epoch(self, key: int, epoch: int, workers: int) -> IntArray:
        if (latest := self._latest) and latest[:2] == (key, epoch):
            return latest[2]
        numbers = RandomStream(key, epoch)
        batches = deal(self._kinds, self.n, self.k, numbers)
        if self._rows is not None:
            how = self.rounds, self.ridge, numbers, workers
            exchange_items(batches, self._rows, self._kinds, *how)
        batches = np.take_along_axis(batches, numbers.order(*batches.shape), axis=1)
        self._latest = key, epoch, batches
        return batches

    def inclusion(self) -> FloatArray:
        """Return b_i = k/n, the probability that item i is in a batch, shape (n,)."""
        return np.full(self.n, self.k / self.n)

    def fingerprint(self) -> str:
        how = self.rounds, self.ridge.hex(), "none" if self._kinds is None else self._kinds
        return digest("Partition", self.k, self.design.fingerprint(), *how)

    def provenance(self) -> dict[str, str]:
        if isinstance(self.design, Spectrum):
            return self._origin(self.design.kernel, self.design.data, EXCHANGE)
        return {**self.design.provenance(), "design": repr(self), "sampler": EXCHANGE}

    def __repr__(self) -> str:
        shares = ", classes in proportion to their sizes, not balanced"
        classes = shares if self._kinds is not None else ""
        how = f"rounds={self.rounds}, ridge={self.ridge:g}"
        return f"Partition({self.design!r}, k={self.k}{classes}, {how})"


@final
class OnePerGroup(Partition):
    """Epochs of n // k batches in which every item comes once and no batch has two of a group.

    groups: (n,) the group of each item: a question and its answers, versions of a text, a patient.

    Raises ValueError if a group has more than n // k items, one for each batch of an epoch.

    Which groups share a batch is random, and so are the n % k leftover items of an epoch. Batches
    are global: under DDP no two ranks have items of one group in a step. The batches are those of
    `Partition(Stratified(groups, k))`, which does not check the sizes of groups.
    See also `Partition`.

    >>> epoch = OnePerGroup([0, 0, 0, 1, 1, 1, 2, 2, 2], k=3).sample(3, seed=0)
    >>> np.sort(epoch // 3, axis=1).tolist()
    [[0, 1, 2], [0, 1, 2], [0, 1, 2]]
    """

    def __init__(self, groups: Any, k: int) -> None:
        design = Stratified(groups, k)
        sizes, batches = np.bincount(design.stratum), design.n // design.k
        largest = int(np.argmax(sizes))
        if (size := int(sizes[largest])) > batches:
            raise ValueError(
                f"group {visible(design.strata[largest], 60)} has {size:,} items, but at k={k} the "
                f"number of batches per epoch is {batches:,}, so that two of them would share a "
                f"batch; lower k to at most {design.n // size}, or leave out some of its items"
            )
        super().__init__(design)
        self._groups = sizes.size

    def __repr__(self) -> str:
        return f"OnePerGroup(n={self.n}, k={self.k}, {counted(self._groups, 'group')})"
