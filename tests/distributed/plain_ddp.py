"""Plain DistributedDataParallel: nothing but the sampler."""

import torch
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader

from common import EPOCHS, STEPS, Items, design, leave, rank, write
from dmsgd.torch import DiverseSampler

torch.distributed.init_process_group("gloo")
sampler = DiverseSampler(design(), steps=STEPS)
loader = DataLoader(Items(), batch_size=4, sampler=sampler, drop_last=True, num_workers=1)
model = DistributedDataParallel(torch.nn.Linear(1, 1))
batches = []
for epoch in range(EPOCHS):
    sampler.set_epoch(epoch)
    for x in loader:
        model(x).sum().backward()
        batches.append(x.flatten().int().tolist())
write(rank(), batches, length=len(loader))
torch.distributed.destroy_process_group()
leave()
