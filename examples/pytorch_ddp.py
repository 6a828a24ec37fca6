"""DistributedDataParallel: the ranks share each draw, so every global step is one diverse batch.

    torchrun --standalone --nproc_per_node 2 examples/pytorch_ddp.py
    python examples/pytorch_ddp.py                  # one process

DDP:     `DiverseSampler` takes this rank's part of each draw; all ranks agree without talking.
         k must be a multiple of the number of ranks, and batch_size is k / ranks.
Resume:  as in pytorch.py; a state saved with two ranks can be loaded with any number.
Workers: any number.
"""

import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

import dmsgd
from data import long_tailed_digits

if "RANK" in os.environ:  # started by torchrun
    dist.init_process_group("gloo")
else:
    dist.init_process_group("gloo", rank=0, world_size=1, store=dist.HashStore())
torch.manual_seed(0)
X, y, test_X, test_y = map(torch.from_numpy, long_tailed_digits())
dataset, k, ranks = TensorDataset(X, y), 20, dist.get_world_size()
design = dmsgd.diversify(X, k, labels=y, w=0.7)

diverse = dmsgd.torch.DiverseSampler(design, seed=0)
for name, sampler in {"uniform": DistributedSampler(dataset), "diverse": diverse}.items():
    loader = DataLoader(dataset, k // ranks, sampler=sampler, drop_last=True)
    model = DistributedDataParallel(torch.nn.Linear(64, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    for epoch in range(6):
        sampler.set_epoch(epoch)
        for inputs, targets in loader:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(inputs), targets).backward()
            optimizer.step()
    accuracy = (model(test_X).argmax(1) == test_y).float().mean()
    if dist.get_rank() == 0:
        print(f"{name}: balanced test accuracy {accuracy:.3f} ({ranks} processes)")
dist.destroy_process_group()
