"""A DataLoader that is checked before it runs and counts what training has consumed."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping, Sequence
from copy import copy
from typing import Any

import torch
from torch.utils.data import DataLoader, Dataset

from dmsgd.designs.contract import unbiased_weights
from dmsgd.designs.stream import Source, check_design
from dmsgd.inputs.scalars import Seed, as_count, as_flag
from dmsgd.torch import distributed
from dmsgd.torch.distributed import Shard, as_shard, check_batch_size, process_count
from dmsgd.torch.per_item import check_numbered
from dmsgd.torch.sampler import DiverseSampler, Place


class Loader(DataLoader[Any]):
    """A DataLoader over a `DiverseSampler` that can be checkpointed, with any number of workers.

    `state_dict()` counts the batches handed to the training loop, not those fetched ahead. `len` is
    of a whole epoch, also when one is resumed. A copy of it begins the next epoch.
    See also `loader`, which makes it.
    """

    sampler: DiverseSampler
    batch_size: int
    _reached: Place | None = None  #: Where training stands in the pass under way.

    def __init__(self, dataset: Dataset[Any], **options: Any) -> None:
        super().__init__(dataset, **options)
        if not isinstance(self.sampler, DiverseSampler):
            raise TypeError(
                f"a {type(self.sampler).__name__} replaced the sampler, as Lightning's "
                f"overfit_batches does; to overfit on m draws, give it a plain "
                f"DataLoader(Subset(dataset, design.sample(m, seed).ravel()), batch_size=k)"
            )

    def __iter__(self) -> Iterator[Any]:  # type: ignore[override]
        return _Pass(self)

    def state_dict(self) -> dict[str, Any]:
        """Return where training stands, as a plain dict: epoch, consumed items, design."""
        sampler, last = self.sampler, self.sampler.last
        if last is None:
            return sampler.state(sampler.place)  # of an epoch that was named
        if self._reached is None:
            prepared = distributed.check_accelerate(sampler) is not None  # workers may be done
            if prepared or last.position < len(sampler):
                raise ValueError(
                    f"another loader is in epoch {last.epoch}, and only it knows how many batches "
                    f"are done: save both numbers yourself. {distributed.RESUME}"
                )
        return sampler.state(self._reached or sampler.place)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from `state` at the next pass over the loader."""
        position = self.sampler.place_in(state).position
        if position % self.batch_size:
            raise ValueError(
                f"the state is {position} items into an epoch, and batches of {self.batch_size} "
                f"would mix two draws; load it with as many accumulation steps as before"
            )
        self.sampler.resume(state)
        self._reached = None


class _Pass(Iterator[Any]):
    """The batches of one pass over a `Loader`; like torch's, it goes on after one that raised."""

    def __init__(self, loader: Loader) -> None:
        self._loader = loader
        self._batches: Iterator[Any] | None = None  # None: nothing was asked for yet

    def __next__(self) -> Any:
        loader = self._loader
        if self._batches is None:
            check_batch_size(loader.sampler, loader.batch_size, loader.sampler.num_replicas)
            self._asked = loader._reached = loader.sampler.place  # before workers ask it for more
            self._batches = DataLoader.__iter__(loader)
        epoch, position = self._asked
        self._asked = Place(epoch, position + loader.batch_size)  # a batch that raises counts
        try:
            batch = next(self._batches)
        except StopIteration:
            self._batches, loader._reached = iter(()), None
            raise
        loader._reached = self._asked
        return batch


def loader(
    dataset: Dataset[Any],
    design: Source | DiverseSampler,
    *,
    accumulation: int = 1,
    steps: int | None = None,
    seed: Seed = 0,
    loss_weights: bool = False,
    shard: Shard = "auto",
    **options: Any,
) -> Loader:
    """Return a DataLoader that gives every training step, over all ranks, one batch of `design`.

    dataset:      A map-style dataset of the n items that the design was made of.
    design:       The design or Schedule to draw from, or a `DiverseSampler`, used as it is.
    accumulation: The number of backward passes per optimiser step. A pass of a process has
                  k / (ranks x accumulation) items.
    steps, seed, shard: These are the arguments of `DiverseSampler`.
    loss_weights: Whether each item comes with its loss weight (see `WithLossWeights`).
    options:      Any other argument of DataLoader (num_workers, collate_fn, pin_memory, ...).

    Raises ValueError if k is no multiple of ranks x accumulation, or the sampler has a loader with
    another accumulation, and TypeError for an argument that the design decides, such as shuffle.
    See also `DiverseSampler`, `Stratified`.

    >>> import dmsgd, torch
    >>> from torch.utils.data import TensorDataset
    >>> X = torch.randn(100, 5)
    >>> batches = loader(TensorDataset(X), dmsgd.diversify(X, k=4), accumulation=2)
    >>> len(batches), next(iter(batches))[0].shape
    (50, torch.Size([2, 5]))
    """
    loss_weights, shard = as_flag(loss_weights, "loss_weights"), as_shard(shard)
    sampler = design
    if not isinstance(sampler, DiverseSampler):
        sampler = DiverseSampler(sampler, steps, seed, shard=shard)
    elif not (steps is None and shard == "auto" and isinstance(seed, int) and seed == 0):
        problem = "this sampler has its own steps, seed and shard"
        raise ValueError(f"{problem}; leave them out, or pass the design")
    _check_fits(dataset, sampler.design)
    for name in ("sampler", "batch_sampler", "batch_size", "shuffle", "drop_last"):
        if name in options:
            raise TypeError(f"{name} is decided by the design; leave it out")
    if not as_flag(options.get("in_order", True), "in_order"):
        raise ValueError("in_order=False would mix draws, as workers finish them; leave it out")
    k, accumulation = sampler.design.k, as_count(accumulation, "accumulation")
    named = sampler.replica if sampler.shard is not False else None
    ranks = named[1] if named else process_count()
    if k % (ranks * accumulation):
        factors = (ranks, "ranks"), (accumulation, "accumulation steps")
        product = " x ".join(f"{count} {what}" for count, what in factors if count > 1)
        raise ValueError(f"{product} do not divide k={k}; choose another k")
    if sampler.pass_size not in (None, k // accumulation):
        problem = f"this sampler has a loader with accumulation={k // sampler.pass_size}"
        raise ValueError(f"{problem}; make a sampler for each loader, or pass the design")
    data = WithLossWeights(dataset, sampler.design) if loss_weights else dataset
    size = k // (ranks * accumulation)
    made = Loader(data, batch_size=size, sampler=sampler, drop_last=True, **options)
    sampler.pass_size = k // accumulation
    return made


def _check_fits(dataset: Any, design: Source) -> None:
    check_numbered(dataset, "dataset")
    check_design(design, len(dataset), "the dataset")


class WithLossWeights(Dataset[Any]):
    """A dataset that adds each item's loss weight, k / (n b_i), as the last field.

    It is k times `dmsgd.unbiased_weights`: (loss_weights * losses).mean() over a batch is an
    unbiased estimate of the mean loss over the data, also when ranks or accumulation steps average
    their parts. A tuple or list gets one more element, a mapping (a dict, a BatchEncoding) a
    "loss_weight", and anything else, a namedtuple too, becomes a pair. `loss_weights` has all n of
    them, in torch's default type.

    >>> import dmsgd
    >>> WithLossWeights(["a", "b", "c"], dmsgd.Uniform(n=3, k=2))[1]
    ('b', tensor(1.))
    """

    def __init__(self, dataset: Dataset[Any], design: Source) -> None:
        _check_fits(dataset, design)
        self.dataset = dataset
        weights = design.k * unbiased_weights(design)
        self.loss_weights = torch.tensor(weights, dtype=torch.get_default_dtype())

    def __len__(self) -> int:
        return len(self.dataset)  # type: ignore[arg-type]

    def __getitem__(self, index: int) -> Any:
        return self._join(self.dataset[index], index)

    def __getitems__(self, indices: Sequence[int]) -> list[Any]:
        fetch = getattr(self.dataset, "__getitems__", None)
        items = fetch(indices) if fetch else [self.dataset[index] for index in indices]
        return [self._join(item, index) for item, index in zip(items, indices, strict=True)]

    def _join(self, item: Any, index: int) -> Any:
        weight = self.loss_weights[index].clone()  # a view takes all n along to other processes
        if isinstance(item, MutableMapping):
            joined = copy(item)
            joined["loss_weight"] = weight
            return joined
        if type(item) in (tuple, list):
            return type(item)((*item, weight))
        return item, weight
