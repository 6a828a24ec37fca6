"""Accelerate: dealt batches, split batches, gradient accumulation."""

import sys

import torch
from accelerate import Accelerator
from accelerate.utils import DataLoaderConfiguration
from torch.utils.data import DataLoader

from common import EPOCHS, STEPS, Items, K, design, leave, write
from dmsgd.torch import DiverseSampler

mode = sys.argv[2]
accumulation = 2 if mode == "accumulation" else 1
accelerator = Accelerator(
    cpu=True,
    gradient_accumulation_steps=accumulation,
    dataloader_config=DataLoaderConfiguration(split_batches=mode == "split"),
)
sampler = DiverseSampler(design(), steps=STEPS)
batch_size = K if mode == "split" else K // accelerator.num_processes // accumulation
loader = DataLoader(Items(), batch_size=batch_size, sampler=sampler, drop_last=True)
model = torch.nn.Linear(1, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-9)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
batches = []
for epoch in range(EPOCHS):
    loader.set_epoch(epoch)
    for x in loader:
        with accelerator.accumulate(model):
            accelerator.backward(model(x).sum())
            optimizer.step()
            optimizer.zero_grad()
        batches.append(x.flatten().int().tolist())
write(accelerator.process_index, batches, length=len(loader))
accelerator.end_training()
leave()
