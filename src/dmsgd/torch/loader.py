"""A DataLoader that is checked before it runs and counts what training has consumed."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping, Sequence
from copy import copy
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

from dmsgd.designs.design import unbiased_weights
from dmsgd.designs.stream import Source, check_design
from dmsgd.inputs.scalars import Seed, as_count, as_flag, seed_key
from dmsgd.torch.distributed import (
    Shard,
    as_shard,
    check_batch_size,
    process_count,
    ranks_per_draw,
)
from dmsgd.torch.embedding import check_numbered
from dmsgd.torch.sampler import DiverseSampler


class Loader(DataLoader[Any]):
    """A DataLoader over a `DiverseSampler` that can be checkpointed, with any number of workers.

    `state_dict()` counts the batches handed to the training loop, not those fetched ahead. `len` is
    of a whole epoch, also for the rest of one that is resumed, as progress bars and Trainers expect
    it. A copy begins the next epoch. Made by `loader`.
    """

    sampler: DiverseSampler
    batch_size: int
    _place: tuple[int, int] | None = None  # epoch, and how many of its items training has got

    def __init__(self, dataset: Dataset[Any], **options: Any) -> None:
        super().__init__(dataset, **options)
        if not isinstance(self.sampler, DiverseSampler):
            raise TypeError(
                f"a {type(self.sampler).__name__} was put in the place of the design's draws, as "
                f"Lightning's overfit_batches does; to overfit on m draws, give it a plain "
                f"DataLoader(Subset(dataset, design.sample(m, seed).ravel()), batch_size=k)"
            )

    def __iter__(self) -> Iterator[Any]:  # type: ignore[override]
        sampler = self.sampler
        check_batch_size(sampler.design.k, self.batch_size, sampler.num_replicas, sampler.pass_size)
        if isinstance(self.dataset, WithLossWeights):
            self.dataset.check_design(sampler.stream.fingerprint)
        epoch, consumed = self._place = sampler.next_place
        for batch in super().__iter__():
            consumed += self.batch_size
            self._place = epoch, consumed
            yield batch
        self._place = None

    def state_dict(self) -> dict[str, Any]:
        """Return where training stands: epoch, consumed items, and of which design; plain."""
        # Another epoch may have been named since.
        under_way = self._place if self.sampler.last_pass is not None else None
        return self.sampler.state(*(under_way or self.sampler.next_place))

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from `state` at the next pass over the loader."""
        position = self.sampler.place_in(state)[1]
        if position % self.batch_size:
            raise ValueError(
                f"the state is {position} items into an epoch, and batches of {self.batch_size} "
                f"from there would mix two draws; load it with the accumulation steps that it was "
                f"saved with, or save between draws"
            )
        self.sampler.resume(state)
        self._place = None


def loader(
    dataset: Dataset[Any],
    design: Source | DiverseSampler,
    *,
    batch_size: int | None = None,
    accumulation: int = 1,
    steps: int | None = None,
    seed: Seed = 0,
    loss_weights: bool = False,
    shard: Shard = "auto",
    **options: Any,
) -> Loader:
    """Return a DataLoader whose every global step is one draw of `design`.

    dataset:      map-style, of the n items that the design was made of.
    design:       what is drawn from; or a `DiverseSampler` of it, to be used as it is.
    batch_size:   items per process and forward pass, by default k / (ranks x accumulation).
    accumulation: backward passes per optimiser step.
    steps, seed, shard: as for `DiverseSampler`.
    loss_weights: hand out each item's loss weight as well (see `WithLossWeights`).
    options:      any other DataLoader argument (num_workers, collate_fn, pin_memory, ...).

    >>> import dmsgd, torch
    >>> from torch.utils.data import TensorDataset
    >>> X = torch.randn(100, 5)
    >>> batches = loader(TensorDataset(X), dmsgd.diversify(X, k=4), accumulation=2)
    >>> len(batches), next(iter(batches))[0].shape
    (50, torch.Size([2, 5]))
    """
    loss_weights, shard = as_flag(loss_weights, "loss_weights"), as_shard(shard)
    if isinstance(design, DiverseSampler):
        sampler, design = design, design.design
        _check_same(sampler, steps, seed, shard)
    else:
        sampler = None
    _check_fits(dataset, design)
    for name in ("sampler", "batch_sampler", "shuffle", "drop_last"):
        if name in options:
            raise TypeError(f"{name} is decided by the design; leave it out")
    if not as_flag(options.get("in_order", True), "in_order"):
        raise ValueError(
            "in_order=False hands out batches as workers finish them, so that ranks and "
            "accumulation steps would mix draws, and a state would skip some; leave it out"
        )
    accumulation = as_count(accumulation, "accumulation")
    ranks = (
        process_count() if sampler is None else ranks_per_draw(sampler.shard, sampler.replica[1])
    )
    local, rest = divmod(design.k, ranks * accumulation)
    if rest or (batch_size is not None and as_count(batch_size, "batch_size") != local):
        given = f"batch_size {batch_size} x " if batch_size is not None else ""
        raise ValueError(
            f"{given}{ranks} ranks x {accumulation} accumulation steps does not multiply out to "
            f"k={design.k}; every global step must be exactly one draw"
            + ("" if rest else f", so batch_size is {local}")
        )
    data = WithLossWeights(dataset, design) if loss_weights else dataset
    sampler = sampler or DiverseSampler(design, steps, seed, shard=shard)
    sampler.pass_size = design.k // accumulation
    return Loader(data, batch_size=local, sampler=sampler, drop_last=True, **options)


def _check_same(sampler: DiverseSampler, steps: int | None, seed: Seed, shard: Shard) -> None:
    """Raise if a sampler that is ready is asked to be another one."""
    seed_key(seed)  # raises for anything that is not a seed
    same = {
        "steps": steps is None or as_count(steps, "steps") == sampler.steps,
        "seed": isinstance(seed, int | np.integer) and seed in (0, sampler.seed),
        "shard": shard in ("auto", sampler.shard),
    }
    for name, agreed in same.items():
        if not agreed:
            raise ValueError(
                f"this sampler has its own {name}, {getattr(sampler, name)}; leave {name} out, or "
                f"pass the design instead of the sampler"
            )


def _check_fits(dataset: Any, design: Source) -> None:
    check_numbered(dataset, "dataset")
    check_design(design, len(dataset), "the dataset")


class WithLossWeights(Dataset[Any]):
    """A dataset that adds each item's loss weight, k / (n b_i), as the last field.

    It is k times `dmsgd.unbiased_weights`, for losses that are averaged over a batch rather than
    summed: (loss_weights * losses).mean() is an unbiased estimate of the mean loss over the data,
    also when ranks or accumulation steps average their parts. A tuple or list gets one more
    element, a mapping (a dict, a BatchEncoding) a "loss_weight", anything else, a namedtuple too,
    becomes a pair; what the dataset returned keeps its type. `loss_weights` has all n of them, in
    torch's default type when the dataset is made, so that losses keep theirs. O(n).

    >>> import dmsgd
    >>> WithLossWeights(["a", "b", "c"], dmsgd.Uniform(n=3, k=2))[1]
    ('b', tensor(1.))
    """

    def __init__(self, dataset: Dataset[Any], design: Source) -> None:
        _check_fits(dataset, design)
        self.dataset = dataset
        weights = design.k * unbiased_weights(design)
        self.loss_weights = torch.tensor(weights, dtype=torch.get_default_dtype())
        self._fingerprint = design.fingerprint()

    def check_design(self, fingerprint: str) -> None:
        """Raise if batches of another design are drawn, as after an update of the sampler."""
        if fingerprint != self._fingerprint:
            raise ValueError(
                "the loss weights are of another design than the batches, which the sampler's "
                "update() has changed; make the loader again, with loss_weights=True"
            )

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
