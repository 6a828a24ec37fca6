"""Diverse batches for PyTorch; importing this module loads torch.

    sampler = dmsgd.torch.DiverseSampler(design, seed=0)
    loader = DataLoader(dataset, batch_size=design.k, sampler=sampler, drop_last=True)

or `dmsgd.torch.loader(dataset, design)`, which checks that everything fits and can be resumed.
"""

from dmsgd.torch.embedding import embed
from dmsgd.torch.loader import Loader, WithLossWeights, loader
from dmsgd.torch.sampler import DiverseSampler

__all__ = ["DiverseSampler", "Loader", "WithLossWeights", "embed", "loader"]
