"""Diverse batches for PyTorch; importing this module loads torch.

`loader(dataset, design, seed=0)` is a DataLoader that checks that everything fits and can be
resumed; `DiverseSampler(design)` is its sampler, for frameworks that make their own loader.
`labels(dataset)` are the classes of its items. `log_prob` has gradients, to learn a kernel.
"""

from dmsgd.inputs.messages import require

require("torch", "dmsgd.torch")

from dmsgd.torch.learning import log_prob
from dmsgd.torch.loader import Loader, WithLossWeights, loader
from dmsgd.torch.per_item import embed, labels
from dmsgd.torch.sampler import DiverseSampler

__all__ = [
    "DiverseSampler", "Loader", "WithLossWeights", "embed", "labels", "loader", "log_prob",
]  # fmt: skip
