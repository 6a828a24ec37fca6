"""The noise of gradients when every item is seen equally often: uniform target against plain SGD.

With the target "uniform" the mean gradient of a batch is unbiased without weights, so its variance
compares directly with that of a uniform batch. It is measured exactly, along a training with
uniform batches, on three real problems (`problems`) with several kernels each, beside what
it depends on: how much of the gradients the kernel sees, how alike the gradients are of items that
keep each other out of a batch, and how strongly they do.
"""
